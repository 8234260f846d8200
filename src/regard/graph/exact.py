"""Exact numbers: fractions, surds and exponentials, kept as SymPy expressions.

A float is read as the decimal that it prints as: 0.8 is 4/5. Sums of fractions whose
denominators hold exponentials are written over one denominator each, so that softmax stays
readable: the average of 2 and 3 under softmax([1, 1, 0]) is (4e + 3)/(2e + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from math import inf, isnan, lcm, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._errors import MissingExtraError, NumberError, SizeLimitError
from regard.graph.numbers import Numbers, as_fraction
from regard.graph.operation import Array, entries

if TYPE_CHECKING:
    from regard.graph.graph import Graph

try:
    import sympy
except ImportError as error:
    raise MissingExtraError("exact numbers", "exact", "sympy") from error

# Measured: a step of this many entries takes seconds, one of four times as many a minute.
MOST_ENTRIES = 512
# Parts (numbers, signs, functions) of one entry: beyond this nobody reads it as a formula.
MOST_PARTS = 4000
MOST_TERMS = 48  # a product of sums with more terms than this stays a product
MOST_BITS = 4096  # to tell a value from 0 before its form is studied

REMEDY = 'use the numbers "certified", which prove every digit that they print'


def _entrywise(function: Callable[[Any], Any], array: Any) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(array), dtype=object)


class Exact(Numbers):
    """SymPy expressions; graphs beyond `MOST_ENTRIES` a step are refused."""

    word = "exact"

    def admit(self, graph: Graph) -> None:
        for name, axes in graph.axes.items():
            size = entries(axes).evaluate(graph.sizes)
            if size > MOST_ENTRIES:
                raise SizeLimitError(
                    f"{name} has {size} entries, and exact numbers go up to {MOST_ENTRIES}: {REMEDY}"
                )

    def array(self, given: Array) -> Array:
        return _entrywise(_read, given)

    def constant(self, value: Fraction | int) -> Any:
        return sympy.Rational(value.numerator, value.denominator)

    def exp(self, array: Array) -> Array:
        return _entrywise(sympy.exp, array)

    def sqrt(self, array: Array) -> Array:
        return _entrywise(sympy.sqrt, array)

    def tanh(self, array: Array) -> Array:
        return _entrywise(sympy.tanh, array)

    def erf(self, array: Array) -> Array:
        return _entrywise(sympy.erf, array)

    def sin(self, array: Array) -> Array:
        return _entrywise(sympy.sin, array)

    def cos(self, array: Array) -> Array:
        return _entrywise(sympy.cos, array)

    def power(self, base: Fraction, exponent: Fraction) -> Any:
        return self.constant(base) ** self.constant(exponent)

    @property
    def pi(self) -> Any:
        return sympy.pi

    @property
    def minus_infinity(self) -> Any:
        return sympy.S.NegativeInfinity

    def is_masked(self, array: Array) -> Array:
        return _entrywise(lambda entry: entry is sympy.S.NegativeInfinity, array).astype(bool)

    def is_zero(self, array: Array) -> Array:
        return _entrywise(is_zero, array).astype(bool)

    def tidy(self, array: Array, step: str) -> Array:
        """Every entry in the form that a person would write."""
        result = _entrywise(tidy, array)
        for entry in result.flat:
            if entry in (sympy.nan, sympy.zoo, sympy.oo):
                raise NumberError(f"{step}: an entry is {entry}: no number that can be exact")
            if (parts := _parts(entry, {})) > MOST_PARTS:
                raise SizeLimitError(
                    f"{step}: an entry is a formula of {parts} parts, and exact numbers go up to "
                    f"{MOST_PARTS}: {REMEDY}"
                )
        return result


def _read(entry: Any) -> Any:
    if isinstance(entry, float) and isnan(entry):
        raise NumberError("exact numbers know no NaN")
    if entry == inf:
        raise NumberError("exact numbers know no +∞ (−∞ stands for what is masked)")
    if entry == -inf:
        return sympy.S.NegativeInfinity
    value = as_fraction(entry)
    return sympy.Rational(value.numerator, value.denominator)


def _parts(value: Any, known: dict[Any, int]) -> int:
    """How many parts the formula has when it is written out."""
    if value not in known:
        known[value] = 1 + sum(_parts(part, known) for part in value.args)
    return known[value]


# ---- the form that a person would write ----------------------------------------------------

# A sum of fractions: what stands above, for each denominator. Numerators are sums written out.
Fractions = dict[Any, Any]


def tidy(value: Any) -> Any:
    """Products of sums written out, fractions of the same denominator added."""
    if value.is_Rational or not value.args:
        return value
    return sympy.Add(*(_quotient(*item) for item in _over_one_base(_fractions(value)).items()))


def _fractions(value: Any) -> Fractions:
    if value.is_Add:
        return reduce(_added, map(_fractions, value.args))
    if value.is_Mul:
        return reduce(_multiplied, map(_fractions, value.args))
    if value.is_Pow and value.base.is_Add and value.exp.is_Integer:
        if value.exp < 0:
            return {value.base**-value.exp: sympy.S.One}
        return reduce(_multiplied, [_fractions(value.base)] * int(value.exp))
    return {sympy.S.One: value}


def _added(one: Fractions, other: Fractions) -> Fractions:
    return one | {below: above + one.get(below, 0) for below, above in other.items()}


def _multiplied(one: Fractions, other: Fractions) -> Fractions:
    result: Fractions = {}
    for below, above in one.items():
        for other_below, other_above in other.items():
            product = {below * other_below: _written_out(above, other_above)}
            result = _added(result, product)
    return result


def _written_out(one: Any, other: Any) -> Any:
    """The product of two sums, term by term unless that gets long."""
    terms, other_terms = sympy.Add.make_args(one), sympy.Add.make_args(other)
    if len(terms) * len(other_terms) > MOST_TERMS:
        return one * other
    return sympy.Add(*(term * other_term for term in terms for other_term in other_terms))


def _over_one_base(fractions: Fractions) -> Fractions:
    """Fractions over D, D², … brought over the highest power of D."""
    result: Fractions = {}
    for below, above in sorted(fractions.items(), key=lambda item: -_degree(item[0])):
        match = next((known for known in result if _degree(below) and _divides(below, known)), below)
        factor = match / below
        result = _added(result, {match: above * factor if factor == 1 else _expanded(above, factor)})
    return result


def _degree(below: Any) -> int:
    return int(below.as_base_exp()[1]) if below.is_Pow and below.exp.is_Integer else int(below.is_Add)


def _divides(below: Any, known: Any) -> bool:
    return bool(below.as_base_exp()[0] == known.as_base_exp()[0])


def _expanded(above: Any, factor: Any) -> Any:
    return reduce(_written_out, [factor.as_base_exp()[0]] * _degree(factor), above)


def _quotient(below: Any, above: Any) -> Any:
    """above/below with whole coefficients above; a plain number where one is a multiple."""
    if below is sympy.S.One:
        return above
    ratio = _ratio(above, below)
    if ratio is not None:
        return ratio
    common = lcm(*(int(r.q) for r in above.as_coefficients_dict().values() if r.is_Rational))
    whole = sympy.Add(*(term * common for term in sympy.Add.make_args(above)))
    return sympy.Mul(sympy.Rational(1, common), whole, 1 / below)


def _ratio(above: Any, below: Any) -> Any | None:
    """c where above = c · below for a rational c."""
    coefficients, wanted = above.as_coefficients_dict(), below.as_coefficients_dict()
    if set(coefficients) != set(wanted):
        return None
    ratios = {coefficients[term] / wanted[term] for term in wanted}
    return ratios.pop() if len(ratios) == 1 else None


# ---- what is zero, and bounds in proven digits ---------------------------------------------


def is_zero(value: Any) -> bool:
    """Whether a value is 0, proven: by SymPy's rules, by bounds that exclude 0, or by its form.

    Bounds can only prove that a value is not 0; they are drawn at rising precision. What they
    cannot tell from 0 is 0 when SymPy simplifies it to 0; otherwise the question stays open,
    and that is an error rather than a guess.
    """
    known = value.is_zero
    bits = 64
    while known is None and bits <= MOST_BITS:
        if 0 not in enclosure(value, bits):
            known = False
        bits *= 4
    if known is None:
        known = sympy.simplify(value).is_zero
    if known is None:
        raise NumberError(f"it cannot be decided whether {value} is 0: {REMEDY}")
    return bool(known)


def enclosure(value: Any, bits: int) -> Any:
    """A ball (python-flint's arb) that contains the exact value, computed with so many bits."""
    from regard.graph.certified import precision

    with precision(bits):
        return _ball(value)


def _ball(value: Any) -> Any:
    from flint import arb, fmpq

    if value.is_Rational:
        return arb(fmpq(int(value.p), int(value.q)))
    if value is sympy.S.NegativeInfinity:
        return arb.neg_inf()
    parts = [_ball(part) for part in value.args]
    if value.is_Add:
        return sum(parts, arb(0))
    if value.is_Mul:
        return prod(parts, start=arb(1))
    return _call(value, parts)


def _call(value: Any, parts: list[Any]) -> Any:
    from flint import arb

    constants = {sympy.E: arb.const_e, sympy.pi: arb.pi}
    if value in constants:
        return constants[value]()
    name = value.func.__name__
    if name == "Pow":
        return parts[0].sqrt() if value.exp == sympy.S.Half else parts[0] ** parts[1]
    if name in ("exp", "tanh", "erf", "sin", "cos"):
        return getattr(parts[0], name)()
    raise NumberError(f"no bounds are known for {value}")
