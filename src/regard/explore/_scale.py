"""Why scores are divided by √d: variance, entropy and gradient against d."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from regard.explore import _checks
from regard.explore._competing import Competing, Group
from regard.explore._result import Result, experiment
from regard.explore._sampling import Measured, exponentials, generator, measure
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, Series, points_and_line, series
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
Row = dict[str, float]
SCALED = "divided by √d"
PLAIN = "not divided"
STATISTICS = ("variance", "entropy", "answer")
VANISHED = 0.01  # of a gradient's norm
MANY = 0.1  # of the samples
NODES = 6


@experiment
def scale(
    *,
    d: int | Sequence[int] = (4, 16, 64, 256, 1024),
    n: int = 64,
    samples: int = 4_000,
    precision: float | None = None,
    seed: int = 0,
) -> Result:
    """Why are scores divided by √d? Their variance, the entropy of the weights, the gradient.

    d: the dimension of queries and keys, whose entries are drawn from N(0, 1); one or several.
    n: how many keys.
    samples: of a query with its keys, for each d.
    precision: stop earlier, when all standard errors are at most this.
    seed: of the samples.
    """
    dimensions = [_checks.whole("d", each, at_least=2) for each in _checks.several("d", d)]
    n = _checks.whole("n", n, at_least=2)
    samples = _checks.whole("samples", samples, at_least=2)
    precision = _checks.precision(precision)
    seed = _checks.whole("seed", seed, at_least=0)
    rows = [
        _row(each, n, is_scaled, _measured(each, n, is_scaled, samples, precision, seed))
        for each in dimensions
        for is_scaled in (False, True)
    ]
    table = Table(rows)
    plain, scaled = rows[-2:]
    return Result(
        title="Why scores are divided by √d",
        finding=_finding(plain, scaled, n, several=len(dimensions) > 1),
        prediction=(
            "Var(q·k) = d, Var(q·k/√d) = 1; given q, the scores are N(0, ‖q‖²)",
            "E[Π wᵢ^k] = ∫ t^(K−1)/Γ(K) Π E[e^(kᵢ s) e^(−t e^s)] dt, averaged over ‖q‖² ~ χ²_d",
            "Σ ∂wᵢ/∂sᵢ = 1 − Σ wᵢ²; ‖∂w/∂s‖² = Σ wᵢ²(1 − wᵢ)² + Σ wᵢ²wⱼ² (i ≠ j)",
        ),
        table=table,
        facts=_facts(plain, scaled),
        plot=_plot(table, n, [_saturates(row) for row in rows[::2]]),
        trace=_example(min(dimensions), seed),
    )


def _facts(plain: Row, scaled: Row) -> dict[str, float]:
    return {
        "variance_plain": plain["variance"], "variance_plain_se": plain["variance_se"],
        "predicted_variance_plain": plain["predicted_variance"],
        "entropy_plain": plain["entropy"], "entropy_plain_se": plain["entropy_se"],
        "predicted_entropy_plain": plain["predicted_entropy"],
        "entropy_scaled": scaled["entropy"], "entropy_scaled_se": scaled["entropy_se"],
        "predicted_entropy_scaled": scaled["predicted_entropy"],
        "answer_plain": plain["answer"], "predicted_answer_plain": plain["predicted_answer"],
        "answer_scaled": scaled["answer"], "predicted_answer_scaled": scaled["predicted_answer"],
        "slope_plain": plain["slope"], "predicted_slope_plain": plain["predicted_slope"],
        "vanished_plain": plain["vanished"], "vanished_scaled": scaled["vanished"],
    }  # fmt: skip


def _saturates(plain: Row) -> bool:
    """Whether the gradient has gone in so many samples that learning would feel it."""
    return plain["vanished"] > MANY


def _finding(plain: Row, scaled: Row, n: int, several: bool) -> str:
    lost, rare = "Undivided scores do not saturate the softmax yet: the entropy is", ""
    if _saturates(plain):
        lost = "Undivided scores saturate the softmax: the entropy falls to"
        rare = ", from the few in which two keys are nearly tied"
    kept = "everything stays where it is for every d:" if several else "these are"
    return (
        f"A product of two random vectors of {plain['d']} entries has the variance "
        f"{plain['variance']:.4g} ± {plain['variance_se']:.1g} (predicted: d); divided by √d it is "
        f"{scaled['variance']:.4f}. {lost} "
        f"{plain['entropy']:.3f} of log n = {log(n):.3f} nats (predicted "
        f"{plain['predicted_entropy']:.3f}), and the weights answer to their own scores by "
        f"Σ ∂wᵢ/∂sᵢ = {plain['answer']:.3f} (predicted {plain['predicted_answer']:.3f}). In "
        f"{100 * plain['vanished']:.0f} % of the samples the gradient ‖∂w/∂s‖ is below {VANISHED}; "
        f"its rms is {plain['slope']:.3f} (predicted {plain['predicted_slope']:.3f}){rare}. "
        f"Divided, {kept} {scaled['entropy']:.3f} nats, "
        f"Σ ∂wᵢ/∂sᵢ = {scaled['answer']:.3f}, and a gradient below {VANISHED} in "
        f"{100 * scaled['vanished']:.0f} % of the samples."
    )


def _measured(
    d: int, n: int, is_scaled: bool, samples: int, precision: float | None, seed: int
) -> Measured:
    """Products from their joint law: given q, those with random keys are N(0, ‖q‖²)."""

    def draw(rng: np.random.Generator, count: int) -> Array:
        length = np.sqrt(rng.chisquare(d, count))
        scores = rng.standard_normal((count, n))
        scores *= (length / sqrt(d) if is_scaled else length)[:, None]
        square = np.einsum("cn,cn->c", scores, scores) / n
        weights = exponentials(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        second, third = (weights**2).sum(axis=1), (weights**3).sum(axis=1)
        slope = (second - 2 * third + second**2).clip(0)
        entropy = -np.einsum("cn,cn->c", weights, logarithms)
        return np.stack([square, entropy, 1 - second, slope, slope < VANISHED**2], axis=1)

    return measure(
        draw, numbers=n, seed=seed, samples=samples, precision=precision, title=f"scale, d = {d}"
    )


def _row(d: int, n: int, is_scaled: bool, measured: Measured) -> Row:
    predicted = _predicted(d, n, is_scaled)
    row: Row = {"d": d, "scale": SCALED if is_scaled else PLAIN}  # type: ignore[dict-item]
    for place, name in enumerate(STATISTICS):
        row[name] = float(measured.mean[place])
        row[f"{name}_se"] = float(measured.mean_error[place])
        row[f"predicted_{name}"] = predicted[name]
    slope = sqrt(float(measured.mean[3]))
    row |= {"slope": slope, "slope_se": float(measured.mean_error[3]) / (2 * slope)}
    row |= {"predicted_slope": sqrt(_squared_slope(d, n, is_scaled))}
    row |= {"vanished": float(measured.mean[4]), "vanished_se": float(measured.mean_error[4])}
    return row


def _laws(d: float, n: int, is_scaled: bool) -> Iterator[tuple[float, float, Competing]]:
    """A share, the variance of the scores and their law, for lengths of q that stand for all."""
    for half_square, share in zip(*_gamma_rule(d / 2), strict=True):
        variance = 2 * half_square / (d if is_scaled else 1)
        yield share, variance, Competing(Group(0.0, sqrt(variance), n))


def _predicted(d: float, n: int, is_scaled: bool) -> dict[str, float]:
    """Averages over the length of q of what independent Gaussian scores give."""
    totals = dict.fromkeys(STATISTICS, 0.0)
    for share, variance, law in _laws(d, n, is_scaled):
        found = (variance, law.entropy(), 1 - law.concentration())
        for name, value in zip(STATISTICS, found, strict=True):
            totals[name] += share * value
    return totals


def _squared_slope(d: float, n: int, is_scaled: bool) -> float:
    """E‖∂w/∂s‖² = E[Σ wᵢ²(1 − wᵢ)² + Σ wᵢ²wⱼ²], the last over i ≠ j."""
    return sum(
        share
        * n
        * (
            law.square()
            - 2 * law.moment([[3]])
            + law.moment([[4]])
            + (n - 1) * law.moment([[2, 2]])
        )
        for share, _, law in _laws(d, n, is_scaled)
    )


def _gamma_rule(shape: float) -> tuple[list[float], list[float]]:
    """Places and shares of a Gaussian quadrature for a Gamma variable (Golub and Welsch)."""
    places = np.arange(NODES)
    beside = np.sqrt(places[1:] * (places[1:] + shape - 1))
    recurrence = np.diag(2 * places + shape) + np.diag(beside, 1) + np.diag(beside, -1)
    nodes, vectors = np.linalg.eigh(recurrence)
    return nodes.tolist(), (vectors[0] ** 2).tolist()


def _example(d: int, seed: int) -> Trace:
    rng = generator(seed)
    q, k, v = (rng.standard_normal((rows, d)) for rows in (1, 6, 6))
    return work("attention", Q=q, K=k, V=v)


def _lines(table: Table, name: str, n: int) -> tuple[Series, ...]:
    lines: list[Series] = []
    dense = np.geomspace(min(table["d"]), max(table["d"]), 15)
    for group, how in enumerate((PLAIN, SCALED)):
        rows = table.where(scale=how)
        predicted = [_predicted(d, n, how == SCALED)[name] for d in dense]
        errors = rows[f"{name}_se"]
        lines += points_and_line(rows["d"], rows[name], dense, predicted, how, group, errors)
    return tuple(lines)


def _plot(table: Table, n: int, saturated: Sequence[bool]) -> Plot:
    ends = [min(table["d"]), max(table["d"])]
    even = series("bound", ends, [log(n), log(n)], "even weights: log n")
    several = len(saturated) > 1
    saturates = several and any(saturated)
    titles = (
        "Undivided scores grow" if several else "The spread of the scores",
        "The softmax saturates" if saturates else "How even the weights are",
        "The gradient vanishes" if saturates else "How the weights answer",
    )
    lost = (
        ", the softmax saturates (middle) and its weights answer ever less to their scores (right)"
    )
    caption = f"Random queries and {n} random keys." + several * (
        " Without the division the variance of the scores grows as d (left)"
        f"{lost * saturates}; with it nothing depends on d."
    )
    d = "dimension d"
    return Plot(
        (
            Chart(titles[0], d, "variance of the scores",
                  _lines(table, "variance", n), log_x=True, log_y=True),
            Chart(titles[1], d, "entropy of the weights (nats)",
                  (even, *_lines(table, "entropy", n)), log_x=True, y_limits=(0, 1.3 * log(n))),
            Chart(titles[2], d, "mean of Σ ∂wᵢ/∂sᵢ", _lines(table, "answer", n),
                  log_x=True, y_limits=(0, 1.3)),
        ),
        caption,
    )  # fmt: skip
