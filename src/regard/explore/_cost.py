"""What attention costs on this machine, against what is counted."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import OptionError
from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.jobs import progress
from regard.ops import attention
from regard.show.costs import count
from regard.show.plots import Chart, Plot, Series, points_and_line
from regard.show.trace import work

Array = NDArray[np.float64]
Attention = Callable[[Array, Array, Array], Array]
UNFUSED, FUSED = "every step kept", "fused"


@experiment
def cost(
    *,
    n: Sequence[int] = (128, 256, 512, 1024, 2048),
    d: Sequence[int] = (16, 32, 64, 128, 256),
    n_fixed: int = 512,
    d_fixed: int = 64,
    runs: int = 7,
) -> Result:
    """How do time and memory grow with n and d on this machine, unfused and fused?

    n: numbers of tokens, at least two, with d_fixed numbers each.
    d: dimensions, at least two, with n_fixed tokens.
    n_fixed, d_fixed: what does not vary.
    runs: of each measurement; the fastest counts, because all that disturbs makes it slower.
    """
    counts = _growing("n", n)
    dimensions = _growing("d", d)
    n_fixed, d_fixed = _checks.whole("n_fixed", n_fixed), _checks.whole("d_fixed", d_fixed)
    runs = _checks.whole("runs", runs)
    points = [("n", size, d_fixed) for size in counts]
    points += [("d", n_fixed, size) for size in dimensions]
    rows = []
    with progress("cost", len(points)) as advance:
        for varied, tokens, width in points:
            rows += _rows(varied, tokens, width, runs)
            advance(1)
    table = Table(_with_predicted_seconds(rows))
    facts = {
        f"{measure}_exponent_in_{varied}_{word}": _exponent(table, varied, how, measure)
        for measure in ("seconds", "bytes")
        for varied in ("n", "d")
        for how, word in ((UNFUSED, "unfused"), (FUSED, "fused"))
    }
    counted = {
        f"predicted_{name}": _exponent(table, *_parts(name), predicted=True) for name in facts
    }
    return Result(
        title="What attention costs on this machine",
        finding=_finding(facts, counted, table),
        prediction=_prediction(),
        table=table,
        facts={**facts, **counted},
        plot=_plot(table),
        trace=work("attention", **dict(zip("QKV", _inputs(6, 4), strict=True))),
    )


def _growing(option: str, given: Sequence[int]) -> list[int]:
    values = sorted(_checks.whole(option, each) for each in _checks.several(option, given))
    if len(values) < 2:
        raise OptionError(f"`{option}` must be at least two sizes to see growth, not {given!r}")
    return values


def _unfused(q: Array, k: Array, v: Array) -> Array:
    """As a graph is run: every step is an array of its own."""
    scores = q @ k.T
    scaled = scores / sqrt(q.shape[1])
    exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    sums = exponentials.sum(axis=1, keepdims=True)
    weights = exponentials / sums
    return np.asarray(weights @ v)


def _inputs(tokens: int, width: int) -> Array:
    return generator(tokens, width).standard_normal((3, tokens, width))


def _rows(varied: str, tokens: int, width: int, runs: int) -> list[dict[str, Any]]:
    q, k, v = _inputs(tokens, width)
    contestants: dict[str, Attention] = {UNFUSED: _unfused, FUSED: attention}
    seconds: dict[str, list[float]] = {how: [] for how in contestants}
    for run in range(runs + 1):  # the first is to warm up; taking turns is fair to both
        for how, attend in contestants.items():
            start = perf_counter()
            attend(q, k, v)
            if run:
                seconds[how].append(perf_counter() - start)
    counted = count("attention", n_q=tokens, n_k=tokens, d_k=width, d_v=width)
    arrays = {UNFUSED: counted.unfused_bytes, FUSED: counted.fused_bytes}
    operations = counted.number(counted.total.multiplications + counted.total.additions)
    exponentials = counted.number(counted.total.exponentials)
    return [
        {
            "varied": varied, "n": tokens, "d": width, "how": how,
            "seconds": min(seconds[how]), "bytes": _allocated(attend, q, k, v),
            "operations": operations, "exponentials": exponentials,
            "predicted_bytes": counted.number(arrays[how]),
        }
        for how, attend in contestants.items()
    ]  # fmt: skip


def _with_predicted_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds as so much for each operation and so much for each exponential, on this machine."""
    predicted: dict[str, Array] = {}
    for how in (UNFUSED, FUSED):
        chosen = [row for row in rows if row["how"] == how]
        counted = np.array([[row["operations"], row["exponentials"]] for row in chosen], float)
        seconds = np.array([row["seconds"] for row in chosen])
        prices = _least_squares(counted / seconds[:, None])
        predicted[how] = counted @ prices
    places = {how: iter(values) for how, values in predicted.items()}
    return [{**row, "predicted_seconds": float(next(places[row["how"]]))} for row in rows]


def _least_squares(shares: Array) -> Array:
    """Prices with which every row sums to 1 as nearly as can be; none is negative."""
    wanted = np.ones(len(shares))
    prices = np.linalg.lstsq(shares, wanted)[0]
    if (prices >= 0).all():
        return np.asarray(prices)
    alone = shares.T @ wanted / (shares**2).sum(axis=0)
    missed = [((shares[:, place] * price - 1) ** 2).sum() for place, price in enumerate(alone)]
    return np.where(np.arange(2) == int(np.argmin(missed)), alone, 0.0)


def _allocated(attend: Attention, q: Array, k: Array, v: Array) -> int:
    """The most that arrays took at any time; what the kernel keeps for its tiles is not counted."""
    tracemalloc.start()
    try:
        attend(q, k, v)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _parts(name: str) -> tuple[str, str, str]:
    """seconds_exponent_in_n_fused: what was varied, how, and what was measured."""
    measure, _, _, varied, word = name.split("_")
    return varied, UNFUSED if word == "unfused" else FUSED, measure


def _exponent(table: Table, varied: str, how: str, measure: str, predicted: bool = False) -> float:
    """The slope of a straight line through the logarithms."""
    rows = table.where(varied=varied, how=how)
    if predicted:
        measure = f"predicted_{measure}"
    return float(np.polyfit(np.log(rows[varied]), np.log(rows[measure].astype(float)), 1)[0])


def _prediction() -> tuple[str, ...]:
    counted = count("attention", n_q=1, n_k=1, d_k=1, d_v=1)
    return (
        f"multiplications: {counted.total.multiplications}; additions: {counted.total.additions}",
        f"bytes of results: every step kept {counted.unfused_bytes}; fused {counted.fused_bytes}",
    )


def _finding(facts: dict[str, float], counted: dict[str, float], table: Table) -> str:
    def both(measure: str, varied: str, word: str) -> str:
        name = f"{measure}_exponent_in_{varied}_{word}"
        return f"{facts[name]:.2f} (from the counts: {counted[f'predicted_{name}']:.2f})"

    largest = max(int(size) for size in table.where(varied="n")["n"])
    rows = {row["how"]: row for row in table.where(varied="n", n=largest)}
    faster = float(rows[UNFUSED]["seconds"] or 0) / float(rows[FUSED]["seconds"] or 1)
    smaller = float(rows[UNFUSED]["bytes"] or 0) / float(rows[FUSED]["bytes"] or 1)
    return (
        f"Time grows with the number of tokens as n to the power {both('seconds', 'n', 'unfused')} "
        f"with every step kept and {both('seconds', 'n', 'fused')} fused; with the dimension as d "
        f"to the power {both('seconds', 'd', 'unfused')} and {both('seconds', 'd', 'fused')}: the "
        "n² exponentials do not depend on d. Memory grows as n to the power "
        f"{both('bytes', 'n', 'unfused')} with every step kept and only "
        f"{both('bytes', 'n', 'fused')} fused. At n = {largest} the fused operator was "
        f"{faster:.1f} times as fast and took "
        f"{smaller:.0f} times less memory. Times are of this machine, now; counts are of none."
    )


def _lines(table: Table, varied: str, measure: str) -> tuple[Series, ...]:
    """Measured points and what is predicted from the counts."""
    lines: list[Series] = []
    for group, how in enumerate((UNFUSED, FUSED)):
        rows = table.where(varied=varied, how=how)
        x, predicted = rows[varied], rows[f"predicted_{measure}"]
        lines += points_and_line(x, rows[measure], x, predicted, how, group)
    return tuple(lines)


def _plot(table: Table) -> Plot:
    caption = (
        "Points: measured on this machine; lines: a price for each counted operation and "
        "exponential, fitted to all points, and the counted bytes. Attention with every step kept "
        "needs n² numbers of memory, fused attention n."
    )
    n, d = "tokens n", "dimension d"
    return Plot(
        (
            Chart("Time grows as n²", n, "seconds", _lines(table, "n", "seconds"),
                  log_x=True, log_y=True),
            Chart("Time grows with d", d, "seconds", _lines(table, "d", "seconds"),
                  log_x=True, log_y=True),
            Chart("Memory: n² or n", n, "bytes", _lines(table, "n", "bytes"),
                  log_x=True, log_y=True),
        ),
        caption,
    )  # fmt: skip
