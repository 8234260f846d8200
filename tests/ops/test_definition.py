"""The reference against the definition: one number at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import regard

BATCH, HEADS, KV_HEADS, QUERIES, KEYS, D_K, D_V = 2, 6, 3, 5, 11, 7, 13


def first_place(causal: Any, b: int) -> int:
    words = {"top-left": 0, "bottom-right": KEYS - QUERIES, False: KEYS - QUERIES}
    if isinstance(causal, np.ndarray):
        return int(causal[b])
    return words.get(causal, causal)


def sees(options: dict[str, Any], b: int, h: int, i: int, j: int) -> bool:
    """Whether query i of this head sees key j."""
    causal = options.get("causal", False)
    place = i + first_place(causal, b)
    left, right = options.get("window", (-1, -1))
    prefix = options["prefix"][b] if "prefix" in options else 0
    of_query, of_key = options.get("segments", (np.zeros((BATCH, 20)), np.zeros((BATCH, 20))))
    return bool(
        (causal is False or j <= place or j < prefix)
        and (left < 0 or j >= place - left)
        and (right < 0 or j <= place + right)
        and ("lengths" not in options or j < options["lengths"][b])
        and of_query[b, i] == of_key[b, j]
        and ("mask" not in options or options["mask"][b, h, i, j])
        and ("bias" not in options or options["bias"][b, h, i, j] > -math.inf)
    )


def one_output(q: Any, k: Any, v: Any, options: dict[str, Any], b: int, h: int, i: int) -> Any:
    """Output and log-sum-exp of one query, by the definition."""
    of = h // (HEADS // KV_HEADS)
    scores = {}
    for j in range(KEYS):
        if sees(options, b, h, i, j):
            scale = options.get("scale", 1 / math.sqrt(D_K))
            score = scale * math.fsum(q[b, h, i, c] * k[b, of, j, c] for c in range(D_K))
            cap = options.get("softcap")
            score = score if cap is None else cap * math.tanh(score / cap)
            scores[j] = score + (options["bias"][b, h, i, j] if "bias" in options else 0)
    total = math.fsum(math.exp(score) for score in scores.values())
    total += math.exp(options["sinks"][h]) if "sinks" in options else 0
    weights = {j: math.exp(score) / total for j, score in scores.items()}
    output = [math.fsum(w * v[b, of, j, c] for j, w in weights.items()) for c in range(D_V)]
    return output, math.log(total) if total else -math.inf, weights


def entropy(weights: dict[int, float]) -> float:
    return -math.fsum(w * math.log(w) for w in weights.values())


RNG = np.random.default_rng(3)
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.7},
    "causal at the start": {"causal": "top-left"},
    "causal at the end": {"causal": "bottom-right"},
    "causal from key 3": {"causal": 3},
    "causal before the first key": {"causal": -3},  # three rows that see nothing
    "causal, each batch entry elsewhere": {"causal": np.array([2, 5])},
    "window": {"window": (2, 1)},
    "window to the left, causal": {"window": (3, -1), "causal": "bottom-right"},
    "window to the right": {"window": (-1, 0)},
    "prefix": {"prefix": np.array([3, 0]), "causal": "top-left"},
    "prefix within a window": {"prefix": np.array([4, 7]), "causal": 1, "window": (2, 3)},
    "lengths": {"lengths": np.array([4, 11])},
    "nothing there": {"lengths": np.array([0, 1])},
    "segments": {"segments": (RNG.integers(0, 3, (BATCH, QUERIES)),
                              RNG.integers(0, 3, (BATCH, KEYS)))},
    "mask": {"mask": RNG.random((BATCH, HEADS, QUERIES, KEYS)) < 0.6},
    "bias": {"bias": RNG.normal(size=(BATCH, HEADS, QUERIES, KEYS))},
    "bias that hides": {"bias": np.where(RNG.random((BATCH, HEADS, QUERIES, KEYS)) < 0.4,
                                         -np.inf, 0.5)},
    "softcap": {"softcap": 0.8, "scale": 1},
    "softcap, then bias": {"softcap": 0.8, "bias": RNG.normal(size=(BATCH, HEADS, QUERIES, KEYS))},
    "sinks": {"sinks": RNG.normal(size=HEADS)},
    "sinks of rows that see nothing": {"sinks": RNG.normal(size=HEADS), "causal": -2},
    "everything": {"mask": RNG.random((BATCH, HEADS, QUERIES, KEYS)) < 0.7,
                   "bias": RNG.normal(size=(BATCH, HEADS, QUERIES, KEYS)), "causal": 4,
                   "window": (5, 2), "prefix": np.array([2, 6]), "lengths": np.array([9, 8]),
                   "softcap": 1.5, "sinks": RNG.normal(size=HEADS), "scale": 0.6},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_reference_is_the_definition(case: str, oracle: Callable[..., Any]) -> None:
    q = RNG.normal(size=(BATCH, HEADS, QUERIES, D_K))
    k = RNG.normal(size=(BATCH, KV_HEADS, KEYS, D_K))
    v = RNG.normal(size=(BATCH, KV_HEADS, KEYS, D_V))
    asked = regard.Inspect(top=3, entropy=True, received=True, rows=range(QUERIES))
    output, seen = oracle(q, k, v, asked, **CASES[case])
    received = np.zeros((BATCH, HEADS, KEYS))
    for b, h, i in np.ndindex(BATCH, HEADS, QUERIES):
        want, log_sum_exp, weights = one_output(q, k, v, CASES[case], b, h, i)
        np.testing.assert_allclose(output[b, h, i], want, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(seen.log_sum_exp[b, h, i], log_sum_exp, rtol=1e-13)
        np.testing.assert_allclose(seen.entropy[b, h, i], entropy(weights), atol=1e-13)
        best = sorted(weights, key=lambda j: -weights[j])[:3]
        assert seen.top_keys[b, h, i].tolist() == best + [-1] * (3 - len(best))
        np.testing.assert_allclose(
            seen.top_weights[b, h, i, : len(best)], [weights[j] for j in best], rtol=1e-13
        )
        row = np.array([weights.get(j, 0.0) for j in range(KEYS)])
        np.testing.assert_allclose(seen.rows[b, h, i], row, atol=1e-13)
        received[b, h] += row
    np.testing.assert_allclose(seen.received, received, atol=1e-12)
