"""One key of uncertain length: Σₐ = αI + τ μₐμₐᵀ, and the swings of one head."""

from __future__ import annotations

from math import exp, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from regard._options import one_of
from regard.explore import _checks
from regard.explore._competing import (
    Competing,
    Group,
    LogitNormal,
    distance_and_chance,
    normal_below,
)
from regard.explore._noise import example
from regard.explore._result import Result, experiment
from regard.explore._sampling import Measured, NoisyKeys, exponentials, measure
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, series

Array = NDArray[np.float64]
BINS = 41  # odd, so that ½ is within one
LITTLE = 0.1  # of the weight
REJECTED = 1e-6  # a law whose distance would be as large by a smaller chance than this
SHOWN = 40  # samples that are shown one by one


@experiment
def norm_noise(
    *,
    n: int = 8,
    d: int = 16,
    beta: float = 8.0,
    alpha: float = 1e-4,
    tau: float = 0.5,
    samples: int = 100_000,
    precision: float | None = None,
    draw: str = "products",
    seed: int = 0,
) -> Result:
    """What does one head make of keys of which one, kₐ, is sometimes longer and sometimes shorter?

    n, d: how many keys in how many dimensions; their means are orthonormal.
    beta: the multiplier in q = β(μ_a + μ_b).
    alpha: the variance of the noise on all keys.
    tau: the variance of the length of key a.
    samples: of the keys.
    precision: stop earlier, when all standard errors are at most this.
    draw: "products" draws the n key products from their joint law, "keys" the keys themselves.
    seed: of the samples.
    """
    n, d = _checks.keys(n, d)
    beta = _checks.positive("beta", beta)
    keys = _checks.noisy_keys(n, d, alpha, tau)
    samples = _checks.whole("samples", samples, at_least=2)
    one_of("draw", draw, ("products", "keys"))
    precision = _checks.precision(precision)
    seed = _checks.whole("seed", seed, at_least=0)
    measured = _measured(keys, beta, samples, precision, draw, seed)
    law = weight_law(keys, beta)
    facts = _facts(measured, _competing(keys, beta), law)
    swings = at_ends(measured.kept[:, 0])
    return Result(
        title="One head and a key of uncertain length",
        finding=_finding(facts, keys, beta, swings),
        prediction=(
            "weight on a = 1 / (1 + e^(−x)), x ~ N(m, s²)",
            "α → 0: m = β − log(e^β + n − 2), s = β√τ",
            "density: φ((logit w − m)/s) / (s·w·(1 − w))",
            "mean and variance for any α: E[Π wᵢ^k] = ∫ t^(K−1)/Γ(K) Π E[e^(kᵢ s) e^(−t e^s)] dt",
        ),
        table=_histogram(measured.kept[:, 0], law),
        facts=facts,
        plot=_plot(measured, law, swings),
        trace=example(keys, beta, 2, seed),
    )


def _facts(measured: Measured, exact: Competing, law: LogitNormal) -> dict[str, float]:
    weights, ordered = measured.kept[:, 0], np.sort(measured.kept[:, 2])
    most = 1 - LITTLE
    distance, chance = distance_and_chance(ordered, normal_below((ordered - law.mean) / law.sd))
    return {
        "samples": measured.count,
        "mean_a": float(measured.mean[0]),
        "mean_a_se": float(measured.mean_error[0]),
        "predicted_mean_a": exact.mean(0),
        "mean_b": float(measured.mean[1]),
        "mean_b_se": float(measured.mean_error[1]),
        "predicted_mean_b": exact.mean(1),
        "variance_a": float(measured.variance[0]),
        "variance_a_se": float(measured.variance_error[0]),
        "predicted_variance_a": exact.variance(0),
        "near_one_value": float(np.mean((weights < LITTLE) | (weights > most))),
        "predicted_near_one_value": float(1 - np.diff(law.below(np.array([LITTLE, most])))[0]),
        "distance_from_law": distance,
        "chance_of_distance": chance,
    }


def at_ends(weights: Array) -> bool:
    """Whether most samples give a nearly all of the weight or nearly none, and both happens."""
    little, most = np.mean(weights < LITTLE), np.mean(weights > 1 - LITTLE)
    return bool(little + most > 0.5 and min(little, most) > 0.1)


def _measured(
    keys: NoisyKeys, beta: float, samples: int, precision: float | None, how: str, seed: int
) -> Measured:
    """The weights on a and on b, and log(wₐ / (1 − wₐ)), which keeps its digits near 0 and 1."""
    query = np.zeros((1, keys.n))
    query[0, :2] = beta
    products = keys.draw_products if how == "products" else keys.products_of_keys

    def draw(rng: np.random.Generator, count: int) -> Array:
        scores = products(rng, count, query)[0]
        far = _odds(scores) if np.ptp(scores) > 600 else None
        shares = exponentials(scores)
        others = shares[:, 1:].sum(axis=1)
        total = shares[:, 0] + others
        odds = np.log(shares[:, 0] / others) if far is None else far
        return np.stack([shares[:, 0] / total, shares[:, 1] / total, odds], axis=1)

    return measure(
        draw, numbers=keys.n * (1 if how == "products" else keys.d), seed=seed, samples=samples,
        precision=precision, title="norm-noise",
    )  # fmt: skip


def _odds(scores: Array) -> Array:
    """log(wₐ / (1 − wₐ)) of scores so far apart that some exponentials vanish."""
    top = scores[:, 1:].max(axis=1)
    others = np.exp(scores[:, 1:] - top[:, None]).sum(axis=1)
    return np.asarray(scores[:, 0] - top - np.log(others))


def _competing(keys: NoisyKeys, beta: float) -> Competing:
    """The scores, as they are: exact for any noise."""
    plain = beta * sqrt(2 * keys.alpha)
    groups = [Group(beta, sqrt(plain**2 + keys.tau * beta**2)), Group(beta, plain)]
    return Competing(*groups, *([Group(0, plain, keys.n - 2)] if keys.n > 2 else []))


def weight_law(keys: NoisyKeys, beta: float) -> LogitNormal:
    """The law of the weight on a: its score against the logarithm of all others' exponentials.

    That logarithm is taken as a Gaussian, which is exact as α → 0.
    """
    plain = 2 * keys.alpha * beta**2
    others = (keys.n - 2) * exp(plain / 2 - beta)  # their exponentials, beside that of b
    of_b = 1 / (1 + others)
    scatter = of_b**2 + (1 - of_b) ** 2 / max(keys.n - 2, 1)
    spread = keys.tau * beta**2 + plain * (1 + scatter)
    return LogitNormal(-log1p(others), sqrt(spread))


def _finding(facts: dict[str, float], keys: NoisyKeys, beta: float, swings: bool) -> str:
    is_wished = abs(facts["predicted_mean_a"] - 0.5) < 0.01
    wished = ", as wished," if is_wished else " instead of ½,"
    follow = "follow" if facts["chance_of_distance"] > REJECTED else "do not follow"
    joined = "but" if is_wished and swings else "and"
    return (
        f"With one head the context {_moves(facts, keys, swings)}. The mean weight on a is "
        f"{facts['mean_a']:.4f} ± {facts['mean_a_se']:.1g} (predicted "
        f"{facts['predicted_mean_a']:.4f}){wished} {joined} its standard deviation is "
        f"{sqrt(facts['variance_a']):.3f}: the variance is {facts['variance_a']:.4f} ± "
        f"{facts['variance_a_se']:.1g} (predicted {facts['predicted_variance_a']:.4f}; ¼ would be "
        f"a coin thrown between the two). In {100 * facts['near_one_value']:.0f} % of the samples "
        f"the weight on a is below {LITTLE} or above {1 - LITTLE} (predicted as α → 0: "
        f"{100 * facts['predicted_near_one_value']:.0f} %). The weights {follow} the law that is "
        f"exact as α → 0 (largest distance {facts['distance_from_law']:.4f}, chance of one as "
        f"large {facts['chance_of_distance']:.2g}). A larger β makes it "
        f"{'worse' if swings else 'swing'}: the scores of a and b differ by a standard deviation "
        f"of β·√(τ + 4α) = {beta * sqrt(keys.tau + 4 * keys.alpha):.2f}."
    )


def _moves(facts: dict[str, float], keys: NoisyKeys, swings: bool) -> str:
    if not swings:
        cause = "the length of k_a" if keys.tau else "the noise on the keys"
        return f"moves with {cause}, but seldom all the way to v_a or v_b"
    others = 1 - facts["mean_a"] - facts["mean_b"]
    if others > LITTLE:
        return (
            "swings from value to value: the noise decides which key wins all of the weight, and "
            f"keys other than a and b have {100 * others:.0f} % of it on average"
        )
    wins = (
        "when k_a is long it wins all of the weight, when it is short b does"
        if keys.tau
        else "the one of k_a and k_b that the noise favours wins all of the weight"
    )
    return f"swings between v_a and v_b from sample to sample: {wins}"


def _histogram(weights: Array, law: LogitNormal) -> Table:
    """The share of samples in each bin, with its standard error and the law's probability."""
    edges = np.linspace(0, 1, BINS + 1)
    shares = np.histogram(weights, edges)[0] / len(weights)
    errors = np.sqrt(shares * (1 - shares) / len(weights))
    below = np.concatenate([[0.0], law.below(edges[1:-1]), [1.0]])
    return Table(
        {"weight_from": a, "weight_to": b, "share": c, "share_se": d, "predicted_share": e}
        for a, b, c, d, e in zip(edges, edges[1:], shares, errors, np.diff(below), strict=False)
    )


def _plot(measured: Measured, law: LogitNormal, swings: bool) -> Plot:
    table = _histogram(measured.kept[:, 0], law)
    edges = np.linspace(0, 1, BINS + 1)
    histogram = (
        series("bars", edges, table["share"], f"{len(measured.kept):,} samples"),
        series("predicted", edges, table["predicted_share"], "predicted law"),
    )
    shown = measured.kept[:SHOWN]
    places = range(1, len(shown) + 1)
    singly = (
        series("bound", [1, len(shown)], [0.5, 0.5], "wanted for both: ½"),
        series("measured", places, shown[:, 0], "c along v_a", 0),
        series("measured", places, shown[:, 1], "c along v_b", 1),
    )
    title, most, lacks = "One head", "", ""
    if swings:
        title = "One head swings"
        most = "; most of it lies near 0 and 1, little at the ½ that was wanted"
        lacks = "; where the context has v_a it lacks v_b"
    caption = (
        f"Left: the weight on a over the samples (bars) and its predicted law (line){most}. "
        f"Right: the first samples one by one{lacks}."
    )
    return Plot(
        (
            Chart(title, "weight on a", f"share, bins of {1 / BINS:.3g}", histogram),
            Chart(
                "From sample to sample", "number of the sample", "context", singly,
                y_limits=(-0.05, 1.45),
            ),
        ),
        caption,
    )  # fmt: skip
