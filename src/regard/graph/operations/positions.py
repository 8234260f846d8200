"""Where a token stands: sinusoidal and rotary positions, and ALiBi's bias on the scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from regard._errors import ShapeError
from regard._options import one_of
from regard.graph import notation
from regard.graph.notation import Math, Words
from regard.graph.operation import (
    Array,
    Axes,
    Axis,
    Cost,
    Operand,
    Operation,
    Setting,
    Tensor,
    entries,
    matrix_of,
)
from regard.graph.operations.masks import places_coded, shifted
from regard.graph.polynomial import Polynomial
from regard.graph.program import Program, Span

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
    arity = 0
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        angles = _coded_angles(program, target, self.base, "0")
        pair = program.function("sin", angles.text), program.function("cos", angles.text)
        program.zeros(target)
        for first, text in enumerate(pair[::-1] if self.swapped else pair):
            program.fill(target, "model", Span(first, None, 2), Operand(text, angles.axes))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return ()


@dataclass(frozen=True)
class Rotary(Operation):
    """Pairs of columns turned by an angle that grows with the position.

    A pair is (i, i + d/2) in the `half` layout, (2i, 2i + 1) in the `interleaved` one.
    """

    word = "rotary"
    layout: str = "half"
    base: str = "10000"
    offset: str = "0"
    inverse: bool = False

    def __post_init__(self) -> None:
        one_of("rotary_layout", self.layout, ("half", "interleaved"))

    def axes(self, *operands: Axes) -> Axes:
        matrix_of(self.word, operands[0])
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
        angle = f"t·{self.base}^(−2i/d)"
        words = f"turned {direction}by {angle} in each pair of columns ({self.layout})"
        return notation.product(operands[0], Words(words))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(multiplications=count * 2, additions=count, functions=count)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        angles = _coded_angles(program, a, self.base, self.offset)
        cosine = program.let("cosine", program.function("cos", angles.text), *angles.axes)
        sign = "-" if self.inverse else ""
        sine = program.let("sine", sign + program.function("sin", angles.text), *angles.axes)
        columns = a.axes[-1]
        halves = self._halves(columns)
        first, second = (
            program.let(name, program.part(a, columns.name, half), *a.axes)
            for name, half in zip(("first", "second"), halves, strict=True)
        )
        c, s, times = cosine.text, sine.text, program.times
        program.zeros(target)
        turned = (
            f"{first.text} {times} {c} - {second.text} {times} {s}",
            f"{first.text} {times} {s} + {second.text} {times} {c}",
        )
        for half, text in zip(halves, turned, strict=True):
            program.fill(target, columns.name, half, Operand(text, target.axes))

    def _halves(self, columns: Axis) -> tuple[Span, Span]:
        if self.layout == "half":
            middle = columns.size.over(2)
            return Span(0, middle), Span(middle)
        return Span(0, None, 2), Span(1, None, 2)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        back = Rotary(self.layout, self.base, self.offset, not self.inverse)
        return (tape.add(back, gradient),)


@dataclass(frozen=True)
class Alibi(Operation):
    """A penalty on the score that grows with the distance, at a slope of the head's own."""

    word = "alibi"
    arity = 0
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
        return Words(f"−m·|{shifted('i', self.offset)} − j| with the head's slope m")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(multiplications=entries(self.axes()))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        head = target.axes[0]
        powers = np.array(alibi_powers(target.size("head")), dtype=object)
        column = len("slopes = ") + len(program.power("2", ""))
        exponents = program.literal(powers, (head,), column)
        slopes = program.let("slopes", program.power("2", exponents), head)
        i, j = places_coded(program, target, self.rows, self.columns, self.offset)
        distance = program.function("abs", f"{i} - {j}")
        slope = program.aligned(slopes, target.names)
        program.set(target, f"-{slope} {program.times} {distance}")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return ()


def alibi_powers(heads: int) -> list[Fraction]:
    """Exponents of 2 for the slopes: −8/h, −16/h, …; in between when h is no power of two."""
    whole = 1 << (heads.bit_length() - 1)  # the largest power of two up to `heads`
    powers = [Fraction(-8 * (i + 1), whole) for i in range(whole)]
    between = [Fraction(-8 * (i + 1), 2 * whole) for i in range(0, 2 * whole, 2)]
    return powers + between[: heads - whole]


def _coded_angles(program: Program, like: Operand, base: str, offset: str) -> Operand:
    """A helper variable for the angle of every row and pair of columns."""
    rows, columns = like.axes[-2:]
    start = program.shift(offset)
    counted = program.counted(rows.size)
    position = Operand(f"({counted}{start})" if start else counted, (rows,))
    exponents = Operand(program.counted(columns.size, 2), (columns,))
    names = (rows.name, columns.name)
    width = program.enclosed(program.size(columns.size))
    share = f"({program.aligned(exponents, names)} / {width})"
    rate = program.power(program.factor(base), share)
    angles = f"{program.aligned(position, names)} {program.over} {rate}"
    return program.let("angles", angles, rows, columns)
