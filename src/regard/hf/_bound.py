"""How far rounding can put a head's context from the exact one.

Every number that the model stores is off by one unit roundoff u of its type, every sum of k
products by γ(k) = k·u/(1 − k·u) of the sum of their sizes (Higham, Accuracy and Stability of
Numerical Algorithms, chapter 3), with u of float32 inside a sum and of the type at its end. From
step to step the bounds add up, entry by entry:

    |δQ| ≤ γ(d) |X||W_Q| + u|Q|        and so for K and V; turning adds (4 + 2n)·u |Q|
    |δS| ≤ (|δQ||K|ᵀ + |Q||δK|ᵀ + γ(d_k)|Q||K|ᵀ)·scale + 3u|S|
    |δA| ≤ (e^(2 max|δS|) · (1 + γ(n + 8)) − 1) A + u A
    |δC| ≤ |δA||V| + A|δV| + γ(n) A|V| + u|C|
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.show.trace import Trace

INSIDE = 2.0**-24


def rounding_bound(trace: Trace, dtype: Any) -> Any:
    """For every entry of the context, when the model computes in a type of torch."""
    stored = float(torch.finfo(dtype).eps) / 2
    inside = min(stored, INSIDE)
    step = {name: np.abs(trace[name].value) for name in trace.run.values}
    x = step["X"]
    y = step.get("Y", x)
    d_q, d_k, d_v = (
        _of_projection(step, letter, source, stored, inside)
        for letter, source in (("Q", x), ("K", y), ("V", y))
    )
    queries, keys = d_q.shape[0], d_k.shape[0]
    if "Q_rotated" in step:
        # A turned vector mixes two coordinates: the bound of both, and of the turn itself.
        turn = (4 + 2 * max(queries, keys)) * max(stored, INSIDE)
        d_q, d_k = (_turned(d, step[name], turn) for d, name in ((d_q, "Q"), (d_k, "K")))
    q, k = (step.get(f"{letter}_rotated", step[letter]) for letter in ("Q", "K"))
    scale = _scale(trace)
    sizes = q @ k.T
    d_s = (d_q @ k.T + q @ d_k.T + _gamma(q.shape[1], inside) * sizes) * scale
    scores = step["biased"] if "biased" in step else sizes * scale
    d_s = d_s + 3 * stored * np.where(np.isfinite(scores), scores, 0)
    weights = step["weights"]
    seen = weights > 0
    most = np.where(seen, d_s, 0).max(-1, keepdims=True)
    d_a = (np.exp(2 * most) * (1 + _gamma(keys + 8, inside)) - 1 + stored) * weights
    d_c = d_a @ step["V"] + weights @ d_v + _gamma(keys, inside) * (weights @ step["V"])
    return d_c + stored * step["context"] + 8 * np.finfo(np.float64).eps * step["context"]


def _gamma(terms: int, unit: float) -> float:
    return terms * unit / (1 - terms * unit)


def _of_projection(step: Any, letter: str, source: Any, stored: float, inside: float) -> Any:
    product = source @ step[f"W{letter}"]
    return _gamma(source.shape[1] + 1, inside) * product + 2 * stored * step[letter]


def _turned(d: Any, vectors: Any, turn: float) -> Any:
    other = np.roll(d, d.shape[1] // 2, axis=1)
    mixed = np.abs(vectors) + np.abs(np.roll(vectors, vectors.shape[1] // 2, axis=1))
    return d + other + turn * mixed


def _scale(trace: Trace) -> float:
    """What the scores were multiplied by."""
    if "scaled" not in trace:
        return 1.0
    before, after = trace["scores"].value, trace["scaled"].value
    at = int(np.argmax(np.abs(before)))
    return abs(float(after.flat[at] / before.flat[at])) if before.flat[at] else 1.0
