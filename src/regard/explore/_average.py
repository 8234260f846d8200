"""An average of two: q = β(k_a + k_b) for orthonormal keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, Series, points_and_line, series
from regard.show.trace import Trace, work


@experiment
def average(
    *,
    n: int | Sequence[int] = (4, 64, 256),
    beta: float | Sequence[float] = tuple(range(0, 21, 2)),
    seed: int = 0,
) -> Result:
    """How near does q = β(k_a + k_b) bring the context to ½(v_a + v_b)?

    n: how many keys, one number or several; they are orthonormal.
    beta: the multiplier β.
    seed: of the keys, turned at random, and of the values.
    """
    counts = [_checks.whole("n", each, at_least=3) for each in _checks.several("n", n)]
    betas = [_checks.number("beta", each) for each in _checks.several("beta", beta)]
    seed = _checks.whole("seed", seed, at_least=0)
    traces = {count: _trace(count, betas, seed) for count in counts}
    table = Table(row for count in counts for row in _errors(traces[count], betas))
    last = list(table)[-1]
    differences = np.abs(table["error"] - table["predicted"]) / table["predicted"].clip(1e-9)
    facts = {
        "error": table["error"][-1],
        "predicted_error": table["predicted"][-1],
        "largest_relative_difference": float(differences.max()),
    }
    finding = (
        "With q = β(k_a + k_b) both keys have the product β and all others 0, so a and b get the "
        "same weight whatever β is; the rest keeps a share r = (n − 2)/(2e^β + n − 2), and the "
        f"context misses the average by exactly r times its distance from the mean of the other "
        f"values. With n = {last['n']} and β = {last['beta']:g} the error is "
        f"{facts['error']:.3g} (predicted {facts['predicted_error']:.3g}). β must grow as log n: "
        "each further e-fold of accuracy costs one more unit of β."
    )
    return Result(
        title="The average of two values",
        finding=finding,
        prediction=(
            "α_a = α_b = e^β / (2e^β + n − 2)",
            "‖c − ½(v_a + v_b)‖ = r·‖mean of the other values − ½(v_a + v_b)‖, "
            "r = (n − 2) / (2e^β + n − 2)",
        ),
        table=table,
        facts=facts,
        plot=_plot(table, counts),
        trace=traces[min(counts)],
    )


def _trace(n: int, betas: Sequence[float], seed: int) -> Trace:
    """A query for each β over orthonormal keys in a random position."""
    rng = generator(seed, n)
    keys = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = rng.standard_normal((n, 8))
    queries = np.outer(betas, keys[0] + keys[1])
    return work("attention", Q=queries, K=keys, V=values, scale=1)


def _errors(trace: Trace, betas: Sequence[float]) -> list[dict[str, float]]:
    values, weights = trace["V"].value, trace["weights"].value
    wanted = (values[0] + values[1]) / 2
    n = len(values)
    away = float(np.linalg.norm(values[2:].mean(axis=0) - wanted))
    return [
        {
            "n": n, "beta": beta, "weight_a": weight[0], "weight_b": weight[1],
            "error": float(np.linalg.norm(context - wanted)), "predicted": _rest(n, beta) * away,
            "relative_error": float(np.linalg.norm(context - wanted)) / away,
        }
        for beta, weight, context in zip(betas, weights, trace["context"].value, strict=True)
    ]  # fmt: skip


def _rest(n: int, beta: float) -> float:
    """The share of the weight that a and b do not have."""
    return (n - 2) / (2 * exp(beta) + n - 2)


def _plot(table: Table, counts: Sequence[int]) -> Plot:
    shares: list[Series] = []
    errors: list[Series] = []
    for group, n in enumerate(counts):
        rows = table.where(n=n)
        betas = rows["beta"]
        dense = np.linspace(betas.min(), betas.max(), 200)
        line = np.array([_rest(n, beta) for beta in dense])
        label = f"n = {n} keys"
        shares += points_and_line(betas, rows["weight_a"], dense, (1 - line) / 2, label, group)
        errors += points_and_line(betas, rows["relative_error"], dense, line, label, group)
    shares.append(series("bound", [min(table["beta"]), max(table["beta"])], [0.5, 0.5]))
    caption = (
        "Points: attention that was run; lines: the prediction. The weights on a and b approach ½ "
        "(left, dotted); the error of the context, relative to its value at even weights on the "
        "others, falls e-fold with each step of β, the later the more keys there are (right)."
    )
    multiplier = "multiplier β"
    return Plot(
        (
            Chart("Half of the weight each", multiplier, "weight on a (and on b)", tuple(shares)),
            Chart(
                "The error falls as e^(−β)", multiplier, "‖c − ½(v_a + v_b)‖, relative",
                tuple(errors), log_y=True,
            ),
        ),
        caption,
    )  # fmt: skip
