"""Sampling in blocks: seeded block by block, so that threads change nothing but the time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from regard.jobs import progress

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]  # so many samples: (samples, statistics)
BLOCK = 2**16  # numbers drawn at once: they fit in a core's cache
KEPT = 100_000  # samples that are kept one by one, for histograms and tests of laws
FIRST_LOOK = 1_000  # samples before which no precision is believed


@dataclass(frozen=True, eq=False)
class Measured:
    """Moments of each statistic over all samples, with standard errors; the first samples."""

    count: int
    mean: Array
    variance: Array
    mean_error: Array
    variance_error: Array
    kept: Array

    @property
    def precision(self) -> float:
        """The largest standard error of any mean or standard deviation."""
        sd = np.sqrt(self.variance)
        sd_error = np.divide(self.variance_error, 2 * sd, out=np.zeros_like(sd), where=sd > 0)
        return float(max(self.mean_error.max(), sd_error.max()))


class _Sums:
    """Sums of powers about a pivot near the mean, which lose no digits and simply add up."""

    def __init__(self, pivot: Array) -> None:
        self._pivot = pivot
        self._powers = np.zeros((4, len(pivot)))
        self.count = 0

    def add(self, block: Array) -> None:
        self.count += len(block)
        away = block - self._pivot
        square = away * away
        for place, values in enumerate((away, square, square * away, square * square)):
            self._powers[place] += values.sum(axis=0)

    def is_precise(self, wanted: float) -> bool:
        nothing = np.empty(0)
        return self.count >= FIRST_LOOK and self.measured(nothing).precision <= wanted

    def measured(self, kept: Array) -> Measured:
        m1, m2, m3, m4 = self._powers / self.count
        variance = np.maximum(m2 - m1**2, 0)
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        unbiased = variance * self.count / (self.count - 1)
        of_variance = np.sqrt(np.maximum(fourth - variance**2, 0) / self.count)
        of_mean = np.sqrt(unbiased / self.count)
        return Measured(self.count, self._pivot + m1, unbiased, of_mean, of_variance, kept)


def measure(
    draw: Draw, *, numbers: int, seed: int, samples: int, precision: float | None, title: str
) -> Measured:
    """Sample until there are `samples`, or all standard errors are at most `precision`.

    numbers: how many random numbers one sample takes, which decides the size of a block.
    """
    size = max(1, min(BLOCK // numbers, samples))
    sizes = [size] * (samples // size) + [samples % size] * (samples % size > 0)
    sums: _Sums | None = None
    kept: list[Array] = []
    room = KEPT
    with progress(title, samples) as advance:
        for block in _blocks(draw, sizes, seed):
            sums = sums or _Sums(block.mean(axis=0))
            sums.add(block)
            if room > 0:
                kept.append(block[:room])
                room -= len(kept[-1])
            advance(len(block))
            if precision is not None and sums.is_precise(precision):
                break
    assert sums is not None
    return sums.measured(np.concatenate(kept))


def _blocks(draw: Draw, sizes: list[int], seed: int) -> Iterator[Array]:
    """The blocks in order, worked on by as many threads as there are cores to be had."""

    def block(place: int) -> Array:
        return draw(generator(seed, place), sizes[place])

    count = _threads()
    if count == 1 or len(sizes) == 1:
        yield from map(block, range(len(sizes)))
        return
    with ThreadPoolExecutor(count) as threads:
        coming: deque[Future[Array]] = deque()
        for place in range(len(sizes)):
            coming.append(threads.submit(block, place))
            if len(coming) > 2 * count:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def generator(seed: int, place: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64([seed, place]))


def _threads() -> int:
    """As for the other numerical libraries, OMP_NUM_THREADS says how many."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class NoisyKeys:
    """Keys kᵢ ~ N(μᵢ, αI + τᵢ μᵢμᵢᵀ) about orthonormal means; τᵢ is `tau` for key 0, else 0.

    The means are taken as the first n unit vectors: turning all of space changes no product.
    """

    n: int
    d: int
    alpha: float
    tau: float = 0.0

    def scores(self, query: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of every key's product with one query (in μ₁ … μ_n)."""
        variance = self.alpha * float(query @ query) + np.zeros(self.n)
        variance[0] += self.tau * query[0] ** 2
        return query, np.sqrt(variance)

    def draw_products(self, rng: np.random.Generator, count: int, queries: Array) -> Array:
        """The products of `count` samples of the keys with each query: (queries, count, n).

        Drawn from their joint law: n numbers for each independent query instead of n·d. Products
        with different keys are independent; those of one key with several queries have the
        covariance α QQᵀ + τᵢ (Qμᵢ)(Qμᵢ)ᵀ.
        """
        directions, triangle = np.linalg.qr(queries.T)
        spread = sqrt(self.alpha) * triangle.T
        z = rng.standard_normal((directions.shape[1], count, self.n))
        if len(queries) == 1:
            z *= spread[0, 0]
            products = z
        else:
            products = np.einsum("hr,rcn->hcn", spread, z)
        products += queries[:, None, :]
        if self.tau:
            longer = sqrt(self.tau) * rng.standard_normal(count)
            products[:, :, 0] += queries[:, 0, None] * longer
        return products

    def draw_keys(self, rng: np.random.Generator, count: int) -> Array:
        """Whole keys, (count, n, d), as their definition says."""
        keys = rng.standard_normal((count, self.n, self.d))
        keys *= sqrt(self.alpha)
        places = np.arange(self.n)
        keys[:, places, places] += 1
        if self.tau:
            keys[:, 0, 0] += sqrt(self.tau) * rng.standard_normal(count)
        return keys

    def products_of_keys(self, rng: np.random.Generator, count: int, queries: Array) -> Array:
        """What `draw_products` draws, the long way round."""
        keys = self.draw_keys(rng, count)
        return np.asarray(np.einsum("cnd,hd->hcn", keys[:, :, : self.n], queries))


def exponentials(scores: Array) -> Array:
    """e^s in place, shifted by each row's maximum only when some score could overflow."""
    if scores.max() > 600 or scores.max(axis=-1).min() < -600:
        scores -= scores.max(axis=-1, keepdims=True)
    return np.exp(scores, out=scores)
