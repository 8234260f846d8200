"""What all verbs share: how something shown is asked for, and where it goes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard._errors import OptionError
from regard._files import write_atomically
from regard.show.shown import Shown

Writer = Callable[[Any, dict[str, Any]], str]

# The words of showing that only some formats have a use for.
PAGES = "new_page_per_answer"

FORMATS: dict[str, Writer] = {
    "text": lambda shown, how: shown.to_text(**how),
    "markdown": lambda shown, how: shown.to_markdown(**how),
    "latex": lambda shown, how: shown.to_latex(**how),
    "html": lambda shown, how: shown.to_html(**how),
    "json": lambda shown, how: shown.to_json(),
}
CODE: dict[str, Writer] = {
    "numpy": lambda shown, how: shown.to_code("numpy"),
    "torch": lambda shown, how: shown.to_code("torch"),
    "matlab": lambda shown, how: shown.to_code("matlab"),
}
ENDINGS = {
    ".txt": "text", ".md": "markdown", ".tex": "latex", ".html": "html", ".json": "json",
    ".py": "numpy", ".m": "matlab",
}  # fmt: skip


def add_output_arguments(parser: argparse.ArgumentParser, formats: dict[str, Writer]) -> None:
    parser.add_argument(
        "--format", choices=formats, help="what to write (default: by --output's ending, else text)"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE instead of printing")
    parser.add_argument("--width", type=int, metavar="N", help="columns of text (default: yours)")


def deliver(
    shown: Shown, arguments: argparse.Namespace, how: dict[str, Any], formats: dict[str, Writer]
) -> None:
    """Print, or write to the file that was named, whole or not at all."""
    name = format_of(arguments, formats)
    _refuse_unused(name, how)
    if name == "text" and not arguments.output and arguments.width is None:
        shown.show(**how)
        return
    if name == "text":
        how = {**how, "width": _width(arguments.width)}
    write(formats[name](shown, how), arguments.output)


def write(content: str, output: str | None) -> None:
    """To the file that was named, whole or not at all, else to the terminal or the pipe."""
    content += "" if content.endswith("\n") else "\n"
    if output:
        write_atomically(output, content)
        print(f"wrote {output}", file=sys.stderr)
    else:
        sys.stdout.write(content)


def _width(width: int | None) -> int:
    if width is not None and width < 20:
        raise OptionError(f"--width must be at least 20, but {width} was passed")
    return width or 100


def format_of(arguments: argparse.Namespace, formats: dict[str, Writer]) -> str:
    """The format that was asked for, by name or by the ending of the output."""
    if arguments.json:
        return "json"
    if arguments.format:
        return str(arguments.format)
    ending = Path(arguments.output or "").suffix
    if ending and ENDINGS.get(ending) not in formats:
        known = ", ".join(end for end, name in ENDINGS.items() if name in formats)
        raise OptionError(
            f"--output {arguments.output!r}: no format has the ending {ending!r} ({known}); "
            "name the file otherwise, or say --format"
        )
    return ENDINGS.get(ending, "text")


def _refuse_unused(name: str, how: dict[str, Any]) -> None:
    """Nothing that was asked for is left out silently."""
    if name in FORMATS and name != "json":
        unused = [PAGES] if PAGES in how and name != "latex" else []
    else:
        unused = list(how)
    if unused:
        words = ", ".join("--" + word.replace("_", "-") for word in unused)
        raise OptionError(f"{words}: the format {name!r} has no use for that")


def number_or_word(text: str | None) -> Any:
    """An option's value as it was typed: a number, true or false, or a word."""
    if text is None or text in ("true", "false"):
        return None if text is None else text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
