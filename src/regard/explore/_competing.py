"""Exact expectations of softmax weights whose scores are independent Gaussians.

A weight is e^s / Σ e^s. Writing 1/Σ^k as ∫ t^(k−1) e^(−tΣ) dt / Γ(k) makes the expectation of a
product of weights an integral over one variable of a product with one factor for each key. With
t = e^u every factor is the average of a smooth bump over a Gaussian, and the trapezoidal rule
gives the integral to about twelve digits. Nothing is approximated otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil, lgamma, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import SizeLimitError

Array = NDArray[np.float64]
STEP = 0.1  # the bumps are analytic within π/2 of the real line: far more than enough
REACH = 9.0  # standard deviations beyond which a Gaussian is nothing
BROAD = 1.0  # from here on a Gaussian is averaged over on the grid itself
LARGEST = 500_000  # points of the grid, which takes a minute
TAIL = 42.0  # e^(−42) is nothing beside 1


@dataclass(frozen=True)
class Group:
    """So many keys whose scores have this mean and standard deviation."""

    mean: float
    sd: float
    count: int = 1


class Competing:
    """Keys that compete for a query, in groups that are alike."""

    def __init__(self, *groups: Group) -> None:
        self._groups = groups
        self._top = max(group.mean + REACH * group.sd for group in groups)

    @cached_property
    def _grid(self) -> NDArray[Any]:
        start = -self._top - TAIL - log(sum(group.count for group in self._groups))
        end = max(-(group.mean - REACH * group.sd) for group in self._groups) + 5
        if (points := (end - start) / STEP) > LARGEST:
            raise SizeLimitError(
                f"the scores spread too far for their exact prediction: over {end - start:.3g}, at "
                f"most {LARGEST * STEP:,.0f} is allowed; pass a smaller multiplier or variance"
            )
        return start + STEP * np.arange(ceil(points))

    @cache  # noqa: B019 — lives as long as the keys whose averages these are
    def _average(self, place: int, power: int) -> Array:
        """E[x^power e^(−x)] with x = e^(u + s), for every u of the grid."""
        group = self._groups[place]
        if group.sd < BROAD:
            nodes, shares = np.polynomial.hermite_e.hermegauss(60)
            y = self._grid[:, None] + group.mean + group.sd * nodes
            return np.asarray(_bump(y, power) @ shares / shares.sum())
        half = ceil(REACH * group.sd / STEP)
        offsets = STEP * np.arange(-half, half + 1)
        kernel = np.exp(-((offsets / group.sd) ** 2) / 2)
        count = len(self._grid) + 2 * half
        y = self._grid[0] + group.mean + STEP * (np.arange(count) - half)
        return _smoothed(_bump(y, power), kernel / kernel.sum())

    def moment(self, powers: Sequence[Sequence[int]]) -> float:
        """E[Π wᵢ^k]: for each group the powers of weights of different keys in it.

        With groups a and rest, `[[2], []]` is E[w_a²] and `[[1], [1]]` is E[w_a w_r].
        """
        integrand = np.ones_like(self._grid)
        for place, (group, used) in enumerate(zip(self._groups, powers, strict=True)):
            for power in used:
                integrand = integrand * self._average(place, power)
            if group.count > len(used):
                integrand = integrand * self._average(place, 0) ** (group.count - len(used))
        total = sum(power for used in powers for power in used)
        return float(STEP * integrand.sum() * np.exp(-lgamma(total)))

    def _single(self, place: int, *powers: int) -> float:
        return self.moment([powers if other == place else () for other in range(len(self._groups))])

    def mean(self, place: int = 0) -> float:
        return self._single(place, 1)

    def square(self, place: int = 0) -> float:
        return self._single(place, 2)

    def variance(self, place: int = 0) -> float:
        return self.square(place) - self.mean(place) ** 2

    def concentration(self) -> float:
        """E[Σ w²]: the chance that two looks fall on the same key."""
        return sum(group.count * self.square(place) for place, group in enumerate(self._groups))

    def entropy(self) -> float:
        """E[−Σ w log w] = E[log Σ e^s] − E[Σ w s], in nats."""
        everyone = np.ones_like(self._grid)
        for place, group in enumerate(self._groups):
            everyone = everyone * self._average(place, 0) ** group.count
        log_sum = STEP * float((np.exp(-np.exp(self._grid)) - everyone).sum())
        looked = 0.0
        for place, group in enumerate(self._groups):
            # E[s f(s)] of a Gaussian is its mean times E[f] plus its variance times E[f′].
            first, second = self._average(place, 1), self._average(place, 2)
            others = self._average(place, 0) ** (group.count - 1)
            for other, rest in enumerate(self._groups):
                if other != place:
                    others = others * self._average(other, 0) ** rest.count
            scored = group.mean * first + group.sd**2 * (first - second)
            looked += group.count * STEP * float((scored * others).sum())
        return log_sum - looked


def _smoothed(values: Array, kernel: Array) -> Array:
    """Their convolution where the kernel lies within the values, by Fourier transforms."""
    size = 1 << (len(values) - 1).bit_length()
    product = np.fft.rfft(values, size) * np.fft.rfft(kernel, size)
    return np.fft.irfft(product, size)[len(kernel) - 1 : len(values)].clip(0)


def _bump(y: Array, power: int) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(power * y - np.exp(y)))


@dataclass(frozen=True)
class LogitNormal:
    """The law of 1 / (1 + e^(−x)) for a Gaussian x: a weight that one noisy score decides."""

    mean: float
    sd: float

    def density(self, weight: Array) -> Array:
        """φ((logit w − mean) / sd) / (sd w (1 − w))"""
        z = (logit(weight) - self.mean) / self.sd
        return np.asarray(np.exp(-(z**2) / 2) / (sqrt(2 * np.pi) * self.sd * weight * (1 - weight)))

    def below(self, weight: Array) -> Array:
        """The probability of a weight of at most this."""
        return normal_below((logit(weight) - self.mean) / self.sd)


def logit(weight: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weight) - np.log1p(-weight))


def normal_below(z: Array) -> Array:
    from math import erfc

    return np.array([erfc(-each / sqrt(2)) / 2 for each in np.ravel(z)]).reshape(np.shape(z))


def distance_and_chance(sample: Array, below: Array) -> tuple[float, float]:
    """Kolmogorov and Smirnov's largest distance from a law, and the chance of one as large.

    sample: sorted; below: the law's probabilities of at most each of its values.
    """
    count = len(sample)
    steps = np.arange(count + 1) / count
    distance = float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))
    scaled = (sqrt(count) + 0.12 + 0.11 / sqrt(count)) * distance
    if scaled < 0.2:
        return distance, 1.0
    terms = np.arange(1, 101)
    chance = 2 * float(np.sum((-1.0) ** (terms - 1) * np.exp(-2 * (terms * scaled) ** 2)))
    return distance, min(max(chance, 0.0), 1.0)
