"""Exact values (fractions, SymPy expressions) as mathematics that every format can write.

SymPy is never imported here: an expression tells its own parts.
"""

from __future__ import annotations

from fractions import Fraction as Ratio
from typing import Any

from regard.graph.notation import (
    Call,
    Fraction,
    Math,
    Negative,
    Number,
    Power,
    Root,
    Sum,
    Symbol,
    Words,
    product,
)


def is_sympy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "sympy"


def exact_math(value: Any) -> Math:
    """What an exact value says: 1/3, 2√2, e/(2e + 1)."""
    if isinstance(value, Ratio):
        return _ratio(value)
    return _expression(value) if is_sympy(value) else Words(str(value))


def _ratio(value: Ratio) -> Math:
    if value < 0:
        return Negative(_ratio(-value))
    if value.denominator == 1:
        return Number(value.numerator)
    return Fraction(Number(value.numerator), Number(value.denominator))


def _expression(expression: Any) -> Math:
    if expression.is_Rational:
        return _ratio(Ratio(int(expression.p), int(expression.q)))
    if expression.is_Add:
        # 2e + 1 rather than SymPy's 1 + 2e
        terms = sorted(expression.as_ordered_terms(), key=lambda term: bool(term.is_Rational))
        return Sum(tuple(_expression(term) for term in terms))
    if expression.is_Mul:
        return _product(expression)
    if expression.func.__name__ == "exp":
        return Power(Symbol("e"), _expression(expression.args[0]))
    if expression.is_Pow:
        return _power(expression)
    return _atom(expression)


def _atom(expression: Any) -> Math:
    constants = {"E": Symbol("e"), "pi": Symbol("π"), "oo": Symbol("∞")}
    if str(expression) in constants:
        return constants[str(expression)]
    if expression.is_Symbol:
        base, _, sub = str(expression).partition("_")
        return Symbol(base, sub)
    if expression.is_Float or not expression.args:
        return Words(str(expression))
    return Call(expression.func.__name__, tuple(_expression(part) for part in expression.args))


def _product(expression: Any) -> Math:
    if expression.could_extract_minus_sign():
        return Negative(_expression(-expression))
    above: list[Math] = []
    below: list[Math] = []
    for factor in expression.as_ordered_factors():
        if factor.is_Rational:
            above += [Number(int(factor.p))] if factor.p != 1 else []
            below += [Number(int(factor.q))] if factor.q != 1 else []
        elif _is_divisor(factor):
            below.append(_expression(1 / factor))
        else:
            above.append(_expression(factor))
    top = _side_by_side(above)
    return Fraction(top, _side_by_side(below)) if below else top


def _side_by_side(factors: list[Math]) -> Math:
    return product(*factors) if factors else Number(1)


def _is_divisor(factor: Any) -> bool:
    is_power = factor.is_Pow and factor.func.__name__ == "Pow"
    return bool(is_power and factor.args[1].could_extract_minus_sign())


def _power(expression: Any) -> Math:
    base, exponent = expression.args
    if exponent.could_extract_minus_sign():
        return Fraction(Number(1), _expression(1 / expression))
    if exponent.is_Rational and (exponent.p, exponent.q) == (1, 2):
        return Root(_expression(base))
    return Power(_expression(base), _expression(exponent))
