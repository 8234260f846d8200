"""Masks: matrices of 0 (may be attended) and −∞ (may not), and how they meet the scores.

A query i stands at position i + `offset` among the keys: offset 0 aligns both sequences at
their first tokens, n_k − n_q at their last.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.graph import notation
from regard.graph.notation import Math, Words
from regard.graph.operation import Array, Axes, Axis, Cost, Operation, Setting, Tensor, entries
from regard.graph.operations.elementwise import _Pairwise
from regard.graph.polynomial import Polynomial

if TYPE_CHECKING:
    from regard.graph.gradient import Tape


@dataclass(frozen=True)
class Mask(_Pairwise):
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

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return gradient, gradient


class _Structural(Operation):
    """A mask that follows from positions alone."""

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
        return "i" if self.offset == "0" else f"i + {self.offset}"

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


@dataclass(frozen=True)
class Prefix(_Structural):
    """Causal, but the first tokens (as many as the operand says) see each other."""

    word = "prefix"
    rows: str = "n_q"
    columns: str = "n_k"
    offset: str = "0"

    def axes(self, *operands: Axes) -> Axes:
        return (*operands[0], *super().axes())

    def _allowed(self, query: Array, key: Array, *operands: Tensor) -> Array:
        length = _counts(operands[0])[..., None, None]
        return np.asarray((key <= query) | ((query < length) & (key < length)))

    def formula(self, *operands: Math) -> Math:
        query = self._query()
        both = notation.product(Words(f"0 where j ≤ {query} or both {query}, j ≤"), operands[0])
        return notation.product(both, Words(", −∞ elsewhere"))


@dataclass(frozen=True)
class Padding(Operation):
    """A sequence's keys beyond its length are hidden."""

    word = "padding"
    columns: str = "n_k"
    axis: str = "key"

    def axes(self, *operands: Axes) -> Axes:
        return (*operands[0], Axis(self.axis, Polynomial.parse(self.columns)))

    def forward(self, setting: Setting, *operands: Tensor) -> Array:
        columns = Polynomial.parse(self.columns).evaluate(setting.sizes)
        return setting.numbers.permissions(np.arange(columns) < _counts(operands[0])[..., None])

    def formula(self, *operands: Math) -> Math:
        words = Words("0 where j ≤"), operands[0], Words(", −∞ elsewhere")
        return notation.product(*words)

    def adjoint(self, tape: Tape, step: str, gradient: str) -> tuple[str | None, ...]:
        return (None,)


def _counts(operand: Tensor) -> Array:
    """Lengths as plain integers, whatever numbers the run is made in."""
    return np.frompyfunc(int, 1, 1)(operand.array).astype(np.int64)

