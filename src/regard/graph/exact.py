"""Exact numbers: fractions, surds and exponentials, kept as SymPy expressions.

A float is read as the decimal that it prints as: 0.8 is 4/5. Sums of fractions whose
denominators hold exponentials are written over one denominator each, so that softmax stays
readable: the average of 2 and 3 under softmax([1, 1, 0]) is (4e + 3)/(2e + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from math import inf, isnan, lcm, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._errors import MissingExtraError, NumberError, SizeLimitError
from regard.graph.numbers import Numbers, as_fraction, as_printed
from regard.graph.operation import Array

if TYPE_CHECKING:
    from regard.graph.graph import Graph

try:
    import sympy
    from sympy.simplify.fu import TR8
except ImportError as error:
    raise MissingExtraError("exact numbers", "exact", "sympy") from error

# Measured: a graph with steps of this size takes one to five seconds, twice the size ten times it.
MOST_ENTRIES = 256
# Numbers, signs and functions of one entry: printed, this many fill several pages.
MOST_PARTS = 20_000
MOST_TERMS = 48  # a product of sums with more terms than this stays a product
BITS = 4096  # some 1200 digits, to tell a value from 0 before its form is studied

REMEDY = 'use the numbers "certified", which prove every digit that they print'


def _entrywise(function: Callable[[Any], Any], array: Any) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(array), dtype=object)


class Exact(Numbers):
    """SymPy expressions; graphs beyond `MOST_ENTRIES` a step are refused."""

    word = "exact"

    def admit(self, graph: Graph) -> None:
        for name, size in graph.counts.items():
            if size > MOST_ENTRIES:
                raise SizeLimitError(
                    f"{name} has {size} entries, and exact numbers go up to {MOST_ENTRIES} "
                    f"a step: {REMEDY}"
                )

    def array(self, given: Array) -> Array:
        return _entrywise(_read, as_printed(given))

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
        return _collected(item for part in value.args for item in _fractions(part).items())
    if value.is_Mul and not all(map(_is_plain, value.args)):
        plain = sympy.Mul(*filter(_is_plain, value.args))
        sums = [_fractions(factor) for factor in value.args if not _is_plain(factor)]
        return reduce(_multiplied, sums, {sympy.S.One: plain})
    if value.is_Pow and not _is_plain(value):
        if value.exp < 0:
            return {value.base**-value.exp: sympy.S.One}
        return reduce(_multiplied, [_fractions(value.base)] * int(value.exp))
    return {sympy.S.One: value}


def _is_plain(factor: Any) -> bool:
    """Whether there is nothing in it to write out: no sum, no whole power of one."""
    return not (factor.is_Add or (factor.is_Pow and factor.base.is_Add and factor.exp.is_Integer))


def _collected(items: Iterable[tuple[Any, Any]]) -> Fractions:
    terms: dict[Any, list[Any]] = {}
    for below, above in items:
        terms.setdefault(below, []).append(above)
    return {below: sympy.Add(*above) for below, above in terms.items()}


def _multiplied(one: Fractions, other: Fractions) -> Fractions:
    return _collected(
        (below * other_below, _written_out(above, other_above))
        for below, above in one.items()
        for other_below, other_above in other.items()
    )


def _written_out(one: Any, other: Any) -> Any:
    """The product of two sums, term by term unless that gets long."""
    terms, other_terms = sympy.Add.make_args(one), sympy.Add.make_args(other)
    if len(terms) * len(other_terms) > MOST_TERMS:
        return one * other
    return sympy.Add(*(term * other_term for term in terms for other_term in other_terms))


def _over_one_base(fractions: Fractions) -> Fractions:
    """Fractions over D, D², … (and plain numbers beside these) over the highest power of D."""
    highest: Fractions = {}
    for below in sorted(fractions, key=_degree):
        highest[_base(below)] = below
    whole = fractions.get(sympy.S.One)
    if whole is not None and whole.is_Rational and len(highest) == 2:
        highest[sympy.S.One] = max(highest.values(), key=_degree)
    return _collected(
        (highest[_base(below)], _times(above, highest[_base(below)] / below))
        for below, above in fractions.items()
    )


def _base(below: Any) -> Any:
    return below.as_base_exp()[0]


def _degree(below: Any) -> int:
    return 0 if below is sympy.S.One else int(below.as_base_exp()[1])


def _times(above: Any, power: Any) -> Any:
    return reduce(_written_out, [_base(power)] * _degree(power), above)


def _quotient(below: Any, above: Any) -> Any:
    """above/below with whole coefficients above; a plain number where one is a multiple."""
    if below is sympy.S.One:
        return sympy.Add(*map(_angles_added, sympy.Add.make_args(above)))
    ratio = _ratio(above, below)
    if ratio is not None:
        return ratio
    common = lcm(*(int(r.q) for r in above.as_coefficients_dict().values() if r.is_Rational))
    whole = sympy.Add(*(term * common for term in sympy.Add.make_args(above)))
    return sympy.Mul(sympy.Rational(1, common), whole, 1 / below)


def _angles_added(term: Any) -> Any:
    """A product of sines and cosines as a sum of them, where many cancel after a rotation."""
    turns = sum(_degree(part) for part in sympy.Mul.make_args(term) if _is_sine(_base(part)))
    return sympy.expand_mul(TR8(term), deep=False) if turns > 1 else term


def _is_sine(value: Any) -> bool:
    return isinstance(value, (sympy.sin, sympy.cos))


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

    Bounds can only prove that a value is not 0. What they cannot tell from 0 is 0 when SymPy
    simplifies it to 0; otherwise the question stays open, and that is an error rather than a guess.
    """
    known = value.is_zero
    if known is None and 0 not in enclosure(value, BITS):
        known = False
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
