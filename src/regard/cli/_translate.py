"""Translate sentences, files, standard input, or line by line as you type."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard._errors import FileError, OptionError
from regard._files import check_target, write_atomically

if TYPE_CHECKING:
    from regard.translation.aligning import Aligned
    from regard.translation.decoding import Search
    from regard.translation.translating import Translation, Translator

EPILOG = """examples:
  regard translate "La petite fille mange deux pommes."
  regard translate --model runs/multi30k --input test.fr --output test.en
  regard translate --greedy < test.fr > test.en
  regard translate --best 3 "Il ne dort pas."
  regard translate --align "Nous voyons le chat noir."
  regard translate            (in a terminal: type a line, read its translation)
"""
LINES_AT_ONCE = 4000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", help="sentences (default: lines of standard input)")
    add_model_arguments(parser)
    parser.add_argument("--input", "-i", metavar="FILE", help="translate the lines of FILE")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--best", type=int, default=1, metavar="N", help="tell the N best of each")
    parser.add_argument(
        "--align", action="store_true", help="tell which source words each word looked at"
    )
    parser.add_argument("--json", action="store_true", help="an object a line")


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, and how to search; `regard evaluate` asks the same."""
    parser.add_argument(
        "--model", "-m", metavar="DIR", help="a checkpoint or a run (default: runs/pocket)"
    )
    parser.add_argument("--beam", type=int, metavar="N", help="hypotheses kept (default: 5)")
    parser.add_argument("--greedy", action="store_true", help="the same as --beam 1")
    parser.add_argument(
        "--length-penalty", type=float, default=1.0, metavar="P",
        help="scores are log p / length^P (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--stop", default="likely", metavar="WHEN",
        help="a sentence is finished: first, likely (default) or sure",
    )  # fmt: skip
    parser.add_argument(
        "--longest", type=int, default=0, metavar="N",
        help="tokens of a translation at most (default: twice those of its source and 20)",
    )  # fmt: skip
    parser.add_argument(
        "--precision", default="auto", metavar="TYPE", help="auto (default), float32 or bfloat16"
    )


def searching(arguments: argparse.Namespace, best: int = 1) -> Search:
    """How to search, as the options say."""
    from regard.translation.decoding import Search

    if arguments.greedy and arguments.beam not in (None, 1):
        raise OptionError(f"--greedy keeps one hypothesis, but --beam {arguments.beam} was passed")
    beam = 1 if arguments.greedy else arguments.beam
    return Search(
        beam=max(5, best) if beam is None else beam,
        best=best,
        length_penalty=arguments.length_penalty,
        stop=arguments.stop,
        longest=arguments.longest,
    )


def run(arguments: argparse.Namespace) -> int:
    from regard.translation.translating import Translator

    if arguments.text and arguments.input:
        raise OptionError("translate: pass sentences or --input, not both")
    how = searching(arguments, arguments.best)
    if arguments.output:
        check_target(arguments.output)
    translator = Translator.load(arguments.model, arguments.precision)
    if not arguments.text and not arguments.input and sys.stdin.isatty():
        return _interactive(translator, how, arguments)
    told = (
        line
        for each in _translations(translator, how, arguments)
        for line in _told(each, translator, arguments)
    )
    if arguments.output:
        write_atomically(arguments.output, "".join(f"{line}\n" for line in told))
        print(f"wrote {arguments.output}", file=sys.stderr)
        return 0
    for line in told:
        print(line)
    return 0


def _translations(
    translator: Translator, how: Search, arguments: argparse.Namespace
) -> Iterator[Translation]:
    """In the order of the lines; many at a time, so that those of one length go together."""
    lines, first = iter(_lines(arguments)), 1
    while some := list(islice(lines, LINES_AT_ONCE)):
        for each in translator.translate(some, how, first):
            for note in each.notes:
                print(f"regard: {note}", file=sys.stderr)
            yield each
        first += len(some)


def _lines(arguments: argparse.Namespace) -> Sequence[str]:
    if arguments.text:
        return [" ".join(text.splitlines()) for text in arguments.text]
    return (
        read_lines(arguments.input)
        if arguments.input
        else decoded_lines(sys.stdin.buffer.read(), "standard input")
    )


def read_lines(path: str) -> list[str]:
    """The lines of a file of UTF-8."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path!r} cannot be read: {error.strerror}") from error
    return decoded_lines(content, path)


def decoded_lines(content: bytes, name: str) -> list[str]:
    """Lines end with \\n or \\r\\n and nothing else, so that files stay side by side."""
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    decoded = []
    for number, line in enumerate(lines, 1):
        try:
            decoded.append(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"))
        except UnicodeDecodeError as error:
            raise FileError(
                f"{name}: line {number} is not UTF-8 (byte {error.start + 1}): convert the file, "
                "such as with `iconv -f latin1 -t utf-8`"
            ) from error
    return decoded


def _told(
    each: Translation, translator: Translator, arguments: argparse.Namespace
) -> Iterator[str]:
    if arguments.json:
        yield json.dumps(_facts(each, translator, arguments.align), ensure_ascii=False)
        return
    if arguments.best == 1:
        yield each.text
    else:
        yield from (f"{said.score:.4f}\t{said.text}" for said in each.best)
    if arguments.align:
        for word in _alignment(translator, each):
            looked = sorted(word.shares, key=lambda share: -share[1])[:3]
            yield f"  {word.word}\t" + "  ".join(f"{name} {share:.0%}" for name, share in looked)


def _alignment(translator: Translator, each: Translation) -> list[Aligned]:
    from regard.translation.aligning import align

    aligned: list[Aligned] = align(translator, each.source, each.best[0])
    return aligned


def _facts(each: Translation, translator: Translator, with_alignment: bool) -> dict[str, Any]:
    best = [
        {"text": said.text, "score": said.score, "complete": said.complete} for said in each.best
    ]
    facts = {"source": each.source, "translations": best, "notes": list(each.notes)}
    if with_alignment:
        aligned = _alignment(translator, each)
        facts["alignment"] = [{"word": word, "looked_at": shares} for word, shares in aligned]
    return facts


def _interactive(translator: Translator, how: Search, arguments: argparse.Namespace) -> int:
    import readline  # noqa: F401  (so that lines can be edited and called back)

    print(f"Type a line and press Enter; Ctrl-D ends. ({translator.reason})", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except EOFError:
            print(file=sys.stderr)
            return 0
        (each,) = translator.translate([line], how)
        for told in (*each.notes, *_told(each, translator, arguments)):
            print(told)
