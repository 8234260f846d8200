"""A Document as plain Unicode text, or coloured in a terminal."""

from __future__ import annotations

import os
from typing import IO, NamedTuple

from regard.graph.notation import Math, Number
from regard.show import _tree
from regard.show._boxes import columns_of, padded, wrapped
from regard.show._format import NumberFormat, format_number
from regard.show._lines import broken
from regard.show._plain import Plain, align_numbers
from regard.show.document import (
    Block,
    Code,
    Display,
    Document,
    Heading,
    Note,
    Paragraph,
    Picture,
    Prose,
    Table,
    formulas_of,
)

HELD = "\ue000"  # stands for a space within a formula that is not to be broken
UNLIMITED = 10**9
INDENT = "  "
PIPED = 80  # columns where there is no terminal, unless COLUMNS says otherwise
STYLES = {
    "title": "bold cyan", "heading 1": "bold cyan", "heading 2": "bold", "heading 3": "bold dim",
    "note": "dim", "code": "green", "plain": "",
}  # fmt: skip


class Line(NamedTuple):
    text: str
    style: str = "plain"


def to_text(document: Document, numbers: NumberFormat, width: int | None = 80) -> str:
    """The whole document in at most `width` columns (None: as wide as it gets)."""
    return "".join(line.text + "\n" for line in _lines(document, numbers, width or UNLIMITED))


def print_text(
    document: Document, numbers: NumberFormat, file: IO[str], width: int | None = None
) -> None:
    """Write to a terminal in colour and in its width; plain when piped."""
    if not file.isatty():
        columns = os.environ.get("COLUMNS", "")
        piped = int(columns) if columns.isdigit() and int(columns) else PIPED
        file.write(to_text(document, numbers, width or piped))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False)
    for line in _lines(document, numbers, width or console.width):
        console.print(Text(line.text, STYLES[line.style]), soft_wrap=True)


def _lines(document: Document, numbers: NumberFormat, width: int) -> list[Line]:
    lines = _underlined(document.title, "═", "title", width)
    for block in document.blocks:
        lines += [Line(""), *_block(block, numbers, width)]
    return [Line(line.text.rstrip(), line.style) for line in lines]


def _block(block: Block, numbers: NumberFormat, width: int) -> list[Line]:
    match block:
        case Heading(text, level):
            return _heading(text, level, width)
        case Paragraph(prose):
            lines = _wrapped(prose_text(prose, numbers, width), width)
            return [*map(Line, lines), *_omission(formulas_of(prose), numbers, "")]
        case Note(prose):
            text = "Note: " + prose_text(prose, numbers, width)
            lines = _wrapped(text, width, "      ")
            return [Line(line, "note") for line in lines]
        case Display(math):
            lines = [INDENT + line for line in broken(math, numbers, width - len(INDENT))]
            return [*map(Line, lines), *_omission((math,), numbers, INDENT)]
        case Table():
            return [Line(line) for line in _table(block, numbers, width)]
        case Code(_, text):
            return [Line("    " + line, "code") for line in text.rstrip("\n").split("\n")]
        case Picture(plot):
            from regard.show._text_plots import plot_lines  # most documents have no picture

            lines = _wrapped(plot.caption, width)
            return [*map(Line, plot_lines(plot, width)), Line(""), *map(Line, lines)]


def _heading(text: str, level: int, width: int) -> list[Line]:
    if level == 1:
        return _underlined(text, "─", "heading 1", width)
    mark = "■ " if level == 2 else "▸ "
    return [Line(line, f"heading {min(level, 3)}") for line in _wrapped(mark + text, width, "  ")]


def _underlined(text: str, stroke: str, style: str, width: int) -> list[Line]:
    lines = _wrapped(text, width)
    rule = stroke * max(map(columns_of, lines), default=0)
    return [Line(line, style) for line in (*lines, rule)]


def _omission(formulas: tuple[Math, ...], numbers: NumberFormat, indent: str) -> list[Line]:
    phrase = _tree.left_out(formulas, numbers)
    return [Line(f"{indent}({phrase})", "note")] if phrase else []


def prose_text(prose: Prose, numbers: NumberFormat, width: int) -> str:
    """Words and formulas on one long line; a short formula holds together when wrapped."""
    writer = Plain(numbers, inline=True)
    pieces = []
    for part in prose:
        if isinstance(part, str):
            pieces.append(part)
            continue
        text = writer.text(part)
        pieces.append(text.replace(" ", HELD) if columns_of(text) <= width // 2 else text)
    return "".join(pieces)


def _wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    lines = wrapped(text, width, hanging)
    return [line.replace(HELD, " ") for line in lines]


def _table(table: Table, numbers: NumberFormat, width: int) -> list[str]:
    header = [prose_text(prose, numbers, width).replace(HELD, " ") for prose in table.header]
    columns = [
        _column([row[place] for row in table.rows], numbers, width) for place in range(len(header))
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    room = width - 2 * (len(header) - 1)
    widths = _widths([header, *rows], room)
    if widths is None:
        return _records(header, rows, width)
    body = [line for row in rows for line in _row(row, widths)]
    rule = "  ".join("─" * column for column in widths)
    return [*_row(header, widths), rule, *body]


def _column(cells: list[Prose], numbers: NumberFormat, width: int) -> list[str]:
    texts = [prose_text(prose, numbers, width).replace(HELD, " ") for prose in cells]
    return (
        align_numbers(texts, [_is_number(prose, numbers) for prose in cells])
        if any(_is_number(prose, numbers) for prose in cells)
        else texts
    )


def _is_number(prose: Prose, numbers: NumberFormat) -> bool:
    if len(prose) != 1 or not isinstance(prose[0], Number):
        return False
    return format_number(prose[0].value, numbers).kind == "number"


def _widths(rows: list[list[str]], room: int) -> list[int] | None:
    """Column widths that fit the room, the widest made narrower; None if that cannot be."""
    widths = [max(columns_of(row[place]) for row in rows) for place in range(len(rows[0]))]
    least = [
        max((columns_of(word) for row in rows for word in row[place].split()), default=1)
        for place in range(len(rows[0]))
    ]
    while sum(widths) > room:
        spare = [width - floor for width, floor in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            return None
        widths[max(range(len(widths)), key=lambda place: (spare[place] > 0, widths[place]))] -= 1
    return widths


def _row(cells: list[str], widths: list[int]) -> list[str]:
    wrapped = [
        [cell] if columns_of(cell) <= width else _wrapped(cell, width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    height = max(map(len, wrapped))
    filled = [lines + [""] * (height - len(lines)) for lines in wrapped]
    return [
        "  ".join(padded(text, width) for text, width in zip(line, widths, strict=True))
        for line in zip(*filled, strict=True)
    ]


def _records(header: list[str], rows: list[list[str]], width: int) -> list[str]:
    """A table too wide for its columns: each row as lines of its own."""
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for name, cell in zip(header, row, strict=True):
            lines += _wrapped(f"{name}: {cell.strip()}" if name else cell.strip(), width, INDENT)
    return lines
