"""Attention in NumPy: the definition itself, for some query rows at a time.

With all rows at once and numbers in float64 this is the reference that every other path is held
against; a block of rows at a time, it serves where the compiled kernel is missing, with memory
linear in the number of tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regard.ops._dtypes import Array, empty, narrowed, widened
from regard.ops._inspection import Inspect
from regard.ops._problem import Problem


class Gradients(NamedTuple):
    """How a loss changes with each input; of `bias` and `sinks` only where there are any."""

    q: Array
    k: Array
    v: Array
    bias: Array | None
    sinks: Array | None


class Rows(NamedTuple):
    """Some query rows. Axes: batch, key head, query head within its group, query, key."""

    live: Array
    slopes: Array | None  # how a score changes with what softcap was given
    weights: Array
    log_sum_exp: Array


@dataclass(frozen=True)
class NumpyPath:
    """`at_once`: how many scores are held at a time, if a single row does not hold more."""

    at_once: int

    def plain(self, *call: object) -> None:
        """No call is too short for the checks here."""

    def forward(self, problem: Problem) -> tuple[Array, Array]:
        """The output in the problem's own type, and the log-sum-exp of each query."""
        operands = Operands(problem)
        output = empty(problem.output_shape, problem.dtype)
        log_sum_exp = np.empty(problem.scores_shape[:3], problem.real)
        for rows in self._blocks(problem):
            found = operands.attend(rows)
            mixed = product(found.weights, found.live, operands.v)
            output[:, :, rows] = narrowed(ungrouped(mixed), problem.dtype)
            log_sum_exp[:, :, rows] = ungrouped(found.log_sum_exp)
        return output, log_sum_exp

    def backward(
        self,
        problem: Problem,
        output: Array,
        log_sum_exp: Array,
        d_output: Array,
        with_bias: bool = False,
    ) -> Gradients:
        """The chain rule through every step of `attend`; there is no past here."""
        operands = Operands(problem)
        d_q, d_k, d_v = (np.zeros_like(each) for each in (operands.q, operands.k, operands.v))
        d_bias = np.zeros(problem.scores_shape, problem.real) if with_bias else None
        d_sinks = np.zeros(problem.q.shape[1], problem.real)
        for rows in self._blocks(problem):
            found = operands.attend(rows)
            d_out = operands.grouped(widened(d_output[:, :, rows], problem.dtype))
            q = operands.q[..., rows, :]
            alive = np.broadcast_to(found.live, found.weights.shape)
            with np.errstate(invalid="ignore", over="ignore"):
                d_weights = np.where(alive, d_out @ turned(operands.v), 0)
                mean = (found.weights * d_weights).sum(-1, keepdims=True)
                d_scores = np.where(alive, found.weights * (d_weights - mean), 0)
                if problem.sinks is not None:
                    to_sink = operands.sink_weights(found.log_sum_exp) * mean[..., 0]
                    d_sinks -= ungrouped(to_sink).sum((0, 2))
                if d_bias is not None:
                    d_bias[:, :, rows] = ungrouped(d_scores)
                if found.slopes is not None:
                    d_scores = np.where(alive, d_scores * found.slopes, 0)
            d_scores *= problem.scale
            back = turned(alive)
            d_q[..., rows, :] = product(d_scores, alive, operands.k)
            d_k += product(turned(d_scores), back, q).sum(2, keepdims=True)
            d_v += product(turned(found.weights), back, d_out).sum(2, keepdims=True)
        d_q, d_k, d_v = (narrowed(ungrouped(each), problem.dtype) for each in (d_q, d_k, d_v))
        return Gradients(
            d_q,
            d_k,
            d_v,
            d_bias,
            None if problem.sinks is None else d_sinks,
        )

    def inspect(
        self, problem: Problem, log_sum_exp: Array, wanted: Inspect
    ) -> dict[str, Array | None]:
        """The answers by name; see `Inspection`."""
        operands = Operands(problem)
        *leading, keys = problem.scores_shape
        places = np.array(wanted.row_places(problem.q.shape[2]), int)
        top_keys = np.full((*leading, wanted.top), -1)
        top_weights = np.zeros((*leading, wanted.top), problem.real)
        entropy = np.zeros(leading, problem.real)
        received = np.zeros((*leading[:2], keys), problem.real)
        full = np.empty((*leading[:2], len(places), keys), problem.real)
        for rows in self._blocks(problem):
            found = operands.attend(rows)
            weights = ungrouped(found.weights)
            live = ungrouped(np.broadcast_to(found.live, found.weights.shape))
            best, shown = largest(weights, live, wanted.top)
            top_keys[:, :, rows, : best.shape[-1]] = best
            top_weights[:, :, rows, : best.shape[-1]] = shown
            entropy[:, :, rows] = spread(weights)
            received += weights.sum(2)
            here = (places >= rows[0]) & (places <= rows[-1])
            full[:, :, here] = weights[:, :, places[here] - rows[0]]
        return {
            "top_keys": top_keys if wanted.top else None,
            "top_weights": top_weights if wanted.top else None,
            "entropy": entropy if wanted.entropy else None,
            "received": received if wanted.received else None,
            "rows": full if wanted.rows else None,
        }

    def _blocks(self, problem: Problem) -> Iterator[Array]:
        batch, heads, queries, keys = problem.scores_shape
        many = max(1, self.at_once // max(1, batch * heads * keys))
        for start in range(0, queries, many):
            yield np.arange(start, min(start + many, queries))


REFERENCE = NumpyPath(at_once=sys.maxsize)
BLOCKS = NumpyPath(at_once=1 << 20)


class Operands:
    """A problem's arrays in the type they are computed in, query heads grouped by key head."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem = problem.with_past_joined(np.concatenate)
        self.kv_heads = problem.k.shape[1]
        self.q = self.grouped(widened(problem.q, problem.dtype))
        self.k = self.grouped(widened(problem.k, problem.dtype))
        self.v = self.grouped(widened(problem.v, problem.dtype))

    def grouped(self, array: Array) -> Array:
        """The head axis as key head and place in its group; one head alone stands for all."""
        batch, heads, *rest = array.shape
        split = (1, 1) if heads == 1 else (self.kv_heads, heads // max(1, self.kv_heads))
        return array.reshape(batch, *split, *rest)

    def attend(self, rows: Array) -> Rows:
        problem = self.problem
        live = self.grouped(problem.live(rows, np.arange(problem.keys)))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            scores = (self.q[..., rows, :] * problem.scale) @ turned(self.k)
            slopes = None
            if problem.softcap:
                bent = np.tanh(scores / problem.softcap)
                scores, slopes = problem.softcap * bent, 1 - bent**2
            if problem.bias is not None:
                scores = scores + self.grouped(problem.bias[:, :, rows])
            scores = np.where(live, scores, -np.inf)
            return Rows(live, slopes, *self._softmax(scores, live))

    def _softmax(self, scores: Array, live: Array) -> tuple[Array, Array]:
        """Weights, 0 for what is hidden, and the log of their common denominator."""
        sinks = self._sinks()
        largest = scores.max(-1, keepdims=True, initial=-np.inf)
        largest = largest if sinks is None else np.maximum(largest, sinks)
        shift = np.where(np.isinf(largest), 0, largest)
        exponentials = np.exp(scores - shift)
        total = exponentials.sum(-1, keepdims=True)
        total = total if sinks is None else total + np.exp(sinks - shift)
        weights = np.where(live & (total != 0), exponentials / total, 0)
        return weights, (shift + np.log(total))[..., 0]

    def _sinks(self) -> Array | None:
        """The extra score of each head, with the axes of a score."""
        sinks = self.problem.sinks
        return None if sinks is None else self.grouped(sinks.reshape(1, -1, 1, 1))

    def sink_weights(self, log_sum_exp: Array) -> Array:
        sinks = self._sinks()
        assert sinks is not None
        return np.where(np.isneginf(log_sum_exp), 0, np.exp(sinks[..., 0] - log_sum_exp))


def ungrouped(array: Array) -> Array:
    batch, kv_heads, group, *rest = array.shape
    return array.reshape(batch, kv_heads * group, *rest)


def turned(array: Array) -> Array:
    return np.swapaxes(array, -1, -2)


def product(weights: Array, live: Array, vectors: Array) -> Array:
    """weights @ vectors without the terms that are not live, where 0 times NaN would be NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.asarray(np.isfinite(vectors).all(-1))
        if finite.all():
            return weights @ vectors
        total = weights @ np.where(finite[..., None], vectors, 0)
        for place in np.flatnonzero(~finite.reshape(-1, finite.shape[-1]).all(0)):
            vector = np.where(finite[..., None], 0, vectors)[..., place, None, :]
            term = weights[..., place, None] * vector
            total += np.where(live[..., place, None], term, 0)
    return total


def largest(weights: Array, live: Array, many: int) -> tuple[Array, Array]:
    """The keys with the most weight among the live ones, −1 where there are not so many."""
    ranked = np.where(live, -weights, np.inf)
    keys = np.argsort(ranked, axis=-1, kind="stable")[..., :many]
    chosen = np.take_along_axis(weights, keys, -1)
    is_live = np.take_along_axis(live, keys, -1)
    return np.where(is_live, keys, -1), np.where(is_live, chosen, 0)


def spread(weights: Array) -> Array:
    """−Σ w·log w of each row, where 0·log 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(weights == 0, 0, np.log(weights))
        entropy: Array = 0.0 - (weights * logs).sum(-1)
        return entropy
