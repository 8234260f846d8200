"""The bound on the effect of rounding: never too narrow, and not much too wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.checking._rounding import Rounded, holds
from regard.graph.run import run

WORKS = {
    "by hand": regard.solve("scaled-attention-by-hand").trace.run,
    "unscaled": regard.solve("unscaled-self-attention").trace.run,
    "heads": regard.solve("numpy-multi-head").traces["three-heads"].run,
    "masked": regard.solve("attention-questions").traces["masked"].run,
    "positions": regard.work(
        "self-attention", X=np.eye(4)[:3], WQ=np.eye(4), WK=np.eye(4)[::-1], WV=np.eye(4),
        positions="sinusoidal",
    ).run,
}  # fmt: skip


def by_hand(work: Any, decimals: int, shift: Any) -> dict[str, Any]:
    """Every step computed from rounded steps; `shift` breaks ties in rounding either way."""
    values: dict[str, Any] = dict(work.givens)
    done = work
    for step in work.graph.steps:
        value = done.values[step.name]
        rounded = np.round(value + shift() * 10.0**-decimals, decimals)
        with np.errstate(invalid="ignore"):
            off = np.abs(rounded - value) > 0.5 * 10.0**-decimals
        rounded = np.where(off | ~np.isfinite(value), np.round(value, decimals), rounded)
        values[step.name] = rounded
        done = done.replace(**{step.name: rounded})
    return values


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("decimals", [2, 3])
def test_work_that_was_rounded_at_every_step_lies_within_the_bound(
    name: str, decimals: int
) -> None:
    work = WORKS[name]
    bounded = run(work.graph, work.givens, Rounded(work.graph, decimals))
    rng = np.random.default_rng(1)
    for _ in range(5):
        values = by_hand(work, decimals, lambda: rng.uniform(-0.4, 0.4))
        for step in work.graph.step_names:
            for ball, value in zip(bounded.values[step].flat, values[step].flat, strict=True):
                gap = 0.0 if ball.middle == value else abs(ball.middle - value)
                assert gap <= ball.radius + 1e-9, step  # an unbounded ball holds everything


def test_what_is_not_bounded_proves_nothing() -> None:
    """Exponentials that round to 0 leave the weights of a row unknown: no answer is excused."""
    bounded = run(WORKS["heads"].graph, WORKS["heads"].givens, Rounded(WORKS["heads"].graph, 2))
    weights = bounded.values["weights"][0]
    assert not np.isfinite(weights[1, 0].radius)
    assert not holds(weights, WORKS["heads"].values["weights"][0], np.zeros(weights.shape))


@given(st.integers(2, 5))
def test_the_bound_shrinks_with_the_digits(decimals: int) -> None:
    work = WORKS["by hand"]
    wide, narrow = (
        run(work.graph, work.givens, Rounded(work.graph, places)).values["context"]
        for places in (decimals, decimals + 1)
    )
    for one, other in zip(wide.flat, narrow.flat, strict=True):
        assert 8 < one.radius / other.radius < 13  # a tenth, but for what is not linear


def test_the_bound_is_not_much_too_wide() -> None:
    """Some rounding of the steps comes within a factor of three of it."""
    work = WORKS["by hand"]
    bound = run(work.graph, work.givens, Rounded(work.graph, 2)).values["context"]
    rng = np.random.default_rng(2)
    reached = np.zeros(bound.shape)
    for _ in range(300):
        done = work
        for step in work.graph.steps:
            value = done.values[step.name]
            done = done.replace(**{step.name: value + rng.choice([-0.005, 0.005], value.shape)})
        reached = np.maximum(reached, np.abs(done.values["context"] - work.values["context"]))
    radii = np.vectorize(lambda ball: ball.radius)(bound)
    assert (reached <= radii).all()
    assert (radii <= 3 * reached).all()
