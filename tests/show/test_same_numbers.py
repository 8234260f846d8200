"""All renderings carry the numbers of the document."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from regard.graph.notation import Equation, Math, Matrix, Number, Symbol
from regard.show import _tree
from regard.show._format import NumberFormat, format_matrix, format_number
from regard.show.document import Display, Document, Note, Paragraph, Table
from regard.show.html import to_html
from regard.show.latex import to_latex
from regard.show.markdown import to_markdown
from regard.show.text import to_text

DECIMAL = re.compile(r"\d+\.\d+")
MATHML = "{http://www.w3.org/1998/Math/MathML}"
FORMATS = ["text", "markdown", "latex", "html"]


def rendered(document: Document, numbers: NumberFormat, which: str) -> str:
    match which:
        case "text":
            return to_text(document, numbers, None)
        case "markdown":
            return to_markdown(document, numbers)
        case "latex":
            return to_latex(document, numbers).split(r"\begin{document}")[1]
        case _:
            return to_html(document, numbers)


# ---- each matrix, read back from each format


def read_text(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if re.search(r"[⎡⎢⎣\[(].*[⎤⎥⎦\])]", line)]
    return [
        re.split(r",?\s+", re.findall(r"[⎡⎢⎣\[(](.*)[⎤⎥⎦\])]", line)[0].strip()) for line in lines
    ]


def read_tex(source: str) -> list[list[str]]:
    found = re.search(r"\\begin\{array\}\{r+\} (.*?) \\end\{array\}", source, re.S)
    body = found[1] if found else re.findall(r"= \((.*)\)", source)[0].replace(",", " &")
    return [
        [_plain_tex(cell) for cell in row.split("&")] for row in re.split(r"\\\\(?:\[6pt\])?", body)
    ]


def _plain_tex(cell: str) -> str:
    cell = re.sub(r"\\texttt\{(.*)\}", lambda m: m[1].replace("{}", ""), cell.strip())
    cell = re.sub(r"(.*) \\cdot 10\^\{(-?\d+)\}", r"\1e\2", cell)
    names = {r"\infty": "∞", r"-\infty": "−∞", r"\mathrm{NaN}": "NaN", r"\cdots": "…",
             r"\vdots": "⋮", r"\ddots": "⋱", r"\blacksquare": "■", r"\mathrm{True}": "True",
             r"\mathrm{False}": "False"}  # fmt: skip
    return names.get(cell, cell)


def read_html(page: str) -> list[list[str]]:
    root = ET.fromstring(page)
    table = root.find(f".//{MATHML}mtable[@class='matrix']")
    if table is None:
        words = "".join(next(root.iter(f"{MATHML}math")).itertext())
        return [re.findall(r"\((.*)\)", words)[0].split(",")]
    return [[_plain_mathml(cell) for cell in row] for row in table]


def _plain_mathml(cell: ET.Element) -> str:
    words = "".join(cell.itertext())
    return re.sub(r"(.*)·10(−?\d+)$", r"\1e\2", words)


READERS = {"text": read_text, "markdown": read_tex, "latex": read_tex, "html": read_html}


def value_of(cell: str) -> Any:
    names = {"NaN": np.nan, "∞": np.inf, "−∞": -np.inf, "True": True, "False": False}
    return names[cell] if cell in names else float(cell.replace("−", "-"))


@pytest.mark.parametrize("which", FORMATS)
@pytest.mark.parametrize("style", ["decimals", "significant", "numpy"])
@pytest.mark.parametrize(
    "name",
    ["X", "WEIGHTS", "MASK", "STRANGE", "TINY", "WIDE", "COUNTS", "ALLOWED", "VECTOR", "BIAS"],
)
def test_matrices_read_back(everything: ModuleType, name: str, style: str, which: str) -> None:
    values = getattr(everything, name)
    document = Document("", (Display(Equation((Symbol("M"), Matrix(values)))),))
    cells = READERS[which](rendered(document, NumberFormat(style, 6), which))
    table = values[np.newaxis] if values.ndim == 1 else values
    assert [len(row) for row in cells] == [table.shape[1]] * table.shape[0]
    read = np.array([[value_of(cell) for cell in row] for row in cells], dtype=float)
    # Six digits asked; numbers too small for six decimals keep two.
    np.testing.assert_allclose(read, table.astype(float), rtol=0.05, atol=0)
    np.testing.assert_allclose(read, table.astype(float), rtol=1e-5, atol=6e-7)


@pytest.mark.parametrize("which", FORMATS)
def test_an_elided_matrix_keeps_its_corners(everything: ModuleType, which: str) -> None:
    document = Document("", (Display(Equation((Symbol("M"), Matrix(everything.LARGE)))),))
    page = rendered(document, NumberFormat(), which)
    cells = READERS[which](page)
    places = [0, 1, 2, 61, 62, 63]
    corner = [[cells[i][j] for j in (0, 1, 2, 4, 5, 6)] for i in (0, 1, 2, 4, 5, 6)]
    read = np.array([[value_of(cell) for cell in row] for row in corner])
    np.testing.assert_allclose(read, everything.LARGE[np.ix_(places, places)], atol=5.1e-5)
    assert {cells[3][0], cells[0][3], cells[3][3]} == {"⋮", "…", "⋱"}
    assert "rows 4 to 61 of 64 and columns 4 to 61 of 64 left out" in page


# ---- the whole document, counted


def _formulas(document: Document) -> Iterator[Math]:
    for block in document.blocks:
        match block:
            case Display(math):
                yield math
            case Paragraph(prose) | Note(prose):
                yield from (part for part in prose if not isinstance(part, str))
            case Table(header, rows):
                for cell in (*header, *(cell for row in rows for cell in row)):
                    yield from (part for part in cell if not isinstance(part, str))
            case _:
                pass


def _numbers(math: Math, numbers: NumberFormat) -> Iterator[str]:
    match math:
        case Number(value):
            yield format_number(value, numbers).unsigned
        case Matrix(values):
            for row in format_matrix(values, numbers).rows:
                yield from (cell.unsigned for cell in row)
        case _:
            for part in _tree.parts(math):
                yield from _numbers(part, numbers)


@pytest.fixture(scope="module")
def expected(everything: ModuleType) -> list[str]:
    """Every number with decimals, in the order in which it is read."""
    written = (
        number
        for math in _formulas(everything.DOCUMENT)
        for number in _numbers(math, NumberFormat())
    )
    return [number for number in written if DECIMAL.fullmatch(number)]


@pytest.mark.parametrize("width", [60, 80, 120, None])
def test_text_has_every_number(
    everything: ModuleType, expected: list[str], width: int | None
) -> None:
    """Matrices stand beside each other, so the order is not that of the document."""
    text = to_text(everything.DOCUMENT, NumberFormat(), width)
    assert Counter(DECIMAL.findall(text)) == Counter(expected)


@pytest.mark.parametrize("which", ["markdown", "latex"])
def test_tex_has_every_number(everything: ModuleType, expected: list[str], which: str) -> None:
    source = rendered(everything.DOCUMENT, NumberFormat(), which)
    assert DECIMAL.findall(re.sub(r"\\hspace\*\{.*?\}", "", source)) == expected


def test_html_has_every_number(everything: ModuleType, expected: list[str]) -> None:
    root = ET.fromstring(to_html(everything.DOCUMENT, NumberFormat()))
    numbers = [element.text or "" for element in root.iter(f"{MATHML}mn")]
    assert [number for number in numbers if DECIMAL.fullmatch(number)] == expected
