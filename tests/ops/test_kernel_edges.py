"""Where the mutants of scripts/kernel_mutants.py live: few sizes, everything at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.paths import KERNELS, filled_with_rubbish, on_path

import regard
from regard.ops import _kernel, _numpy
from regard.ops._arguments import pose
from regard.ops._problem import Problem

RNG = np.random.default_rng(31)
BATCH, HEADS, KV_HEADS, QUERIES, KEYS, D_K, D_V = 2, 6, 3, 67, 131, 7, 11
SCORES = (BATCH, HEADS, QUERIES, KEYS)
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": "bottom-right"},
    "prefix": {"causal": "top-left", "prefix": np.array([90, 3])},
    "window": {"window": (20, 11)},
    "lengths": {"lengths": np.array([37, 120])},
    "segments": {"segments": (np.sort(RNG.integers(0, 3, (BATCH, QUERIES))),
                              np.sort(RNG.integers(0, 5, (BATCH, KEYS))))},
    "mask": {"mask": RNG.random(SCORES) < 0.5},
    "bias": {"bias": np.where(RNG.random(SCORES) < 0.2, -np.inf, RNG.normal(size=SCORES))},
    "softcap and sinks": {"softcap": 1.5, "sinks": RNG.normal(size=HEADS)},
}  # fmt: skip
pytestmark = pytest.mark.skipif(not KERNELS, reason="no compiled kernel here")
EACH_KERNEL = pytest.mark.parametrize("kernel", KERNELS)


def problem(options: dict[str, Any], queries: int = QUERIES, keys: int = KEYS) -> Problem:
    q = RNG.normal(size=(BATCH, HEADS, queries, D_K))
    k = np.sort(3 * RNG.normal(size=(BATCH, KV_HEADS, keys, D_K)), axis=2)  # scores that rise
    return pose(q, k, RNG.normal(size=(BATCH, KV_HEADS, keys, D_V)), **options).problem


def close(have: Any, want: Any, name: str) -> None:
    np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-10, err_msg=name)


@EACH_KERNEL
@pytest.mark.parametrize("case", CASES)
def test_mutants_of_everything(case: str, kernel: str) -> None:
    given = problem(CASES[case])
    reference, path = _numpy.REFERENCE, _kernel.KernelPath()
    d_output = RNG.normal(size=given.output_shape)
    asked = regard.Inspect(top=5, entropy=True, received=True, rows=(0, -1))
    want = reference.forward(given)
    with on_path(kernel):
        have = path.forward(given)
        slopes = path.backward(given, *have, d_output, with_bias=True)
        told = path.inspect(given, have[1], asked)
    for name, a, b in zip(("output", "log_sum_exp"), have, want, strict=True):
        close(a, b, name)
    expected = reference.backward(given, *want, d_output, with_bias=True)
    for name, a, b in zip(slopes._fields, slopes, expected, strict=True):
        if b is not None:
            close(a, b, f"d_{name}")
    for name, b in reference.inspect(given, want[1], asked).items():
        close(told[name], b, name)


@EACH_KERNEL
@pytest.mark.parametrize("queries", [1, 3])
def test_mutants_of_keys_split_among_threads(kernel: str, queries: int) -> None:
    """Few queries over many keys, a past that ends within a block, and sinks."""
    threads = _kernel.native.threads()
    _kernel.native.set_threads(3)
    try:
        q = RNG.normal(size=(2, queries, D_K))
        k, v = RNG.normal(size=(1, 2053, D_K)), RNG.normal(size=(1, 2053, D_V))
        for options in ({}, {"sinks": np.array([3.0, 9.0])}, {"lengths": 1500}, {"window": (9, 0)}):
            past = k[:, :1000].copy(), v[:, :1000].copy()
            with on_path(kernel) as attend:
                have = attend(q, k[:, 1000:], v[:, 1000:], past=past, **options)
            with on_path("blocks") as attend:
                close(have, attend(q, k, v, **options), str(options))
    finally:
        _kernel.native.set_threads(threads)


APART = (np.arange(71) == 70).astype(int), (np.arange(97) >= 90).astype(int)
TOGETHER = APART[0][:, None] == APART[1]


@EACH_KERNEL
@pytest.mark.parametrize(
    "options", [{"segments": APART}, {"bias": np.where(TOGETHER, 0.0, -np.inf)}]
)
def test_mutants_of_what_is_hidden_and_no_number(kernel: str, options: dict[str, Any]) -> None:
    q, k, v = (RNG.normal(size=(3, n, 5)) for n in (71, 97, 97))
    q[:, 70], k[:, 90:], v[:, 90:] = np.nan, np.nan, np.inf
    given = pose(q, k, v, **options).problem
    with on_path(kernel):
        output, log_sum_exp = _kernel.KernelPath().forward(given)
        slopes = _kernel.KernelPath().backward(given, output, log_sum_exp, np.ones((1, 3, 71, 5)))
    assert np.isfinite(output[:, :, :70]).all()
    for each, seen in zip(slopes[:3], (70, 90, 90), strict=True):
        assert np.isfinite(each[:, :, :seen]).all()


@EACH_KERNEL
def test_mutants_of_equal_keys(kernel: str) -> None:
    q, k, v = np.ones((5, 3)), np.ones((70, 3)), np.ones((70, 2))
    with on_path(kernel) as attend:
        _, seen = attend(q, k, v, inspect=regard.Inspect(top=4))
    assert (seen.top_keys == [0, 1, 2, 3]).all()


@EACH_KERNEL
@pytest.mark.parametrize(("dtype", "kept"), [("float16", 11), ("bfloat16", 8), ("float32", 21)])
def test_mutants_of_rounding(dtype: str, kept: int, kernel: str) -> None:
    """Half precision is lost in the last rounding alone, to the nearest number."""
    own = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    q, k, v = (RNG.normal(size=(4, n, 8)).astype(own) for n in (67, 131, 131))
    with on_path(kernel) as attend:
        have = attend(q, k, v).astype(float)
    with on_path("blocks") as attend:
        want = attend(*(each.astype(float) for each in (q, k, v)))
    np.testing.assert_allclose(have, want, rtol=1.02 * 2.0**-kept, atol=1e-6)


def test_rubbish_is_seen() -> None:
    assert (filled_with_rubbish((3,)) == 77).all()
