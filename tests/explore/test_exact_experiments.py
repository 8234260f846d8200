"""What the experiments without chance find, on the numbers."""

from math import exp, log

import numpy as np
import pytest

from regard.explore import average, copy

# ---- copy


def test_copying_follows_the_gap_and_the_logarithm_of_the_number_of_keys() -> None:
    result = copy(n=(3, 50), gap=(0, 2, 7.5), epsilon=(0.25, 1e-4))
    table = result.table
    np.testing.assert_allclose(table["weight"], table["predicted"], atol=1e-14)
    assert table["weight"][0] == pytest.approx(1 / 3)
    assert table["weight"][4] == pytest.approx(1 / (1 + 49 * exp(-2.0)))
    for row in table.where(epsilon=0.25):
        assert row["multiplier"] == pytest.approx(log((row["n"] - 1) * 3), abs=1e-12)
        assert row["weight"] >= 0.75
    assert "logarithm" in result.finding


def test_the_multiplier_found_is_the_least_that_reaches_its_weight() -> None:
    (row,) = copy(n=9, gap=1, epsilon=1e-3).table.where(epsilon=1e-3)
    (less,) = copy(n=9, gap=row["multiplier"] - 1e-9, epsilon=0.5).table.where(epsilon=None)
    assert less["weight"] < 1 - 1e-3 <= row["weight"]


# ---- average


def test_the_error_of_the_average_is_the_formula() -> None:
    result = average(n=(3, 31), beta=(0, 3, 12), seed=7)
    table = result.table
    np.testing.assert_allclose(table["error"], table["predicted"], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(table["weight_a"], table["weight_b"], rtol=1e-12)
    np.testing.assert_allclose(table["relative_error"][:3], 1 / (2 * np.exp([0, 3, 12]) + 1))
    assert result.trace.run.graph.kind == "attention"
