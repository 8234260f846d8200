"""The sharpest weights that queries and keys of given length can reach: why contexts dilute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.explore import _checks
from regard.explore._competing import Competing, Group
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.ops import attention
from regard.show.plots import Chart, Plot, Series, series
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
EVEN_SPREAD, RANDOM = "as far apart as n can be", "random directions"
LARGEST_SIMPLEX = 1024  # keys; its corners need as many dimensions
DRAWS = 12


@experiment
def softmax_bottleneck(
    *,
    n: int | Sequence[int] = (2, 8, 32, 128, 512, 2048, 8192, 32768),
    norm: float | Sequence[float] = (4.0, 8.0, 12.0),
    d: int = 64,
    seed: int = 0,
) -> Result:
    """How sharp can the weights be when ‖q‖·‖k‖ is bounded, and how does the context dilute them?

    n: how many keys, one number or several.
    norm: the bound B on ‖q‖·‖k‖·scale, one number or several.
    d: the dimension in which keys of random direction are drawn.
    seed: of the random directions.
    """
    counts = sorted(_checks.whole("n", each, at_least=2) for each in _checks.several("n", n))
    norms = sorted(_checks.positive("norm", each) for each in _checks.several("norm", norm))
    d = _checks.whole("d", d, at_least=2)
    seed = _checks.whole("seed", seed, at_least=0)
    rows = [
        row
        for each in norms
        for count in counts
        for row in (_spread_evenly(count, each), _random(count, each, d, seed))
        if row
    ]
    table = Table(rows)
    last = [row for row in rows if row["norm"] == norms[-1]][-1]
    spread = [row for row in rows if row["keys"] == EVEN_SPREAD and row["norm"] == norms[-1]]
    best = spread[-1] if spread else last
    return Result(
        title="The sharpest weights within a norm",
        finding=_finding(best, last, d),
        prediction=(
            "as far apart as can be: largest weight = 1 / (1 + (n − 1)·e^(−B·n/(n − 1)))",
            "random directions: E[w] = ∫ e^B·e^(−t e^B)·E[e^(−t e^s)]^(n−1) dt, s ~ N(0, B²/d)",
        ),
        table=table,
        facts=_facts(best, last),
        plot=_plot(table, norms, counts, d),
        trace=_example(min(counts), norms[0]),
    )


def _facts(best: Mapping[str, Any], random: Mapping[str, Any]) -> dict[str, float]:
    return {
        "weight": float(best["weight"]), "predicted_weight": float(best["predicted_weight"]),
        "weight_random": float(random["weight"]), "weight_random_se": float(random["weight_se"]),
        "predicted_weight_random": float(random["predicted_weight"]),
        "half_at": 1 + exp(best["norm"]),
    }  # fmt: skip


def _finding(best: Mapping[str, Any], random: Mapping[str, Any], d: int) -> str:
    return (
        "With ‖q‖·‖k‖ ≤ B no weight exceeds 1/(1 + (n − 1)e^(−2B)), and when every key must be "
        "selectable none exceeds 1/(1 + (n − 1)e^(−Bn/(n − 1))), which keys at the corners of a "
        f"simplex reach: {best['weight']:.4f} (predicted {best['predicted_weight']:.4f}) for "
        f"B = {best['norm']:g} and n = {best['n']}. The weight is down to a half at "
        f"n ≈ 1 + e^B = {1 + exp(best['norm']):,.0f} keys: to stay as sharp, B must grow as log n. "
        f"{random['n']} keys in random directions of {d} dimensions leave {random['weight']:.4f} ± "
        f"{random['weight_se']:.1g} (predicted {random['predicted_weight']:.4f}), because the "
        "nearest of them compete. This is why a long context dilutes attention, whatever is in it."
    )


def _simplex(n: int) -> Array:
    """n unit vectors whose products with one another are all −1/(n − 1)."""
    corners = np.eye(n) - 1 / n
    return np.asarray(corners / np.linalg.norm(corners, axis=1, keepdims=True))


def _spread_evenly(n: int, norm: float) -> dict[str, Any] | None:
    if n > LARGEST_SIMPLEX:
        return None
    keys = _simplex(n)
    weight = attention(norm * keys[:1], keys, np.eye(n, 1), scale=1)[0, 0]
    return {
        "norm": norm, "n": n, "keys": EVEN_SPREAD, "weight": float(weight), "weight_se": 0.0,
        "predicted_weight": _largest(n, norm),
    }  # fmt: skip


def _largest(n: float, norm: float) -> float:
    return 1 / (1 + (n - 1) * exp(-norm * n / (n - 1)))


def _random(n: int, norm: float, d: int, seed: int) -> dict[str, Any]:
    """The key looked for has length 1, the others are N(0, I/d): lengths of about 1."""
    found = []
    for draw in range(DRAWS):
        keys = generator(seed, draw).standard_normal((n, d)) / sqrt(d)
        keys[0] /= np.linalg.norm(keys[0])
        found.append(attention(norm * keys[:1], keys, np.eye(n, 1), scale=1)[0, 0])
    return {
        "norm": norm, "n": n, "keys": RANDOM, "weight": float(np.mean(found)),
        "weight_se": float(np.std(found, ddof=1)) / sqrt(DRAWS),
        "predicted_weight": _expected(n, norm, d),
    }  # fmt: skip


def _expected(n: float, norm: float, d: int) -> float:
    return Competing(Group(norm, 0.0), Group(0.0, norm / sqrt(d), round(n) - 1)).mean()


def _example(n: int, norm: float) -> Trace:
    keys = _simplex(n)
    return work("attention", Q=norm * keys[:1], K=keys, V=np.eye(n), scale=1)


def _plot(table: Table, norms: Sequence[float], counts: Sequence[int], d: int) -> Plot:
    n = np.geomspace(max(2, counts[0]), max(3, counts[-1]), 40)

    def lines(keys: str) -> tuple[Series, ...]:
        drawn = [series("bound", n[[0, -1]], [0.5, 0.5], "half of the weight")]
        for group, norm in enumerate(norms):
            rows = table.where(norm=norm, keys=keys)
            label = f"B = {norm:g}"
            if len(rows):
                weights, errors = rows["weight"], rows["weight_se"]
                drawn.append(series("measured", rows["n"], weights, label, group, errors))
            law: Callable[..., float] = _largest if keys == EVEN_SPREAD else partial(_expected, d=d)
            drawn.append(series("predicted", n, [law(each, norm) for each in n], "", group))
        return tuple(drawn)

    caption = (
        "The largest weight that a query of bounded length can give to one of n keys. Even with "
        f"the keys as far apart as can be it falls to a half at n ≈ e^B (for B = {norms[0]:g} near "
        f"{round(exp(norms[0]))} keys, log n = {log(1 + exp(norms[0])):.1f}); keys in random "
        "directions dilute sooner."
    )
    label, weight = "keys n", "largest weight"
    limits = (-0.03, 1.25)
    return Plot(
        (
            Chart("Keys as far apart as can be", label, weight, lines(EVEN_SPREAD),
                  log_x=True, y_limits=limits),
            Chart("Keys in random directions", label, weight, lines(RANDOM),
                  log_x=True, y_limits=limits),
        ),
        caption,
    )  # fmt: skip
