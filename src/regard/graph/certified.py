"""Certified numbers: balls, a midpoint with a radius, in which the true value is proven to lie.

A float is read as the decimal that it prints as: 0.8 is 4/5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, isfinite, isnan, log2, ulp
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._errors import MissingExtraError, NumberError, OptionError
from regard._options import positive_integer
from regard.graph.numbers import Numbers, as_fraction, as_printed
from regard.graph.operation import Array
from regard.graph.operations import Exp, Normalise

if TYPE_CHECKING:
    from regard.graph.graph import Graph
    from regard.graph.run import Run

try:
    from flint import arb, ctx, fmpq
except ImportError as error:
    raise MissingExtraError("certified numbers", "exact", "python-flint") from error

GUARD_DIGITS = 3  # beyond those asked for, so that rounding them is proven too
# A value that cannot be told from 0 is accepted as such below 10^−(digits + this): smaller than
# any normal float64 by as many digits as are wanted.
VANISHING_DIGITS = 308
MOST_DIGITS = 10_000
MOST_BITS = 1 << 17

_one_at_a_time = RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with so many bits.

    python-flint has one precision for the whole process: other threads wait here for their turn,
    and a thread that uses python-flint without this finds its precision changed meanwhile.
    """
    with _one_at_a_time:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def _entrywise(function: Callable[[Any], Any], array: Any) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(array), dtype=object)


@dataclass(frozen=True)
class Certified(Numbers):
    """Every finite entry of every step is known to at least `digits` significant digits.

    A graph is computed again with twice the bits until that holds, from about 200 bits up to
    `MOST_BITS`. What then cannot be told from 0 lies closer to it than 10^−(digits + 308).
    """

    digits: int = 15

    word = "certified"

    def __post_init__(self) -> None:
        if positive_integer("digits", self.digits) > MOST_DIGITS:
            raise OptionError(f"`digits` goes up to {MOST_DIGITS}, but {self.digits} was passed")

    def settled(
        self, attempt: Callable[[Mapping[str, Array]], Run], known: Mapping[str, Array]
    ) -> Run:
        bits = self._bits + 64
        while True:
            with precision(bits):
                run = attempt(known)
            place = self._first_open(run)
            if place is None:
                return run
            bits, known = 2 * bits, {}  # what is known was computed with fewer bits
            if bits > MOST_BITS or not run.values[place[0]][place[1]].is_finite():
                raise NumberError(self._open_question(run, *place, bits // 2))

    @property
    def _bits(self) -> int:
        return ceil((self.digits + GUARD_DIGITS) * log2(10)) + 2

    def _first_open(self, run: Run) -> tuple[str, tuple[int, ...]] | None:
        """The first entry whose digits are not all proven yet."""
        vanishing = arb(10) ** -(self.digits + VANISHING_DIGITS)
        for name, array in run.values.items():
            for place in np.ndindex(array.shape):
                if not self._is_settled(array[place], vanishing):
                    return name, place
        return None

    def _is_settled(self, ball: Any, vanishing: Any) -> bool:
        if not ball.is_finite():
            return is_minus_infinity(ball)
        if ball.rel_accuracy_bits() >= self._bits:
            return True
        return 0 in ball and bool(ball.rad() < vanishing)

    def _open_question(self, run: Run, name: str, place: tuple[int, ...], bits: int) -> str:
        where = f"{name}[{', '.join(map(str, place))}]" if place else name
        ball = run.values[name][place]
        if ball.is_finite():
            return f"{where}: {self.digits} digits cannot be proven with {bits} bits: {ball}"
        return (
            f"{where} is no number that can be certified: its operands hold an infinity, "
            "or it divides by (or takes the root of) what cannot be told from 0"
        )

    def array(self, given: Array) -> Array:
        return _entrywise(_read, as_printed(given))

    def constant(self, value: Fraction | int) -> Any:
        return arb(fmpq(value.numerator, value.denominator))

    def exp(self, array: Array) -> Array:
        return _entrywise(arb.exp, array)

    def sqrt(self, array: Array) -> Array:
        return _entrywise(arb.sqrt, array)

    def tanh(self, array: Array) -> Array:
        return _entrywise(arb.tanh, array)

    def erf(self, array: Array) -> Array:
        return _entrywise(arb.erf, array)

    def sin(self, array: Array) -> Array:
        return _entrywise(arb.sin, array)

    def cos(self, array: Array) -> Array:
        return _entrywise(arb.cos, array)

    def power(self, base: Fraction, exponent: Fraction) -> Any:
        return self.constant(base) ** self.constant(exponent)

    @property
    def pi(self) -> Any:
        return arb.pi()

    @property
    def minus_infinity(self) -> Any:
        return arb.neg_inf()

    def is_masked(self, array: Array) -> Array:
        return _entrywise(is_minus_infinity, array).astype(bool)

    def is_zero(self, array: Array) -> Array:
        """Where the value is 0 beyond doubt; a ball that merely contains 0 does not count."""
        return _entrywise(arb.is_zero, array).astype(bool)


def is_minus_infinity(ball: Any) -> bool:
    return bool(ball.mid() == arb.neg_inf() and ball.rad().is_finite())


def _read(entry: Any) -> Any:
    if isinstance(entry, float) and isnan(entry):
        raise NumberError("certified numbers know no NaN")
    if entry == inf:
        raise NumberError("certified numbers know no +∞ (−∞ stands for what is masked)")
    if entry == -inf:
        return arb.neg_inf()
    value = as_fraction(entry)
    return arb(fmpq(value.numerator, value.denominator))


# ---- float64 against certified -------------------------------------------------------------


def ulps(run_float: Run, run_certified: Run) -> dict[str, float]:
    """How far float64 is from the true values: for each step the largest error of an entry.

    The unit is the last place (ulp) of the true entry. Certified numbers read a given 0.1 as one
    tenth, while float64 holds the binary fraction next to it: pass givens that binary fractions
    hold exactly, such as multiples of 1/64, to see the rounding of the computation alone.

    Where float64 subtracts the row maximum before exp, `exp` and `sums` are other quantities by
    design and are left out, with all that uses them before they are normalised. An entry that
    nearly cancels to 0 has a tiny unit, so its error in ulps is large without being wrong.
    """
    return {
        name: max(
            map(_entry_ulps, run_float.values[name].flat, run_certified.values[name].flat),
            default=0.0,
        )
        for name in _comparable(run_float.graph)
    }


def _comparable(graph: Graph) -> list[str]:
    shifted: set[str] = set()
    for step in graph.steps:
        is_shift = isinstance(step.operation, Exp) and step.operation.shift
        if is_shift or (shifted & set(step.operands) and not isinstance(step.operation, Normalise)):
            shifted.add(step.name)
    return [step.name for step in graph.steps if step.name not in shifted]


def _entry_ulps(computed: float, true: Any) -> float:
    if not isfinite(computed) or not true.is_finite():
        return 0.0 if is_minus_infinity(true) and computed == -inf else inf
    unit = ulp(float(true.mid()))
    with precision(ctx.prec + 64):
        return float(((arb(float(computed)) - true) / unit).abs_upper())
