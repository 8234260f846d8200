"""A Document as GitHub-flavoured Markdown with mathematics between dollar signs."""

from __future__ import annotations

import re

from regard.graph.notation import Math
from regard.show import _tree
from regard.show._format import NumberFormat
from regard.show._rows import Row, rows_of
from regard.show._tex import Tex, math_to_latex
from regard.show._text_plots import plot_lines
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
    is_formula,
)

LINE = 90  # about how many characters of a formula stand on a row
DEEPEST = 6  # Markdown has no deeper headings


def to_markdown(document: Document, numbers: NumberFormat) -> str:
    """The whole document; formulas as $…$ and $$…$$."""
    blocks = [f"# {escape(document.title)}"] if document.title else []
    blocks += [_block(block, numbers) for block in document.blocks]
    return "\n\n".join(blocks) + "\n"


def _block(block: Block, numbers: NumberFormat) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * min(level + 1, DEEPEST)} {escape(text)}"
        case Paragraph(prose):
            return _paragraph(prose, numbers)
        case Note(prose):
            return f"> **Note:** {_paragraph(prose, numbers)}"
        case Display(math):
            return _display(math, numbers)
        case Table():
            return _table(block, numbers)
        case Code(language, text):
            return _code(language, text)
        case Picture(plot):
            drawn = _code("text", "\n".join(plot_lines(plot, LINE)))
            return f"{drawn}\n\n{escape(plot.caption)}"


def escape(text: str) -> str:
    """Words that Markdown, HTML and the dollar sign leave alone."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"([\\`*_\[\]<>|$~&^])", r"\\\1", text)
    # Signs that open a block only where a line begins.
    text = re.sub(r"^( *)([#+=-])", r"\1\\\2", text)
    return re.sub(r"^( *\d+)([.)])", r"\1\\\2", text)


def _prose(prose: Prose, numbers: NumberFormat) -> str:
    pieces = [
        (escape(part) if place == 0 else escape("." + part)[1:])
        if isinstance(part, str)
        else f"${_inline(part, numbers)}$"
        for place, part in enumerate(prose)
    ]
    return "".join(pieces)


def _inline(math: Math, numbers: NumberFormat) -> str:
    # Some readers take the two backslashes that end a row for one that is escaped.
    return re.sub(r" \\\\(\[6pt\])? ", r" \\cr ", math_to_latex(math, numbers))


def _paragraph(prose: Prose, numbers: NumberFormat) -> str:
    formulas = formulas_of(prose)
    phrase = _tree.left_out(formulas, numbers)
    return _prose(prose, numbers) + (f" *({phrase})*" if phrase else "")


def _display(math: Math, numbers: NumberFormat) -> str:
    rows = rows_of(math, Tex(numbers), " = ", LINE)
    body = "\n".join(["$$", *_lines(rows), "$$"])
    phrase = _tree.left_out((math,), numbers)
    return body + (f"\n\n*({phrase})*" if phrase else "")


def _lines(rows: list[Row]) -> list[str]:
    if len(rows) == 1:
        return [_row(rows[0])]
    aligned = [_row(row, "&") for row in rows]
    return [r"\begin{aligned}", *(line + r" \\" for line in aligned), r"\end{aligned}"]


def _row(row: Row, align: str = "") -> str:
    if row.has_equals:
        return f"{row.lead} {align}= {row.body}".strip()
    if row.lead:
        return f"{align}{row.lead}"
    return f"{align}{' {}' if align else ''}{row.body}"


def _table(table: Table, numbers: NumberFormat) -> str:
    columns = zip(*table.rows, strict=True) if table.rows else [() for _ in table.header]
    marks = ["---:" if column and all(map(is_formula, column)) else "---" for column in columns]
    rows = [[_prose(cell, numbers) for cell in row] for row in (table.header, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]
    formulas = tuple(formula for row in table.rows for cell in row for formula in formulas_of(cell))
    phrase = _tree.left_out(formulas, numbers)
    return "\n".join(lines) + (f"\n\n*({phrase})*" if phrase else "")


def _code(language: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
