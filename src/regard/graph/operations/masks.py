"""Masks: matrices of 0 (may be attended) and −∞ (may not), and how they meet the scores.

A query i stands at position i + `offset` among the keys: offset 0 aligns both sequences at
their first tokens, n_k − n_q at their last.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._axes import LEADING
from regard._errors import NumberError
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
    check_shared,
    core_of,
    entries,
    matrix_of,
    named_axis,
)
from regard.graph.operations.elementwise import Pairwise
from regard.graph.operations.linear import MatMul, leading_of, stacked
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape
    from regard.graph.program import Program


class Mask(Pairwise):
    """The mask added to the scores; −∞ stays −∞ whatever the score is, NaN included."""

    word = "mask"

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        scores, mask = self._arrays(*operands)
        numbers = setting.numbers
        closed = numbers.is_masked(mask) | numbers.is_masked(scores)
        zero, barred = numbers.constant(0), numbers.minus_infinity
        open_sum = np.where(closed, zero, scores) + np.where(closed, zero, mask)
        return np.where(closed, barred, open_sum)

    def formula(self, *operands: Math) -> Math:
        return notation.total(*operands)

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return notation.total(*self._entries_at(place, *operands))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return Cost(additions=entries(self.axes(*operands)))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        scores, mask = (operand.tensor.aligned(target.names) for operand in operands)
        plain = program.joined("+", target, *operands)
        with np.errstate(invalid="ignore"):
            is_plain = np.array_equal(scores + mask, target.array, equal_nan=True)
        if is_plain:
            program.set(target, plain)
            return
        program.comment("what is masked stays out, even where a score is not a number")
        bars = (
            f"({program.aligned(operand, target.names)} == {program.minus_infinity})"
            for operand in operands
        )
        program.choose(target, " | ".join(bars), program.minus_infinity, plain)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, gradient


class Attend(MatMul):
    """A product of weights and values, without the terms whose score (third operand) is −∞.

    Their weights are 0, but 0 times a masked value that is no number would be no number either.
    """

    word = "attend"
    arity = 3

    def axes(self, *operands: Axes) -> Axes:
        weights, values, scores = operands
        for axis in scores:
            named_axis(self.word, weights, axis.name)
        matrix_of(self.word, weights)
        matrix_of(self.word, values)
        return super().axes(weights, values)

    def check(self, step: str, *operands: tuple[str, Tensor]) -> None:
        weights, _, scores = operands
        check_shared(step, weights, scores)
        super().check(step, *operands)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        weights, values, scores = operands
        if _all_finite(weights, values):
            return super().forward(setting, weights, values)
        leading = leading_of(weights.names, values.names)
        hidden = setting.numbers.is_masked(scores.aligned(weights.names))
        bars = stacked(weights._replace(array=hidden), leading, self.transpose_a)
        left = stacked(weights, leading, self.transpose_a)
        right = stacked(values, leading, self.transpose_b)
        terms = left[..., :, :, None] * right[..., None, :, :]
        return np.asarray(np.where(bars[..., None], 0.0, terms).sum(axis=-2))

    def formula(self, *operands: Math) -> Math:
        return super().formula(*operands[:2])

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return super().entry(place, *operands[:2])

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        weights, values, scores = operands
        if _all_finite(weights, values):
            super().code(program, target, weights, values)
            return
        *leading, row, column = target.axes
        inner = Axis("inner", core_of(values.axes)[-1 if self.transpose_b else 0].size)
        left = _renamed(weights.names, (inner, row) if self.transpose_a else (row, inner))
        right = _renamed(values.names, (column, inner) if self.transpose_b else (inner, column))
        terms = Operand("terms", (*leading, row, inner, column))
        factors = (
            operand._replace(axes=tuple(new.get(axis.name, axis) for axis in operand.axes))
            for operand, new in ((weights, left), (values, right), (scores, left))
        )
        program.comment("no terms of what is masked: 0 times what is no number would be no number")
        a, b, c = (program.aligned(factor, terms.names) for factor in factors)
        barred = f"{c} == {program.minus_infinity}"
        program.choose(terms, barred, "0.0", f"{a} {program.times} {b}")
        program.set(target, program.reduced("sum", terms, ("inner",), keep=False))

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return super().cost(convention, *operands[:2])

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        if self.transpose_a or self.transpose_b:
            return (*super().adjoint(tape, step, gradient), None)
        weights, values, scores = tape.operands(step)
        row, inner = (axis.name for axis in core_of(tape.axes(weights)))
        column = core_of(tape.axes(values))[1].name
        to_weights = OpenProduct(row, inner, transpose_b=True)
        to_values = Attend(inner, column, transpose_a=True)
        return (
            tape.add(to_weights, gradient, values, scores),
            tape.add(to_values, weights, gradient, scores),
            None,
        )


class OpenProduct(MatMul):
    """A product that is 0 where the score (third operand) is −∞, if need be.

    It is the gradient of weights, of which those that are masked count for nothing. As long as
    every number is one, the plain product says the same in the end; a masked value that is no
    number must not reach the sums over all weights of a query.
    """

    word = "open-product"
    arity = 3

    def axes(self, *operands: Axes) -> Axes:
        product = super().axes(*operands[:2])
        for axis in operands[2]:
            named_axis(self.word, product, axis.name)
        return product

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        a, b, scores = operands
        product = super().forward(setting, a, b)
        if _all_finite(a, b):
            return product
        names = (*leading_of(a.names, b.names), self.rows, self.columns)
        hidden = setting.numbers.is_masked(scores.aligned(names))
        return np.where(hidden, setting.numbers.constant(0), product)

    def formula(self, *operands: Math) -> Math:
        return super().formula(*operands[:2])

    def entry(self, place: tuple[int, ...], *operands: Tensor) -> Math:
        return super().entry(place, *operands[:2])

    def cost(self, convention: str, *operands: Axes) -> Cost:
        return super().cost(convention, *operands[:2])

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        a, b, scores = operands
        if _all_finite(a, b):
            super().code(program, target, a, b)
            return
        program.comment("masked weights count for nothing, whatever their values are")
        product = Operand("terms", target.axes)
        super().code(program, product, a, b)
        barred = f"{program.aligned(scores, target.names)} == {program.minus_infinity}"
        program.choose(target, barred, "0.0", product.text)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (*super().adjoint(tape, step, gradient), None)


def _all_finite(*operands: Tensor | Operand) -> bool:
    """Whether every entry is a number; exact and certified numbers always are."""
    return all(
        operand.array.dtype.kind != "f" or bool(np.isfinite(operand.array).all())
        for operand in operands
    )


def shifted(index: str, offset: str) -> str:
    """An index plus an offset, in words: i + n_k − n_q, i − 2."""
    text = str(Polynomial.parse(offset)).replace("-", "−")
    if text == "0":
        return index
    return f"{index} − {text[1:]}" if text.startswith("−") else f"{index} + {text}"


class _Structural(Operation):
    """A mask that follows from positions alone."""

    arity = 0
    rows: str
    columns: str
    offset: str

    def axes(self, *operands: Axes) -> Axes:
        rows, columns = Polynomial.parse(self.rows), Polynomial.parse(self.columns)
        return Axis("query", rows), Axis("key", columns)

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        rows, columns, offset = (
            Polynomial.parse(size).evaluate(setting.sizes)
            for size in (self.rows, self.columns, self.offset)
        )
        position = np.arange(rows)[:, None] + offset
        allowed = self._allowed(position, np.arange(columns)[None, :], *operands)
        return setting.numbers.permissions(allowed)

    @abstractmethod
    def _allowed(self, query: Array, key: Array, *operands: Tensor) -> Array:
        """Which key positions a query position may attend to."""

    def _query(self) -> str:
        return shifted("i", self.offset)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return tuple(None for _ in tape.operands(step))


@dataclass(frozen=True)
class Causal(_Structural):
    """A query sees the keys up to its own position."""

    word = "causal"
    rows: str = "n_q"
    columns: str = "n_k"
    offset: str = "0"

    def _allowed(self, query: Array, key: Array, *operands: Tensor) -> Array:
        return np.asarray(key <= query)

    def formula(self, *operands: Math) -> Math:
        return Words(f"0 where j ≤ {self._query()}, −∞ elsewhere")

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        diagonal = Polynomial.parse(self.offset) + 1
        program.set(target, program.barred_after(self.rows, self.columns, diagonal))


@dataclass(frozen=True)
class Window(_Structural):
    """A query sees `left` keys before its own position and `right` after it; −1 is unbounded."""

    word = "window"
    left: int = 0
    right: int = 0
    rows: str = "n_q"
    columns: str = "n_k"
    offset: str = "0"

    def _allowed(self, query: Array, key: Array, *operands: Tensor) -> Array:
        behind = (key >= query - self.left) if self.left >= 0 else np.array(True)
        ahead = (key <= query + self.right) if self.right >= 0 else np.array(True)
        return np.broadcast_to(behind & ahead, (query.size, key.size))

    def formula(self, *operands: Math) -> Math:
        query = self._query()
        low = f"{query} − {self.left} ≤ " if self.left >= 0 else ""
        high = f" ≤ {query} + {self.right}" if self.right >= 0 else ""
        return Words(f"0 where {low}j{high}, −∞ elsewhere")

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        i, j = places_coded(program, target, self.rows, self.columns, self.offset)
        behind = [f"({j} >= {i} - {self.left})"] if self.left >= 0 else []
        ahead = [f"({j} <= {i} + {self.right})"] if self.right >= 0 else []
        if behind or ahead:
            program.permit(target, " & ".join(behind + ahead))
        else:
            program.zeros(target)


@dataclass(frozen=True)
class Prefix(_Structural):
    """Causal, but the first tokens (as many as the operand says) see each other."""

    word = "prefix"
    arity = 1
    rows: str = "n_q"
    columns: str = "n_k"
    offset: str = "0"

    def axes(self, *operands: Axes) -> Axes:
        return (*operands[0], *super().axes())

    def _allowed(self, query: Array, key: Array, *operands: Tensor) -> Array:
        length = _counts(self.word, operands[0], key.size)[..., None, None]
        return np.asarray((key <= query) | ((query < length) & (key < length)))

    def formula(self, *operands: Math) -> Math:
        query = self._query()
        both = notation.product(Words(f"0 where j ≤ {query} or both {query}, j ≤"), operands[0])
        return notation.product(both, Words(", −∞ elsewhere"))

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        i, j = places_coded(program, target, self.rows, self.columns, self.offset)
        length = program.aligned(operands[0], target.names)
        inside = program.let("inside", f"({i} < {length}) & ({j} < {length})")
        program.permit(target, f"({j} <= {i}) | {inside.text}")


@dataclass(frozen=True)
class Padding(Operation):
    """A sequence's keys beyond its length are hidden; those of another axis: a known mistake."""

    word = "padding"
    columns: str = "n_k"
    axis: str = "key"

    def axes(self, *operands: Axes) -> Axes:
        return (*operands[0], Axis(self.axis, Polynomial.parse(self.columns)))

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        columns = Polynomial.parse(self.columns).evaluate(setting.sizes)
        length = _counts(self.word, operands[0], columns)[..., None]
        return setting.numbers.permissions(np.arange(columns) < length)

    def formula(self, *operands: Math) -> Math:
        words = Words("0 where j ≤"), operands[0], Words(", −∞ elsewhere")
        return notation.product(*words)

    def code(self, program: Program, target: Operand, *operands: Operand) -> None:
        j = program.let("j", program.counted(self.columns), target.axes[-1])
        length = program.aligned(operands[0], target.names)
        program.permit(target, f"{program.aligned(j, target.names)} < {length}")

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (None,)


def _counts(word: str, operand: Tensor, most: int) -> Array:
    """Lengths as plain integers, whatever numbers the run is made in."""

    def whole(entry: Any) -> int:
        try:
            number = int(float(entry))  # a ball has no int of its own
            if number == entry and 0 <= number <= most:
                return number
        except (TypeError, ValueError, OverflowError):  # NaN, ∞, an inexact ball
            pass
        raise NumberError(
            f"{word}: a length is a whole number from 0 to {most} (the keys there are), "
            f"but {entry} was passed"
        )

    return np.asarray(np.frompyfunc(whole, 1, 1)(operand.array), dtype=np.int64)


def places_coded(
    program: Program, target: Operand, rows: str, columns: str, offset: str
) -> tuple[str, str]:
    """Helper variables: where the queries and the keys stand, as a column and as a row."""
    query, key = target.axes[-2:]
    i, j = (
        program.aligned(Operand(program.counted(size), (axis,)), (query.name, key.name))
        for size, axis in ((rows, query), (columns, key))
    )
    return program.let("i", i + program.shift(offset)).text, program.let("j", j).text


def _renamed(names: tuple[str, ...], core: tuple[Axis, Axis]) -> dict[str, Axis]:
    """Other axes for the two that are neither batch nor head."""
    return dict(zip((name for name in names if name not in LEADING), core, strict=True))
