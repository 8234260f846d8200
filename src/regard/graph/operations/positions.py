"""Where a token stands: sinusoidal and rotary positions, and ALiBi's bias on the scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log2
from typing import TYPE_CHECKING

import numpy as np

from regard._errors import ShapeError
from regard._options import one_of
from regard.graph import notation
from regard.graph.notation import Math, Words
from regard.graph.operation import Array, Axes, Axis, Cost, Operation, Setting, Tensor, entries
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape
    from regard.graph.numbers import Numbers


def angles(numbers: Numbers, positions: int, pairs: int, base: Fraction, start: int = 0) -> Array:
    """position · base^(−2i/d) for every position and pair i, as (positions, pairs)."""
    rates = [numbers.power(base, Fraction(-i, pairs)) for i in range(pairs)]
    table = np.empty((positions, pairs), dtype=np.asarray(rates).dtype)
    for row in range(positions):
        for i, rate in enumerate(rates):
            table[row, i] = rate * numbers.constant(start + row)
    return table


@dataclass(frozen=True)
class Sinusoidal(Operation):
    """Sines in the even columns, cosines in the odd ones, slower from left to right."""

    word = "sinusoidal"
    rows: str = "n"
    columns: str = "d_model"
    base: str = "10000"
    swapped: bool = False  # cosine first: a known mistake

    def axes(self, *operands: Axes) -> Axes:
        rows, columns = Polynomial.parse(self.rows), Polynomial.parse(self.columns)
        return Axis("token", rows), Axis("model", columns)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        numbers = setting.numbers
        rows, columns = (
            Polynomial.parse(size).evaluate(setting.sizes) for size in (self.rows, self.columns)
        )
        if columns % 2:
            raise ShapeError(f"sinusoidal positions need an even d_model, but it is {columns}")
        table = angles(numbers, rows, columns // 2, Fraction(self.base))
        pair = [numbers.sin(table), numbers.cos(table)]
        return np.stack(pair[::-1] if self.swapped else pair, axis=-1).reshape(rows, columns)

    def formula(self, *operands: Math) -> Math:
        first, second = ("cos", "sin") if self.swapped else ("sin", "cos")
        power = f"{self.base}^(2i/{self.columns})"
        return Words(f"{first}(t / {power}) in column 2i, {second}(t / {power}) in column 2i+1")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(functions=entries(self.axes()))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return ()


@dataclass(frozen=True)
class Rotary(Operation):
    """Pairs of columns turned by an angle that grows with the position.

    A pair is (i, i + d/2) in the `half` layout, (2i, 2i + 1) in the `interleaved` one.
    """

    word = "rotary"
    axis: str = "query"
    layout: str = "half"
    base: str = "10000"
    offset: str = "0"
    inverse: bool = False

    def __post_init__(self) -> None:
        one_of("rotary layout", self.layout, ("half", "interleaved"))

    def axes(self, *operands: Axes) -> Axes:
        return operands[0]

    def _pairs(self, array: Array) -> tuple[Array, Array]:
        half = array.shape[-1] // 2
        if self.layout == "half":
            return array[..., :half], array[..., half:]
        return array[..., 0::2], array[..., 1::2]

    def _turns(self, numbers: Numbers, shape: tuple[int, ...], start: int) -> tuple[Array, Array]:
        if shape[-1] % 2:
            raise ShapeError(f"rotary positions need an even d_k, but it is {shape[-1]}")
        table = angles(numbers, shape[-2], shape[-1] // 2, Fraction(self.base), start)
        sine = numbers.sin(table)
        return numbers.cos(table), -sine if self.inverse else sine

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        array = operands[0].array
        start = Polynomial.parse(self.offset).evaluate(setting.sizes)
        cosine, sine = self._turns(setting.numbers, array.shape, start)
        first, second = self._pairs(array)
        turned = first * cosine - second * sine, first * sine + second * cosine
        if self.layout == "half":
            return np.concatenate(turned, axis=-1)
        return np.stack(turned, axis=-1).reshape(array.shape)

    def formula(self, *operands: Math) -> Math:
        direction = "back " if self.inverse else ""
        words = f"turned {direction}by t·{self.base}^(−2i/d) in each pair of columns ({self.layout})"
        return notation.product(operands[0], Words(words))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(multiplications=count * 2, additions=count, functions=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        back = Rotary(self.axis, self.layout, self.base, self.offset, not self.inverse)
        return (tape.add(back, gradient),)


@dataclass(frozen=True)
class Alibi(Operation):
    """A penalty on the score that grows with the distance, at a slope of the head's own."""

    word = "alibi"
    heads: str = "h"
    rows: str = "n_q"
    columns: str = "n_k"
    offset: str = "0"

    def axes(self, *operands: Axes) -> Axes:
        names = ("head", self.heads), ("query", self.rows), ("key", self.columns)
        return tuple(Axis(name, Polynomial.parse(size)) for name, size in names)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        heads, rows, columns, offset = (
            Polynomial.parse(size).evaluate(setting.sizes)
            for size in (self.heads, self.rows, self.columns, self.offset)
        )
        numbers = setting.numbers
        slopes = np.array([numbers.power(Fraction(2), power) for power in alibi_powers(heads)])
        distance = np.abs(np.arange(rows)[:, None] + offset - np.arange(columns)[None, :])
        exact = np.frompyfunc(lambda steps: numbers.constant(-int(steps)), 1, 1)(distance)
        return np.asarray(slopes[:, None, None] * exact.astype(slopes.dtype))

    def formula(self, *operands: Math) -> Math:
        distance = "i − j" if self.offset == "0" else f"i + {self.offset} − j"
        return Words(f"−m·|{distance}| with the head's slope m")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(multiplications=entries(self.axes()))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return ()


def alibi_powers(heads: int) -> list[Fraction]:
    """Exponents of 2 for the slopes: −8/h, −16/h, …; in between when h is no power of two."""
    whole = 2 ** floor(log2(heads))
    powers = [Fraction(-8 * (i + 1), whole) for i in range(whole)]
    between = [Fraction(-8 * (i + 1), 2 * whole) for i in range(0, 2 * whole, 2)]
    return powers + between[: heads - whole]
