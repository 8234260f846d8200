"""Temperature: the entropy of softmax(s/T)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from regard.explore import _checks
from regard.explore._competing import Competing, Group
from regard.explore._result import Result, experiment
from regard.explore._sampling import Measured, exponentials, generator, measure
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, series
from regard.show.trace import work

Row = dict[str, float]
TEMPERATURES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 5.0, 10.0)


@experiment
def temperature(
    *,
    n: int = 64,
    temperature: float | Sequence[float] = TEMPERATURES,
    samples: int = 4_000,
    precision: float | None = None,
    seed: int = 0,
) -> Result:
    """How does the temperature T in softmax(s/T) set the entropy of the weights?

    n: how many keys; their scores are drawn from N(0, 1).
    temperature: T, one number or several.
    samples: of the scores; all temperatures see the same ones.
    precision: stop earlier, when all standard errors are at most this.
    seed: of the samples.
    """
    n = _checks.whole("n", n, at_least=2)
    chosen = sorted(
        _checks.positive("temperature", each)
        for each in _checks.several("temperature", temperature)
    )
    samples = _checks.whole("samples", samples, at_least=2)
    precision = _checks.precision(precision)
    seed = _checks.whole("seed", seed, at_least=0)

    measured = _measured(n, chosen, samples, precision, seed)
    rows = [_row(place, each, n, measured) for place, each in enumerate(chosen)]
    table = Table(rows)
    facts = {name: rows[0][name] for name in ("entropy", "entropy_se", "predicted_entropy")}
    if len(rows) > 1:
        facts["entropy_at_hottest"] = rows[-1]["entropy"]
        facts["predicted_entropy_at_hottest"] = rows[-1]["predicted_entropy"]
    return Result(
        title="Temperature and entropy",
        finding=_finding(rows, n),
        prediction=(
            "E[entropy] = E[log Σ e^(s/T)] − E[Σ w s]/T, by an integral over one variable",
            "T large: log n − 1/(2T²); T → 0: 0",
        ),
        table=table,
        facts=facts,
        plot=_plot(table, n),
        trace=work(
            "attention", Q=[[1.0]], K=generator(seed).standard_normal((6, 1)), V=np.eye(6),
            scale=1 / chosen[0],
        ),
    )  # fmt: skip


def _measured(
    n: int, temperatures: Sequence[float], samples: int, precision: float | None, seed: int
) -> Measured:
    """The entropy of the weights and their Σ w², for each temperature."""

    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        scores = rng.standard_normal((count, n))
        scores -= scores.max(axis=1, keepdims=True)
        columns = []
        for each in temperatures:
            weights = exponentials(scores / each)
            total = weights.sum(axis=1)
            looked = np.einsum("cn,cn->c", weights, scores) / (each * total)
            squares = np.einsum("cn,cn->c", weights, weights) / total**2
            columns += [np.log(total) - looked, squares]
        return np.stack(columns, axis=1)

    return measure(
        draw, numbers=n * len(temperatures), seed=seed, samples=samples, precision=precision,
        title="temperature",
    )  # fmt: skip


def _row(place: int, temperature: float, n: int, measured: Measured) -> Row:
    law = Competing(Group(0.0, 1 / temperature, n))
    (entropy, squares), (entropy_se, squares_se) = (
        values[2 * place : 2 * place + 2] for values in (measured.mean, measured.mean_error)
    )
    return {
        "temperature": temperature, "samples": measured.count,
        "entropy": float(entropy), "entropy_se": float(entropy_se),
        "predicted_entropy": law.entropy(),
        "same_key": squares, "same_key_se": squares_se,
        "predicted_same_key": law.concentration(),
    }  # fmt: skip


def _finding(rows: Sequence[Row], n: int) -> str:
    first, *others = rows
    even = f"even weights would have log n = {log(n):.3f}"
    found = f"The entropy of the weights is {_entropy(first)}; {even}."
    if others:
        last = others[-1]
        found = (
            f"The entropy of the weights rises with the temperature from {_entropy(first)} to "
            f"{_entropy(last)}; {even}."
        )
        if first["entropy"] < log(n) / 2 < last["entropy"]:
            entropies = [row["entropy"] for row in rows]
            half = np.interp(log(n) / 2, entropies, [log(row["temperature"]) for row in rows])
            found += (
                f" It is half of that near T = {np.exp(half):.2g}, where T is of the size of the "
                "spread of the largest scores."
            )
    return (
        f"{found} Hot weights lack 1/(2T²) of the entropy of even ones; cold ones are a choice of "
        "the largest score. 1/√d is a temperature of √d."
    )


def _entropy(row: Row) -> str:
    return (
        f"{row['entropy']:.3f} nats at T = {row['temperature']:g} (predicted "
        f"{row['predicted_entropy']:.3f})"
    )


def _plot(table: Table, n: int) -> Plot:
    temperatures = table["temperature"]
    ends = [temperatures.min(), temperatures.max()]
    dense = np.geomspace(ends[0], ends[1], 60) if len(temperatures) > 1 else temperatures
    laws = [Competing(Group(0.0, 1 / each, n)) for each in dense]
    hot = np.array([log(n) - (1 / each) ** 2 / 2 for each in dense])
    entropies = (
        series("measured", temperatures, table["entropy"], "measured", 0, table["entropy_se"]),
        series("predicted", dense, [law.entropy() for law in laws], "predicted, exactly"),
        series("predicted", dense[hot > 0], hot[hot > 0], "log n − 1/(2T²)", 1),
        series("bound", ends, [log(n), log(n)], "even weights: log n"),
    )
    same = (
        series("measured", temperatures, table["same_key"], "measured", 0, table["same_key_se"]),
        series("predicted", dense, [law.concentration() for law in laws], "predicted, exactly"),
        series("bound", ends, [1 / n, 1 / n], "even weights: 1/n"),
    )
    caption = (
        f"Softmax of {n} scores from N(0, 1) at temperature T. Cold weights choose, hot ones "
        "average; between them lies about one factor of ten in T."
    )
    label = "temperature T"
    return Plot(
        (
            Chart("Heat evens the weights out", label, "entropy of the weights (nats)", entropies,
                  log_x=True, y_limits=(0, 1.05 * log(n))),
            Chart("Cold makes them a choice", label, "Σ w²: two looks at the same key", same,
                  log_x=True, y_limits=(0, 1.05)),
        ),
        caption,
    )  # fmt: skip
