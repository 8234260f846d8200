"""The exact expectations and laws, against closed forms, sampling and laws that are wrong."""

from math import log, sqrt

import numpy as np
import pytest

from regard.explore._competing import (
    Competing,
    Group,
    LogitNormal,
    distance_and_chance,
    logit,
    normal_below,
)


def test_without_noise_the_weights_are_the_softmax() -> None:
    law = Competing(Group(2.0, 0.0), Group(0.5, 0.0, 3), Group(-1.0, 0.0, 5))
    shares = np.exp([2.0] + 3 * [0.5] + 5 * [-1.0])
    weights = shares / shares.sum()
    assert law.mean(0) == pytest.approx(weights[0], abs=1e-12)
    assert law.moment([[2], [1], [1]]) == pytest.approx(
        weights[0] ** 2 * weights[1] * weights[4], abs=1e-12
    )
    assert law.variance(1) == pytest.approx(0, abs=1e-12)
    assert law.entropy() == pytest.approx(-(weights * np.log(weights)).sum(), abs=1e-11)
    assert law.concentration() == pytest.approx((weights**2).sum(), abs=1e-12)


@pytest.mark.parametrize("sd", [0.3, 0.999, 1.001, 7.0])
def test_two_alike_keys_have_half_each_and_equal_others_share_evenly(sd: float) -> None:
    assert Competing(Group(3.0, sd, 2)).mean() == pytest.approx(0.5, abs=1e-12)
    law = Competing(Group(0.0, sd, 7))
    assert law.mean() == pytest.approx(1 / 7, abs=1e-12)
    # The weights sum to 1, and so does every product of the sum with itself.
    assert 7 * law.square() + 42 * law.moment([[1, 1]]) == pytest.approx(1, abs=1e-11)


def test_the_averages_on_the_grid_and_at_the_nodes_agree() -> None:
    below, above = (Competing(Group(1.0, sd), Group(0.0, sd, 5)) for sd in (0.99999, 1.00001))
    assert below.mean() == pytest.approx(above.mean(), abs=1e-5)
    assert below.entropy() == pytest.approx(above.entropy(), abs=1e-4)


def test_expectations_against_sampling() -> None:
    rng = np.random.default_rng(3)
    groups = Group(1.0, 2.0), Group(0.5, 0.4, 2), Group(0.0, 0.7, 5)
    means, sds = (np.repeat([g[i] for g in [(1.0, 2.0), (0.5, 0.4), (0.0, 0.7)]], [1, 2, 5])
                  for i in (0, 1))  # fmt: skip
    weights = np.exp(means + sds * rng.standard_normal((400_000, 8)))
    weights /= weights.sum(axis=1, keepdims=True)
    law = Competing(*groups)
    entropy = -(weights * np.log(weights)).sum(axis=1)
    for sampled, exact in [
        (weights[:, 0], law.mean(0)),
        (weights[:, 0] ** 2, law.square(0)),
        (weights[:, 1] * weights[:, 2], law.moment([[], [1, 1], []])),
        (weights[:, 0] ** 2 * weights[:, 5] ** 2, law.moment([[2], [], [2]])),
        (entropy, law.entropy()),
    ]:
        assert abs(sampled.mean() - exact) < 5 * sampled.std() / sqrt(len(sampled))


def test_the_density_of_a_logit_normal_is_the_slope_of_its_law() -> None:
    law = LogitNormal(0.7, 1.3)
    weights = np.linspace(0.05, 0.95, 19)
    slope = (law.below(weights + 1e-6) - law.below(weights - 1e-6)) / 2e-6
    np.testing.assert_allclose(law.density(weights), slope, rtol=1e-7)
    middles = (np.arange(200_000) + 0.5) / 200_000
    assert law.density(middles).mean() == pytest.approx(1, abs=1e-9)


def test_logit_and_normal_at_known_places() -> None:
    assert logit(np.array([0.25]))[0] == pytest.approx(-log(3))
    assert logit(np.array([0.0]))[0] == -np.inf
    np.testing.assert_allclose(normal_below(np.array([0.0, 1.959963984540054])), [0.5, 0.975])


def test_the_distance_accepts_the_right_law_and_rejects_a_wrong_one() -> None:
    rng = np.random.default_rng(5)
    sample = np.sort(1 / (1 + np.exp(-rng.normal(0.4, 2.0, 100_000))))
    _, right = distance_and_chance(sample, LogitNormal(0.4, 2.0).below(sample))
    _, shifted = distance_and_chance(sample, LogitNormal(0.5, 2.0).below(sample))
    _, wider = distance_and_chance(sample, LogitNormal(0.4, 2.2).below(sample))
    assert right > 1e-3
    assert shifted < 1e-6
    assert wider < 1e-6


def test_the_chance_of_a_distance_is_that_of_the_tables() -> None:
    # The 5 % point of Kolmogorov's distribution is 1.358.
    count = 10**6
    below = (np.arange(count) + 1) / count
    distance, chance = distance_and_chance(below, np.clip(below - 1.358 / sqrt(count), 0, 1))
    assert distance == pytest.approx(1.358e-3)
    assert chance == pytest.approx(0.05, abs=2e-4)
