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
    name = _format(arguments, formats)
    if name == "text" and not arguments.output and arguments.width is None:
        shown.show(**how)
        return
    if name == "text":
        how = {**how, "width": _width(arguments.width)}
    content = formats[name](shown, how)
    content += "" if content.endswith("\n") else "\n"
    if arguments.output:
        write_atomically(arguments.output, content)
        print(f"wrote {arguments.output}", file=sys.stderr)
    else:
        sys.stdout.write(content)


def _width(width: int | None) -> int:
    if width is not None and width < 20:
        raise OptionError(f"--width must be at least 20, but {width} was passed")
    return width or 100


def _format(arguments: argparse.Namespace, formats: dict[str, Writer]) -> str:
    if arguments.json:
        return "json"
    if arguments.format:
        return str(arguments.format)
    by_ending = ENDINGS.get(Path(arguments.output or "").suffix, "text")
    return by_ending if by_ending in formats else "text"
