"""The adapter to the compiled kernel: a Problem as the arguments that its functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.ops._dtypes import Array, empty, widened
from regard.ops._inspection import Inspect
from regard.ops._numpy import Gradients
from regard.ops._problem import PARTS, Problem

try:
    import regard.kernel._native as _native
except ImportError:
    _native = None  # type: ignore[assignment]

native: Any = _native  # the stub lists what every build has; this module asks what is there
AVAILABLE = hasattr(native, "forward")


class KernelPath:
    """Attention in C++: blocked, threaded, memory linear in the number of tokens."""

    plain: Any = staticmethod(native.plain_attention) if AVAILABLE else None

    def forward(self, problem: Problem) -> tuple[Array, Array]:
        output = empty(problem.output_shape, problem.dtype)
        log_sum_exp = np.empty(problem.scores_shape[:3], problem.real)
        native.forward(*arguments(problem), bits(output), log_sum_exp)
        return output, log_sum_exp

    def backward(
        self,
        problem: Problem,
        output: Array,
        log_sum_exp: Array,
        d_output: Array,
        with_bias: bool = False,
    ) -> Gradients:
        inputs = (problem.q, problem.k, problem.v)
        d_q, d_k, d_v = (empty(each.shape, problem.dtype) for each in inputs)
        d_bias = np.zeros(problem.scores_shape, problem.real) if with_bias else None
        given = (bits(output), np.ascontiguousarray(log_sum_exp), bits(d_output))
        native.backward(*arguments(problem), *given, bits(d_q), bits(d_k), bits(d_v), d_bias)
        return Gradients(d_q, d_k, d_v, d_bias, _to_sinks(problem, output, log_sum_exp, d_output))

    def inspect(
        self, problem: Problem, log_sum_exp: Array, wanted: Inspect
    ) -> dict[str, Array | None]:
        *leading, keys = problem.scores_shape
        places = np.array(wanted.row_places(problem.q.shape[2]), np.int64)
        shapes: dict[str, Sequence[int] | None] = {
            "top_weights": (*leading, wanted.top) if wanted.top else None,
            "entropy": leading if wanted.entropy else None,
            "received": (*leading[:2], keys) if wanted.received else None,
            "rows": (*leading[:2], len(places), keys) if wanted.rows else None,
        }
        answers: dict[str, Array | None] = {
            name: None if shape is None else np.zeros(shape, problem.real)
            for name, shape in shapes.items()
        }
        answers["top_keys"] = np.empty((*leading, wanted.top), np.int64) if wanted.top else None
        order = ("top_weights", "top_keys", "entropy", "received", "rows")
        lse = np.ascontiguousarray(log_sum_exp)
        native.inspect(*arguments(problem), lse, *(answers[name] for name in order), places)
        return answers


def arguments(problem: Problem) -> tuple[Any, ...]:
    """What the kernel is told of a problem, in its order."""
    parts = {name: getattr(problem, name) for name in PARTS}
    for name in ("lengths", "prefix", "offsets", "sinks"):
        if parts[name] is not None:
            parts[name] = np.ascontiguousarray(parts[name])
    return tuple(bits(part) if isinstance(part, np.ndarray) else part for part in parts.values())


def bits(array: Array) -> Array:
    """An array of a type that the kernel knows: half precision and booleans pass as bits."""
    as_bits = {"e": np.uint16, "?": np.uint8}.get(array.dtype.char)
    return array if as_bits is None else array.view(as_bits)


def _to_sinks(problem: Problem, output: Array, log_sum_exp: Array, d_output: Array) -> Array | None:
    """The gradient of the sinks: what they take from every query's output."""
    if problem.sinks is None:
        return None
    out, d_out = (widened(array, problem.dtype) for array in (output, d_output))
    with np.errstate(invalid="ignore", over="ignore"):
        taken = np.exp(problem.sinks[:, None] - log_sum_exp) * (out * d_out).sum(-1)
        hidden = np.isneginf(log_sum_exp)
        d_sinks: Array = -np.where(hidden, 0, taken).sum((0, 2), dtype=problem.real)
        return d_sinks
