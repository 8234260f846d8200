"""The operator beside its peers: torch, ONNX Runtime, JAX and NumPy, in one run.

    python benchmarks/attention.py [WORD …]   # only the cases whose name has one of these words

Every number is a median of interleaved calls with all cores. Work is counted as 4·d for each pair
of a query and a key that it may see, and compared with the multiply-adds that this machine does
at most, measured between the rounds. Contestants that cannot do a case, or whose package is
missing, are left out of it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ["OPENBLAS_THREAD_TIMEOUT"] = "20"  # NumPy's threads would wait for a second

import _peers
import numpy as np

from regard.kernel import _native

SECONDS_EACH = 4.0  # for all rounds of one case
ROW = 0.005  # seconds; short calls are timed so many in a row
REST = 0.06  # seconds until the threads of a peer stop waiting for more work
MOST_ROUNDS, FEWEST_ROUNDS = 31, 5
OURS = "regard"


@dataclass(frozen=True)
class Case:
    """One computation: sizes, and which keys a query sees."""

    heads: int
    n: int
    d: int
    sees: str = "all"
    queries: int = 0  # 0: as many as keys
    kv_heads: int = 0  # 0: as many as heads
    backward: bool = False

    @property
    def name(self) -> str:
        kind = {"all": "full"}.get(self.sees, self.sees)
        kind = "decoding" if self.queries == 1 else kind
        return f"{kind}{' backward' if self.backward else ''} {self.heads}×{self.n}×{self.d}"

    @property
    def visible(self) -> np.ndarray:
        """The mask, True where a query sees a key."""
        n_q = self.queries or self.n
        ahead = np.arange(n_q)[:, None] + self.n - n_q - np.arange(self.n)
        if self.sees == "mask":
            return np.random.default_rng(7).random((n_q, self.n)) < 0.5
        return {
            "all": np.ones((n_q, self.n), bool),
            "causal": ahead >= 0,
            "window": (ahead >= 0) & (ahead <= _peers.WINDOW),
        }[self.sees]

    @property
    def work(self) -> float:
        """Floating-point operations; a mask without structure saves nobody any."""
        pairs = self.visible.size if self.sees == "mask" else int(self.visible.sum())
        return (10 if self.backward else 4) * self.heads * pairs * self.d

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(3)
        kv_heads, n_q = self.kv_heads or self.heads, self.queries or self.n
        shapes = ((self.heads, n_q), (kv_heads, self.n), (kv_heads, self.n))
        return [rng.normal(size=(1, *shape, self.d)).astype(np.float32) for shape in shapes]


CASES = (
    *(Case(8, n, 64) for n in (64, 256, 1024, 4096)),
    Case(4, 1024, 128),
    *(Case(8, n, 64, "causal") for n in (256, 1024, 4096)),
    Case(4, 1024, 128, "causal"),
    *(Case(8, n, 64, "window") for n in (1024, 4096)),
    *(Case(8, n, 64, "mask") for n in (256, 1024, 4096)),
    Case(1, 5, 6),
    Case(32, 4096, 64, queries=1, kv_heads=8),
    Case(32, 4096, 128, queries=1, kv_heads=8),
    *(Case(8, n, 64, "all", backward=True) for n in (256, 1024)),
    Case(8, 1024, 64, "causal", backward=True),
)


def main() -> None:
    """Print a table; the last line is JSON."""
    words = sys.argv[1:]
    cases = [case for case in CASES if not words or any(word in case.name for word in words)]
    cores = _native.threads()
    print(f"{_native.kernel()}, {cores} threads; {_peers.versions()}")
    results = [measure(case) for case in cases]
    print(json.dumps({"threads": cores, "cases": results}))


def measure(case: Case) -> dict[str, Any]:
    """Time all contestants of a case; print and return what came out."""
    operands = case.operands()
    contestants = _peers.contestants(case, operands)
    want = _peers.in_float64(case, operands) if not case.backward else None
    errors = {}
    for name, call in contestants.items():
        answer = call()  # also warms up
        if want is not None:
            errors[name] = float(np.abs(_peers.as_numpy(answer, case.heads) - want).max())
    seconds, peak, bandwidth = interleaved(contestants)
    best = min((name for name in seconds if name != OURS), key=seconds.__getitem__)
    result = {
        "case": case.name,
        "seconds": seconds,
        "errors": errors,
        "of_peak": case.work / seconds[OURS] / 1e9 / peak,
        "peak_gigaflops": peak,
        "best_peer": best,
        "over_best": seconds[best] / seconds[OURS],
        "over_torch": seconds["torch"] / seconds[OURS] if "torch" in seconds else None,
    }
    if case.queries == 1:
        read = sum(each.nbytes for each in operands[1:])
        result["of_bandwidth"] = read / seconds[OURS] / 1e9 / bandwidth
        result["memory_gigabytes"] = bandwidth
    show(result)
    return result


def interleaved(
    contestants: dict[str, Callable[[], Any]],
) -> tuple[dict[str, float], float, float]:
    """Median seconds of each, and what the machine could do at most meanwhile."""
    repeats, once = {}, 0.0
    for name, call in contestants.items():
        took = timed(call, 1)
        repeats[name] = max(1, int(ROW / took))
        once += REST + 2 * max(took, ROW)
    rounds = int(min(MOST_ROUNDS, max(FEWEST_ROUNDS, SECONDS_EACH / once)))
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    peaks, bandwidths = [], []
    for _ in range(rounds):
        for name, call in contestants.items():
            seconds[name].append(timed(call, repeats[name]))
        peaks.append(_native.fma_gigaflops(1_000_000))
        bandwidths.append(_native.memory_gigabytes(64))
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return medians, statistics.median(peaks), statistics.median(bandwidths)


def timed(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of one call, with caches warm, and after the threads of others have gone to sleep."""
    time.sleep(REST)
    for _ in ("warm", "timed"):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
    return (time.perf_counter() - start) / repeats


def show(result: dict[str, Any]) -> None:
    share = f"{result['of_peak']:4.0%} of peak"
    if "of_bandwidth" in result:
        share = f"{result['of_bandwidth']:4.0%} of memory"
    ours = result["seconds"][OURS]
    others = "  ".join(
        f"{name} {seconds / ours:.2f}"
        for name, seconds in sorted(result["seconds"].items(), key=lambda item: item[1])
        if name != OURS
    )
    print(f"{result['case']:26} {1e3 * ours:9.3f} ms  {share}  {others}", flush=True)


if __name__ == "__main__":
    main()
