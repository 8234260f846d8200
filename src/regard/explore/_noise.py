"""Noisy keys: does q = β(μ_a + μ_b) still average when kᵢ ~ N(μᵢ, αI)?"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10, sqrt

import numpy as np
from numpy.typing import NDArray

from regard.explore import _checks
from regard.explore._competing import Competing, Group
from regard.explore._result import Result, experiment
from regard.explore._sampling import Measured, NoisyKeys, exponentials, generator, measure
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, series
from regard.show.trace import Trace, work

Row = dict[str, float]
FOCUSED = 0.9  # of the weight on a and b together
ALPHAS = tuple(10.0**power for power in (-6, -5, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1))


@experiment
def noise(
    *,
    n: int = 8,
    d: int = 16,
    beta: float = 10.0,
    alpha: float | Sequence[float] = ALPHAS,
    samples: int = 20_000,
    precision: float | None = None,
    seed: int = 0,
) -> Result:
    """How far is the context from ½(v_a + v_b) when all keys are noisy, kᵢ ~ N(μᵢ, αI)?

    n, d: how many keys in how many dimensions; their means are orthonormal.
    beta: the multiplier in q = β(μ_a + μ_b).
    alpha: the variance of the noise, one number or several.
    samples: of the keys, for each alpha.
    precision: stop earlier, when all standard errors are at most this.
    seed: of the samples.
    """
    n, d = _checks.keys(n, d)
    beta = _checks.positive("beta", beta)
    alphas = sorted(_checks.variance("alpha", each) for each in _checks.several("alpha", alpha))
    samples = _checks.whole("samples", samples, at_least=2)
    precision = _checks.precision(precision)
    seed = _checks.whole("seed", seed, at_least=0)
    rows = []
    for each in alphas:
        keys = NoisyKeys(n, d, each)
        measured = _measured(keys, beta, samples, precision, seed)
        rows.append(_row(each, measured, _predicted(n, beta, each)))
    table = Table(rows)
    facts = {name: rows[0][name] for name in ("error", "error_se", "predicted_error")}
    if len(rows) > 1:
        facts["error_at_largest_alpha"] = rows[-1]["error"]
        facts["predicted_error_at_largest_alpha"] = rows[-1]["predicted_error"]
    return Result(
        title="One head and noisy keys",
        finding=_finding(rows, n),
        prediction=(
            "q·kᵢ ~ N(β, 2αβ²) for a and b, N(0, 2αβ²) for the others, all independent",
            "E[Π wᵢ^k] = ∫ t^(K−1)/Γ(K) Π E[e^(kᵢ s) e^(−t e^s)] dt, one Gaussian s for each key",
            "α small: rms error ≈ β·√(α/2), from wₐ − w_b = tanh((sₐ − s_b)/2)",
        ),
        table=table,
        facts=facts,
        plot=_plot(table, n, beta),
        trace=example(NoisyKeys(n, d, alphas[0]), beta, 2, seed),
    )


def _query(n: int, beta: float) -> NDArray[np.float64]:
    query = np.zeros((1, n))
    query[0, :2] = beta
    return query


def _measured(
    keys: NoisyKeys, beta: float, samples: int, precision: float | None, seed: int
) -> Measured:
    query = _query(keys.n, beta)

    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        weights = exponentials(keys.draw_products(rng, count, query)[0])
        weights /= weights.sum(axis=-1, keepdims=True)
        squares = np.einsum("cn,cn->c", weights, weights)
        first, second = weights[:, 0], weights[:, 1]
        both = first + second
        return np.stack([squares - both + 0.5, both, (first - second) ** 2], axis=1)

    return measure(
        draw, numbers=keys.n, seed=seed, samples=samples, precision=precision,
        title=f"noise, α = {keys.alpha:g}",
    )  # fmt: skip


def _predicted(n: int, beta: float, alpha: float) -> tuple[float, float, float]:
    """E of the squared error, of the weight on a and b, and of their squared difference."""
    sd = beta * sqrt(2 * alpha)
    law = Competing(Group(beta, sd, 2), Group(0, sd, n - 2)) if n > 2 else Competing(
        Group(beta, sd, 2)
    )  # fmt: skip
    both = 2 * law.mean()
    nothing: tuple[tuple[int, ...], ...] = ((),) * (n > 2)
    apart = 2 * (law.square() - law.moment([(1, 1), *nothing]))
    return law.concentration() - both + 0.5, both, apart


def _row(alpha: float, measured: Measured, predicted: tuple[float, float, float]) -> Row:
    """Roots of the mean squares, with the standard errors of the roots."""
    row: Row = {"alpha": alpha, "samples": measured.count}
    error, both, apart = (float(mean) for mean in measured.mean)
    for name, mean, place in (("error", error, 0), ("apart", apart, 2)):
        root = sqrt(mean)
        row[name] = root
        row[f"{name}_se"] = float(measured.mean_error[place]) / (2 * root) if root else 0.0
        row[f"predicted_{name}"] = sqrt(max(predicted[place], 0.0))
    row |= {"both": both, "both_se": float(measured.mean_error[1]), "predicted_both": predicted[1]}
    return row


def _finding(rows: Sequence[Row], n: int) -> str:
    first, *others = rows
    found = (
        f"The rms error of c against ½(v_a + v_b), with a query built from the means alone, is "
        f"{_error(first)}"
    )
    if others:
        last = others[-1]
        found = (
            "The same query, built from the means alone, keeps working as α → 0: the rms error of "
            f"c against ½(v_a + v_b) is {_error(first)}, and {_error(last)}"
        )
        if first["apart"] < 0.5 < last["apart"]:
            decades = [log10(max(row["alpha"], 1e-300)) for row in rows]
            half = np.interp(0.5, [row["apart"] for row in rows], decades)
            found += (
                ". First the balance goes: a and b differ by half of the weight at "
                f"α ≈ {10**half:.2g}"
            )
            if last["both"] < FOCUSED:
                found += (
                    f"; then the focus: at α = {last['alpha']:.3g} a and b together keep "
                    f"{last['both']:.2f} ({2 / n:.2f} would be chance)"
                )
    return (
        f"{found}. The noise counts by β·√α, so a larger β, which sharpens the average without "
        "noise, makes it more fragile with noise."
    )


def _error(row: Row) -> str:
    return (
        f"{row['error']:.3g} ± {row['error_se']:.1g} at α = {row['alpha']:.3g} (predicted "
        f"{row['predicted_error']:.3g})"
    )


def _plot(table: Table, n: int, beta: float) -> Plot:
    alphas = table["alpha"]
    shown = alphas[alphas > 0]
    dense = np.geomspace(shown.min(), shown.max(), 60) if len(shown) else np.array([1.0])
    lines = np.array([_predicted(n, beta, alpha) for alpha in dense])
    ends = [dense[0], dense[-1]]
    chance = sqrt(1.5 - 2 / n)
    errors = (
        series("measured", alphas, table["error"], "measured", 0, table["error_se"]),
        series("predicted", dense, np.sqrt(lines[:, 0].clip(0)), "predicted, exactly", 0),
        series("predicted", dense, beta * np.sqrt(dense / 2), "β·√(α/2)", 1),
        series("bound", ends, [chance, chance], "one key at random"),
    )
    weights = (
        series("measured", alphas, table["both"], "on a and b together", 0, table["both_se"]),
        series("predicted", dense, lines[:, 1], "", 0),
        series("measured", alphas, table["apart"], "difference of a and b, rms", 1),
        series("predicted", dense, np.sqrt(lines[:, 2].clip(0)), "", 1),
        series("bound", ends, [2 / n, 2 / n], "chance"),
    )
    caption = (
        "Points: sampled keys, with standard errors; lines: predicted. The error grows as √α while "
        "it is small, and ends where a key chosen at random would (left). The balance of a and b "
        "goes at a smaller α than the focus on both (right)."
    )
    noise = "variance of the noise α"
    return Plot(
        (
            Chart(
                "Noise adds an error of β·√(α/2)", noise, "rms of ‖c − ½(v_a + v_b)‖", errors,
                log_x=True, log_y=True, y_limits=(float(table["error"].min()) / 2, 3.0),
            ),
            Chart(
                "What a and b keep of the weight", noise, "weight", weights, log_x=True,
                y_limits=(-0.03, 1.08),
            ),
        ),
        caption,
    )  # fmt: skip


def example(keys: NoisyKeys, beta: float, subset: int, seed: int) -> Trace:
    """One draw of the keys, worked through; the values are the first n unit vectors."""
    whole = keys.draw_keys(generator(seed), 1)[0]
    query = np.zeros((1, keys.d))
    query[0, :subset] = beta
    return work("attention", Q=query, K=whole, V=np.eye(keys.n), scale=1)
