"""Products and sums: matrix product, outer product, sums over axes, slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import LEADING, written
from regard._errors import ShapeError
from regard.graph import notation
from regard.graph.notation import Math, Number, Transposed, Words
from regard.graph.operation import Array, Axes, Axis, Cost, Operation, Setting, Tensor, entries
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape


def leading_of(*operands: tuple[str, ...]) -> tuple[str, ...]:
    """The leading axes that any of the operands has."""
    return tuple(name for name in LEADING if any(name in names for names in operands))


def core_of(axes: Axes) -> Axes:
    return tuple(axis for axis in axes if axis.name not in LEADING)


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
    rows: str = ""
    columns: str = ""
    transpose_a: bool = False
    transpose_b: bool = False

    def _sides(self, a: Axes, b: Axes) -> tuple[Axes, Axes]:
        left, right = core_of(a), core_of(b)
        return (left[::-1] if self.transpose_a else left), (
            right[::-1] if self.transpose_b else right
        )

    def axes(self, *operands: Axes) -> Axes:
        left, right = self._sides(*operands)
        rows = tuple(Axis(self.rows or axis.name, axis.size) for axis in left[:-1])
        columns = tuple(Axis(self.columns or axis.name, axis.size) for axis in right[1:])
        return leading_axes(*operands) + rows + columns

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        (a_name, a), (b_name, b) = operands
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

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b = operands
        leading = leading_of(a.names, b.names)
        left = _stack(a, leading, self.transpose_a)
        right = _stack(b, leading, self.transpose_b)
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
        inner, results = left[-1].size, entries(self.axes(*operands))
        return Cost(multiplications=results * inner, additions=results * (inner - 1))

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)
        a_core, b_core = core_of(tape.axes(a)), core_of(tape.axes(b))
        if len(b_core) == 1:
            to_a = self._outer(tape, gradient, b) if len(a_core) == 2 else None
        else:
            to_a = tape.add(self._product_for_a(a_core), *self._order(gradient, b, self.transpose_a))
        if len(a_core) == 1:
            to_b = tape.add(Outer(), a, gradient)
        else:
            to_b = tape.add(self._product_for_b(b_core), *self._order(a, gradient, self.transpose_b))
        return to_a, to_b

    @staticmethod
    def _outer(tape: Tape, gradient: str, vector: str) -> str:
        return tape.add(Outer(), gradient, vector)

    @staticmethod
    def _order(first: str, second: str, swap: bool) -> tuple[str, str]:
        return (second, first) if swap else (first, second)

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
        if self.transpose_b:
            return MatMul(rows, columns, True, self.transpose_a)
        return MatMul(rows, columns, not self.transpose_a, False)


def _stack(operand: Tensor, leading: tuple[str, ...], transpose: bool) -> Array:
    array = operand.aligned(leading + operand.core)
    return np.swapaxes(array, -1, -2) if transpose else array


@dataclass(frozen=True)
class Outer(Operation):
    """Every entry of one vector times every entry of another."""

    word = "outer"

    def axes(self, *operands: Axes) -> Axes:
        a, b = operands
        return leading_axes(a, b) + core_of(a) + core_of(b)

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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        a, b = tape.operands(step)
        return tape.add(MatMul(), gradient, b), tape.add(MatMul(transpose_a=True), gradient, a)


@dataclass(frozen=True)
class Sum(Operation):
    """The sum over one axis or several, which are gone from the result."""

    word = "sum"
    over: tuple[str, ...] = ("key",)

    def axes(self, *operands: Axes) -> Axes:
        return tuple(axis for axis in operands[0] if axis.name not in self.over)

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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        from regard.graph.operations.elementwise import Scale

        (a,) = tape.operands(step)
        share = tape.add(Scale(size=str(self._summed(tape.axes(a))), root=False), gradient)
        return (tape.add(Spread(), share, a),)


@dataclass(frozen=True)
class Spread(Operation):
    """The first operand repeated along the axes that only the second one has."""

    word = "spread"

    def axes(self, *operands: Axes) -> Axes:
        return operands[1]

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, like = operands
        return np.broadcast_to(a.aligned(like.names), like.array.shape).copy()

    def formula(self, *operands: Math) -> Math:
        return notation.product(operands[0], Words("repeated"), sign="")

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
        return tuple(
            axis._replace(size=self._size) if axis.name == self.axis else axis
            for axis in operands[0]
        )

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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        size = next(axis.size for axis in tape.axes(a) if axis.name == self.axis)
        return (tape.add(Place(self.axis, self.start, str(size)), gradient),)


@dataclass(frozen=True)
class Place(Operation):
    """The operand placed at `start` along one axis of length `size`, zeros elsewhere."""

    word = "place"
    axis: str = "key"
    start: str = "0"
    size: str = "n_k"

    def axes(self, *operands: Axes) -> Axes:
        size = Polynomial.parse(self.size)
        return tuple(
            axis._replace(size=size) if axis.name == self.axis else axis for axis in operands[0]
        )

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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        (a,) = tape.operands(step)
        length = next(axis.size for axis in tape.axes(a) if axis.name == self.axis)
        stop = str(Polynomial.parse(self.start) + length)
        return (tape.add(Take(self.axis, self.start, stop), gradient),)
