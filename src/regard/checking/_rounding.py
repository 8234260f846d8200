"""What every step can be when the steps before it were rounded: bounded, not guessed.

Each rounded entry is a number plus an unknown error of at most half a unit of its last digit. The
errors are carried on as such (affine arithmetic), so that an error that enters twice, above and
below a fraction bar, is known to be the same; what is not linear in them is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.graph.numbers import Numbers
from regard.graph.operation import Array

if TYPE_CHECKING:
    from regard.graph.graph import Graph
    from regard.graph.run import Run

Function = Callable[[float], float]
LARGEST_EXPONENT = 300.0  # beyond it nothing is bounded; squares of e^300 still are numbers


class Ball:
    """`middle`, plus `errors` times unknowns between −1 and 1, plus at most `rest` either way."""

    __slots__ = ("errors", "middle", "rest")

    def __init__(self, middle: float, errors: Array, rest: float = 0.0) -> None:
        self.middle = middle
        self.errors = errors
        self.rest = rest

    @property
    def radius(self) -> float:
        return float(np.abs(self.errors).sum()) + self.rest

    def __add__(self, other: Ball) -> Ball:
        return Ball(self.middle + other.middle, self.errors + other.errors, self.rest + other.rest)

    def __neg__(self) -> Ball:
        return Ball(-self.middle, -self.errors, self.rest)

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        a, b = self.middle, other.middle
        rest = abs(a) * other.rest + abs(b) * self.rest + self.radius * other.radius
        return Ball(a * b, a * other.errors + b * self.errors, rest)

    def __truediv__(self, other: Ball) -> Ball:
        return self * other.inverse()

    def inverse(self) -> Ball:
        """1/x; anything at all when x can be 0."""
        middle, radius = self.middle, self.radius
        if not radius < abs(middle) < math.inf:
            return Ball(0.0, 0 * self.errors, math.inf)
        bend = radius**2 / (middle**2 * (abs(middle) - radius))
        return self._along(1 / middle, -1 / middle**2, bend)

    def _along(self, value: float, slope: float, bend: float) -> Ball:
        """A function by its tangent; it strays from that by at most `bend`."""
        return Ball(value, slope * self.errors, abs(slope) * self.rest + bend)

    def exp(self) -> Ball:
        if self.middle == -math.inf:
            return Ball(0.0, 0 * self.errors)
        if self.middle > LARGEST_EXPONENT:
            return Ball(0.0, 0 * self.errors, math.inf)
        value, radius = math.exp(self.middle), min(self.radius, LARGEST_EXPONENT)
        return self._along(value, value, value * (math.expm1(radius) - radius))

    def sqrt(self) -> Ball:
        radius = self.radius
        if self.middle <= radius:
            return Ball(math.sqrt(max(self.middle, 0.0)), 0 * self.errors, math.sqrt(2 * radius))
        root = math.sqrt(self.middle)
        bend = radius**2 / 8 * (self.middle - radius) ** -1.5
        return self._along(root, 0.5 / root, bend)

    def smooth(self, function: Function, slope: Function, bend: float) -> Ball:
        """A function whose second derivative is nowhere above twice `bend`."""
        x = self.middle
        return self._along(function(x), slope(x), bend * self.radius**2)


def _each(function: Callable[[Any], Any], array: Array) -> Array:
    result = np.empty(np.shape(array), dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = function(array[place])
    return result


class Rounded(Numbers):
    """Every step rounded to `decimals`, or to a `share` of its largest entry.

    `radius` says how far values that are put in may be from what they stand for.
    """

    word = "rounded"

    def __init__(self, graph: Graph, decimals: int | None, share: float = 0.0) -> None:
        self.half = 0.0 if decimals is None else 0.5 * 10.0**-decimals
        self.share = share
        self.unknowns = 2 * sum(graph.counts.values()) + 64  # a mistake may need some more
        self.used = 0

    def ball(self, value: float, radius: float = 0.0) -> Ball:
        """A number with an error of its own."""
        errors = np.zeros(self.unknowns)
        if radius == 0 or self.used == self.unknowns:
            return Ball(float(value), errors, radius)
        errors[self.used] = radius
        self.used += 1
        return Ball(float(value), errors)

    def array(self, given: Array) -> Array:
        return _each(lambda x: x if isinstance(x, Ball) else self.ball(float(x)), given)

    def around(self, values: Array, radius: Array) -> Array:
        """Values to put in, each with an error of its own."""
        result = np.empty(values.shape, dtype=object)
        for place in np.ndindex(values.shape):
            result[place] = self.ball(float(values[place]), float(radius[place]))
        return result

    def tidy(self, array: Array, step: str) -> Array:
        sizes = [abs(ball.middle) for ball in array.flat if math.isfinite(ball.middle)]
        half = self.half + self.share * max(sizes, default=0.0)
        return _each(lambda ball: ball + self.ball(0.0, half), array)

    def constant(self, value: Fraction | int) -> Any:
        return self.ball(float(value))

    def exp(self, array: Array) -> Array:
        return _each(Ball.exp, array)

    def sqrt(self, array: Array) -> Array:
        return _each(Ball.sqrt, array)

    def tanh(self, array: Array) -> Array:
        return _each(lambda x: x.smooth(math.tanh, lambda t: 1 - math.tanh(t) ** 2, 0.39), array)

    def erf(self, array: Array) -> Array:
        slope = lambda t: 2 / math.sqrt(math.pi) * math.exp(-t * t)  # noqa: E731
        return _each(lambda x: x.smooth(math.erf, slope, 0.49), array)

    def sin(self, array: Array) -> Array:
        return _each(lambda x: x.smooth(math.sin, math.cos, 0.5), array)

    def cos(self, array: Array) -> Array:
        return _each(lambda x: x.smooth(math.cos, lambda t: -math.sin(t), 0.5), array)

    def power(self, base: Fraction, exponent: Fraction) -> Any:
        return self.ball(float(base) ** float(exponent))

    @property
    def pi(self) -> Any:
        return self.ball(math.pi)

    @property
    def minus_infinity(self) -> Any:
        return self.ball(-math.inf)

    def is_masked(self, array: Array) -> Array:
        return _each(lambda x: x.middle == -math.inf, array).astype(bool)

    def is_zero(self, array: Array) -> Array:
        return _each(lambda x: x.middle == x.radius == 0, array).astype(bool)

    def permissions(self, allowed: Array) -> Array:
        return _each(lambda is_open: self.ball(0.0 if is_open else -math.inf), allowed)

    def settled(
        self, attempt: Callable[[Mapping[str, Array]], Run], known: Mapping[str, Array]
    ) -> Run:
        return attempt(known)


def holds(enclosure: Array, values: Array, radius: Array) -> bool:
    """Whether every value can be what its ball stands for, and the balls say anything at all."""
    if enclosure.shape != values.shape:
        return False
    for ball, value, half in zip(enclosure.flat, values.flat, radius.flat, strict=True):
        gap = 0.0 if ball.middle == value else abs(ball.middle - value)
        if not gap <= ball.radius + half < math.inf:
            return False
    return True
