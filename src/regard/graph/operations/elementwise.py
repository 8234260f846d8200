"""Operations that work on each entry alone; operands are matched by the names of their axes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import LEADING, written
from regard._errors import ShapeError
from regard.graph import notation
from regard.graph.notation import Math, Number, Symbol
from regard.graph.operation import (
    Array,
    Axes,
    Axis,
    Cost,
    Operation,
    Setting,
    Tensor,
    entries,
    union,
)
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape


def entry_at(place: tuple[int, ...], names: tuple[str, ...], operand: Tensor) -> Number:
    """The operand's entry that goes into the result's entry at `place`."""
    where = dict(zip((n for n in names if n not in LEADING), place, strict=True))
    return Number(operand.array[tuple(where[name] for name in operand.names)])


class _Pairwise(Operation):
    """Two operands, entry by entry."""

    def axes(self, *operands: Axes) -> Axes:
        found: dict[str, Axis] = {}
        for axes in operands:
            for axis in axes:
                if axis.name not in found or found[axis.name].size == Polynomial.of(1):
                    found[axis.name] = axis
        return tuple(found[n] for n in union(*(tuple(a.name for a in axes) for axes in operands)))

    def _arrays(self, *operands: Tensor) -> list[Array]:
        names = union(*(operand.names for operand in operands))
        return [operand.aligned(names) for operand in operands]

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        (a_name, a), (b_name, b) = operands
        for name in set(a.names) & set(b.names):
            sizes = a.array.shape[a.place(name)], b.array.shape[b.place(name)]
            if sizes[0] != sizes[1]:
                raise ShapeError(
                    f"{step}: {a_name} is {written(a.array.shape)} and {b_name} is "
                    f"{written(b.array.shape)}; their {name} axes differ, {sizes[0]} ≠ {sizes[1]}"
                )

    def _entries_at(self, place: tuple[int, ...], *operands: Tensor) -> list[Number]:
        names = union(*(operand.names for operand in operands))
        return [entry_at(place, names, operand) for operand in operands]


@dataclass(frozen=True)
class Add(_Pairwise):
    word = "add"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = self._arrays(*operands)
        return np.asarray(a + b)

    def formula(self, *operands: Math) -> Math:
        return notation.total(*operands)

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return notation.total(*self._entries_at(place, *operands))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(self.axes(*operands)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, gradient


@dataclass(frozen=True)
class Subtract(_Pairwise):
    word = "subtract"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = self._arrays(*operands)
        return np.asarray(a - b)

    def formula(self, *operands: Math) -> Math:
        return notation.total(operands[0], notation.Negative(operands[1]))

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        a, b = self._entries_at(place, *operands)
        return notation.total(a, notation.Negative(b))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(self.axes(*operands)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, tape.add(Negate(), gradient)


@dataclass(frozen=True)
class Multiply(_Pairwise):
    word = "multiply"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = self._arrays(*operands)
        return np.asarray(a * b)

    def formula(self, *operands: Math) -> Math:
        return notation.product(*operands, sign="⊙")

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return notation.product(*self._entries_at(place, *operands), sign="·")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(multiplications=entries(self.axes(*operands)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)
        return tape.add(Multiply(), gradient, b), tape.add(Multiply(), gradient, a)


@dataclass(frozen=True)
class Divide(_Pairwise):
    word = "divide"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = self._arrays(*operands)
        return np.asarray(a / b)

    def formula(self, *operands: Math) -> Math:
        return notation.Fraction(*operands)

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return notation.Fraction(*self._entries_at(place, *operands))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(divisions=entries(self.axes(*operands)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        """C = A / B: dA = dC / B and dB = −dA ⊙ C, because ∂C/∂B = −C / B."""
        _, b = tape.operands(step)
        to_a = tape.add(type(self)(), gradient, b)
        return to_a, tape.add(Negate(), tape.add(Multiply(), to_a, step))


class _Entrywise(Operation):
    """One operand, entry by entry."""

    def axes(self, *operands: Axes) -> Axes:
        return operands[0]

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        (a,) = operands
        return self.formula(Number(a.array[place]))


@dataclass(frozen=True)
class Negate(_Entrywise):
    word = "negate"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(-operands[0].array)

    def formula(self, *operands: Math) -> Math:
        return notation.Negative(operands[0])

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Negate(), gradient),)


@dataclass(frozen=True)
class Affine(_Entrywise):
    """`factor`·x + `offset`, with exact numbers written as text ("1/2")."""

    word = "affine"
    factor: str = "1"
    offset: str = "0"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        factor, offset = Fraction(self.factor), Fraction(self.offset)
        result = operands[0].array
        if factor != 1:
            result = result * setting.numbers.constant(factor)
        return np.asarray(result + setting.numbers.constant(offset) if offset else result)

    def formula(self, *operands: Math) -> Math:
        factor, offset = Fraction(self.factor), Fraction(self.offset)
        scaled = operands[0]
        if factor != 1:
            scaled = notation.product(Number(factor), scaled, sign="·")
        if not offset:
            return scaled
        if factor == -1:
            return notation.total(Number(offset), notation.Negative(operands[0]))
        return notation.total(scaled, Number(offset))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(
            multiplications=count if Fraction(self.factor) not in (1, -1) else Polynomial(),
            additions=count if Fraction(self.offset) else Polynomial(),
        )

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Affine(factor=self.factor), gradient),)


@dataclass(frozen=True)
class Scale(_Entrywise):
    """Divided by the square root of a size (or by the size itself, or multiplied instead)."""

    word = "scale"
    size: str = "d_k"
    root: bool = True
    multiply: bool = False

    def _measure(self, setting: Setting) -> Array:
        size = Polynomial.parse(self.size).evaluate(setting.sizes)
        value = np.asarray(setting.numbers.constant(size))
        return setting.numbers.sqrt(value) if self.root else value

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        measure = self._measure(setting)
        array = operands[0].array
        return np.asarray(array * measure if self.multiply else array / measure)

    def formula(self, *operands: Math) -> Math:
        base, _, sub = self.size.partition("_")
        size: Math = Symbol(base, sub) if self.size.isidentifier() else notation.Words(self.size)
        measure = notation.Root(size) if self.root else size
        if self.multiply:
            return notation.product(operands[0], measure, sign="·")
        return notation.Fraction(operands[0], measure)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(multiplications=count) if self.multiply else Cost(divisions=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(self, gradient),)


@dataclass(frozen=True)
class Sqrt(_Entrywise):
    word = "sqrt"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(setting.numbers.sqrt(operands[0].array))

    def formula(self, *operands: Math) -> Math:
        return notation.Root(operands[0])

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(functions=entries(operands[0]))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Affine(factor="1/2"), tape.add(Divide(), gradient, step)),)


@dataclass(frozen=True)
class Tanh(_Entrywise):
    word = "tanh"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(setting.numbers.tanh(operands[0].array))

    def formula(self, *operands: Math) -> Math:
        return notation.call("tanh", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(functions=entries(operands[0]))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Affine("-1", "1"), tape.add(Multiply(), step, step))
        return (tape.add(Multiply(), gradient, slope),)


@dataclass(frozen=True)
class SoftCap(_Entrywise):
    """`cap`·tanh(x / `cap`): scores stay between −cap and cap."""

    word = "softcap"
    cap: str = "30"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        cap = setting.numbers.constant(Fraction(self.cap))
        return np.asarray(setting.numbers.tanh(operands[0].array / cap) * cap)

    def formula(self, *operands: Math) -> Math:
        cap = Number(Fraction(self.cap))
        inside = notation.Fraction(operands[0], cap)
        return notation.product(cap, notation.call("tanh", inside), sign="·")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(divisions=count, functions=count, multiplications=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        share = tape.add(Affine(factor=str(1 / Fraction(self.cap))), step)
        slope = tape.add(Affine("-1", "1"), tape.add(Multiply(), share, share))
        return (tape.add(Multiply(), gradient, slope),)


@dataclass(frozen=True)
class Sigmoid(_Entrywise):
    word = "sigmoid"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        one = setting.numbers.constant(1)
        return np.asarray(one / (setting.numbers.exp(-operands[0].array) + one))

    def formula(self, *operands: Math) -> Math:
        return notation.call("σ", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(exponentials=count, additions=count, divisions=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Multiply(), step, tape.add(Affine("-1", "1"), step))
        return (tape.add(Multiply(), gradient, slope),)


@dataclass(frozen=True)
class NormalCdf(_Entrywise):
    """Φ(x) = ½(1 + erf(x/√2)): the share of a standard normal below x, as GELU weighs with it."""

    word = "normal-cdf"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        numbers = setting.numbers
        root = numbers.sqrt(np.asarray(numbers.constant(2)))
        inside = numbers.erf(np.asarray(operands[0].array / root)) + numbers.constant(1)
        return np.asarray(inside / numbers.constant(2))

    def formula(self, *operands: Math) -> Math:
        return notation.call("Φ", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(divisions=count * 2, functions=count, additions=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(NormalDensity(), *tape.operands(step))
        return (tape.add(Multiply(), gradient, slope),)


@dataclass(frozen=True)
class NormalDensity(_Entrywise):
    """φ(x) = e^(−x²/2) / √(2π), the slope of Φ."""

    word = "normal-density"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        numbers, x = setting.numbers, operands[0].array
        root = numbers.sqrt(np.asarray(numbers.pi * numbers.constant(2)))
        return np.asarray(numbers.exp(np.asarray(-(x * x) / numbers.constant(2))) / root)

    def formula(self, *operands: Math) -> Math:
        return notation.call("φ", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(multiplications=count, divisions=count * 2, exponentials=count)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Negate(), tape.add(Multiply(), step, *tape.operands(step)))
        return (tape.add(Multiply(), gradient, slope),)
