"""Exact numbers: closed forms, agreement with the other numbers, zero decided, limits stated."""

from __future__ import annotations

import importlib
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard._errors import MissingExtraError, NumberError, OptionError, SizeLimitError
from regard.graph.builders import build
from regard.graph.gradient import backward
from regard.graph.numbers import numbers_named, read_given
from regard.graph.run import Run, run

sympy = pytest.importorskip("sympy")
pytest.importorskip("flint")
exact = pytest.importorskip("regard.graph.exact", exc_type=ImportError)
enclosure, is_zero, tidy = exact.enclosure, exact.is_zero, exact.tidy

E = sympy.E
root = sympy.sqrt
rational = sympy.Rational
exp = sympy.exp


def worked(numbers: str, kind: str, options: dict[str, Any], givens: dict[str, Any]) -> Run:
    read = {name: read_given(name, value) for name, value in givens.items()}
    graph = build(kind, {name: value.shape for name, value in read.items()}, **options)
    return run(graph, read, numbers_named(numbers))


def attention(numbers: str = "exact", scale: Any = 1, **givens: Any) -> Run:
    return worked(numbers, "attention", {"scale": scale}, givens)


ONE_ONE_ZERO: dict[str, Any] = {"Q": [[1]], "K": [[1], [1], [0]]}  # scores 1, 1, 0
VALUES: dict[str, Any] = {"V": [[1, 0], [0, 1], [2, 3]]}

# ---- closed forms --------------------------------------------------------------------------


def test_softmax_of_1_1_0_is_written_with_e() -> None:
    weights = attention(**ONE_ONE_ZERO, **VALUES).values["weights"]
    assert weights.tolist() == [[E / (2 * E + 1), E / (2 * E + 1), 1 / (2 * E + 1)]]
    assert list(map(str, weights[0])) == ["E/(1 + 2*E)", "E/(1 + 2*E)", "1/(1 + 2*E)"]


def test_a_weighted_average_stands_over_one_denominator() -> None:
    context = attention(**ONE_ONE_ZERO, **VALUES).values["context"]
    assert list(map(str, context[0])) == ["(2 + E)/(1 + 2*E)", "(E + 3)/(1 + 2*E)"]


def test_coefficients_above_are_whole_numbers() -> None:
    context = attention(**ONE_ONE_ZERO, V=[[0.1], [0.5], ["1/3"]]).values["context"]
    assert str(context[0, 0]) == "(5 + 9*E)/(15*(1 + 2*E))"


def test_scaling_by_the_root_of_four() -> None:
    """Scores 0 and 2, halved: the weights are 1 and e over 1 + e."""
    keys, values = [[0, 0, 0, 0], [1, 1, 0, 0]], [[1, 0], [0, 1]]
    weights = attention(scale="sqrt", Q=[[1, 1, 0, 0]], K=keys, V=values).values["weights"]
    assert weights.tolist() == [[1 / (1 + E), E / (1 + E)]]


def test_surds_stay_surds() -> None:
    scaled = attention(scale="sqrt", Q=[[1, 2]], K=[[2, 1], [1, 1]], V=[[1], [2]]).values["scaled"]
    assert scaled.tolist() == [[2 * root(2), 3 * root(2) / 2]]


def test_equal_scores_give_plain_fractions() -> None:
    weights = attention(Q=[[0]], K=[[1], [2], [3]], V=[[1], [2], [3]]).values["weights"]
    assert weights.tolist() == [[rational(1, 3)] * 3]


def test_a_constant_column_of_values_comes_back_as_itself() -> None:
    context = attention(Q=[[1]], K=[[1], [2], [0]], V=[["5/7"], ["5/7"], ["5/7"]]).values["context"]
    assert context.tolist() == [[rational(5, 7)]]


def test_floats_are_the_decimals_they_print_as() -> None:
    read = attention(Q=[[0.8]], K=[["1/3"]], V=[[0.1]])
    assert read.values["Q"][0, 0] == rational(4, 5)
    assert read.values["scores"][0, 0] == rational(4, 15)


def test_causal_attention_by_hand() -> None:
    rows = [[1, 0], [0, 1]]
    result = worked(
        "exact", "attention", {"causal": True, "scale": 1}, {"Q": rows, "K": rows, "V": rows}
    )
    assert result.values["weights"].tolist() == [[1, 0], [1 / (1 + E), E / (1 + E)]]
    assert result.values["masked"][0, 1] == -sympy.oo


def test_a_row_that_may_attend_to_nothing_gets_zeros() -> None:
    mask = np.array([[False, False, False]])
    result = attention(**ONE_ONE_ZERO, **VALUES, mask=mask)
    assert result.values["weights"].tolist() == [[0, 0, 0]]
    assert result.values["context"].tolist() == [[0, 0]]


def test_heads_keep_their_own_denominators() -> None:
    """Two heads with scores 1, 0 and 2, 0, whose outputs are added."""
    wide = {"X": [[1], [0]], "WQ": [[1, 2]], "WK": [[1, 1]], "WV": [[1, 1]], "WO": [[3], [5]]}
    output = worked("exact", "multi-head", {"heads": 2, "scale": 1}, wide).values["output"]
    assert output[0, 0] == 3 * E / (1 + E) + 5 * exp(2) / (1 + exp(2))
    assert len(output[0, 0].args) == 2


def test_equal_rotations_cancel() -> None:
    """q·k depends on the distance alone: at distance 0 no angle is left."""
    rows = [[1, 2], [1, 2], [1, 2]]
    options = {"positions": "rotary", "scale": 1}
    scores = worked("exact", "attention", options, {"Q": rows, "K": rows, "V": rows}).values[
        "scores"
    ]
    assert [scores[i, i] for i in range(3)] == [5, 5, 5]
    assert scores[0, 1] == scores[1, 2] == 5 * sympy.cos(1)


def test_gelu_and_normalisation_in_closed_form() -> None:
    """A row 1, −1 has mean 0 and variance 1: without ε it stays; then GELU weighs with Φ."""
    one, zero = [[1, 0], [0, 1]], [[0, 0], [0, 0]]
    givens = {"X": [[1, -1]], "WQ": one, "WK": one, "WV": zero, "WO": one}
    givens |= {"W1": one, "W2": one}
    values = worked("exact", "decoder-block", {"heads": 1, "eps": 0}, givens).values
    assert values["norm_2"].tolist() == [[1, -1]]
    assert is_zero(values["active"][0, 0] - (1 + sympy.erf(1 / root(2))) / 2)


def test_backward_of_softmax_in_closed_form() -> None:
    """dA = (1, 2, 8): the last score's gradient is (8 − (3e + 8)/(2e + 1))/(2e + 1)."""
    forward = attention(**ONE_ONE_ZERO, **VALUES)
    graph = backward(forward.graph, "context", ("Q", "K", "V"))
    seed = {"d_context": read_given("d_context", [[1, 2]])}
    values = run(graph, {**forward.givens, **seed}, forward.numbers).values
    assert str(values["d_scores"][0, 2]) == "13*E/(1 + 2*E)**2"
    assert str(values["d_Q"][0, 0]) == "-13*E/(1 + 2*E)**2"


def test_four_dimensional_course_example_stays_readable() -> None:
    """Two heads over two tokens with decimal weights: the output is two short fractions."""
    tens = [[Fraction(1 + column + 3 * row, 10) for column in range(3)] for row in range(4)]
    heads = [tens, [[entry + Fraction(1, 10) for entry in row] for row in tens]]
    givens = {"X": [[1, 2, 3, 4], [5, 6, 7, 8]], "WQ": heads, "WK": heads, "WV": heads}
    output = worked("exact", "multi-head", {}, givens | {"WO": np.eye(6)}).values["output"]
    assert max(exact._parts(entry, {}) for entry in output.flat) < 50


small = st.integers(-3, 3)


@settings(max_examples=15)
@given(st.lists(st.tuples(small, small), min_size=1, max_size=4), st.tuples(small, small))
def test_weights_sum_to_one_exactly(keys: list[tuple[int, int]], query: tuple[int, int]) -> None:
    ones = [[1]] * len(keys)
    values = attention(scale="sqrt", Q=[query], K=keys, V=ones).values
    assert values["context"].tolist() == [[1]]
    assert tidy(sympy.Add(*values["weights"].flat)) == 1


# ---- the other numbers ---------------------------------------------------------------------

rng = np.random.default_rng(7)


def sixty_fourths(*shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(-64, 65, shape) / 64


def matrices(model: int, keys: int, values: int) -> dict[str, Any]:
    widths = {"WQ": keys, "WK": keys, "WV": values}
    return {name: sixty_fourths(model, width) for name, width in widths.items()}


X = {"X": sixty_fourths(3, 5)}
QKV = {"Q": sixty_fourths(2, 3), "K": sixty_fourths(5, 3), "V": sixty_fourths(5, 7)}
BATCH = {name: sixty_fourths(2, 3, *value.shape) for name, value in QKV.items()}
INF = np.inf
GAINS = {name: sixty_fourths(3) for name in ("gamma_1", "beta_1", "gamma_2", "beta_2")}
BLOCK = {"X": sixty_fourths(2, 3), "WO": sixty_fourths(3, 3), **matrices(3, 3, 3)}

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "dot-product": ("dot-product", {}, {"h": sixty_fourths(5, 3), "s": sixty_fourths(3)}),
    "values apart from keys": (
        "dot-product",
        {"scale": "1/2"},
        {"h": sixty_fourths(5, 3), "s": sixty_fourths(3), "v": sixty_fourths(5, 2)},
    ),
    "all sizes differ": ("attention", {}, QKV),
    "batch and heads": ("attention", {}, BATCH),
    "causal at the start": ("attention", {"causal": "top-left"}, QKV),
    "causal at the end": ("attention", {"causal": "bottom-right"}, QKV),
    "first row sees nothing": ("attention", {"causal": -1}, QKV),
    "window": ("attention", {"window": (1, 2)}, QKV),
    "boolean mask": ("attention", {}, QKV | {"mask": np.array([[1, 0, 1, 0, 1], [0] * 5], bool)}),
    "additive mask": ("attention", {}, QKV | {"mask": [[0, -INF, -0.5, 1, 0], [-INF] * 5]}),
    "bias with −∞": ("attention", {}, QKV | {"bias": [[0, -INF, -0.5, 1, 0], [0] * 5]}),
    "softcap": ("attention", {"softcap": "3/2"}, QKV),
    "lengths": (
        "self-attention",
        {"causal": True},
        {"X": sixty_fourths(2, 3, 5), "lengths": [2, 3], **matrices(5, 2, 7)},
    ),
    "prefix": ("self-attention", {}, X | {"prefix": 2} | matrices(5, 2, 7)),
    "biases and W_O": (
        "self-attention",
        {"scale": 1},
        X
        | matrices(5, 2, 7)
        | {"bQ": sixty_fourths(2), "bK": sixty_fourths(2), "bV": sixty_fourths(7)}
        | {"WO": sixty_fourths(7, 3), "bO": sixty_fourths(3)},
    ),
    "cross": (
        "cross-attention",
        {},
        {"X": sixty_fourths(2, 3), "Y": sixty_fourths(5, 7)}
        | {"WQ": sixty_fourths(3, 2), "WK": sixty_fourths(7, 2), "WV": sixty_fourths(7, 3)},
    ),
    "one matrix a head": (
        "multi-head",
        {},
        X
        | {"WQ": sixty_fourths(2, 5, 3), "WK": sixty_fourths(2, 5, 3), "WV": sixty_fourths(2, 5, 7)}
        | {"WO": sixty_fourths(14, 2)},
    ),
    "sinks": ("multi-head", {"heads": 2}, X | {"sinks": sixty_fourths(2)} | matrices(5, 6, 14)),
    "grouped-query": (
        "multi-head",
        {"heads": 4, "kv_heads": 2},
        X | {"WQ": sixty_fourths(5, 12), "WK": sixty_fourths(5, 6), "WV": sixty_fourths(5, 14)},
    ),
    "sinusoidal": (
        "self-attention",
        {"positions": "sinusoidal"},
        {"X": sixty_fourths(3, 2), **matrices(2, 5, 7)},
    ),
    "learned": (
        "self-attention",
        {"positions": "learned"},
        X | {"P": sixty_fourths(3, 5)} | matrices(5, 2, 7),
    ),
    "rotary": ("self-attention", {"positions": "rotary"}, X | matrices(5, 4, 7)),
    "rotary in neighbouring pairs": (
        "self-attention",
        {"positions": "rotary", "rotary_layout": "interleaved", "rotary_base": 100},
        X | matrices(5, 4, 7),
    ),
    "alibi": ("multi-head", {"heads": 3, "positions": "alibi"}, X | matrices(5, 6, 3)),
    "alibi of one head": ("self-attention", {"positions": "alibi"}, X | matrices(5, 2, 7)),
    "block with LayerNorm and GELU": (
        "decoder-block",
        {"heads": 1, "causal": True},
        BLOCK | GAINS | {"W1": sixty_fourths(3, 2), "W2": sixty_fourths(2, 3)},
    ),
    "block with RMSNorm and SwiGLU": (
        "decoder-block",
        {"heads": 1, "norm": "rms", "feed_forward": "swiglu", "causal": True},
        BLOCK | {"WG": sixty_fourths(3, 2), "WU": sixty_fourths(3, 2), "WD": sixty_fourths(2, 3)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_all_numbers_agree(case: str) -> None:
    """Every exact entry lies in its certified ball, and float64 is near it."""
    in_float, certified, in_exact = (
        worked(numbers, *CASES[case]).values for numbers in ("float64", "certified", "exact")
    )
    for step, balls in certified.items():
        for ball, entry in zip(balls.flat, in_exact[step].flat, strict=True):
            bounds = enclosure(entry, 300)
            assert bounds.overlaps(ball), f"{step}: {entry} = {bounds}, but certified says {ball}"
        if step not in ("exp", "sums"):  # float64 subtracts the maximum there
            near = np.vectorize(float)(balls)
            np.testing.assert_allclose(in_float[step], near, rtol=1e-10, atol=1e-13, err_msg=step)


# ---- zero or not ---------------------------------------------------------------------------

RAMANUJAN = exp(sympy.pi * root(163)) - 262537412640768744  # about −7.5e−13
E_TO_THE_SINE = exp(sympy.sin(1))
SIXTY_DIGITS_OF_IT = rational(str(sympy.N(E_TO_THE_SINE, 60)))
HUNDRED_DIGITS_OF_E = rational(str(sympy.N(E, 100)))


@pytest.mark.parametrize(
    ("value", "expected", "reason"),
    [
        (2 * E / (2 * E + 1) + 1 / (2 * E + 1) - 1, True, "weights sum to 1"),
        (root(5 + 2 * root(6)) - root(2) - root(3), True, "a surd within a surd"),
        (sympy.sin(1) ** 2 + sympy.cos(1) ** 2 - 1, True, "Pythagoras"),
        (RAMANUJAN, False, "twelve zeros after the point"),
        (E - HUNDRED_DIGITS_OF_E, False, "a hundred digits agree"),
        (E_TO_THE_SINE - SIXTY_DIGITS_OF_IT, False, "sixty digits agree, and SymPy gives up"),
        (exp(root(2)) - E, False, "plainly apart"),
        (-sympy.oo, False, "masked"),
        (rational(0), True, "zero itself"),
    ],
)
def test_zero_is_decided_with_proof(value: Any, expected: bool, reason: str) -> None:
    assert is_zero(value) is expected, reason


def test_an_open_question_is_an_error_not_a_guess() -> None:
    hidden = sympy.erf(sympy.sin(1) ** 2) - sympy.erf(1 - sympy.cos(1) ** 2 + sympy.Symbol("x"))
    with pytest.raises(NumberError, match="no bounds are known for x"):
        is_zero(hidden)


@pytest.mark.parametrize("value", [sympy.pi, E, root(2), exp(3) / (1 + exp(rational(-1, 3)))])
def test_bounds_contain_the_value(value: Any) -> None:
    bounds = enclosure(value, 100)
    far = Fraction(str(sympy.N(value, 60)))
    middle, power = bounds.mid().man_exp()
    distance = abs(int(middle) * Fraction(2) ** int(power) - far)
    assert distance < abs(far) * Fraction(1, 2**90)


# ---- limits and refusals -------------------------------------------------------------------


def test_beyond_the_size_limit_another_reading_is_named() -> None:
    rows = np.ones((17, 16))
    with pytest.raises(
        SizeLimitError, match=f'Q has 272 .* up to {exact.MOST_ENTRIES} .*"certified"'
    ):
        attention(Q=rows, K=rows, V=rows)


def test_a_formula_that_grows_too_long_names_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_PARTS", 10)
    with pytest.raises(SizeLimitError, match=r'context: .* formula of \d+ parts, .* 10: .*"cert'):
        attention(**ONE_ONE_ZERO, **VALUES)


def test_nan_is_refused_by_name() -> None:
    with pytest.raises(NumberError, match="K: exact numbers know no NaN"):
        attention(Q=[[1]], K=[[np.nan]], V=[[1]])


def test_plus_infinity_is_refused_by_name() -> None:
    with pytest.raises(NumberError, match="V: exact numbers know no \\+∞"):
        attention(Q=[[1]], K=[[1]], V=[[INF]])


def test_an_infinite_query_is_no_exact_score() -> None:
    with pytest.raises(NumberError, match="scores: an entry is nan"):
        attention(Q=[[-INF]], K=[[0]], V=[[1]])


def test_numbers_of_no_known_name() -> None:
    with pytest.raises(OptionError, match="did you mean 'exact'"):
        numbers_named("exakt")


@pytest.mark.parametrize(
    ("word", "missing", "command"),
    [
        ("exact", "sympy", "exact numbers needs sympy.*pip install 'regard\\[exact\\]'"),
        ("certified", "flint", "certified numbers needs python-flint.*'regard\\[exact\\]'"),
    ],
)
def test_a_missing_extra_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, word: str, missing: str, command: str
) -> None:
    monkeypatch.delitem(sys.modules, f"regard.graph.{word}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    importlib.import_module("regard.graph.numbers")
    with pytest.raises(MissingExtraError, match=command):
        numbers_named(word)
