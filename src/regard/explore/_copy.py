"""Copying: when is the context nearly one value?"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np

from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, Series, points_and_line
from regard.show.trace import Trace, work

GAPS = tuple(range(21))


@experiment
def copy(
    *,
    n: int | Sequence[int] = (4, 64, 1024),
    gap: float | Sequence[float] = GAPS,
    epsilon: float | Sequence[float] = (0.1, 0.01, 0.001, 1e-6),
) -> Result:
    """When does the context equal a value v_j? The weight on j against the gap of its key product.

    n: how many keys, one number or several.
    gap: by how much the product of key j with the query exceeds all others.
    epsilon: finds the gap at which the weight on j is 1 − epsilon.
    """
    counts = [_checks.whole("n", each, at_least=2) for each in _checks.several("n", n)]
    gaps = [_checks.number("gap", each) for each in _checks.several("gap", gap)]
    misses = [_share("epsilon", each) for each in _checks.several("epsilon", epsilon)]
    rows = [row for count in counts for row in _curve(count, gaps)]
    found = [_threshold(count, miss) for count in counts for miss in misses]
    table = Table([*rows, *found])
    first = found[-len(misses)]
    largest = max(abs(row["weight"] - row["predicted"]) for row in [*rows, *found])
    facts = {
        "weight": rows[-1]["weight"],
        "predicted_weight": rows[-1]["predicted"],
        "multiplier": first["multiplier"],
        "predicted_multiplier": first["predicted_multiplier"],
        "largest_difference": largest,
    }
    finding = (
        "The context is a copy of v_j when the product of its key with the query exceeds every "
        "other product by much more than the logarithm of their number: what is missing from "
        f"weight 1 falls as (n − 1)·e^(−gap). With {counts[-1]} keys a gap of "
        f"{first['multiplier']:.4f} leaves {misses[0]:g} of the weight to the others (predicted: "
        f"{first['predicted_multiplier']:.4f}); the largest difference between any weight and its "
        f"prediction is {largest:.1e}. The values do not matter, and nothing short of an infinite "
        "gap makes the copy exact."
    )
    return Result(
        title="Copying one value",
        finding=finding,
        prediction=("α_j = 1 / (1 + (n − 1)·e^(−gap))", "gap for 1 − ε: log((n − 1)(1 − ε)/ε)"),
        table=table,
        facts=facts,
        plot=_plot(Table(rows), Table(found), counts),
        trace=_trace(min(counts), [float(each) for each in gaps[:4]]),
    )


def _share(option: str, given: object) -> float:
    value = _checks.positive(option, given)
    return value if value < 1 else _checks.positive(f"1 − {option}", 1 - value)


def _weight(n: int, gap: float) -> float:
    return 1 / (1 + (n - 1) * exp(-gap))


def _trace(n: int, gaps: Sequence[float]) -> Trace:
    """One query for each gap, along key 1 of n unit keys at right angles."""
    queries = np.zeros((len(gaps), n))
    queries[:, 0] = gaps
    return work("attention", Q=queries, K=np.eye(n), V=np.eye(n), scale=1)


def _weights(n: int, gaps: Sequence[float]) -> list[float]:
    """The weights on key 1, from the graph."""
    return [float(weight) for weight in _trace(n, gaps)["weights"].value[:, 0]]


def _curve(n: int, gaps: Sequence[float]) -> list[dict[str, float]]:
    return [
        {"n": n, "gap": gap, "weight": weight, "predicted": _weight(n, gap)}
        for gap, weight in zip(gaps, _weights(n, gaps), strict=True)
    ]


def _threshold(n: int, epsilon: float) -> dict[str, float]:
    """The least multiplier that reaches 1 − epsilon, found by halving on the graph itself."""
    predicted = log((n - 1) * (1 - epsilon) / epsilon)
    low, high = predicted - 1, predicted + 1
    while low < (middle := (low + high) / 2) < high:
        if _weights(n, [middle])[0] >= 1 - epsilon:
            high = middle
        else:
            low = middle
    return {
        "n": n, "gap": high, "weight": _weights(n, [high])[0], "predicted": 1 - epsilon,
        "epsilon": epsilon, "multiplier": high, "predicted_multiplier": predicted,
    }  # fmt: skip


def _plot(curves: Table, found: Table, counts: Sequence[int]) -> Plot:
    weights: list[Series] = []
    misses: list[Series] = []
    for group, n in enumerate(counts):
        curve = curves.where(n=n)
        gaps = curve["gap"]
        dense = np.linspace(gaps.min(), gaps.max(), 200)
        line = np.array([_weight(n, gap) for gap in dense])
        label = f"n = {n} keys"
        weights += points_and_line(gaps, curve["weight"], dense, line, label, group)
        misses += points_and_line(gaps, 1 - curve["weight"], dense, 1 - line, label, group)
    gap = "gap between the key products"
    caption = (
        "Points: attention that was run; lines: the prediction. The weight on key j turns from "
        "even to 1 where the gap passes log(n − 1) (left); what it misses falls e-fold with each "
        "step of the gap (right)."
    )
    return Plot(
        (
            Chart("Copying is a matter of the gap", gap, "weight on key j", tuple(weights)),
            Chart("It is never exact", gap, "weight elsewhere", tuple(misses), log_y=True),
        ),
        caption,
    )
