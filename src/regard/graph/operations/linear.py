"""Products and sums: matrix product, outer product, sums over axes, slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import LEADING, written
from regard._errors import ShapeError
from regard.graph import notation
from regard.graph.notation import Math, Number, Transposed, Words
from regard.graph.operation import (
    ROUNDING,
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
    matrix_of,
    named_axis,
    rounding_of_sum,
)
from regard.graph.operations.elementwise import Multiply, Scale
from regard.graph.polynomial import Polynomial
from regard.graph.program import Program, Span

if TYPE_CHECKING:
    from regard.graph.gradient import Tape


def leading_of(*operands: tuple[str, ...]) -> tuple[str, ...]:
    """The leading axes that any of the operands has."""
    return tuple(name for name in LEADING if any(name in names for names in operands))


def leading_axes(*operands: Axes) -> Axes:
    found = {axis.name: axis for axes in operands for axis in axes}
    return tuple(found[name] for name in LEADING if name in found)


@dataclass(frozen=True)
class MatMul(Operation):
    """A product of matrices; a vector counts as a row on the left, as a column on the right.

    `rows` and `columns` name the axes of the result, because a token changes its role:
    a row of X becomes a query.
    """

    word = "matmul"
    arity = 2
    rows: str = ""
    columns: str = ""
    transpose_a: bool = False
    transpose_b: bool = False

    def _sides(self, a: Axes, b: Axes) -> tuple[Axes, Axes]:
        left, right = core_of(a), core_of(b)
        for core in (left, right):
            if len(core) not in (1, 2):
                found = ", ".join(axis.name for axis in core) or "none"
                raise ShapeError(
                    f"{self.word}: matrices and vectors can be multiplied, but one operand's "
                    f"axes are {found}"
                )
        return (left[::-1] if self.transpose_a else left), (
            right[::-1] if self.transpose_b else right
        )

    def axes(self, *operands: Axes) -> Axes:
        left, right = self._sides(*operands[:2])
        rows = tuple(Axis(self.rows or axis.name, axis.size) for axis in left[:-1])
        columns = tuple(Axis(self.columns or axis.name, axis.size) for axis in right[1:])
        return leading_axes(*operands) + rows + columns

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        (a_name, a), (b_name, b) = operands[:2]
        check_shared(step, *operands[:2], among=LEADING)
        a_shape = self._core_shape(a, self.transpose_a)
        b_shape = self._core_shape(b, self.transpose_b)
        if a_shape[-1] != b_shape[0]:
            a_name += "ᵀ" if self.transpose_a else ""
            b_name += "ᵀ" if self.transpose_b else ""
            raise ShapeError(
                f"{step}: {a_name} is {written(a_shape)} and {b_name} is {written(b_shape)}; "
                f"a product needs as many columns on the left as rows on the right, "
                f"but {a_shape[-1]} ≠ {b_shape[0]}"
            )

    @staticmethod
    def _core_shape(operand: Tensor, transpose: bool) -> tuple[int, ...]:
        shape = tuple(operand.array.shape[operand.place(name)] for name in operand.core)
        return shape[::-1] if transpose else shape

    def rounding(self, *operands: Magnitude) -> float:
        a, b, *_ = operands
        return ROUNDING * a.largest * b.largest

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = operands
        leading = leading_of(a.names, b.names)
        left = stacked(a, leading, self.transpose_a)
        right = stacked(b, leading, self.transpose_b)
        if len(a.core) == 1:
            left = left[..., None, :]
        if len(b.core) == 1:
            right = right[..., :, None]
        result = left @ right
        if len(a.core) == 1:
            result = result[..., 0, :]
        if len(b.core) == 1:
            result = result[..., 0]
        return np.asarray(result)

    def formula(self, *operands: Math) -> Math:
        a, b = operands
        return notation.product(
            Transposed(a) if self.transpose_a else a, Transposed(b) if self.transpose_b else b
        )

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        a, b = (operand.array for operand in operands)
        left = a.T if self.transpose_a else a
        right = b.T if self.transpose_b else b
        row = left if left.ndim == 1 else left[place[0]]
        column = right if right.ndim == 1 else right[:, place[-1]]
        return notation.dot(row, column)

    def cost(self, convention: str, *operands: Axes) -> Cost:
        left, _ = self._sides(*operands)
        inner, results = left[-1].size, entries(MatMul.axes(self, *operands))
        return Cost(multiplications=results * inner, additions=results * (inner - 1))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        a, b = operands[:2]
        program.product(target, a, b, self.transpose_a, self.transpose_b)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)[:2]
        a_core, b_core = core_of(tape.axes(a)), core_of(tape.axes(b))
        swap_a = self.transpose_a and len(a_core) == 2
        swap_b = self.transpose_b and len(b_core) == 2
        if len(a_core) == len(b_core) == 1:
            return tape.add(Multiply(), b, gradient), tape.add(Multiply(), a, gradient)
        if len(b_core) == 1:
            to_a = tape.add(Outer(*_names(a_core)), *_in_order(gradient, b, swap_a))
        elif swap_a:
            to_a = tape.add(self._product_for_a(a_core), b, gradient)
        else:
            to_a = tape.product(step, self._product_for_a(a_core), gradient, b)
        if len(a_core) == 1:
            to_b = tape.add(Outer(*_names(b_core)), *_in_order(a, gradient, swap_b))
        elif swap_b:
            to_b = tape.product(step, self._product_for_b(b_core), gradient, a)
        else:
            to_b = tape.add(self._product_for_b(b_core), a, gradient)
        return to_a, to_b

    def _product_for_a(self, core: Axes) -> MatMul:
        """C = A B: dA = dC Bᵀ, and dAᵀ = B dCᵀ when A entered transposed."""
        rows, columns = core[0].name, core[-1].name
        if len(core) == 1:
            return MatMul("", columns, False, not self.transpose_b)
        if self.transpose_a:
            return MatMul(rows, columns, self.transpose_b, True)
        return MatMul(rows, columns, False, not self.transpose_b)

    def _product_for_b(self, core: Axes) -> MatMul:
        """C = A B: dB = Aᵀ dC, and dBᵀ = dCᵀ A when B entered transposed."""
        rows, columns = core[0].name, core[-1].name if len(core) > 1 else ""
        if self.transpose_b and len(core) == 2:
            return MatMul(rows, columns, True, self.transpose_a)
        return MatMul(rows, columns, not self.transpose_a, False)


def stacked(operand: Tensor, leading: tuple[str, ...], transpose: bool) -> Array:
    array = operand.aligned(leading + operand.core)
    return np.swapaxes(array, -1, -2) if transpose and len(operand.core) == 2 else array


def _in_order(first: str, second: str, swap: bool) -> tuple[str, str]:
    return (second, first) if swap else (first, second)


def _names(core: Axes) -> tuple[str, str]:
    return core[0].name, core[1].name


def _vector(word: str, axes: Axes) -> Axis:
    core = core_of(axes)
    if len(core) != 1:
        found = ", ".join(axis.name for axis in core) or "none"
        raise ShapeError(f"{word}: a vector is wanted, but its axes are {found}")
    return core[0]


class Transpose(Operation):
    """Rows and columns exchanged; the axes keep their names, so that the numbers change places."""

    word = "transpose"

    def axes(self, *operands: Axes) -> Axes:
        rows, columns = matrix_of(self.word, operands[0])
        turned = (rows._replace(size=columns.size), columns._replace(size=rows.size))
        return (*leading_axes(operands[0]), *turned)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        return np.swapaxes(operands[0].array, -1, -2)

    def formula(self, *operands: Math) -> Math:
        return Transposed(operands[0])

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        turned = a._replace(axes=(*a.axes[:-2], target.axes[-1], target.axes[-2]))
        program.set(target, program.aligned(turned, target.names))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (tape.add(Transpose(), gradient),)


@dataclass(frozen=True)
class Outer(Operation):
    """Every entry of one vector times every entry of another."""

    word = "outer"
    arity = 2
    rows: str = ""
    columns: str = ""

    def axes(self, *operands: Axes) -> Axes:
        a, b = operands
        row, column = (_vector(self.word, axes) for axes in (a, b))
        row = row._replace(name=self.rows or row.name)
        return (*leading_axes(a, b), row, column._replace(name=self.columns or column.name))

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = operands
        leading = leading_of(a.names, b.names)
        left, right = a.aligned(leading + a.core), b.aligned(leading + b.core)
        return np.asarray(left[..., :, None] * right[..., None, :])

    def formula(self, *operands: Math) -> Math:
        a, b = operands
        return notation.product(a, Transposed(b))

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        a, b = (operand.array for operand in operands)
        return notation.product(Number(a[place[0]]), Number(b[place[1]]), sign="·")

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(multiplications=entries(self.axes(*operands)))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        *_, row, column = target.axes
        a, b = (
            operand._replace(axes=(*leading_axes(operand.axes), axis))
            for operand, axis in zip(operands, (row, column), strict=True)
        )
        program.set(target, program.joined(program.times, target, a, b))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)
        row, column = (core_of(tape.axes(operand))[0].name for operand in (a, b))
        to_a = tape.add(MatMul(row), gradient, b)
        return to_a, tape.add(MatMul(column, transpose_a=True), gradient, a)


@dataclass(frozen=True)
class Sum(Operation):
    """The sum over one axis or several, which are gone from the result."""

    word = "sum"
    over: tuple[str, ...] = ("key",)

    def axes(self, *operands: Axes) -> Axes:
        gone = [named_axis(self.word, operands[0], name) for name in self.over]
        return tuple(axis for axis in operands[0] if axis not in gone)

    def rounding(self, *operands: Magnitude) -> float:
        return rounding_of_sum(*operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        return np.asarray(a.array.sum(axis=tuple(a.place(name) for name in self.over)))

    def formula(self, *operands: Math) -> Math:
        over = " and ".join(self.over)
        return notation.call("sum", *operands, sub=f"over {over}")

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math | None:
        (a,) = operands
        if any(name in LEADING for name in self.over):
            return None
        kept = iter(place)
        index = tuple(slice(None) if name in self.over else next(kept) for name in a.names)
        return notation.total(*(Number(value) for value in np.ravel(a.array[index])))

    def _summed(self, axes: Axes) -> Polynomial:
        return entries(tuple(axis for axis in axes if axis.name in self.over))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        (a,) = operands
        return Cost(additions=entries(self.axes(a)) * (self._summed(a) - 1))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.reduced("sum", operands[0], self.over, keep=False))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        return (tape.add(Spread(), gradient, a),)


@dataclass(frozen=True)
class Mean(Sum):
    """The mean over one axis."""

    word = "mean"
    over: tuple[str, ...] = ("model",)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        count = 1
        for name in self.over:
            count *= a.array.shape[a.place(name)]
        return np.asarray(super().forward(setting, a) / setting.numbers.constant(count))

    def formula(self, *operands: Math) -> Math:
        return notation.call("mean", *operands, sub="over " + " and ".join(self.over))

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math | None:
        total = super().entry(place, *operands)
        if not isinstance(total, notation.Sum):
            return total
        return notation.Fraction(total, Number(len(total.terms)))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return super().cost(convention, *operands) + Cost(divisions=entries(self.axes(*operands)))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.reduced("mean", operands[0], self.over, keep=False))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        share = tape.add(Scale(size=str(self._summed(tape.axes(a))), root=False), gradient)
        return (tape.add(Spread(), share, a),)


class Spread(Operation):
    """The first operand repeated along the axes that only the second one has."""

    word = "spread"
    arity = 2

    def axes(self, *operands: Axes) -> Axes:
        a, like = operands
        for axis in a:
            named_axis(self.word, like, axis.name)
        return like

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        check_shared(step, *operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, like = operands
        return np.broadcast_to(a.aligned(like.names), like.array.shape).copy()

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words("repeated"), sign="")

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.spread(*operands))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, like = tape.operands(step)
        kept = {axis.name for axis in tape.axes(a)}
        over = tuple(axis.name for axis in tape.axes(like) if axis.name not in kept)
        return tape.add(Sum(over), gradient), None


@dataclass(frozen=True)
class Take(Operation):
    """The entries `start` to `stop` along one axis."""

    word = "take"
    axis: str = "key"
    start: str = "0"
    stop: str = "n_k"

    @property
    def _size(self) -> Polynomial:
        return Polynomial.parse(self.stop) - Polynomial.parse(self.start)

    def axes(self, *operands: Axes) -> Axes:
        whole = named_axis(self.word, operands[0], self.axis)
        part = whole._replace(size=self._size)
        return tuple(part if axis == whole else axis for axis in operands[0])

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        start, stop = (Polynomial.parse(s).evaluate(setting.sizes) for s in (self.start, self.stop))
        index = [slice(None)] * a.array.ndim
        index[a.place(self.axis)] = slice(start, stop)
        return a.array[tuple(index)]

    def formula(self, *operands: Math) -> Math:
        first = str(Polynomial.parse(self.start) + 1)
        words = Words(f"for {self.axis} {first} to {self.stop}")
        return notation.product(operands[0], words)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        program.set(target, program.part(operands[0], self.axis, Span(self.start, self.stop)))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        size = named_axis(self.word, tape.axes(a), self.axis).size
        return (tape.add(Place(self.axis, self.start, str(size)), gradient),)


@dataclass(frozen=True)
class Place(Operation):
    """The operand placed at `start` along one axis of length `size`, zeros elsewhere."""

    word = "place"
    axis: str = "key"
    start: str = "0"
    size: str = "n_k"

    def axes(self, *operands: Axes) -> Axes:
        part = named_axis(self.word, operands[0], self.axis)
        whole = part._replace(size=Polynomial.parse(self.size))
        return tuple(whole if axis == part else axis for axis in operands[0])

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        (a,) = operands
        place = a.place(self.axis)
        start, size = (Polynomial.parse(s).evaluate(setting.sizes) for s in (self.start, self.size))
        shape = list(a.array.shape)
        length, shape[place] = shape[place], size
        result = np.full(shape, setting.numbers.constant(0), dtype=a.array.dtype)
        index = [slice(None)] * len(shape)
        index[place] = slice(start, start + length)
        result[tuple(index)] = a.array
        return result

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words(f"with zeros for the other {self.axis}s"))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        (a,) = operands
        stop = Polynomial.parse(self.start) + a.axis(self.axis).size
        program.zeros(target)
        program.fill(target, self.axis, Span(self.start, stop), a)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        length = named_axis(self.word, tape.axes(a), self.axis).size
        stop = str(Polynomial.parse(self.start) + length)
        return (tape.add(Take(self.axis, self.start, stop), gradient),)
