"""What the experiments with noisy keys find, on the numbers; and that a wrong law is rejected."""

from math import exp, sqrt

import numpy as np
import pytest

from regard.explore import noise, norm_noise, two_heads
from regard.explore._competing import LogitNormal, distance_and_chance, logit
from regard.explore._norm_noise import _measured, weight_law
from regard.explore._sampling import NoisyKeys, generator
from regard.explore._two_heads import _own_law

# ---- noise


def test_the_query_keeps_working_as_the_noise_vanishes() -> None:
    result = noise(n=7, d=11, beta=9.0, samples=4000, seed=1)
    table = result.table
    away = abs(table["error"] - table["predicted_error"])
    assert np.all(away <= 5 * table["error_se"] + 1e-9)
    assert np.all(abs(table["both"] - table["predicted_both"]) <= 5 * table["both_se"] + 1e-9)
    # At α = 1e-6 the error is β·√(α/2), at α = 10 nearly that of one key at random.
    assert table["error"][0] == pytest.approx(9 * sqrt(1e-6 / 2), rel=0.06)
    assert table["error"][-1] == pytest.approx(sqrt(1.5 - 2 / 7), rel=0.1)
    assert "α → 0" in result.finding


def test_without_any_noise_the_error_is_that_of_the_average() -> None:
    (row,) = noise(n=6, d=6, beta=2.0, alpha=0, samples=10).table
    rest = 4 / (2 * exp(2.0) + 4)
    assert row["error"] == pytest.approx(rest * sqrt(1 / 2 + 1 / 4), rel=1e-9)
    assert row["predicted_error"] == pytest.approx(row["error"], rel=1e-7)
    assert row["error_se"] == pytest.approx(0, abs=1e-9)


def test_a_wrong_prediction_of_the_noise_is_rejected() -> None:
    """Were the variance of a product αβ² instead of 2αβ², the test above would say so."""
    (row,) = noise(n=7, d=11, beta=9.0, alpha=1e-3, samples=4000).table
    (wrong,) = noise(n=7, d=11, beta=9.0, alpha=5e-4, samples=2).table
    assert abs(row["error"] - wrong["predicted_error"]) > 5 * row["error_se"]


def test_one_alpha_is_told_once() -> None:
    one = noise(alpha=0.01, samples=500)
    assert one.finding.count("α = 0.01") == 1
    assert "error_at_largest_alpha" not in one.facts
    few = noise(alpha=(1e-6, 1e-5), samples=500)
    assert few.facts["error_at_largest_alpha"] == few.table["error"][-1]
    assert "First the balance goes" not in few.finding
    lost = noise(alpha=(1e-4, 0.02), samples=500).finding
    assert "First the balance goes" in lost
    assert "then the focus" not in lost
    assert "then the focus" in noise(alpha=(1e-4, 10), samples=500).finding


# ---- norm-noise


@pytest.mark.parametrize("draw", ["products", "keys"])
def test_one_head_swings_between_the_two_values(draw: str) -> None:
    result = norm_noise(n=5, d=7, beta=6.0, samples=20_000, draw=draw, seed=2)
    facts = result.facts
    for name in ("mean_a", "variance_a"):
        assert abs(facts[name] - facts[f"predicted_{name}"]) < 5 * facts[f"{name}_se"]
    assert facts["chance_of_distance"] > 1e-6
    assert facts["near_one_value"] > 0.5
    shares = result.table
    assert np.all(abs(shares["share"] - shares["predicted_share"]) < 5 * shares["share_se"])
    assert sum(shares["share"]) == pytest.approx(1)


def test_strong_noise_has_the_predicted_mean_and_variance_too() -> None:
    facts = norm_noise(n=11, d=13, beta=3.0, alpha=0.3, tau=0.7, samples=50_000).facts
    for name in ("mean_a", "variance_a"):
        assert abs(facts[name] - facts[f"predicted_{name}"]) < 5 * facts[f"{name}_se"]


def test_a_wrong_law_of_the_weight_is_rejected() -> None:
    keys = NoisyKeys(5, 7, 1e-4, 0.5)
    odds = np.sort(_measured(keys, 6.0, 50_000, None, "products", 3).kept[:, 2])
    law = weight_law(keys, 6.0)

    def chance(law: LogitNormal) -> float:
        return distance_and_chance(odds, law.below(1 / (1 + np.exp(-odds))))[1]

    assert chance(law) > 1e-6
    assert chance(LogitNormal(law.mean, 6.0 * sqrt(0.45))) < 1e-6  # another τ
    assert chance(LogitNormal(law.mean - 0.2, law.sd)) < 1e-6  # another number of keys
    assert logit(np.array([0.5]))[0] == 0


def test_a_large_multiplier_is_a_coin_thrown_between_the_values() -> None:
    facts = norm_noise(beta=64.0, samples=20_000).facts
    assert facts["variance_a"] == pytest.approx(0.25, abs=0.015)
    assert facts["chance_of_distance"] > 1e-6


def test_the_finding_says_what_was_found() -> None:
    assert "context swings" in norm_noise(samples=2_000).finding
    still = norm_noise(tau=0, samples=2_000)
    assert "seldom all the way" in still.finding
    assert still.plot.panels[0].title == "One head"
    strong = norm_noise(alpha=0.5, samples=20_000)
    assert "do not follow the law" in strong.finding


def test_the_cause_of_the_swings_is_the_one_that_is_there() -> None:
    still = norm_noise(tau=0, samples=2_000).finding
    assert "moves with the noise on the keys" in still
    assert "the length of k_a" not in still
    # The difference of two scores with the variances (2α + τ)β² and 2αβ².
    assert f"= {8 * sqrt(4 * 1e-4):.2f}." in still
    strong = norm_noise(tau=0, alpha=0.5, samples=2_000)
    assert "the noise decides which key wins all of the weight" in strong.finding
    others = round(100 * (1 - strong.facts["mean_a"] - strong.facts["mean_b"]))
    assert f"keys other than a and b have {others} % of it" in strong.finding
    assert "k_a is long" not in strong.finding
    assert "when k_a is long it wins" in norm_noise(samples=2_000).finding


def test_a_weight_that_is_always_small_does_not_swing() -> None:
    even = norm_noise(n=64, d=64, beta=0.01, samples=1_000)
    assert even.facts["near_one_value"] == 1
    assert "moves with the length" in even.finding
    assert even.plot.panels[0].title == "One head"


def test_scores_that_are_far_apart_have_finite_odds() -> None:
    keys = NoisyKeys(5, 7, 1e-4, 0.5)
    near, far = (_measured(keys, beta, 2_000, None, "products", 3) for beta in (60.0, 6_000.0))
    assert np.all(np.isfinite(far.kept))
    assert far.kept[:, 2] / 100 == pytest.approx(near.kept[:, 2], abs=1)


# ---- two heads


def titles(**options: float) -> list[str]:
    return [panel.title for panel in two_heads(heads=2, samples=2_000, **options).plot.panels]  # type: ignore[arg-type]


def test_titles_say_what_the_samples_show() -> None:
    assert titles()[:2] == ["One head: swings", "2 heads: steady"]
    assert titles(tau=0)[:2] == ["One head", "2 heads: steady"]
    assert titles(tau=0, alpha=0.5)[:2] == ["One head: swings", "2 heads"]
    assert titles(beta=0.5)[:2] == ["One head", "2 heads"]


def test_what_heads_gain_is_said_as_it_was_measured() -> None:
    usual = two_heads(heads=2, samples=2_000)
    assert "the rms error of the context falls from" in usual.finding
    assert "Only the head that looks for a feels the length of k_a" in usual.finding
    weak = two_heads(heads=2, beta=0.5, samples=2_000)
    errors = weak.table["rms_error"]
    assert errors[1] > errors[0]
    assert f"rises from {errors[0]:.3f} to {errors[1]:.3f}" in weak.finding
    assert "β = 0.5 is too small for heads that look for one value each" in weak.finding
    strong = two_heads(heads=2, tau=0, alpha=0.5, samples=2_000).finding
    assert "The noise is too strong for heads" in strong
    still = two_heads(heads=2, tau=0, samples=2_000).finding
    assert "No key is longer than another (τ = 0)" in still
    assert "points away" not in still
    assert "0.0000" not in still


def test_two_heads_hold_the_context_where_it_was_wanted() -> None:
    result = two_heads(heads=(2, 3), n=5, d=7, beta=6.0, samples=20_000, seed=4)
    for row in result.table:
        assert abs(row["variance"] - row["predicted_variance"]) < 5 * row["variance_se"]
        assert abs(row["mean"] - row["predicted_mean"]) < 5 * row["mean_se"]
    many = result.table.where(heads=2)
    assert abs(many["ratio"][0] - many["predicted_ratio"][0]) < 5 * many["ratio_se"][0]
    assert result.facts["ratio"] > 4
    assert result.facts["ratio_facing"] > result.facts["ratio"]
    errors = result.table["rms_error"]
    assert errors[1] < errors[0] / 2
    # k_a points away from its mean when 1 + √τ·g < 0, for 7.9 % of all Gaussian g.
    assert many["facing"][0] == pytest.approx(0.9214, abs=0.01)


def test_the_law_of_the_head_that_looks_for_the_noisy_key() -> None:
    keys, beta = NoisyKeys(5, 7, 1e-4, 0.5), 6.0
    scores = keys.draw_products(generator(5), 50_000, beta * np.eye(2, 5))[0]
    odds = np.sort(scores[:, 0] - np.log(np.exp(scores[:, 1:]).sum(axis=1)))
    weights = 1 / (1 + np.exp(-odds))
    law = _own_law(keys, beta)
    assert distance_and_chance(odds, law.below(weights))[1] > 1e-6
    assert distance_and_chance(odds, LogitNormal(law.mean + 0.2, law.sd).below(weights))[1] < 1e-6
