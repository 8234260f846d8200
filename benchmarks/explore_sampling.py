"""Samples a second of `explore norm-noise`, against ways that a person would write first.

A sample is n = 64 keys in d = 64 dimensions, their products with one query, and the softmax. The
loop draws whole keys, one sample after the other; so do the vectorised contestants called "keys".
Those called "products" draw the n products from their joint law, as the experiment does. All work
in float64, and all must find the same variance. torch and regard use all cores that there are.
"""

import json
from collections.abc import Callable
from math import sqrt

import numpy as np
import torch
from _measure import interleaved_medians

from regard import explore

N = D = 64
BETA, ALPHA, TAU = 8.0, 1e-4, 0.5
RUNS = 5
BASELINE = "NumPy loop, whole keys"


def numpy_loop(count: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    means = np.eye(N, D)
    query = BETA * (means[0] + means[1])
    found = np.empty(count)
    for place in range(count):
        keys = means + sqrt(ALPHA) * rng.standard_normal((N, D))
        keys[0] += sqrt(TAU) * rng.standard_normal() * means[0]
        scores = keys @ query
        weights = np.exp(scores - scores.max())
        found[place] = weights[0] / weights.sum()
    return found


def torch_keys(count: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(1)
    means = torch.eye(N, D, dtype=torch.float64)
    query = BETA * (means[0] + means[1])
    keys = torch.randn(count, N, D, generator=generator, dtype=torch.float64)
    keys = keys.mul_(sqrt(ALPHA)).add_(means)
    keys[:, 0] += sqrt(TAU) * torch.randn(
        count, 1, generator=generator, dtype=torch.float64
    ) * means[0]  # fmt: skip
    return torch.softmax(keys @ query, dim=-1)[:, 0].numpy()


def torch_products(count: int, block: int = 2048) -> np.ndarray:
    """In blocks that fit in the cache, which is faster than all samples at once."""
    generator = torch.Generator().manual_seed(1)
    means = torch.zeros(N, dtype=torch.float64)
    means[:2] = BETA
    spread = BETA * sqrt(2 * ALPHA)
    found = []
    for start in range(0, count, block):
        size = min(block, count - start)
        scores = torch.randn(size, N, generator=generator, dtype=torch.float64)
        scores.mul_(spread).add_(means)
        longer = torch.randn(size, generator=generator, dtype=torch.float64)
        scores[:, 0] += BETA * sqrt(TAU) * longer
        found.append(torch.softmax(scores, dim=-1)[:, 0])
    return torch.cat(found).numpy()


def regard_experiment(count: int) -> float:
    """The whole experiment: moments with standard errors, the histogram, the test of the law."""
    options = {"n": N, "d": D, "beta": BETA, "alpha": ALPHA, "tau": TAU, "samples": count}
    return float(explore.norm_noise(**options).facts["variance_a"])


def main() -> None:
    """Time all in turn; say how many samples a second each makes."""
    contestants: dict[str, tuple[Callable[[int], object], int]] = {
        BASELINE: (numpy_loop, 2_000),
        "torch, whole keys": (torch_keys, 4_000),
        "torch, products": (torch_products, 200_000),
        "regard, products": (regard_experiment, 200_000),
        "regard, products, a million": (regard_experiment, 1_000_000),
    }
    for name, (contestant, count) in contestants.items():
        variance = np.var(found) if np.ndim(found := contestant(count)) else found
        assert abs(variance - 0.183) < 5 * 0.07 / sqrt(count), (name, variance)
    calls = {name: lambda c=call, n=count: c(n) for name, (call, count) in contestants.items()}
    seconds = interleaved_medians(calls, RUNS)
    rates = {name: count / seconds[name] for name, (_, count) in contestants.items()}
    width = max(map(len, rates))
    print(f"{'':{width}}  samples a second   ratio to {BASELINE}")
    for name, rate in rates.items():
        print(f"{name:{width}}  {rate:16,.0f}   {rate / rates[BASELINE]:8.1f}")
    print(json.dumps({"samples_a_second": rates, "baseline": BASELINE, "runs": RUNS}))


if __name__ == "__main__":
    main()
