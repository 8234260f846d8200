"""Operations that work on each entry alone; operands are matched by the names of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import LEADING
from regard._errors import ShapeError
from regard.graph import notation
from regard.graph.notation import Math, Number
from regard.graph.operation import (
    Array,
    Axes,
    Axis,
    Cost,
    Magnitude,
    Operand,
    Operation,
    Setting,
    Tensor,
    check_shared,
    core_of,
    entries,
    rounding_of_sum,
    union,
)
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape
    from regard.graph.program import Program


def entry_at(place: tuple[int, ...], names: tuple[str, ...], operand: Tensor) -> Number:
    """The operand's entry that goes into the result's entry at `place`."""
    where = dict(zip((n for n in names if n not in LEADING), place, strict=True))
    return Number(operand.array[tuple(where[name] for name in operand.names)])


class Pairwise(Operation):
    """Two operands, entry by entry; a smaller one is repeated along the axes that it lacks."""

    arity = 2

    def axes(self, *operands: Axes) -> Axes:
        found: dict[str, Axis] = {}
        for axes in operands:
            for axis in axes:
                found.setdefault(axis.name, axis)
        a, b = ({axis.name for axis in core_of(axes)} for axes in operands)
        if not (a <= b or b <= a):
            raise ShapeError(
                f"{self.word}: operands over {', '.join(sorted(a))} and over "
                f"{', '.join(sorted(b))}; one must have all axes of the other"
            )
        return tuple(found[n] for n in union(*(tuple(a.name for a in axes) for axes in operands)))

    def _arrays(self, *operands: Tensor) -> list[Array]:
        names = union(*(operand.names for operand in operands))
        return [operand.aligned(names) for operand in operands]

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        check_shared(step, *operands)

    def _entries_at(self, place: tuple[int, ...], *operands: Tensor) -> list[Number]:
        names = union(*(operand.names for operand in operands))
        return [entry_at(place, names, operand) for operand in operands]


class Add(Pairwise):
    word = "add"

    def rounding(self, *operands: Magnitude) -> float:
        return rounding_of_sum(*operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = self._arrays(*operands)
        return np.asarray(a + b)

    def formula(self, *operands: Math) -> Math:
        return notation.total(*operands)

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return notation.total(*self._entries_at(place, *operands))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(self.axes(*operands)))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.joined("+", target, *operands))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, gradient


class Subtract(Pairwise):
    word = "subtract"

    def rounding(self, *operands: Magnitude) -> float:
        return rounding_of_sum(*operands)

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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.joined("-", target, *operands))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, tape.add(Negate(), gradient)


class Multiply(Pairwise):
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.joined(program.times, target, *operands))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)
        return tape.add(Multiply(), gradient, b), tape.add(Multiply(), gradient, a)


class Divide(Pairwise):
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.joined(program.over, target, *operands))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        """C = A / B: dA = dC / B and dB = −dA ⊙ C, because ∂C/∂B = −C / B."""
        _, b = tape.operands(step)
        to_a = tape.add(type(self)(), gradient, b)
        return to_a, tape.add(Negate(), tape.add(Multiply(), to_a, step))


class Entrywise(Operation):
    """One operand, entry by entry."""

    def axes(self, *operands: Axes) -> Axes:
        return operands[0]

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        (a,) = operands
        return self.formula(Number(a.array[place]))


class Negate(Entrywise):
    word = "negate"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(-operands[0].array)

    def formula(self, *operands: Math) -> Math:
        return notation.Negative(operands[0])

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, f"-{operands[0].text}")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Negate(), gradient),)


@dataclass(frozen=True)
class Affine(Entrywise):
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        factor, offset = Fraction(self.factor), Fraction(self.offset)
        scaled = operands[0].text
        if factor == -1 and offset:
            program.set(target, f"{program.number(offset)} - {scaled}")
            return
        if factor != 1:
            scaled = f"{program.factor(factor)} * {scaled}"
        sign = "-" if offset < 0 else "+"
        program.set(target, f"{scaled} {sign} {program.number(abs(offset))}" if offset else scaled)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Affine(factor=self.factor), gradient),)


@dataclass(frozen=True)
class Scale(Entrywise):
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

    def with_sizes(self, sizes: Mapping[str, int]) -> Scale:
        return replace(self, size=str(Polynomial.parse(self.size).evaluate(sizes)))

    def formula(self, *operands: Math) -> Math:
        size = Polynomial.parse(self.size).notation()
        measure = notation.Root(size) if self.root else size
        if self.multiply:
            return notation.product(operands[0], measure, sign="·")
        return notation.Fraction(operands[0], measure)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(multiplications=count) if self.multiply else Cost(divisions=count)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        size = program.size(self.size)
        measure = program.root(size) if self.root else program.enclosed(size)
        program.set(target, f"{operands[0].text} {'*' if self.multiply else '/'} {measure}")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(self, gradient),)


class Sqrt(Entrywise):
    word = "sqrt"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(setting.numbers.sqrt(operands[0].array))

    def formula(self, *operands: Math) -> Math:
        return notation.Root(operands[0])

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(functions=entries(operands[0]))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.function("sqrt", operands[0].text))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Affine(factor="1/2"), tape.add(Divide(), gradient, step)),)


class Tanh(Entrywise):
    word = "tanh"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.asarray(setting.numbers.tanh(operands[0].array))

    def formula(self, *operands: Math) -> Math:
        return notation.call("tanh", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(functions=entries(operands[0]))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.function("tanh", operands[0].text))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Affine("-1", "1"), tape.add(Multiply(), step, step))
        return (tape.add(Multiply(), gradient, slope),)


@dataclass(frozen=True)
class SoftCap(Entrywise):
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        cap = program.factor(self.cap)
        share = program.function("tanh", f"{operands[0].text} / {cap}")
        program.set(target, f"{cap} * {share}")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        share = tape.add(Affine(factor=str(1 / Fraction(self.cap))), step)
        slope = tape.add(Affine("-1", "1"), tape.add(Multiply(), share, share))
        return (tape.add(Multiply(), gradient, slope),)


class Sigmoid(Entrywise):
    word = "sigmoid"

    def rounding(self, *operands: Magnitude) -> float:
        return 0.0

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        one = setting.numbers.constant(1)
        return np.asarray(one / (setting.numbers.exp(-operands[0].array) + one))

    def formula(self, *operands: Math) -> Math:
        return notation.call("σ", *operands)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        count = entries(operands[0])
        return Cost(exponentials=count, additions=count, divisions=count)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        power = program.function("exp", f"-{operands[0].text}")
        program.set(target, f"1 {program.over} (1 + {power})")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Multiply(), step, tape.add(Affine("-1", "1"), step))
        return (tape.add(Multiply(), gradient, slope),)


class NormalCdf(Entrywise):
    """Φ(x) = ½(1 + erf(x/√2)): the share of a standard normal below x, as GELU weighs with it."""

    word = "normal-cdf"

    def rounding(self, *operands: Magnitude) -> float:
        return 0.0

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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        share = program.function("erf", f"{operands[0].text} / {program.root('2')}")
        program.set(target, f"0.5 * (1 + {share})", "the standard normal distribution function")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(NormalDensity(), *tape.operands(step))
        return (tape.add(Multiply(), gradient, slope),)


class NormalDensity(Entrywise):
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

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        x = operands[0].text
        power = program.function("exp", f"-{x} {program.times} {x} / 2")
        measure = program.root(f"2 * {program.pi}")
        program.set(target, f"{power} / {measure}", "the standard normal density")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        slope = tape.add(Negate(), tape.add(Multiply(), step, *tape.operands(step)))
        return (tape.add(Multiply(), gradient, slope),)
