"""What every rendering asks of mathematics: its parts, and where parentheses are needed."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

from regard.graph.notation import (
    Call,
    Equation,
    Fraction,
    Math,
    Matrix,
    Negative,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Symbol,
    Transposed,
    Words,
)
from regard.show import _format
from regard.show._format import Cell, NumberFormat, format_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Level(IntEnum):
    """How tightly a formula holds together; a looser part needs parentheses."""

    EQUATION = 0
    SUM = 1
    NEGATIVE = 2
    PRODUCT = 3
    POWER = 4
    ATOM = 5


def level(math: Math, numbers: NumberFormat, flat: bool) -> Level:
    """`flat` formats write fractions as a/b and powers of ten as 1.7e-62."""
    match math:
        case Equation():
            return Level.EQUATION
        case Sum():
            return Level.SUM
        case Product(factors) if any(isinstance(factor, Words) for factor in factors):
            return Level.SUM  # "K shared by heads" is more than a factor
        case Negative():
            return Level.NEGATIVE
        case Product():
            return Level.PRODUCT
        case Fraction():
            return Level.PRODUCT if flat or is_slashed(math) else Level.POWER
        case Power() | Transposed() | Root():
            return Level.POWER
        case Symbol(_, _, sup):
            return Level.POWER if sup else Level.ATOM
        case Number(value, rounding):
            return _number_level(format_number(value, numbers, rounding), numbers, flat)
        case _:
            return Level.ATOM


def _number_level(cell: Cell, numbers: NumberFormat, flat: bool) -> Level:
    if cell.expression is not None:
        return level(cell.expression, numbers, flat)
    if cell.kind == "bound":
        return Level.EQUATION
    if cell.negative:
        return Level.NEGATIVE
    return Level.PRODUCT if cell.exponent is not None and not flat else Level.ATOM


def factor_in_parentheses(factor: Math, whole: Product, numbers: NumberFormat, flat: bool) -> bool:
    if isinstance(factor, Product):
        return factor.sign != whole.sign or level(factor, numbers, flat) < Level.PRODUCT
    if isinstance(factor, Fraction) and (flat or is_slashed(factor)) and whole.sign != "·":
        return True  # a/b c could be read as a/(b c)
    return level(factor, numbers, flat) < Level.PRODUCT


def term_in_parentheses(term: Math, is_first: bool, numbers: NumberFormat, flat: bool) -> bool:
    """A term after the first; what a Negative takes away counts as such too."""
    if isinstance(term, Product) and level(term, numbers, flat) < Level.PRODUCT:
        return False  # words beside a factor end at the next plus
    return level(term, numbers, flat) <= (Level.EQUATION if is_first else Level.NEGATIVE)


def signed_terms(math: Sum | Negative) -> Iterator[tuple[bool, Math]]:
    """Each term with whether it is taken away."""
    for term in math.terms if isinstance(math, Sum) else (math,):
        is_negative = isinstance(term, Negative)
        yield is_negative, (term.body if isinstance(term, Negative) else term)


def needs_around(fraction: Fraction) -> tuple[Level, Level]:
    """How tight the top and the bottom of a/b must be to stand without parentheses."""
    return (Level.POWER if isinstance(fraction.top, Fraction) else Level.PRODUCT), Level.POWER


def joint(left: Math, right: Math, sign: str, numbers: NumberFormat, flat: bool) -> str:
    """The sign between two factors: numbers side by side would run together without one."""
    return "·" if not sign and _starts_with_digit(right, numbers, flat) else sign


def _starts_with_digit(math: Math, numbers: NumberFormat, flat: bool) -> bool:
    match math:
        case Number():
            return level(math, numbers, flat) >= Level.PRODUCT
        case Power(base, _):
            return _starts_with_digit(base, numbers, flat)
        case Product(factors):
            return _starts_with_digit(factors[0], numbers, flat)
        case Fraction(top, _) if flat:
            return _starts_with_digit(top, numbers, flat)
        case _:
            return False


def parts(math: Math) -> tuple[Math, ...]:
    """The formulas directly within a formula."""
    match math:
        case Product(inner) | Sum(inner) | Equation(inner) | Call(_, inner):
            return inner
        case Negative(body) | Root(body) | Transposed(body):
            return (body,)
        case Fraction(one, two) | Power(one, two):
            return (one, two)
        case _:
            return ()


def with_parts(math: Math, change: Callable[[Math], Math]) -> Math:
    """The same formula with each direct part changed."""
    match math:
        case Product(inner, sign):
            return Product(tuple(map(change, inner)), sign)
        case Sum(inner):
            return Sum(tuple(map(change, inner)))
        case Equation(inner):
            return Equation(tuple(map(change, inner)))
        case Call(_, inner):
            return replace(math, arguments=tuple(map(change, inner)))
        case Negative(body) | Root(body) | Transposed(body):
            return type(math)(change(body))
        case Fraction(one, two) | Power(one, two):
            return type(math)(change(one), change(two))
        case _:
            return math


def matrices(math: Math) -> Iterator[Matrix]:
    if isinstance(math, Matrix):
        yield math
    for part in parts(math):
        yield from matrices(part)


def is_slashed(fraction: Fraction) -> bool:
    """Whether it reads better as a/b: no bar through a matrix, none above another bar."""
    return is_tall(fraction) or any(isinstance(part, Fraction) for part in parts(fraction))


def is_tall(math: Math) -> bool:
    """Whether a matrix, not just a vector, stands in it."""
    return any(matrix.values.ndim > 1 for matrix in matrices(math))


def left_out(formulas: tuple[Math, ...], numbers: NumberFormat) -> str:
    """What the elided matrices among these leave out, each phrase once."""
    found = (
        _format.left_out(matrix.values, numbers.elide_above)
        for math in formulas
        for matrix in matrices(math)
    )
    return "; ".join(dict.fromkeys(phrase for phrase in found if phrase))
