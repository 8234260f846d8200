"""How far float64 is from the true values, in units in the last place (ulps)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.graph.builders import build
from regard.graph.numbers import Float64, read_given
from regard.graph.operations import Exp
from regard.graph.rewrites import Change
from regard.graph.run import Run, run

pytest.importorskip("flint")
certified_numbers = pytest.importorskip("regard.graph.certified", exc_type=ImportError)
Certified, ulps = certified_numbers.Certified, certified_numbers.ulps


def both(
    shifted: bool = True, options: dict[str, Any] | None = None, **givens: Any
) -> tuple[Run, Run]:
    """The same attention in float64 and in certified numbers."""
    read = {name: read_given(name, value) for name, value in givens.items()}
    graph = build("attention", {n: value.shape for n, value in read.items()}, **(options or {}))
    graph = graph if shifted else Change(Exp, shift=False)(graph)
    return run(graph, read, Float64()), run(graph, read, Certified())


positive = st.integers(1, 128).map(lambda count: count / 64)


def matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(
        st.lists(positive, min_size=columns, max_size=columns), min_size=rows, max_size=rows
    )


@settings(max_examples=40)
@given(matrix(2, 2), matrix(3, 2), matrix(3, 5))
def test_attention_of_positive_numbers_is_within_64_ulps(q: Any, k: Any, v: Any) -> None:
    """Scores are exact and scaled ones off by 1.5 ulp; that is up to 3·2^-50 before exp.

    The weights are therefore off by at most twice that, 48·2^-53, and by the few roundings of
    exp, sum, quotient and average: below 64 ulps.
    """
    errors = ulps(*both(Q=q, K=k, V=v))
    assert errors["scores"] == 0
    assert errors["scaled"] <= 2
    assert errors["weights"] <= 64
    assert errors["context"] <= 64


@settings(max_examples=15)
@given(matrix(2, 2), matrix(3, 2))
def test_without_the_shift_exp_is_compared_too(q: Any, k: Any) -> None:
    errors = ulps(*both(shifted=False, options={"scale": 1}, Q=q, K=k, V=np.eye(3)))
    assert errors["exp"] <= 1  # the scores are exact, and NumPy's exp is within an ulp
    assert errors["sums"] <= 3


def test_steps_that_float64_shifts_are_left_out() -> None:
    errors = ulps(*both(Q=[[1, 2]], K=[[2, 1], [1, 1]], V=[[1], [2]]))
    assert list(errors) == ["scores", "scaled", "weights", "context"]


def test_an_error_of_three_places_is_found() -> None:
    in_float, certified = both(Q=[[1, 2]], K=[[2, 1], [1, 1]], V=[[1], [2]])
    score = in_float.values["scores"][0, 0]
    moved = in_float.replace(scores=[[score + 3 * np.spacing(score), 3]])
    assert ulps(moved, certified)["scores"] == 3


def test_masked_cells_agree_and_a_leak_is_infinitely_far() -> None:
    rows = [[1, 2], [2, 1]]
    in_float, certified = both(options={"causal": True}, Q=rows, K=rows, V=rows)
    assert ulps(in_float, certified)["masked"] <= 2
    leak = in_float.replace(masked=in_float.values["scores"])
    assert ulps(leak, certified)["masked"] == np.inf


def test_weights_below_all_float64_are_zero_within_an_ulp() -> None:
    in_float, certified = both(options={"scale": 1}, Q=[[1]], K=[[0], [-1000]], V=[[1], [2]])
    assert in_float.values["weights"][0, 1] == 0
    assert 0 < ulps(in_float, certified)["weights"] < 1


def test_decimals_that_float64_cannot_hold_show_as_errors_of_the_givens() -> None:
    """0.1 and 0.7 are binary fractions next to a tenth; multiples of 1/64 are exact."""
    errors = ulps(*both(options={"scale": 1}, Q=[[0.1, 0.7]], K=[[1, 1]], V=[[1]]))
    assert errors["scores"] > 0
