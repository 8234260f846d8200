"""What the other experiments find, on the numbers."""

import re
from itertools import count
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import regard
from regard import OptionError
from regard.explore import cost, heads, mask, permutation, scale, softmax_bottleneck, temperature
from regard.explore._competing import Competing, Group

# ---- scale


def test_the_variance_of_products_is_d_and_dividing_by_its_root_keeps_everything_else() -> None:
    result = scale(d=(3, 17, 200), n=11, samples=4000, seed=3)
    table = result.table
    for name in ("variance", "entropy", "answer", "slope"):
        away = abs(table[name] - table[f"predicted_{name}"])
        assert np.all(away < 5 * table[f"{name}_se"]), name
    plain, scaled = (table.where(scale=how) for how in ("not divided", "divided by √d"))
    np.testing.assert_allclose(plain["predicted_variance"], [3, 17, 200], rtol=1e-9)
    np.testing.assert_allclose(scaled["predicted_variance"], 1, rtol=1e-9)
    assert np.ptp(scaled["entropy"]) < 0.1
    assert plain["entropy"][-1] < 0.25 * log(11)
    assert plain["answer"][-1] < 0.25 < 0.7 < scaled["answer"].min()
    assert plain["vanished"][-1] > 0.3
    assert scaled["vanished"][-1] == 0


def test_scores_saturate_in_words_where_they_do_in_numbers() -> None:
    def titles(*d: int) -> list[str]:
        return [panel.title for panel in scale(d=d, n=16, samples=500).plot.panels]

    assert titles(4, 256) == [
        "Undivided scores grow", "The softmax saturates", "The gradient vanishes"
    ]  # fmt: skip
    calm = ["How even the weights are", "How the weights answer"]
    assert titles(4) == ["The spread of the scores", *calm]
    assert titles(2, 4) == ["Undivided scores grow", *calm]
    one, several = scale(d=4, n=16, samples=500), scale(d=(4, 256), n=16, samples=500)
    assert "saturates" not in one.plot.caption
    assert "for every d" not in one.finding
    assert "saturates" in several.plot.caption
    assert "for every d" in several.finding


def test_a_wrong_scale_is_rejected() -> None:
    """Dividing by d instead of √d would leave more entropy than was measured."""
    row = next(iter(scale(d=17, n=11, samples=4000).table.where(scale="divided by √d")))
    wrong = Competing(Group(0.0, 1 / sqrt(17), 11)).entropy()
    assert abs(row["entropy"] - wrong) > 5 * row["entropy_se"]


# ---- temperature


def test_the_entropy_follows_the_temperature() -> None:
    result = temperature(n=23, temperature=(0.1, 0.6, 2.0, 30.0), samples=4000, seed=1)
    table = result.table
    for name in ("entropy", "same_key"):
        away = abs(table[name] - table[f"predicted_{name}"])
        assert np.all(away < 5 * table[f"{name}_se"]), name
    assert np.all(np.diff(table["entropy"]) > 0)
    # Hot: log n − (1 − 1/n)/(2T²); 23 scores have one degree of freedom less than their number.
    hot = log(23) - (1 - 1 / 23) / (2 * 30**2)
    assert table["predicted_entropy"][-1] == pytest.approx(hot, abs=1e-5)
    assert abs(table["entropy"][1] - table["predicted_entropy"][2]) > 5 * table["entropy_se"][1]


# ---- softmax bottleneck


def test_one_temperature_is_told_once() -> None:
    one = temperature(n=8, temperature=2.0, samples=200)
    assert one.finding.count("at T = 2") == 1
    assert "rises" not in one.finding
    assert "entropy_at_hottest" not in one.facts
    several = temperature(n=8, temperature=(0.5, 2), samples=200)
    assert several.facts["entropy_at_hottest"] == several.table["entropy"][-1]


def test_the_sharpest_weight_is_the_bound_and_dilutes_as_the_context_grows() -> None:
    result = softmax_bottleneck(n=(2, 7, 150, 3000), norm=(3.0, 7.0), d=32, seed=2)
    even = result.table.where(keys="as far apart as n can be")
    np.testing.assert_allclose(even["weight"], even["predicted_weight"], rtol=1e-9)
    assert even["predicted_weight"][0] == pytest.approx(1 / (1 + exp(-6)))  # two opposite keys
    random = result.table.where(keys="random directions")
    away = abs(random["weight"] - random["predicted_weight"])
    assert np.all(away < 5 * random["weight_se"])
    for norm in (3.0, 7.0):
        for rows in (even.where(norm=norm), random.where(norm=norm)):
            assert np.all(np.diff(rows["weight"]) < 0)
    # No arrangement of unit keys beats the simplex when every key must be selectable.
    rng = np.random.default_rng(4)
    for _ in range(20):
        keys = rng.standard_normal((7, 32))
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        worst = np.diag(np.exp(3 * keys @ keys.T) / np.exp(3 * keys @ keys.T).sum(axis=1)).min()
        assert worst < even.where(norm=3.0, n=7)["weight"][0]


# ---- heads


def course_document() -> dict[str, Any]:
    trace = regard.solve("numpy-multi-head").trace
    return {name: trace[name].value for name in ("X", "WQ", "WK", "WV")}


def test_the_routing_alone_makes_heads_differ() -> None:
    result = heads(heads=3, **course_document())
    facts = result.facts
    assert facts["difference_with_one_map"] < 1e-14
    assert facts["difference"] > 1
    assert facts["multiplications_one"] == facts["multiplications_many"]
    assert facts["exponentials_many"] == 3 * facts["exponentials_one"]
    assert facts["parameters"] == 3 * 36
    assert facts["beyond_any_single_map"] > 0.01
    # The maps are those that the course document prints.
    maps = result.trace["weights"].value
    assert maps[0, 0, 2] == pytest.approx(0.95, abs=0.005)
    assert maps[2, 4, 4] == pytest.approx(1.0, abs=0.005)
    one = result.table.where(heads=1)
    assert one["weight_moved_from_one_head"][0] == 0
    assert result.table.where(heads=3)["weight_moved_from_one_head"].min() > 0.1


def test_heads_refuse_half_of_the_inputs() -> None:
    with pytest.raises(OptionError, match="WQ is missing"):
        heads(X=np.eye(3))
    with pytest.raises(OptionError, match="`tokens` must be 5 names, but 2"):
        heads(tokens=("le", "chat"))
    assert "le" in heads(n=2, tokens=("le", "chat")).to_text(width=80)


# ---- permutation


def test_what_notices_a_permutation_is_as_predicted() -> None:
    result = permutation(n=5, d=12, seed=3)
    table = result.table
    assert len(table) == 24
    assert np.array_equal(table["kept"], table["predicted_kept"])
    assert result.facts["as_predicted"] == 24
    assert result.facts["proven_zero"] == 1
    kept, broken = (table["difference"][table["kept"] == each] for each in (True, False))
    assert kept.max() < 1e-13
    assert broken.min() > 1e-4


def test_permuting_the_first_two_tokens_of_the_course_document() -> None:
    result = permutation(**course_document())
    assert result.facts["without_positions"] < 1e-13
    assert "rotary" not in result.table["positions"]  # two heads of three columns have no pairs
    assert np.array_equal(result.table["kept"], result.table["predicted_kept"])


def test_sizes_that_rotary_positions_cannot_have() -> None:
    with pytest.raises(OptionError, match="`d` must be a multiple of 4"):
        permutation(d=6)


# ---- mask


@pytest.mark.parametrize("window", [0, 2, 99])
def test_masks_leave_what_is_counted_and_leak_nothing(window: int) -> None:
    result = mask(n=7, d=3, window=window, padding=2, seed=1)
    table = result.table
    assert np.array_equal(table["visible"], table["predicted_visible"])
    assert table["visible"][:2].tolist() == [28, 35]
    assert result.facts["largest_leak"] == 0
    assert result.facts["nan_leaks"] == 0
    assert result.facts["least_influence"] > 0


def test_padding_leaves_a_token() -> None:
    with pytest.raises(OptionError, match=re.escape("at least one of 3 tokens, but 3")):
        mask(n=3, padding=3)


# ---- cost


def test_memory_grows_as_counted_and_time_as_the_clock_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = count()
    monkeypatch.setattr("regard.explore._cost.perf_counter", lambda: float(next(ticks)))
    result = cost(n=(256, 512, 1024), d=(8, 32), n_fixed=64, d_fixed=16, runs=2)
    facts = result.facts
    assert facts["bytes_exponent_in_n_unfused"] == pytest.approx(2, abs=0.1)
    assert facts["bytes_exponent_in_n_fused"] == pytest.approx(1, abs=0.1)
    for how in ("unfused", "fused"):
        name = f"bytes_exponent_in_n_{how}"
        assert facts[name] == pytest.approx(facts[f"predicted_{name}"], abs=0.1)
        # Each run lasts one tick of this clock, whatever it computes.
        assert facts[f"seconds_exponent_in_n_{how}"] == pytest.approx(0, abs=1e-9)
    rows = result.table.where(how="every step kept")
    by_n = rows.where(varied="n")
    np.testing.assert_allclose(by_n["bytes"], by_n["predicted_bytes"], rtol=0.1)


def test_growth_needs_two_sizes() -> None:
    with pytest.raises(OptionError, match="`n` must be at least two sizes"):
        cost(n=(64,))
