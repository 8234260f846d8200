"""From one wide matrix to many heads and back, and heads that share keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import written
from regard._errors import ShapeError
from regard._options import one_of
from regard.graph import notation
from regard.graph.notation import Math, Words
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
    core_of,
    entries,
    matrix_of,
    named_axis,
    rounding_of_sum,
)
from regard.graph.polynomial import Polynomial
from regard.graph.program import Program, Regrouping, Span

if TYPE_CHECKING:
    from regard.graph.gradient import Tape

# How the columns of one wide matrix belong to heads. The last two are known mistakes.
LAYOUTS = {
    "columns": "head i has the i-th block of neighbouring columns",
    "interleaved": "head i has every h-th column, from the i-th on",
    "rows": "head i has the i-th block of rows, all columns",
    "view": "the numbers are read off row by row into h matrices: heads mix the tokens",
}


@dataclass(frozen=True)
class Split(Operation):
    """One wide matrix cut into heads; its axes keep their names unless others are given."""

    word = "split"
    heads: str = "h"
    layout: str = "columns"
    rows: str = ""
    columns: str = ""

    def __post_init__(self) -> None:
        one_of("layout", self.layout, LAYOUTS)

    def axes(self, *operands: Axes) -> Axes:
        (a,) = operands
        heads = Polynomial.of(self.heads)
        _refuse_heads(self.word, a)
        rows, columns = matrix_of(self.word, a)
        if self.layout == "rows":
            rows = rows._replace(size=rows.size.over(heads))
        else:
            columns = columns._replace(size=columns.size.over(heads))
        batch = tuple(axis for axis in a if axis.name == "batch")
        rows = rows._replace(name=self.rows or rows.name)
        columns = columns._replace(name=self.columns or columns.name)
        return (*batch, Axis("head", heads), rows, columns)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        heads = Polynomial.of(self.heads).evaluate(setting.sizes)
        rows, columns = a.array.shape[-2:]
        split = rows if self.layout == "rows" else columns
        if split % heads:
            what = "rows" if self.layout == "rows" else "columns"
            raise ShapeError(
                f"split: a {written((rows, columns))} matrix into {heads} heads by {self.layout}: "
                f"{split} {what} are not divisible by {heads}"
            )
        return cut(a.array, heads, self.layout)

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words(f"split by {self.layout} into heads"))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        groups = _groups(self.layout, core_of(a.axes), target.axes[-3:])
        program.set(target, program.regrouped(a, groups, target))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        rows, columns = matrix_of(self.word, tape.axes(a))
        return (tape.add(Merge(self.heads, self.layout, rows.name, columns.name), gradient),)


def _refuse_heads(word: str, axes: Axes) -> None:
    if any(axis.name == "head" for axis in axes):
        raise ShapeError(f"{word}: there already is a head axis")


def cut(array: Array, heads: int, layout: str) -> Array:
    """(…, rows, columns) to (…, head, rows, columns) in a layout."""
    *batch, rows, columns = array.shape
    if layout == "columns":
        return array.reshape(*batch, rows, heads, columns // heads).swapaxes(-3, -2)
    if layout == "interleaved":
        return np.moveaxis(array.reshape(*batch, rows, columns // heads, heads), -1, -3)
    if layout == "rows":
        return array.reshape(*batch, heads, rows // heads, columns)
    return array.reshape(*batch, heads, rows, columns // heads)


def join(array: Array, layout: str) -> Array:
    """(…, head, rows, columns) to (…, rows, columns): the inverse of `cut`."""
    *batch, heads, rows, columns = array.shape
    if layout == "columns":
        return array.swapaxes(-3, -2).reshape(*batch, rows, heads * columns)
    if layout == "interleaved":
        return np.moveaxis(array, -3, -1).reshape(*batch, rows, heads * columns)
    if layout == "rows":
        return array.reshape(*batch, heads * rows, columns)
    return array.reshape(*batch, rows, heads * columns)


@dataclass(frozen=True)
class Merge(Operation):
    """The heads' matrices put together into one wide matrix."""

    word = "merge"
    heads: str = "h"
    layout: str = "columns"
    rows: str = "query"
    columns: str = "dim"

    def __post_init__(self) -> None:
        one_of("layout", self.layout, LAYOUTS)

    def axes(self, *operands: Axes) -> Axes:
        (a,) = operands
        rows, columns = matrix_of(self.word, a)
        heads = named_axis(self.word, a, "head").size
        if self.layout == "rows":
            rows = rows._replace(size=rows.size * heads)
        else:
            columns = columns._replace(size=columns.size * heads)
        batch = tuple(axis for axis in a if axis.name == "batch")
        return (*batch, Axis(self.rows, rows.size), Axis(self.columns, columns.size))

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return join(operands[0].array, self.layout)

    def formula(self, *operands: Math) -> Math:
        along = {"columns": "side by side", "rows": "one below the other"}
        how = along.get(self.layout, f"merged as {self.layout}")
        return notation.product(Words("all heads'"), operands[0], Words(how))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        groups = _groups(self.layout, target.axes[-2:], a.axes[-3:])
        back = tuple((cut, whole) for whole, cut in groups)
        program.set(target, program.regrouped(a, back, target))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        rows, columns = matrix_of(self.word, tape.axes(a))
        return (tape.add(Split(self.heads, self.layout, rows.name, columns.name), gradient),)


@dataclass(frozen=True)
class Repeat(Operation):
    """Each head's matrix used by `times` neighbouring query heads."""

    word = "repeat"
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        few = named_axis(self.word, operands[0], "head")
        many = few._replace(size=Polynomial.of(self.heads))
        return tuple(many if axis == few else axis for axis in operands[0])

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        place = a.place("head")
        heads = Polynomial.of(self.heads).evaluate(setting.sizes)
        return a.array.repeat(heads // a.array.shape[place], axis=place)

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words("shared by neighbouring heads"))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        times = target.axis("head").size.over(a.axis("head").size)
        program.set(target, program.repeated(a, "head", program.size(times)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        fewer = named_axis(self.word, tape.axes(a), "head").size
        return (tape.add(GroupSum(str(fewer), self.heads), gradient),)


@dataclass(frozen=True)
class GroupSum(Operation):
    """The sum over the neighbouring heads that share a key head."""

    word = "group-sum"
    fewer: str = "h_kv"
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        many = named_axis(self.word, operands[0], "head")
        few = many._replace(size=Polynomial.of(self.fewer))
        return tuple(few if axis == many else axis for axis in operands[0])

    def rounding(self, *operands: Magnitude) -> float:
        return rounding_of_sum(*operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        place, fewer = a.place("head"), Polynomial.of(self.fewer).evaluate(setting.sizes)
        shape = a.array.shape
        grouped = a.array.reshape(*shape[:place], fewer, shape[place] // fewer, *shape[place + 1 :])
        return np.asarray(grouped.sum(axis=place + 1))

    def formula(self, *operands: Math) -> Math:
        return notation.call("sum", *operands, sub="over the heads that share")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(operands[0]) - entries(self.axes(*operands)))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        each = a.size("head") // target.size("head")
        parts = (program.part(a, "head", Span(first, None, each)) for first in range(each))
        program.set(target, " + ".join(parts))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Repeat(self.heads), gradient),)


@dataclass(frozen=True)
class PickHead(Operation):
    """One head alone, counted from 0."""

    word = "pick-head"
    index: int = 0

    def axes(self, *operands: Axes) -> Axes:
        head = named_axis(self.word, operands[0], "head")
        return tuple(axis for axis in operands[0] if axis != head)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        return np.asarray(a.array.take(self.index, axis=a.place("head")))

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words(f"of head {self.index + 1}"))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.part(operands[0], "head", self.index))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        heads = named_axis(self.word, tape.axes(a), "head").size
        return (tape.add(PutHead(self.index, str(heads)), gradient),)


@dataclass(frozen=True)
class PutHead(Operation):
    """A matrix as one head among `heads`, the others zero."""

    word = "put-head"
    index: int = 0
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        axis = Axis("head", Polynomial.parse(self.heads))
        _refuse_heads(self.word, operands[0])
        batch = tuple(a for a in operands[0] if a.name == "batch")
        return (*batch, axis, *core_of(operands[0]))

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        heads = Polynomial.parse(self.heads).evaluate(setting.sizes)
        place = 1 if "batch" in a.names else 0
        empty = np.full(a.array.shape, setting.numbers.constant(0), dtype=a.array.dtype)
        return np.stack([a.array if i == self.index else empty for i in range(heads)], axis=place)

    def formula(self, *operands: Math) -> Math:
        words = Words(f"as head {self.index + 1}, zeros for the others")
        return notation.product(operands[0], words)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.zeros(target)
        program.fill(target, "head", self.index, operands[0])

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(PickHead(self.index), gradient),)


def _groups(layout: str, whole: Axes, cut: Axes) -> tuple[Regrouping, ...]:
    """Which axes of the heads make up which axes of the wide matrix, in a layout."""
    rows, columns = whole
    head, few_rows, few_columns = cut
    if layout == "columns":
        return ((rows,), (few_rows,)), ((columns,), (head, few_columns))
    if layout == "interleaved":
        return ((rows,), (few_rows,)), ((columns,), (few_columns, head))
    if layout == "rows":
        return ((rows,), (head, few_rows)), ((columns,), (few_columns,))
    return ((whole, cut),)
