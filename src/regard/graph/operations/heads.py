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
from regard.graph.operation import Array, Axes, Axis, Cost, Operation, Setting, Tensor, entries
from regard.graph.operations.linear import core_of
from regard.graph.polynomial import Polynomial

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
    """One wide matrix cut into heads."""

    word = "split"
    heads: str = "h"
    layout: str = "columns"

    def __post_init__(self) -> None:
        one_of("layout", self.layout, LAYOUTS)

    def axes(self, *operands: Axes) -> Axes:
        (a,) = operands
        heads = Polynomial.of(self.heads)
        rows, columns = core_of(a)
        if self.layout == "rows":
            rows = rows._replace(size=rows.size.over(heads))
        else:
            columns = columns._replace(size=columns.size.over(heads))
        batch = tuple(axis for axis in a if axis.name == "batch")
        return (*batch, Axis("head", heads), rows, columns)

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        pass

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        heads = setting.sizes[self.heads]
        *batch, rows, columns = a.array.shape
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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        rows, columns = core_of(tape.axes(a))
        return (tape.add(Merge(self.heads, self.layout, rows.name, columns.name), gradient),)


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
        rows, columns = core_of(a)
        heads = next(axis.size for axis in a if axis.name == "head")
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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Split(self.heads, self.layout), gradient),)


@dataclass(frozen=True)
class Repeat(Operation):
    """Each head's matrix used by `times` neighbouring query heads."""

    word = "repeat"
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        heads = Polynomial.of(self.heads)
        return tuple(Axis("head", heads) if a.name == "head" else a for a in operands[0])

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        place = a.place("head")
        return a.array.repeat(setting.sizes[self.heads] // a.array.shape[place], axis=place)

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words("shared by neighbouring heads"))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        fewer = next(axis.size for axis in tape.axes(a) if axis.name == "head")
        return (tape.add(GroupSum(str(fewer), self.heads), gradient),)


@dataclass(frozen=True)
class GroupSum(Operation):
    """The sum over the neighbouring heads that share a key head."""

    word = "group-sum"
    fewer: str = "h_kv"
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        fewer = Polynomial.of(self.fewer)
        return tuple(Axis("head", fewer) if a.name == "head" else a for a in operands[0])

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        place, fewer = a.place("head"), setting.sizes[self.fewer]
        shape = a.array.shape
        grouped = a.array.reshape(
            *shape[:place], fewer, shape[place] // fewer, *shape[place + 1 :]
        )
        return np.asarray(grouped.sum(axis=place + 1))

    def formula(self, *operands: Math) -> Math:
        return notation.call("sum", *operands, sub="over the heads that share")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(operands[0]) - entries(self.axes(*operands)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Repeat(self.heads), gradient),)


@dataclass(frozen=True)
class PickHead(Operation):
    """One head alone, counted from 0."""

    word = "pick-head"
    index: int = 0

    def axes(self, *operands: Axes) -> Axes:
        return tuple(axis for axis in operands[0] if axis.name != "head")

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        return np.asarray(a.array.take(self.index, axis=a.place("head")))

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words(f"of head {self.index + 1}"))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        heads = next(axis.size for axis in tape.axes(a) if axis.name == "head")
        return (tape.add(PutHead(self.index, str(heads)), gradient),)


@dataclass(frozen=True)
class PutHead(Operation):
    """A matrix as one head among `heads`, the others zero."""

    word = "put-head"
    index: int = 0
    heads: str = "h"

    def axes(self, *operands: Axes) -> Axes:
        axis = Axis("head", Polynomial.parse(self.heads))
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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(PickHead(self.index), gradient),)
