"""What the benchmarks share: timing things fairly and printing what came out."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable


def command(*words: str) -> Callable[[], object]:
    """A command to be timed, in a new process each time, with compiled modules kept as usual."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=kept)


def interleaved_medians(
    contestants: dict[str, Callable[[], object]], runs: int
) -> dict[str, float]:
    """Call every contestant in turn, `runs` times over; return the median seconds of each.

    Taking turns spreads a passing load on the machine over all of them alike.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(runs):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def print_ratios(medians: dict[str, float], baseline: str, runs: int) -> None:
    """Print a table of medians and their ratios to `baseline`; the last line is JSON."""
    width = max(map(len, medians))
    print(f"{'':{width}}  median of {runs}   ratio to {baseline}")
    for name, seconds in medians.items():
        print(f"{name:{width}}  {1000 * seconds:9.2f} ms   {seconds / medians[baseline]:.2f}")
    ratios = {name: seconds / medians[baseline] for name, seconds in medians.items()}
    print(json.dumps({"seconds": medians, "ratios": ratios, "baseline": baseline, "runs": runs}))


class Clock:
    """Counts what updates bring after the first `warm` ones, until the time is over."""

    def __init__(self, seconds: float, warm: int = 8) -> None:
        self.seconds, self.warm = seconds, warm
        self.updates, self.tokens, self.start, self.now = 0, 0, 0.0, 0.0

    def over(self, tokens: int) -> bool:
        self.updates += 1
        self.now = time.perf_counter()
        if self.updates <= self.warm:
            self.start = self.now
            return False
        self.tokens += tokens
        return self.now - self.start > self.seconds

    def speed(self) -> float:
        return self.tokens / (self.now - self.start)


class Enough(Exception):
    """The time is over."""
