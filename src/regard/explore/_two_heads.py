"""Several heads against one: q_j = βμ_j averaged, on the same noisy keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from regard.explore import _checks
from regard.explore._competing import Competing, Group, LogitNormal
from regard.explore._norm_noise import at_ends, weight_law
from regard.explore._result import Result, experiment
from regard.explore._sampling import Measured, NoisyKeys, exponentials, generator, measure
from regard.explore._table import Table
from regard.show.plots import Chart, Plot, Series, series
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
BINS = 41
MOST = 0.75  # of a head's weight: what it looks for is what it finds
NEAR = 0.2  # of the context that was wanted


@experiment
def two_heads(
    *,
    heads: int | Sequence[int] = (2, 3, 4, 6),
    n: int = 8,
    d: int = 16,
    beta: float = 8.0,
    alpha: float = 1e-4,
    tau: float = 0.5,
    samples: int = 50_000,
    precision: float | None = None,
    seed: int = 0,
) -> Result:
    """How much steadier is the average of h heads than one head that averages h values?

    heads: how many values are to be averaged, by so many heads or by one; one number or several.
    n, d: how many keys in how many dimensions; their means are orthonormal.
    beta: the multiplier in q = β(μ₁ + … + μ_h) of the one head, and in q_j = βμ_j of the others.
    alpha: the variance of the noise on all keys.
    tau: the variance of the length of key a, which is one of those that are averaged.
    samples: of the keys; all heads see the same ones.
    precision: stop earlier, when all standard errors are at most this.
    seed: of the samples.
    """
    n, d = _checks.keys(n, d)
    beta = _checks.positive("beta", beta)
    keys = _checks.noisy_keys(n, d, alpha, tau)
    subsets = [_subset(each, n) for each in _checks.several("heads", heads)]
    samples = _checks.whole("samples", samples, at_least=2)
    precision = _checks.precision(precision)
    seed = _checks.whole("seed", seed, at_least=0)
    sampled = {h: _measured(keys, beta, h, samples, precision, seed) for h in subsets}
    pairs = {h: _rows(keys, beta, h, sampled[h]) for h in subsets}
    table = Table(row for pair in pairs.values() for row in pair)
    one, many = pairs[subsets[0]]
    facts = {
        "variance_one": one["variance"], "variance_one_se": one["variance_se"],
        "predicted_variance_one": one["predicted_variance"],
        "variance_many": many["variance"], "variance_many_se": many["variance_se"],
        "predicted_variance_many": many["predicted_variance"],
        "ratio": many["ratio"], "ratio_se": many["ratio_se"],
        "predicted_ratio": many["predicted_ratio"],
        "ratio_facing": many["ratio_facing"],
    }  # fmt: skip
    return Result(
        title="Several heads and a key of uncertain length",
        finding=_finding(keys, beta, one, many),
        prediction=(
            "c = (c₁ + … + c_h)/h: only the head that looks for a feels the length of kₐ",
            "Var(c along vₐ) = (Var[own head’s weight] + (h − 1)·Var[another’s weight])/h²",
        ),
        table=table,
        facts=facts,
        plot=_plot(keys, beta, subsets, sampled[subsets[0]], table),
        trace=_example(keys, beta, subsets[0], seed),
    )


def _subset(heads: object, n: int) -> int:
    h = _checks.whole("heads", heads, at_least=2)
    return _checks.whole("n", n, at_least=h) and h


def _queries(keys: NoisyKeys, beta: float, heads: int) -> Array:
    return beta * np.eye(heads, keys.n)


def _measured(
    keys: NoisyKeys, beta: float, heads: int, samples: int, precision: float | None, seed: int
) -> Measured:
    """c along v_a and the squared error, of one head and of several; whether k_a faces its query.

    Statistics: one head's weight on a, that of several; both squared errors; 1 if q·k_a > 0.
    """
    queries = _queries(keys, beta, heads)

    def context(scores: Array) -> Array:
        weights = exponentials(scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        return weights

    def draw(rng: np.random.Generator, count: int) -> Array:
        scores = keys.draw_products(rng, count, queries)
        faces = scores[0, :, 0] > 0
        one = context(scores.sum(axis=0))
        many = context(scores).mean(axis=0)
        missed = [
            np.einsum("cn,cn->c", c, c) - (2 / heads) * c[:, :heads].sum(axis=1) + 1 / heads
            for c in (one, many)
        ]
        return np.stack([one[:, 0], many[:, 0], *missed, faces], axis=1)

    return measure(
        draw, numbers=heads * keys.n, seed=seed, samples=samples, precision=precision,
        title=f"two-heads, {heads} values",
    )  # fmt: skip


def _rows(
    keys: NoisyKeys, beta: float, heads: int, measured: Measured
) -> tuple[dict[str, float], dict[str, float]]:
    one, many = (_row(keys, beta, heads, measured, place) for place in (0, 1))
    for name, kind in (("ratio", "variance"), ("predicted_ratio", "predicted_variance")):
        many[name] = one[kind] / many[kind]
    relative = [row["variance_se"] / row["variance"] for row in (one, many)]
    many["ratio_se"] = many["ratio"] * sqrt(relative[0] ** 2 + relative[1] ** 2)
    many["ratio_facing"] = one["variance_facing"] / many["variance_facing"]
    return one, many


def _row(
    keys: NoisyKeys, beta: float, heads: int, measured: Measured, place: int
) -> dict[str, float]:
    predicted = _one_head(keys, beta, heads) if place == 0 else _many_heads(keys, beta, heads)
    facing = measured.kept[measured.kept[:, 4] > 0, place]
    return {
        "values": heads, "heads": 1 if place == 0 else heads, "samples": measured.count,
        "mean": float(measured.mean[place]), "mean_se": float(measured.mean_error[place]),
        "predicted_mean": predicted[0],
        "variance": float(measured.variance[place]),
        "variance_se": float(measured.variance_error[place]),
        "predicted_variance": predicted[1],
        "rms_error": sqrt(float(measured.mean[place + 2])),
        "facing": float(measured.mean[4]),
        "variance_facing": float(facing.var()),
    }  # fmt: skip


def _groups(*groups: Group) -> Competing:
    return Competing(*(group for group in groups if group.count))


def _one_head(keys: NoisyKeys, beta: float, heads: int) -> tuple[float, float]:
    """Mean and variance of c along v_a for q = β(μ₁ + … + μ_h)."""
    plain = beta * sqrt(heads * keys.alpha)
    longer = sqrt(plain**2 + keys.tau * beta**2)
    law = _groups(
        Group(beta, longer), Group(beta, plain, heads - 1), Group(0, plain, keys.n - heads)
    )
    return law.mean(), law.variance()


def _own_head(keys: NoisyKeys, beta: float) -> Competing:
    """The scores of the head that looks for a."""
    plain = beta * sqrt(keys.alpha)
    return _groups(Group(beta, sqrt(plain**2 + keys.tau * beta**2)), Group(0, plain, keys.n - 1))


def _many_heads(keys: NoisyKeys, beta: float, heads: int) -> tuple[float, float]:
    """The same for h heads: their scores are independent, because their queries are orthogonal."""
    plain = beta * sqrt(keys.alpha)
    own = _own_head(keys, beta)
    other = _groups(Group(beta, plain), Group(0, plain, keys.n - 1))
    mean = (own.mean() + (heads - 1) * other.mean(1)) / heads
    return mean, (own.variance() + (heads - 1) * other.variance(1)) / heads**2


def _finding(keys: NoisyKeys, beta: float, one: dict[str, float], many: dict[str, float]) -> str:
    heads = int(many["heads"])
    falls = "falls" if many["rms_error"] < one["rms_error"] else "rises"
    away = (
        f" In {100 * (1 - many['facing']):.1f} % of the samples k_a points away from μ_a; without "
        f"those the ratio is {many['ratio_facing']:.3g}."
        if many["facing"] < 1
        else ""
    )
    return (
        f"Averaging {heads} values with {heads} heads instead of one, on the same samples, divides "
        f"the variance of the context along v_a by {many['ratio']:.3g} ± {many['ratio_se']:.1g} "
        f"(predicted {many['predicted_ratio']:.3g}): from {one['variance']:.3g} to "
        f"{many['variance']:.3g}; the rms error of the context {falls} from "
        f"{one['rms_error']:.3f} to {many['rms_error']:.3f}. {_why(keys, beta)}{away}"
    )


def _why(keys: NoisyKeys, beta: float) -> str:
    """What makes several heads steadier, where the numbers say so."""
    own = _own_head(keys, beta).mean()
    if own < MOST:
        cause = "The noise is too strong" if beta > log(keys.n) else f"β = {beta:g} is too small"
        return (
            f"{cause} for heads that look for one value each: on average the one that looks for a "
            f"gives it {100 * own:.0f} % of its weight."
        )
    feels = (
        "Only the head that looks for a feels the length of k_a, and it"
        if keys.tau
        else "No key is longer than another (τ = 0): only the noise on all keys is felt. A head"
    )
    looked = "a" if keys.tau else "the key that it looks for"
    return (
        f"{feels} gives its weight to {looked} as long as the product is well above 0: no value "
        "has to win against another one."
    )


def _example(keys: NoisyKeys, beta: float, heads: int, seed: int) -> Trace:
    """One draw of the keys, worked through: one row of queries for each head."""
    whole = keys.draw_keys(generator(seed), 1)[0]
    queries = beta * np.eye(heads, keys.d)
    return work("attention", Q=queries, K=whole, V=np.eye(keys.n), scale=1)


def _histogram(contexts: Array, law: LogitNormal, heads: int, others: float) -> tuple[Series, ...]:
    """c along v_a = (w + others)/heads, where the weight w follows the law."""
    edges = np.linspace(0, 1, BINS + 1)
    shares = np.histogram(contexts, edges)[0] / len(contexts)
    weight = np.clip(edges[1:-1] * heads - others, 1e-300, 1.0)
    predicted = np.diff(np.concatenate([[0.0], law.below(weight), [1.0]]))
    return (
        series("bars", edges, shares, f"{len(contexts):,} samples"),
        series("predicted", edges, predicted, "predicted law"),
    )


def _own_law(keys: NoisyKeys, beta: float) -> LogitNormal:
    """The weight on a of the head that looks for it, as α → 0."""
    plain = keys.alpha * beta**2
    return LogitNormal(beta - log(keys.n - 1) - plain / 2, sqrt(keys.tau * beta**2 + plain))


def _plot(
    keys: NoisyKeys, beta: float, subsets: Sequence[int], measured: Measured, table: Table
) -> Plot:
    heads = subsets[0]
    others = (heads - 1) / (exp(beta) + keys.n - 1)  # of the weights of the heads that look away
    several = _histogram(measured.kept[:, 1], _own_law(keys, beta), heads, others)
    ratios = Table(row for row in table if row["heads"] != 1)
    along, share = "c along v_a", f"share, bins of {1 / BINS:.3g}"
    wanted = series("bound", [1 / heads, 1 / heads], [0, 1], f"wanted: 1/{heads}")
    swings, is_steady = at_ends(measured.kept[:, 0]), _holds(measured.kept[:, 1], heads)
    panels = [
        Chart(
            f"{heads} heads{': steady' if is_steady else ''}", along, share, (wanted, *several),
            y_limits=(0.0, 1.0),
        ),
        Chart(
            "How much steadier", "values averaged = heads", "variance ratio, one head to several",
            (
                series("measured", ratios["values"], ratios["ratio"], "", 0, ratios["ratio_se"]),
                series("predicted", ratios["values"], ratios["predicted_ratio"]),
            ),
            y_limits=(0.0, 1.2 * float(ratios["ratio"].max())),
        ),
    ]  # fmt: skip
    if heads == 2:
        histogram = _histogram(measured.kept[:, 0], weight_law(keys, beta), 1, 0.0)
        title = f"One head{': swings' if swings else ''}"
        panels.insert(0, Chart(title, along, share, (wanted, *histogram), y_limits=(0.0, 1.0)))
    caption = (
        "The same samples through one head and through several. Bars: sampled; lines: predicted, "
        "the laws as α → 0. "
        f"{'One head puts the context at one value or the other. ' if swings else ''}"
        f"{'Several keep near what was wanted in most samples. ' if is_steady else ''}"
        "The variance ratio of the two is on the right."
    )
    return Plot(tuple(panels), caption)


def _holds(contexts: Array, heads: int) -> bool:
    """Whether most samples have the context near what was wanted."""
    return bool(np.mean(abs(heads * contexts - 1) < NEAR) > MOST)
