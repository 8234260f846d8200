"""What an operation is: one record that knows its shapes, numbers, formula, cost, adjoint, code.

Nothing about an operation stands anywhere else. A step of a graph applies one operation to
earlier steps; an operation's own fields are its options, so that a rewrite can change them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard._axes import LEADING, written
from regard._errors import ShapeError
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape
    from regard.graph.notation import Math
    from regard.graph.numbers import Numbers
    from regard.graph.program import Program

Array = NDArray[Any]
NO_VALUES: Array = np.empty(0)


class Axis(NamedTuple):
    """One axis of a step: its name from the glossary and its size as a formula."""

    name: str
    size: Polynomial


Axes = tuple[Axis, ...]


class Setting(NamedTuple):
    """What an operation computes in: the kind of numbers and the sizes of this computation."""

    numbers: Numbers
    sizes: Mapping[str, int]


def entries(axes: Axes) -> Polynomial:
    """How many numbers an array with these axes holds."""
    count = Polynomial.of(1)
    for axis in axes:
        count = count * axis.size
    return count


class Tensor(NamedTuple):
    """An array whose axes have names."""

    array: Array
    names: tuple[str, ...]

    @property
    def core(self) -> tuple[str, ...]:
        """The names without batch and head."""
        return tuple(name for name in self.names if name not in LEADING)

    def aligned(self, names: tuple[str, ...]) -> Array:
        """The array with its axes in the order of `names`, size 1 where it has none."""
        order = [self.names.index(name) for name in names if name in self.names]
        shape = iter(self.array.shape[place] for place in order)
        return self.array.transpose(order).reshape(
            [next(shape) if name in self.names else 1 for name in names]
        )

    def place(self, name: str) -> int:
        return self.names.index(name)


def named_axis(word: str, axes: Axes, name: str) -> Axis:
    """The axis of this name; an operation (`word`) that works along it cannot do without."""
    for axis in axes:
        if axis.name == name:
            return axis
    found = ", ".join(axis.name for axis in axes) or "none"
    raise ShapeError(f"{word}: there is no {name} axis; the axes are {found}")


def core_of(axes: Axes) -> Axes:
    return tuple(axis for axis in axes if axis.name not in LEADING)


def matrix_of(word: str, axes: Axes) -> tuple[Axis, Axis]:
    """The two axes that are neither batch nor head."""
    core = core_of(axes)
    if len(core) != 2:
        found = ", ".join(axis.name for axis in core) or "none"
        raise ShapeError(f"{word}: a matrix is wanted, but its axes are {found}")
    return core[0], core[1]


def check_shared(step: str, *operands: tuple[str, Tensor], among: tuple[str, ...] = ()) -> None:
    """Axes of the same name (all of them, or those `among` these) must have the same size."""
    (a_name, a), (b_name, b) = operands
    for name in a.names:
        if name not in b.names or (among and name not in among):
            continue
        sizes = a.array.shape[a.place(name)], b.array.shape[b.place(name)]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"{step}: {a_name} is {written(a.array.shape)} and {b_name} is "
                f"{written(b.array.shape)}; their {name} axes differ, {sizes[0]} ≠ {sizes[1]}"
            )


def union(*operands: tuple[str, ...]) -> tuple[str, ...]:
    """The axes of an elementwise result: leading ones first, the rest as first seen."""
    longest_first = sorted(operands, key=len, reverse=True)
    seen = dict.fromkeys(name for names in longest_first for name in names)
    return tuple(n for n in LEADING if n in seen) + tuple(n for n in seen if n not in LEADING)


class Magnitude(NamedTuple):
    """The size of the largest entry of an array, and of what rounding leaves where 0 is due."""

    largest: float
    rounding: float


# What remains of a sum that ought to be 0, in units of its largest term: a few hundred roundings.
ROUNDING = 2.0**-44


def rounding_of_sum(*operands: Magnitude) -> float:
    return ROUNDING * max(operand.largest for operand in operands)


@dataclass(frozen=True)
class Cost:
    """What a step takes, as exact formulas."""

    multiplications: Polynomial = Polynomial()
    additions: Polynomial = Polynomial()
    divisions: Polynomial = Polynomial()
    exponentials: Polynomial = Polynomial()
    comparisons: Polynomial = Polynomial()
    functions: Polynomial = Polynomial()  # roots, tanh, erf, sines: everything else

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    def items(self) -> Mapping[str, Polynomial]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Operand(NamedTuple):
    """An operand (or the result) as a line of code sees it: its variable and its axes.

    The float64 values let a template leave out what this computation does not need, such as the
    care for rows that are masked as a whole; helper variables have none.
    """

    text: str
    axes: Axes
    array: Array = NO_VALUES

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def tensor(self) -> Tensor:
        return Tensor(self.array, self.names)

    def axis(self, name: str) -> Axis:
        return self.axes[self.names.index(name)]

    def size(self, name: str) -> int:
        return int(self.array.shape[self.names.index(name)])


@dataclass(frozen=True)
class Operation(ABC):
    """The base of every operation; leaves add their options as fields."""

    word: ClassVar[str]  # its name in files
    arity: ClassVar[int] = 1  # how many operands it takes

    @abstractmethod
    def axes(self, *operands: Axes) -> Axes:
        """The shape rule: the axes of the result."""

    @abstractmethod
    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        """The result, written once for float64, exact and certified numbers."""

    @abstractmethod
    def formula(self, *operands: Math) -> Math:
        """The right-hand side, from the operands' symbols or their values."""

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math | None:
        """One entry of the result written out, `place` counted without batch and head."""
        return None

    def cost(self, convention: str, *operands: Axes) -> Cost:
        """What it takes under a convention; nothing for operations that only move numbers."""
        return Cost()

    @abstractmethod
    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        """Write the lines that compute the target; every language is written from these."""

    @abstractmethod
    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        """Add the steps of each operand's gradient; None where there is none."""

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:  # noqa: B027
        """Raise a ShapeError when these values cannot be combined."""

    def as_run(self, setting: Setting, *operands: Tensor) -> Operation:
        """This operation as it is carried out on these values, where that depends on them."""
        return self

    def with_sizes(self, sizes: Mapping[str, int]) -> Operation:
        """This operation with numbers where its formula names a size: √2 instead of √d_k."""
        return self

    def rounding(self, *operands: Magnitude) -> float:
        """How large a result of float64 can be that ought to be 0."""
        return max((operand.rounding for operand in operands), default=0.0)

    def note(self, setting: Setting, *operands: Tensor) -> str:
        """What a reader must be told about this result, if anything."""
        return ""
