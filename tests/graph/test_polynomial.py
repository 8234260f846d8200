"""Counts as formulas: they behave as polynomials do, and what is printed can be read back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._errors import NumberError
from regard.graph.polynomial import Polynomial

NAMES = ("n", "n_q", "n_k", "d_k", "d_model", "h", "zebra")
monomials = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-2, 3)), max_size=3)
factors = st.fractions(min_value=-9, max_value=9, max_denominator=6)
sizes = st.fixed_dictionaries({name: st.integers(1, 30) for name in NAMES})


def power(symbol: str, exponent: int) -> Polynomial:
    one = Polynomial.of(1)
    for _ in range(abs(exponent)):
        one = one * Polynomial.of(symbol) if exponent > 0 else one.over(Polynomial.of(symbol))
    return one


@st.composite
def polynomials(draw: st.DrawFn) -> Polynomial:
    total = Polynomial()
    for monomial in draw(st.lists(monomials, max_size=4)):
        factor = draw(factors)
        term = Polynomial.of(factor.numerator).over(factor.denominator)
        for symbol, exponent in monomial:
            term = term * power(symbol, exponent)
        total = total + term
    return total


def value(p: Polynomial, at: dict[str, int]) -> Fraction:
    """What it is at these sizes, term by term."""
    total = Fraction(0)
    for monomial, factor in p.terms:
        for symbol, exponent in monomial:
            factor *= Fraction(at[symbol]) ** exponent
        total += factor
    return total


@given(polynomials(), polynomials(), polynomials())
def test_ring_laws(a: Polynomial, b: Polynomial, c: Polynomial) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + 0 == a * 1 == 0 + a == 1 * a == a
    assert a - a == Polynomial() == a * 0
    assert a + -a == Polynomial()


@given(polynomials(), polynomials(), sizes)
def test_numbers_follow_the_formulas(a: Polynomial, b: Polynomial, at: dict[str, int]) -> None:
    assert value(a + b, at) == value(a, at) + value(b, at)
    assert value(a * b, at) == value(a, at) * value(b, at)
    assert value(a - b, at) == value(a, at) - value(b, at)


@given(polynomials(), sizes)
def test_evaluate(a: Polynomial, at: dict[str, int]) -> None:
    number = value(a, at)
    if number.denominator == 1:
        assert a.evaluate(at) == number
    else:
        with pytest.raises(NumberError, match="not a whole number"):
            a.evaluate(at)


@given(polynomials())
def test_what_is_printed_can_be_read_back(a: Polynomial) -> None:
    assert Polynomial.parse(str(a)) == a
    assert hash(Polynomial.parse(str(a))) == hash(a)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("n_q n_k (d_k - 1)", "n_k*n_q*d_k − n_q·n_k"),
        ("(a + b)(a - b)", "a^2 - b²"),
        ("(a + b)**3", "a³ + 3a²b + 3a b^2 + b^3"),
        ("d_model / h", "h^-1 d_model"),
        ("2 n (n + 1) / 2", "n × n + n"),
        ("n_{q}n_{k}", "n_q n_k"),
        ("-(-n)", "+n"),
        ("0 n", "0"),
    ],
)
def test_the_same_formula_written_differently(left: str, right: str) -> None:
    assert Polynomial.parse(left) == Polynomial.parse(right)


def test_different_formulas_differ() -> None:
    assert Polynomial.parse("n_q n_k d_k") != Polynomial.parse("n_q n_k (d_k - 1)")
    assert Polynomial.of("n_q") != Polynomial.of("n_k")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("n_q n_k (d_k - 1)", "n_q·n_k·(d_k - 1)"),
        ("d_k d_v n_k n_q h batch", "batch·h·n_q·n_k·d_k·d_v"),
        ("n_q d_v (n_k - 1) + n_q (n_k - 1)", "n_q·(n_k·d_v + n_k - d_v - 1)"),
        ("6 n - 4", "2·(3·n - 2)"),
        ("n/2 - n_k/3", "1/6·(3·n - 2·n_k)"),
        ("1 - n", "-n + 1"),
        ("-3 - n", "-(n + 3)"),
        ("-n d_k - 2 n", "-n·(d_k + 2)"),
        ("-7", "-7"),
        ("-n", "-n"),
        ("0", "0"),
        ("n n", "n^2"),
        ("d_model / h", "h^-1·d_model"),
    ],
)
def test_print(written: str, printed: str) -> None:
    assert str(Polynomial.parse(written)) == printed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends too early"),
        ("n +", "ends too early"),
        ("(n + 1", "a bracket stays open"),
        ("n)", r"'\)' is unexpected"),
        ("n $ d", r"'\$' is unexpected"),
        ("n^d", "a power must be a whole number"),
        ("n^1000000", "a power must be a whole number up to 50"),
        ("(a + b + c + d)^50", "more than 1000 terms"),
        ("(" * 10_000, "more than 50 brackets"),
        ("n / (d + 1)", r"a divisor must be a product of sizes, but d \+ 1 was passed"),
        ("n / 0", "a divisor must be a product of sizes, but 0 was passed"),
        ("(d - d)^-1", "a divisor must be a product"),
    ],
)
def test_what_is_no_formula(text: str, reason: str) -> None:
    with pytest.raises(NumberError, match=f"is no formula in sizes: .*{reason}"):
        Polynomial.parse(text)


@given(st.text(alphabet="nd_k q+-*/^()·²³{}−0123456789", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parsed = Polynomial.parse(text)
    except NumberError:
        return
    assert Polynomial.parse(str(parsed)) == parsed


def test_over_refuses_a_sum() -> None:
    with pytest.raises(NumberError, match="n \\+ 1"):
        Polynomial.of("d").over(Polynomial.of("n") + 1)
