"""How single numbers and whole matrices are written, against closed forms."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard._errors import OptionError, ShapeError
from regard.show._format import STYLES, NumberFormat, format_matrix, format_number
from regard.show._plain import Plain, cell_text


def shown(value: Any, style: str = "decimals", digits: int = 4) -> str:
    return cell_text(format_number(value, NumberFormat(style, digits)))


def rows(values: Any, style: str = "decimals", digits: int = 4) -> list[list[str]]:
    grid = format_matrix(np.asarray(values), NumberFormat(style, digits))
    return [[cell_text(cell) for cell in row] for row in grid.rows]


def test_numbers_on_their_own_in_decimals() -> None:
    cases: list[tuple[Any, str]] = [
        (0.8, "0.8"),  # as typed
        (-0.4, "−0.4"),
        (0.8 * 0.6 - 0.4 * 0.1, "0.44"),  # 0.43999999999999995 by rounding
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.3333"),
        (2 / 3, "0.6667"),
        (0.00005, "0.0001"),  # rounds up: the nearest float64 lies above
        (0.00004, "4.0e-5"),  # would be zeros
        (-0.00004, "−4.0e-5"),
        (1.7e-62, "1.7e-62"),
        (1.4e-142, "1.4e-142"),
        (9.99e-62, "1.0e-61"),  # rounds into the next power of ten
        (5e-324, "4.9e-324"),  # the least float64
        (999999.0, "999999"),
        (999999.94, "999999.94"),
        (999999.99996, "1.0000e6"),  # as many decimals would be a million
        (1e6, "1.0000e6"),
        (-1234567.8, "−1.2346e6"),
        (1.7e308, "1.7000e308"),
        (-0.0, "0"),
        (7, "7"),
        (10**9 + 7, "1000000007"),  # a count is written in full
        (np.int64(2**40), "1099511627776"),
        (np.float32(0.8), "0.8"),
        (np.float32(1) / np.float32(3), "0.3333"),
        (True, "True"),
        (np.bool_(False), "False"),
        (nan, "NaN"),
        (inf, "∞"),
        (-inf, "−∞"),
    ]
    for value, expected in cases:
        assert shown(value) == expected, value


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.5, 4, "0.5000"),
        (1.7e-62, 2, "1.7e-62"),
        (1 / 3, 3, "0.333"),
        (0.00012345, 3, "0.000123"),
        (0.000012345, 3, "1.23e-5"),
        (123.456, 4, "123.5"),
        (123456.7, 3, "1.23e5"),  # zeros would stand for digits that are not shown
        (999.96, 4, "1000"),
        (9999.6, 4, "1.000e4"),
        (99.996, 4, "100.0"),
        (0.1, 2, "0.10"),
    ],
)
def test_significant_digits(value: float, digits: int, expected: str) -> None:
    assert shown(value, "significant", digits) == expected


def test_a_matrix_shares_its_decimals() -> None:
    assert rows([[0.8, -0.4], [1.2, 3.0]]) == [["0.8", "−0.4"], ["1.2", "3.0"]]
    assert rows([[0.5, 1 / 3]]) == [["0.5000", "0.3333"]]
    assert rows([[-0.0, 1 / 3]]) == [["0.0000", "0.3333"]]
    assert rows([[1.0, 2.0], [3.0, -0.0]]) == [["1", "2"], ["3", "0"]]
    assert rows([[0.0, -inf], [nan, inf]]) == [["0", "−∞"], ["NaN", "∞"]]
    assert rows([[1.0, 1.7e-62]]) == [["1.0000", "1.7e-62"]]
    assert rows([[1.0, 2e6]]) == [["1", "2.0000e6"]]
    assert rows([[1, 2_000_000]]) == [["1", "2000000"]]
    assert rows([[0.123456, 2.5]], digits=2) == [["0.12", "2.50"]]


@given(st.floats(-9e5, 9e5), st.integers(1, 8))
def test_decimals_round_as_python_does(value: float, digits: int) -> None:
    values = np.array([1 / 3 + 1e-9, value])  # the first makes sure that all decimals are used
    expected = f"{value:.{digits}f}"
    written = rows(values, digits=digits)[0][1].replace("−", "-")
    if value and not expected.strip("-0."):
        assert written == f"{value:.1e}".replace("e-0", "e-")
    else:
        assert written == (expected if value else expected.lstrip("-"))


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool), st.integers(1, 17))
@example(11.0, 1)
def test_significant_digits_round_as_decimal_does(value: float, digits: int) -> None:
    typed = Decimal(format(value, ".14g"))
    if typed == int(typed) and abs(typed) < 10**6:
        assert shown(value, "significant", digits).replace("−", "-") == str(int(typed))
        return
    exact = Decimal(value)
    quantum = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    written = Decimal(shown(value, "significant", digits).replace("−", "-"))
    with_room = exact.quantize(quantum, ROUND_HALF_EVEN, _room())
    assert written == with_room


def _room() -> Any:
    from decimal import Context

    return Context(prec=2000, Emin=-5000, Emax=5000)


def test_numpy_style_is_what_numpy_prints() -> None:
    """Course document 004 prints its weights so: one large ratio turns all to powers of ten."""
    weights = np.array([[4.93e-07, 4.02e-14, 9.91e-01], [4.8e-01, 3.6e-01, 1.5e-01]])
    assert rows(weights, "numpy", 1) == [
        ["4.9e-07", "4.0e-14", "9.9e-01"],
        ["4.8e-01", "3.6e-01", "1.5e-01"],
    ]
    output = np.array([[-0.71, -0.93, 0.52], [-2.0, 3.3, -0.0]])
    assert rows(output, "numpy", 1) == [["-0.7", "-0.9", "0.5"], ["-2.", "3.3", "-0."]]
    assert rows([[1.0, nan, -inf, inf]], "numpy", 1) == [["1.", "nan", "-inf", "inf"]]
    assert rows([[1, 20]], "numpy", 1) == [["1", "20"]]


@given(st.lists(st.floats(width=32), min_size=1, max_size=30), st.integers(1, 8))
def test_numpy_style_equals_numpy(values: list[float], digits: int) -> None:
    array = np.array(values, dtype=np.float64)
    with np.printoptions(precision=digits, linewidth=10**6):
        printed = str(array).strip("[]").split()
    grid = format_matrix(array, NumberFormat("numpy", digits, elide_above=None))
    assert [cell_text(cell) for cell in grid.rows[0]] == printed


def test_numpy_looks_at_entries_that_are_left_out() -> None:
    values = np.ones((20, 20))
    values[10, 10] = 1e-9
    grid = format_matrix(values, NumberFormat("numpy", 1))
    assert {cell.digits for row in grid.rows for cell in row} >= {"1.e+00", "⋱"}


def test_users_print_options_change_nothing() -> None:
    with np.printoptions(suppress=True, sign="+", nanstr="void"):
        assert rows([[1e-9, 1.0, nan]], "numpy", 1) == [["1.e-09", "1.e+00", "nan"]]


def test_fractions_are_exact() -> None:
    writer = Plain(NumberFormat())
    thirds = np.array([Fraction(1, 3), Fraction(-5, 2), Fraction(4)], dtype=object)
    grid = format_matrix(thirds, NumberFormat())
    assert [writer.cell(cell) for cell in grid.rows[0]] == ["1/3", "−5/2", "4"]


def test_masked_cells_are_no_numbers() -> None:
    values, hidden = np.array([[0.5, -np.inf, -np.inf]]), np.array([[False, True, False]])
    for style in STYLES:
        (row,) = format_matrix(values, NumberFormat(style), hidden=hidden).rows
        assert [cell.kind for cell in row] == ["number", "masked", "minus-infinity"]


def test_elision_keeps_three_at_either_end() -> None:
    grid = format_matrix(np.arange(64.0 * 13).reshape(64, 13), NumberFormat())
    assert grid.left_out == "rows 4 to 61 of 64 and columns 4 to 10 of 13 left out"
    assert grid.columns == (1, 2, 3, None, 11, 12, 13)
    assert [cell.digits for cell in grid.rows[3]] == ["⋮", "⋮", "⋮", "⋱", "⋮", "⋮", "⋮"]
    assert [cell.digits for cell in grid.rows[4]] == ["793", "794", "795", "…", "803", "804", "805"]
    assert format_matrix(np.zeros((12, 12)), NumberFormat()).left_out == ""
    assert format_matrix(np.zeros(7), NumberFormat(elide_above=6)).left_out == (
        "entry 4 of 7 left out"
    )
    assert len(format_matrix(np.zeros((64, 2)), NumberFormat(elide_above=None)).rows) == 64


def test_bad_options_and_shapes_are_named() -> None:
    with pytest.raises(OptionError, match="'decimal' was passed"):
        NumberFormat("decimal")
    with pytest.raises(OptionError, match=r"`digits`.*0 was passed"):
        NumberFormat(digits=0)
    with pytest.raises(ShapeError, match=r"\(2, 3, 5\)"):
        format_matrix(np.zeros((2, 3, 5)), NumberFormat())


def test_empty_matrices() -> None:
    writer = Plain(NumberFormat())
    for shape in ((0, 3), (3, 0), (0,)):
        assert writer.grid(format_matrix(np.zeros(shape), NumberFormat())).lines


class TestBalls:
    """Ball arithmetic: every digit that is printed is proven."""

    flint = pytest.importorskip("flint")

    def ball(self, middle: Fraction | int, radius: Fraction | int = 0) -> Any:
        def exact(value: Fraction | int) -> Any:
            ratio = Fraction(value)
            return self.flint.arb(ratio.numerator) / ratio.denominator

        return self.flint.arb(exact(middle), exact(radius))

    @pytest.mark.parametrize(
        ("middle", "radius", "expected"),
        [
            (Fraction(1, 3), Fraction(1, 10**9), "0.3333"),
            (Fraction(1, 3), Fraction(1, 10**4), "0.333?"),  # 0.3332… and 0.3334… differ
            (Fraction(-1, 3), Fraction(1, 10**4), "−0.333?"),
            (Fraction(1, 2), Fraction(1, 10**9), "0.5000"),
            (Fraction(99995, 10**5), Fraction(1, 10**9), "1.000?"),  # 0.9999|5: undecided
            (0, Fraction(9, 10**51), "|x| < 1e-50"),
            (Fraction(1, 10), Fraction(1, 5), "|x| < 1"),
            (1237, 3, "1.2e3?"),
            (5, 4, "?"),
            (0, 0, "0"),
            (3, 0, "3"),
        ],
    )
    def test_digits(self, middle: Fraction | int, radius: Fraction | int, expected: str) -> None:
        assert shown(self.ball(middle, radius)) == expected

    def test_tiny_and_large(self) -> None:
        assert shown((self.flint.arb(-142) * self.flint.arb(10).log()).exp()) == "1.0e-142"
        assert shown(self.flint.arb(100).exp()) == "2.6881e43"

    def test_many_digits_of_pi(self) -> None:
        self.flint.ctx.dps = 60
        try:
            assert shown(self.flint.arb.pi(), digits=30) == "3.141592653589793238462643383280"
            assert shown(self.flint.arb.pi(), "significant", 20) == "3.1415926535897932385"
        finally:
            self.flint.ctx.dps = 15

    def test_special_balls(self) -> None:
        arb = self.flint.arb
        assert [shown(arb(word)) for word in ("nan", "inf", "-inf")] == ["NaN", "∞", "−∞"]
        assert shown(arb("0 +/- inf")) == "?"

    @given(
        st.fractions(-1000, 1000, max_denominator=10**6),
        st.fractions(0, 1, max_denominator=10**6),
        st.integers(1, 6),
    )
    def test_whatever_is_printed_holds_for_the_whole_ball(
        self, middle: Fraction, radius: Fraction, digits: int
    ) -> None:
        text = shown(self.ball(middle, radius), digits=digits).replace("−", "-")
        low, high = middle - radius, middle + radius
        if text == "?":
            return
        if text.startswith("|x| <"):
            assert max(abs(low), abs(high)) < Fraction(Decimal(text[5:]))
            return
        number = Decimal(text.rstrip("?"))
        half_unit = Fraction(Decimal(1).scaleb(number.as_tuple().exponent)) / 2  # type: ignore[arg-type]
        assert abs(low - Fraction(number)) <= half_unit
        assert abs(high - Fraction(number)) <= half_unit


class TestExpressions:
    """SymPy expressions are written as mathematics."""

    sympy = pytest.importorskip("sympy")

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("E/(2*E + 1)", "e/(2e + 1)"),
            ("1/(1 + exp(-1))", "1/(e^(−1) + 1)"),
            ("sqrt(2)/2", "√2/2"),
            ("-sqrt(2)/2", "−√2/2"),
            ("exp(sqrt(2)/2)", "e^(√2/2)"),
            ("2*exp(3) - 5", "2e^3 − 5"),
            ("(1 + sqrt(2))**2 / 3", "(√2 + 1)^2/3"),
            ("Rational(-2, 7)", "−2/7"),
            ("Integer(1000000)", "1000000"),
            ("2**Rational(1, 3)", "2^(1/3)"),
            ("1/sqrt(1 + pi)", "1/√(π + 1)"),
            ("tanh(Symbol('x_1'))", "tanh(x₁)"),
            ("nan", "NaN"),
            ("oo", "∞"),
            ("-oo", "−∞"),
        ],
    )
    def test_text(self, source: str, expected: str) -> None:
        value = self.sympy.sympify(source)
        grid = format_matrix(np.array([[value]], dtype=object), NumberFormat())
        assert Plain(NumberFormat()).cell(grid.rows[0][0]) == expected

    def test_the_mathematics_keeps_its_value(self) -> None:
        """Read back by SymPy, the text is the same number."""
        for source in ("E/(2*E+1)", "3*exp(2)/(exp(2)+exp(sqrt(3)/2))", "-(1-sqrt(5))*exp(-2)/7"):
            value = self.sympy.sympify(source)
            grid = format_matrix(np.array([[value]], dtype=object), NumberFormat())
            text = Plain(NumberFormat()).cell(grid.rows[0][0])
            assert self._read(text).equals(value), text

    def _read(self, text: str) -> Any:
        import re

        text = re.sub(r"√(\d+|\([^()]*\))", r"sqrt(\1)", text)
        text = text.replace("−", "-").replace("^", "**").replace("·", "*")
        text = re.sub(r"(?<=[\d)])\s*(?=[a-df-z(]|e\b|sqrt)", "*", text)
        text = re.sub(r"(?<=\))\s+(?=[\w(])", "*", text)
        return self.sympy.sympify(re.sub(r"\be\b|(?<=\*)e", "E", text).replace(" ", ""))
