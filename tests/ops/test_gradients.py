"""The reference's gradients against differences of its outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regard.ops import _numpy
from regard.ops._arguments import pose

BATCH, HEADS, KV_HEADS, QUERIES, KEYS, D_K, D_V = 2, 6, 3, 5, 11, 7, 13
SCORES = (BATCH, HEADS, QUERIES, KEYS)
RNG = np.random.default_rng(8)
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale and softcap": {"scale": 0.7, "softcap": 1.3},
    "causal, some see nothing": {"causal": -2},
    "window and prefix": {"causal": 4, "window": (2, 3), "prefix": np.array([2, 9])},
    "lengths": {"lengths": np.array([0, 4])},
    "segments": {
        "segments": (RNG.integers(0, 2, (BATCH, QUERIES)), RNG.integers(0, 2, (BATCH, KEYS)))
    },
    "mask and bias": {"mask": RNG.random(SCORES) < 0.6, "bias": RNG.normal(size=SCORES)},
    "bias that hides": {"bias": np.where(RNG.random(SCORES) < 0.3, -np.inf, 0.5)},
    "sinks": {"sinks": RNG.normal(size=HEADS), "softcap": 2.0, "mask": RNG.random(SCORES) < 0.6},
}


@pytest.mark.parametrize("case", CASES)
def test_differences(case: str) -> None:
    q = RNG.normal(size=(BATCH, HEADS, QUERIES, D_K))
    k = RNG.normal(size=(BATCH, KV_HEADS, KEYS, D_K))
    v = RNG.normal(size=(BATCH, KV_HEADS, KEYS, D_V))
    problem = pose(q, k, v, **CASES[case]).problem
    reference = _numpy.REFERENCE
    d_output = RNG.normal(size=problem.output_shape)
    found = reference.backward(problem, *reference.forward(problem), d_output, with_bias=True)
    for name, slope in zip(found._fields, found, strict=True):
        at = getattr(problem, name)
        if at is None:
            continue
        step = 1e-6 * RNG.normal(size=at.shape)
        losses = [
            (reference.forward(replace(problem, **{name: at + sign * step}))[0] * d_output).sum()
            for sign in (1, -1)
        ]
        want = (losses[0] - losses[1]) / 2
        assert (slope * step).sum() == pytest.approx(want, rel=1e-6, abs=1e-13), name
