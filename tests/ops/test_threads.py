"""Several Python threads at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.ops.paths import KERNELS

import regard

pytestmark = pytest.mark.skipif(not KERNELS, reason="no compiled kernel here")


def problem(seed: int) -> tuple[list[Any], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    queries, keys = 1 + 37 * (seed % 5), 60 + 31 * (seed % 7)
    given = [rng.normal(size=(4, n, 8)).astype("f4") for n in (queries, keys, keys)]
    return given, [{}, {"causal": "bottom-right"}, {"mask": rng.random(keys) < 0.7}][seed % 3]


def solve(seed: int) -> Any:
    given, options = problem(seed)
    output, seen = regard.attention(*given, **options, inspect=regard.Inspect(top=3, received=True))
    return output, seen.top_keys, seen.received


def test_calls_do_not_meet() -> None:
    alone = [solve(seed) for seed in range(42)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(solve, [*range(42)] * 3))
    for place, answers in enumerate(together):
        for have, want in zip(answers, alone[place % 42], strict=True):
            np.testing.assert_array_equal(have, want)


def test_other_threads_run_meanwhile() -> None:
    """One call computes for a while; a Python thread must not wait until it is over."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=(1, 6000, 64))  # float64, so that it takes a while
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    start = time.perf_counter()
    regard.attention(q, q, q)
    end = time.perf_counter()
    stop.set()
    ticking.join()
    assert sum(start < at < end for at in ticks) >= 3
