"""A Document as one self-contained HTML file with native MathML, or as a fragment for notebooks."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from regard._errors import MissingExtraError
from regard.graph.notation import Math
from regard.show import _tree
from regard.show._format import NumberFormat
from regard.show._mathml import EQUALS, MathML
from regard.show._rows import Row, rows_of
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
from regard.show.figures import to_svg
from regard.show.plots import Plot

LINE = 90  # about how many characters of a formula stand on a row
MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML"'
SECTIONS = {1: "answer", 2: "step"}


def to_html(document: Document, numbers: NumberFormat) -> str:
    """A page that needs nothing else: no script, no network, no font."""
    style = _style("html.css") + _style("page.css")
    return "\n".join([
        "<!DOCTYPE html>",
        '<html xmlns="http://www.w3.org/1999/xhtml" lang="en">',
        "<head>",
        '<meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        '<meta name="color-scheme" content="light dark"/>',
        f"<title>{escape(document.title)}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        '<main class="regard">',
        *_body(document, numbers),
        "</main>",
        "</body>",
        "</html>",
        "",
    ])  # fmt: skip


def to_fragment(document: Document, numbers: NumberFormat) -> str:
    """The same for a notebook cell: its style touches nothing outside it."""
    style = f"<style>\n{_style('html.css')}</style>"
    return "\n".join(['<div class="regard">', style, *_body(document, numbers), "</div>", ""])


@cache
def _style(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _body(document: Document, numbers: NumberFormat) -> list[str]:
    """The blocks, each answer and each step in a section of its own."""
    lines = [f'<h1 class="title">{escape(document.title)}</h1>'] if document.title else []
    open_levels: list[int] = []
    for block in document.blocks:
        if isinstance(block, Heading) and block.level in SECTIONS:
            while open_levels and open_levels[-1] >= block.level:
                open_levels.pop()
                lines.append("</section>")
            open_levels.append(block.level)
            lines.append(f'<section class="{SECTIONS[block.level]}">')
        lines.append(_block(block, numbers))
    return lines + ["</section>"] * len(open_levels)


def _block(block: Block, numbers: NumberFormat) -> str:
    match block:
        case Heading(text, level):
            tag = f"h{min(level + 1, 6)}"
            return f"<{tag}>{escape(text)}</{tag}>"
        case Paragraph(prose):
            return f"<p>{_prose(prose, numbers)}</p>" + _left_out(formulas_of(prose), numbers)
        case Note(prose):
            words = f"<p><strong>Note.</strong> {_prose(prose, numbers)}</p>"
            return f'<div class="note" role="note">{words}</div>'
        case Display(math):
            return _display(math, numbers)
        case Table():
            return _table(block, numbers)
        case Code(language, text):
            return _code(language, text)
        case Picture(plot):
            return _picture(plot)


def _prose(prose: Prose, numbers: NumberFormat) -> str:
    writer = MathML(numbers)
    return "".join(
        escape(part) if isinstance(part, str) else f"{MATH}>{writer.write(part)}</math>"
        for part in prose
    )


def _left_out(formulas: tuple[Math, ...], numbers: NumberFormat) -> str:
    phrase = _tree.left_out(formulas, numbers)
    return f'\n<p class="left-out">({escape(phrase)})</p>' if phrase else ""


def _display(math: Math, numbers: NumberFormat) -> str:
    rows = rows_of(math, MathML(numbers), EQUALS, LINE)
    body = _single(rows[0]) if len(rows) == 1 else _lines(rows)
    formula = f'{MATH} display="block" displaystyle="true">{body}</math>'
    return _scrolling("formula", "Formula", formula) + _left_out((math,), numbers)


def _scrolling(kind: str, label: str, content: str) -> str:
    """A box that scrolls when what it holds is too wide, by keyboard too."""
    attributes = f'class="scroll {kind}" role="group" aria-label="{label}" tabindex="0"'
    return f"<div {attributes}>\n{content}\n</div>"


def _single(row: Row) -> str:
    return f"<mrow>{row.lead}{EQUALS if row.has_equals else ''}{row.body}</mrow>"


def _lines(rows: list[Row]) -> str:
    later = "".join(_line(row, ' class="continued"') for row in rows[1:])
    return f'<mtable class="lines" displaystyle="true">{_line(rows[0], "")}{later}</mtable>'


def _line(row: Row, mark: str) -> str:
    if row.lead and not row.has_equals:  # a long left-hand side has the line to itself
        return f'<mtr><mtd></mtd><mtd class="sign"></mtd><mtd>{row.lead}</mtd></mtr>'
    sign = EQUALS if row.has_equals else ""
    body = f"<mtd{'' if sign else mark}><mrow>{row.body}</mrow></mtd>"
    return f'<mtr><mtd>{row.lead}</mtd><mtd class="sign">{sign}</mtd>{body}</mtr>'


def _table(table: Table, numbers: NumberFormat) -> str:
    columns = list(zip(*table.rows, strict=True)) or [() for _ in table.header]
    marks = [
        ' class="number"' if column and all(map(is_formula, column)) else "" for column in columns
    ]
    head = "".join(
        f'<th scope="col"{mark}>{_prose(cell, numbers)}</th>'
        for cell, mark in zip(table.header, marks, strict=True)
    )
    rows = [
        "<tr>" + "".join(
            f"<td{mark}>{_prose(cell, numbers)}</td>" for cell, mark in zip(row, marks, strict=True)
        ) + "</tr>"
        for row in table.rows
    ]  # fmt: skip
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>", *rows, "</tbody>", "</table>"]
    formulas = tuple(formula for row in table.rows for cell in row for formula in formulas_of(cell))
    return _scrolling("table", "Table", "\n".join(lines)) + _left_out(formulas, numbers)


def _picture(plot: Plot) -> str:
    """An SVG within the page; where matplotlib is not installed, the plot drawn in text."""
    try:
        drawn = to_svg(plot).replace("<svg", f'<svg role="img" aria-label="{escape(plot.caption)}"')
    except MissingExtraError:
        drawn = _code("text", "\n".join(plot_lines(plot, LINE)))
    caption = f"<figcaption>{escape(plot.caption)}</figcaption>"
    return f'<figure class="plot">{drawn}{caption}</figure>'


def _code(language: str, text: str) -> str:
    name = f' class="language-{escape(language)}"' if language else ""
    return f'<pre tabindex="0"><code{name}>{escape(text.rstrip())}</code></pre>'
