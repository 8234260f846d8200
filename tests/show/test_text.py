"""Plain text: widths, terminals and pipes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.graph.notation import Call, Equation, Fraction, Matrix, Number, Product, Symbol
from regard.show._boxes import columns_of
from regard.show._format import NumberFormat
from regard.show.document import Display, Document, Paragraph, Table
from regard.show.text import print_text, to_text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked(everything: ModuleType, width: int) -> None:
    text = to_text(everything.DOCUMENT, NumberFormat(), width)
    assert max(map(columns_of, text.splitlines())) <= width


@given(st.integers(1, 12), st.integers(1, 12), st.integers(40, 130))
def test_matrices_of_any_shape_fit(rows: int, columns: int, width: int) -> None:
    left = np.sin(np.arange(1.0, rows * columns + 1)).reshape(rows, columns) * 100
    right = np.cos(np.arange(1.0, columns * rows + 1)).reshape(columns, rows)
    formula = Equation((
        Symbol("S"), Call("softmax", (Fraction(Symbol("Q"), Number(2)),)),
        Call("softmax", (Fraction(Product((Matrix(left), Matrix(right))), Number(2)),)),
        Product((Matrix(left), Matrix(right))), Matrix(left @ right),
    ))  # fmt: skip
    text = to_text(Document("", (Display(formula),)), NumberFormat(), width)
    assert max(map(columns_of, text.splitlines())) <= width
    seen = sorted(re.findall(r"\d+\.\d{4}", text))
    expected = sorted(f"{abs(v):.4f}" for m in (left, left, right, right, left @ right)
                      for v in m.ravel())  # fmt: skip
    assert seen == expected


def test_a_wide_matrix_names_its_columns() -> None:
    wide = np.arange(12 * 2).reshape(2, 12) + 1000
    text = to_text(Document("", (Display(Matrix(wide)),)), NumberFormat(), 40)
    assert re.findall(r"columns \d+ to \d+", text) == ["columns 1 to 6", "columns 7 to 12"]


def test_an_equation_breaks_before_equals_signs() -> None:
    matrix = Matrix(np.arange(6).reshape(2, 3) / 7)
    formula = Equation((Symbol("Q"), Product((Symbol("X"), Symbol("W", "Q"))), matrix, matrix))
    assert to_text(Document("", (Display(formula),)), NumberFormat(), 45).splitlines()[2:] == [
        "",
        "  Q = X W_Q = ⎡0.0000  0.1429  0.2857⎤",
        "              ⎣0.4286  0.5714  0.7143⎦",
        "",
        "    = ⎡0.0000  0.1429  0.2857⎤",
        "      ⎣0.4286  0.5714  0.7143⎦",
    ]


def test_numbers_stand_point_below_point() -> None:
    table = Table((("step",), ("count",)), ((("a",), (Number(12),)), (("b",), (Number(1.5),))))
    matrix = np.array([[1.0, 1.7e-62], [-1234.5, 1 / 3]])
    document = Document("", (table, Display(Matrix(matrix))))
    assert to_text(document, NumberFormat(), 80).splitlines()[3:] == [
        "step  count",
        "────  ─────",
        "a     12",
        "b      1.5",
        "",
        "  ⎡    1.0000  1.7e-62⎤",
        "  ⎣−1234.5000  0.3333 ⎦",
    ]


def test_a_table_too_wide_for_columns_becomes_records() -> None:
    header = tuple((f"column{i}",) for i in range(12))
    table = Table(header, (tuple((f"value{i}",) for i in range(12)),))
    text = to_text(Document("", (table,)), NumberFormat(), 60)
    assert "column11: value11" in text
    assert max(map(columns_of, text.splitlines())) <= 60


def test_wide_letters_count_twice() -> None:
    text = to_text(Document("", (Paragraph(("注意 " * 40,)),)), NumberFormat(), 60)
    assert max(map(columns_of, text.splitlines())) <= 60


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_same_text_in_colour(
    everything: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "90"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    print_text(everything.DOCUMENT, NumberFormat(), terminal)
    shown = terminal.getvalue()
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert plain == to_text(everything.DOCUMENT, NumberFormat(), 90)


def test_a_pipe_gets_plain_text(everything: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    pipe = io.StringIO()
    print_text(everything.DOCUMENT, NumberFormat(), pipe)
    assert pipe.getvalue() == to_text(everything.DOCUMENT, NumberFormat(), 70)


def test_piped_text_loads_nothing_heavy() -> None:
    program = """
import io, sys
from regard.show._format import NumberFormat
from regard.show.document import Document, Paragraph
from regard.show.text import print_text
print_text(Document("t", (Paragraph(("p",)),)), NumberFormat(), io.StringIO())
import regard.show.html, regard.show.latex, regard.show.markdown
heavy = {"rich", "sympy", "flint", "matplotlib", "torch"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)
