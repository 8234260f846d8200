"""The parts of softmax: exponentials, their quotients, and the sink that takes a share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regard._errors import ShapeError
from regard.graph import notation
from regard.graph.notation import Math, Number, Words
from regard.graph.operation import (
    Array,
    Axes,
    Cost,
    Magnitude,
    Operand,
    Operation,
    Setting,
    Tensor,
    check_shared,
    core_of,
    entries,
    named_axis,
    union,
)
from regard.graph.operations.elementwise import Divide, Entrywise, Multiply, Negate
from regard.graph.operations.linear import Sum, Take, leading_axes
from regard.graph.polynomial import Polynomial
from regard.graph.program import Program, Span

if TYPE_CHECKING:
    from regard.graph.gradient import Tape


# e^500 times any number of keys is far from float64's largest number, e^−100 from its smallest.
LOWEST_UNSHIFTED, HIGHEST_UNSHIFTED = -100, 500

_NOTHING_TO_ATTEND = "whoever may attend to nothing gets weights 0, not 0 / 0"


@dataclass(frozen=True)
class Exp(Entrywise):
    """e to the power of each entry.

    With `shift` the largest entry of each group that is normalised together (`over`) is
    subtracted first; the quotients that follow do not change. A run only does so where it must:
    in numbers that can overflow, on groups whose largest entry is far from 0.
    """

    word = "exp"
    over: tuple[str, ...] = ("key",)
    shift: bool = True

    def axes(self, *operands: Axes) -> Axes:
        for name in self.over:
            named_axis(self.word, operands[0], name)
        return operands[0]

    def as_run(self, setting: Setting, *operands: Tensor) -> Exp:
        largest = self._largest(*operands) if self.shift and setting.numbers.shifts else 0
        needed = bool(np.any((largest < LOWEST_UNSHIFTED) | (largest > HIGHEST_UNSHIFTED)))
        return replace(self, shift=needed)

    def _largest(self, a: Tensor) -> Array:
        """The largest entry of each group, 0 where all are masked."""
        places = tuple(a.place(name) for name in self.over)
        largest = np.max(a.array, axis=places, keepdims=True, initial=-np.inf)
        return np.where(np.isneginf(largest), 0.0, largest)

    def rounding(self, *operands: Magnitude) -> float:
        return 0.0

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        shift = self.as_run(setting, a).shift
        return np.asarray(setting.numbers.exp(a.array - self._largest(a) if shift else a.array))

    def formula(self, *operands: Math) -> Math:
        if not self.shift:
            return notation.call("exp", *operands)
        largest = notation.call("max", *operands, sub="over " + " and ".join(self.over))
        return notation.call("exp", notation.total(*operands, notation.Negative(largest)))

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        (a,) = operands
        power: Math = Number(a.array[place])
        if self.shift:
            largest = np.broadcast_to(self._largest(a), a.array.shape)[place]
            power = notation.total(power, notation.Negative(Number(largest)))
        return notation.Power(notation.Symbol("e"), power)

    def note(self, setting: Setting, *operands: Tensor) -> str:
        if not self.as_run(setting, *operands).shift:
            return ""
        group = "row" if self.over == ("key",) else "group that is normalised together"
        return (
            f"float64 subtracts the largest entry of each {group} before exp, so that nothing "
            "overflows or vanishes; the weights are the same."
        )

    def cost(self, convention: str, *operands: Axes) -> Cost:
        (a,) = operands
        count = entries(a)
        cost = Cost(exponentials=count)
        if convention == "stable" and self.shift:
            groups = entries(tuple(axis for axis in a if axis.name not in self.over))
            cost += Cost(comparisons=count - groups, additions=count)
        return cost

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        if not self.shift:
            program.set(target, program.function("exp", a.text))
            return
        largest = program.reduced("max", a, self.over, keep=True)
        if np.any(_all_masked(a, self.over)):
            largest = program.at_least(largest, "-1e308")  # −∞ − (−∞) would not be a number
        comment = "minus the largest: nothing overflows, and the weights stay the same"
        program.set(target, program.function("exp", f"{a.text} - {largest}"), comment)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Multiply(), gradient, step),)


class Normalise(Divide):
    """Each exponential over its sum; a group that is masked as a whole gets weights 0."""

    word = "normalise"

    def rounding(self, *operands: Magnitude) -> float:
        return 0.0

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        numbers = setting.numbers
        exponentials, sums = self._arrays(*operands)
        empty = numbers.is_zero(sums)
        if not np.any(empty):
            return np.asarray(exponentials / sums)
        safe = np.where(empty, numbers.constant(1), sums)
        return np.where(empty, numbers.constant(0), exponentials / safe)

    def note(self, setting: Setting, *operands: Tensor) -> str:
        if np.any(setting.numbers.is_zero(operands[1].array)):
            return "A query that may attend to no key at all gets weights 0 and output 0."
        return ""

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        exponentials, sums = operands
        if not np.any(sums.array == 0):
            super().code(program, target, *operands)
            return
        program.comment(_NOTHING_TO_ATTEND)
        divisors = program.let("divisors", f"{sums.text} + ({sums.text} == 0)", *sums.axes)
        quotient = program.joined(program.over, target, exponentials, divisors)
        above, below = (operand.tensor.aligned(target.names) for operand in operands)
        if np.any(np.where(below == 0, above, 0)):
            empty = f"{program.aligned(sums, target.names)} == 0"
            program.choose(target, empty, "0.0", quotient)
        else:
            program.set(target, quotient)

    def whole_code(
        self, program: Program, target: Operand, scores: Operand, axis: str, call: str
    ) -> None:
        """Exponentials, sums and quotients as the one `call` that the language has for them."""
        if not np.any(_all_masked(scores, (axis,))):
            program.set(target, call)
            return
        program.comment(_NOTHING_TO_ATTEND)
        barred = scores._replace(text=f"({scores.text} == {program.minus_infinity})")
        empty = program.let("empty", program.reduced("all", barred, (axis,), keep=True))
        program.choose(target, empty.text, "0.0", call)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        _, sums = tape.operands(step)
        to_exponentials = tape.add(Normalise(), gradient, sums)
        weighted = tape.add(Multiply(), to_exponentials, step)
        return to_exponentials, tape.add(Negate(), weighted)


@dataclass(frozen=True)
class AppendSink(Operation):
    """The scores with one more column: a key without a value, whose score is learned."""

    word = "append-sink"
    arity = 2
    axis: str = "key"

    def axes(self, *operands: Axes) -> Axes:
        scores, sinks = operands
        sizes = {axis.name: axis for axis in (*leading_axes(scores, sinks), *scores)}
        names = union(tuple(a.name for a in scores), tuple(a.name for a in sinks))
        if found := core_of(sinks):
            raise ShapeError(f"{self.word}: a sink is one number, but has a {found[0].name} axis")
        key = named_axis(self.word, scores, self.axis)
        sizes[self.axis] = key._replace(size=key.size + 1)
        return tuple(sizes[name] for name in names)

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        check_shared(step, *operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        scores, sinks = operands
        names = union(scores.names, sinks.names)
        array, column = scores.aligned(names), sinks.aligned(names)
        place = names.index(self.axis)
        wide = list(np.broadcast_shapes(array.shape, column.shape))
        tall = [*wide[:place], 1, *wide[place + 1 :]]
        parts = [np.broadcast_to(array, wide), np.broadcast_to(column, tall)]
        return np.concatenate(parts, axis=place)

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words("with one more column"), operands[1])

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        scores, sinks = operands
        size = scores.axis(self.axis).size
        program.zeros(target)
        program.fill(target, self.axis, Span(0, size), scores)
        program.fill(target, self.axis, Span(size), sinks)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        scores, _ = tape.operands(step)
        size = named_axis(self.word, tape.axes(scores), self.axis).size
        to_scores = tape.add(Take(self.axis, "0", str(size)), gradient)
        column = tape.add(Take(self.axis, str(size), str(size + Polynomial.of(1))), gradient)
        return to_scores, tape.add(Sum((self.axis,)), column)


def _all_masked(scores: Operand, over: tuple[str, ...]) -> Array:
    """Which groups have no entry but −∞."""
    places = tuple(scores.names.index(name) for name in over)
    return np.asarray(np.isneginf(scores.array).all(axis=places))
