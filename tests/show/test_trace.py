"""A trace: its steps by name, its heads, its other readings, and refusals that say why."""

from typing import Any

import numpy as np
import pytest

import regard
from regard import rewrites

RNG = np.random.default_rng(7)
X, WQ, WK, WV, WO = (RNG.normal(size=s) for s in ((5, 6), (6, 6), (6, 6), (6, 9), (9, 2)))


def multi_head(**options: Any) -> regard.Trace:
    return regard.work("multi-head", X=X, WQ=WQ, WK=WK, WV=WV, WO=WO, heads=3, **options)


def test_a_head_is_a_slice_of_the_whole_and_a_trace_of_its_own() -> None:
    whole = multi_head(causal=True, positions="rotary")
    for number in (1, 2, 3):
        head = whole[f"head {number}"]
        for name in ("Q_heads", "scores", "weights", "context"):
            np.testing.assert_array_equal(head[name].value, whole[name].value[number - 1])
        columns = slice(3 * (number - 1), 3 * number)
        np.testing.assert_array_equal(head["context"].value, whole["merged"].value[:, columns])
        assert "merged" not in head
        assert not any(name.endswith("_all") for name in head.steps)


def test_a_head_with_one_matrix_for_each_head_and_shared_keys() -> None:
    wq, wk, wv = RNG.normal(size=(4, 6, 3)), RNG.normal(size=(2, 6, 3)), RNG.normal(size=(2, 6, 5))
    whole = regard.work("multi-head", X=X, WQ=wq, WK=wk, WV=wv)
    for head in range(4):
        alone = regard.work("self-attention", X=X, WQ=wq[head], WK=wk[head // 2], WV=wv[head // 2])
        seen = whole[f"head {head + 1}"]
        np.testing.assert_allclose(seen["context"].value, alone["context"].value, atol=1e-12)


@pytest.mark.parametrize("name", ["head 0", "head 4", "head x"])
def test_a_head_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(regard.NoSuchStepError, match="heads 1 to 3"):
        multi_head()[name]


def test_aliases_address_and_print_steps() -> None:
    trace = multi_head(names={"weights": "alpha", "merged": "Z"})
    assert trace["Z"].name == "merged"
    assert "Z" in trace
    changed = trace.replace(Z=np.ones((5, 9)))
    np.testing.assert_allclose(changed["output"].value, np.ones((5, 9)) @ WO)
    assert "Z: query × dim, 5×9" in trace.to_text()
    with pytest.raises(regard.NoSuchStepError, match=r"'wieghts'.*did you mean 'weights'"):
        multi_head(names={"wieghts": "A"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"scores": "weights"}, "'scores' cannot be called 'weights'"),
        ({"scores": "S", "scaled": "S"}, "'scaled' cannot be called 'S'"),
        ({"scores": " "}, "the alias of 'scores' must be a word, but is ' '"),
    ],
)
def test_an_alias_means_one_thing(names: dict[str, str], message: str) -> None:
    with pytest.raises(regard.OptionError, match=message):
        multi_head(names=names)
    assert multi_head(names={"weights": "weights"})["weights"].name == "weights"


def test_a_misspelt_step_names_the_closest() -> None:
    with pytest.raises(regard.NoSuchStepError, match=r"no step 'contxt'.*did you mean 'context'"):
        multi_head()["contxt"]


def test_a_rewrite_keeps_the_givens_and_the_original() -> None:
    trace = multi_head()
    before = trace["output"].value.copy()
    wrong = trace.rewrite(rewrites.NO_SCALE)
    assert "scaled" not in wrong
    np.testing.assert_allclose(
        wrong["output"].value, multi_head(scale=1)["output"].value, atol=1e-12
    )
    np.testing.assert_array_equal(trace["output"].value, before)


def test_the_gradient_is_a_trace_of_its_own_steps() -> None:
    gradient = multi_head().gradient(np.ones((5, 2)), wrt=("X", "WO"))
    assert gradient["d_X"].shape == (5, 6)
    np.testing.assert_allclose(
        gradient["d_WO"].value, multi_head()["merged"].value.T @ np.ones((5, 2)), atol=1e-12
    )
    assert "d_WQ" not in gradient
    assert "dW_O" in gradient.to_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_output": np.ones((5, 3))}, r"output has shape \(5, 2\), but d_output has \(5, 3\)"),
        ({"wrt": ("Y",)}, "no step 'Y'"),
    ],
)
def test_a_gradient_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(regard.RegardError, match=message):
        multi_head().gradient(**arguments)


def test_levels_show_more_and_more() -> None:
    trace = regard.work("dot-product", s=[1, 2, 1], h=[[1, 2, 3], [1, 2, 1], [0, 1, -1]])
    texts = [trace.to_text(level=level) for level in ("result", "steps", "entries")]
    assert "c = (0.9992, 1.9992, 2.7586)" in texts[0]
    assert len(texts[0].splitlines()) < 6
    assert "scores" in texts[1]
    assert "1·1" not in texts[1]
    assert "1·1 + 2·2 + 3·1 = 8" in texts[2]
    with pytest.raises(regard.OptionError, match=r"`level` must be one of .*'stepps'"):
        trace.to_text(level="stepps")


def test_an_unknown_keyword_of_showing_is_refused() -> None:
    trace = regard.work("dot-product", s=[1], h=[[1], [2]])
    with pytest.raises(regard.OptionError, match=r"'digit'.*did you mean 'digits'"):
        trace.to_text(digit=3)


def test_a_notebook_gets_html_and_text() -> None:
    bundle = multi_head()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "<math" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


def test_the_shift_is_told_only_where_it_happens() -> None:
    near = regard.work("dot-product", s=[1.0], h=[[1.0], [2.0]])
    far = regard.work("dot-product", s=[1000.0], h=[[1.0], [2.0]])
    assert "subtracts the largest" not in near.to_text()
    assert "subtracts the largest" in far.to_text()
    np.testing.assert_allclose(near["exp"].value, np.exp([1.0, 2.0]), rtol=1e-15)
    np.testing.assert_array_equal(far["weights"].value, [0.0, 1.0])


def test_rounding_residue_prints_as_zero_but_small_weights_do_not() -> None:
    residue = regard.work("self-attention", X=[[0.1, 0.2, -0.3]], WQ=[[1], [1], [1]],
                          WK=[[1], [1], [0]], WV=[[1], [0], [0]])  # fmt: skip
    assert residue["Q"].value[0, 0] != 0
    assert "e−17" not in residue.to_text(only="Q")
    assert "e-17" not in residue.to_text(only="Q")
    small = regard.work("dot-product", s=[100.0], h=[[1.0], [2.0]])
    assert "3.7e" in small.to_text(only="weights")


# ---- what a mask hides -----------------------------------------------------------------------


def test_what_a_mask_hides_looks_different_from_a_score_of_minus_infinity() -> None:
    q, k = [[1.0, 0.0], [0.0, 1.0]], [[-np.inf, 1.0], [1.0, 2.0]]
    q[0][1] = q[1][0] = 1.0
    trace = regard.work("attention", Q=q, K=k, V=[[1.0], [2.0]], causal=True, scale=1)
    text = trace.to_text(only="masked", width=200)
    note = "Note: ■ is hidden by the mask: −∞, whatever the score."
    assert "= ⎡−∞  ■⎤" in text
    assert text.count(note) == 1
    assert r"-\infty & \blacksquare" in trace.to_latex(only="masked")
    assert '<mi class="masked" mathvariant="normal">■</mi>' in trace.to_html(only="masked")
    mask = trace.to_text(only="mask_causal")
    assert "−∞" in mask
    assert "hidden" not in mask


@pytest.mark.parametrize("numbers", ["float64", "exact", "certified"])
def test_what_is_hidden_is_known_in_all_numbers_and_for_every_head(numbers: str) -> None:
    x = np.ones((2, 3, 1))
    weights = {name: np.ones((1, 2)) for name in ("WQ", "WK", "WV")}
    trace = regard.work("multi-head", X=x, heads=2, lengths=[1, 3], numbers=numbers, **weights)
    text = trace.to_text(only="masked", width=200)
    result = [line.rpartition("=")[2] for line in text.splitlines()]
    assert sum(line.count("■ ") + line.count("■⎤") for line in result if "⎤" in line) == 4
    put_in = trace.replace(masked=np.zeros((2, 2, 3, 3)))
    assert "hidden" not in put_in.to_text(only="masked")
    assert "hidden" not in trace.to_text(only="context")


def test_masks_put_together_are_no_scores() -> None:
    ones = np.ones((3, 2))
    trace = regard.work("attention", Q=ones, K=ones, V=ones, causal=True, lengths=2)
    assert "■ mask_all" in (text := trace.to_text(only="mask_all"))
    assert "hidden" not in text
