"""Values put in from outside stay in every reading of a trace, and nothing flows behind them."""

from __future__ import annotations

import numpy as np
import pytest

import regard
from regard._errors import OptionError, ShapeError
from regard.graph.operation import Array
from regard.graph.rewrites import NO_SCALE, Change
from regard.show.trace import Trace


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def single() -> Trace:
    weights = {name: normal(5, 3, seed=i) for i, name in enumerate(("WQ", "WK", "WV"))}
    return regard.work("self-attention", X=normal(7, 5), **weights)


def headed(heads: int = 2, shared: int = 2) -> Trace:
    weights = {
        "WQ": normal(5, 3 * heads, seed=1),
        "WK": normal(5, 3 * shared, seed=2),
        "WV": normal(5, 2 * shared, seed=3),
    }
    few = {} if shared == heads else {"kv_heads": shared}
    return regard.work("multi-head", X=normal(7, 5), heads=heads, causal=True, **weights, **few)


ZEROS = np.zeros((7, 7))


def test_nothing_flows_behind_a_value_put_in() -> None:
    back = single().replace(scores=ZEROS).gradient()
    assert "d_scores" in back.steps
    assert not {"d_WQ", "d_WK", "d_Q", "d_K"} & set(back.steps)
    seed = np.ones((7, 3))
    np.testing.assert_allclose(back["d_V"].value, np.full((7, 7), 1 / 7) @ seed)
    np.testing.assert_allclose(back["d_WV"].value, normal(7, 5).T @ back["d_V"].value)


@pytest.mark.parametrize("held", ["exp", "sums", "weights"])
def test_a_part_of_the_softmax_put_in_cuts_there(held: str) -> None:
    trace = single()
    value = trace[held].value + 1
    back = trace.replace(**{held: value}).gradient()
    assert f"d_{held}" in back.steps
    if held != "sums":
        assert "d_WQ" not in back.steps
    else:  # the exponentials still count, their sum no longer does
        exp = trace["exp"].value
        to_exp = back["d_weights"].value / value[:, None] * exp
        np.testing.assert_allclose(back["d_scaled"].value, to_exp)


def test_a_gradient_that_a_value_put_in_cuts_off_is_refused() -> None:
    trace = single().replace(scores=ZEROS)
    message = r"context does not depend on 'WQ' \(values were put in for scores\)"
    with pytest.raises(OptionError, match=message):
        trace.gradient(wrt="WQ")
    with pytest.raises(OptionError, match="does not depend on anything that was given"):
        single().replace(context=np.ones((7, 3))).gradient()


def test_other_numbers_keep_what_was_put_in() -> None:
    trace = single().replace(scores=ZEROS).in_numbers("certified")
    assert dict(trace.run.replaced).keys() == {"scores"}
    assert float(trace["weights"].value[0, 0].mid()) == pytest.approx(1 / 7)


def test_a_rewritten_graph_keeps_what_was_put_in() -> None:
    trace = single().replace(scores=ZEROS).rewrite(NO_SCALE)
    np.testing.assert_allclose(trace["weights"].value, 1 / 7)
    dropped = single().replace(scaled=ZEROS).rewrite(NO_SCALE)
    assert not dropped.run.replaced


def test_a_rewrite_that_changes_the_shape_of_what_was_put_in_is_refused() -> None:
    trace = single().replace(sums=np.ones(7))
    with pytest.raises(ShapeError, match="the value put in for sums is 7, but sums is 7×7 here"):
        trace.rewrite(Change("sums", over=()))


@pytest.mark.parametrize("step", ["scores", "Q_heads", "Q"])
def test_one_head_keeps_its_part_of_what_was_put_in(step: str) -> None:
    trace = headed()
    whole = trace.replace(**{step: trace[step].value * 2})
    alone = whole["head 2"]
    assert step in alone.run.replaced
    np.testing.assert_allclose(alone["context"].value, whole["context"].value[1])


@pytest.mark.parametrize("shared", [2, 1])
def test_one_head_of_a_gradient_has_every_gradient_of_that_head(shared: int) -> None:
    whole = headed(shared=shared).gradient()
    alone = whole["head 2"]
    ends = {"d_Q_heads", "d_K_heads", "d_V_heads"} if shared == 2 else {"d_K_shared", "d_V_shared"}
    assert ends <= set(alone.steps)
    assert all(name.startswith("d_") for name in alone.steps)
    for name in alone.steps:
        np.testing.assert_allclose(alone[name].value, whole[name].value[1], err_msg=name)


def test_one_name_to_differentiate_by_may_be_a_string() -> None:
    assert single().gradient(wrt="WQ").steps == single().gradient(wrt=("WQ",)).steps


def test_a_gradient_of_a_gradient_is_refused() -> None:
    with pytest.raises(OptionError, match="has a step 'd_V' already: gradients of gradients"):
        single().gradient().gradient()
