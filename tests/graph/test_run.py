"""Runs: steps in order and by name, values put in, and what is masked never leaking."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._errors import NoSuchStepError, NumberError, OptionError, ShapeError, SizeLimitError
from regard.graph.builders import build
from regard.graph.graph import Graph, Step
from regard.graph.numbers import Float64, as_printed, read_given
from regard.graph.operation import Operation
from regard.graph.operations import OPERATIONS, Add, MatMul, Negate
from regard.graph.run import Run, run

NAN = np.nan


def worked(kind: str, options: dict[str, Any] | None = None, **givens: Any) -> Run:
    read = {name: read_given(name, value) for name, value in givens.items()}
    graph = build(kind, {name: value.shape for name, value in read.items()}, **options or {})
    return run(graph, read)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def self_attention() -> Run:
    weights = {name: normal(5, 3, seed=i) for i, name in enumerate(("WQ", "WK", "WV"))}
    return worked("self-attention", X=normal(7, 5), **weights)


# ---- order and names -------------------------------------------------------------------------


def test_closed_form() -> None:
    """Scores ln 1, ln 2, ln 5 give weights 1/8, 2/8, 5/8."""
    keys = np.log([[1.0], [2.0], [5.0]])
    values = worked("dot-product", s=[1], h=keys, v=[[8, 0], [0, 8], [16, 16]]).values
    np.testing.assert_allclose(values["weights"], [1 / 8, 2 / 8, 5 / 8], rtol=1e-15)
    np.testing.assert_allclose(values["context"], [1 + 10, 2 + 10], rtol=1e-15)


def test_steps_stand_in_the_order_of_their_computation() -> None:
    run = self_attention()
    names = ["X", "WQ", "WK", "WV", "Q", "K", "V"]
    names += ["scores", "scaled", "exp", "sums", "weights", "context"]
    assert list(run.values) == names == list(run.graph.names)


def test_tensor_names_its_axes() -> None:
    tensor = self_attention().tensor("weights")
    assert tensor.names == ("query", "key")
    assert tensor.array.shape == (7, 7)


@pytest.mark.parametrize(
    ("name", "hint"), [("weight", "did you mean 'weights'"), ("zzz", "known: X, WQ")]
)
def test_unknown_names(name: str, hint: str) -> None:
    run = self_attention()
    with pytest.raises(NoSuchStepError, match=f"no step '{name}' in this self-attention: {hint}"):
        run.tensor(name)
    with pytest.raises(NoSuchStepError, match=hint):
        run.replace(**{name: 1})


def test_a_given_is_no_step() -> None:
    with pytest.raises(NoSuchStepError, match="'X' is given, not computed"):
        self_attention().graph.step("X")


@pytest.mark.parametrize("kind", ["gelu", "swiglu"])
def test_every_symbol_is_used_once(kind: str) -> None:
    block = dict.fromkeys(("WQ", "WK", "WV", "WO", "W1", "W2", "WG", "WU", "WD"), (11, 11))
    spare = ("WG", "WU", "WD") if kind == "gelu" else ("W1", "W2")
    shapes: dict[str, tuple[int, ...]] = {"X": (5, 11)}
    shapes |= {name: shape for name, shape in block.items() if name not in spare}
    vectors = ("gamma_1", "beta_1", "gamma_2", "beta_2", "bQ", "bK", "bV", "bO")
    shapes |= dict.fromkeys(vectors, (11,))
    shapes |= {"sinks": (1,), "bias": (5, 5), "mask": (5, 5), "lengths": ()}
    shapes |= {"b1": (11,), "b2": (11,)} if kind == "gelu" else {}
    options = {"heads": 1, "feed_forward": kind, "positions": "alibi", "softcap": 3, "window": 2}
    graph = build("decoder-block", shapes, causal=True, **options)
    symbols = [graph.symbol(name) for name in graph.names]
    assert len(set(symbols)) == len(symbols)


# ---- what a graph refuses --------------------------------------------------------------------


def test_a_graph_names_what_is_used_too_early() -> None:
    graph = self_attention().graph
    with pytest.raises(ValueError, match=r"'Q' uses \['WQ', 'X'\] before"):
        Graph("k", (), graph.steps)


def test_a_graph_has_no_two_steps_of_one_name() -> None:
    graph = self_attention().graph
    with pytest.raises(ValueError, match="two steps are called 'Q'"):
        graph.with_steps((*graph.steps, graph.step("Q")))


def test_a_step_has_as_many_operands_as_its_operation_takes() -> None:
    graph = self_attention().graph
    step = Step("twice", graph.symbol("Q"), Add(), ("Q",))
    with pytest.raises(ValueError, match="'twice' has 1 operands, but the operation add takes 2"):
        graph.with_steps((*graph.steps, step))


def test_a_graph_survives_pickling_and_hashing() -> None:
    graph = self_attention().graph
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph
    assert hash(again) == hash(graph)
    assert again.axes == graph.axes


def test_every_operation_stands_in_the_table() -> None:
    def leaves(kind: Any) -> set[Any]:
        below = {leaf for sub in kind.__subclasses__() for leaf in leaves(sub)}
        return below | ({kind} if hasattr(kind, "word") else set())

    assert set(OPERATIONS.values()) == leaves(Operation)
    assert all(word == operation.word for word, operation in OPERATIONS.items())


def test_a_missing_given_is_named() -> None:
    graph = build("attention", {"Q": (3, 2), "K": (5, 2), "V": (5, 7)})
    with pytest.raises(OptionError, match="attention needs V, which was not given"):
        run(graph, {"Q": normal(3, 2), "K": normal(5, 2)})


def test_a_given_of_another_shape_is_named() -> None:
    graph = build("attention", {"Q": (3, 2), "K": (5, 2), "V": (5, 7)})
    with pytest.raises(ShapeError, match="V must be 5×7, as the graph was built, but 5×2"):
        run(graph, {"Q": normal(3, 2), "K": normal(5, 2), "V": normal(5, 2)})


# ---- values put in ---------------------------------------------------------------------------

DOWNSTREAM_OF_Q = {"Q", "scores", "scaled", "exp", "sums", "weights", "context"}


def unchanged(before: Run, after: Run) -> set[str]:
    return {name for name in before.values if before.values[name] is after.values[name]}


def test_replace_redoes_only_what_follows() -> None:
    before = self_attention()
    q = normal(7, 3, seed=9)
    after = before.replace(Q=q)
    assert set(before.values) - unchanged(before, after) == DOWNSTREAM_OF_Q
    k, v = before.values["K"], before.values["V"]
    powers = np.exp(q @ k.T / np.sqrt(3))
    np.testing.assert_allclose(
        after.values["context"], powers / powers.sum(1, keepdims=True) @ v, rtol=1e-12
    )
    assert list(after.values) == list(before.values)


def test_replace_a_given() -> None:
    before = self_attention()
    wk = normal(5, 3, seed=9)
    after = before.replace(WK=wk)
    assert unchanged(before, after) == {"X", "WQ", "WV", "Q", "V"}
    np.testing.assert_allclose(after.values["K"], before.values["X"] @ wk)


def test_a_replaced_step_stays_when_something_before_it_changes() -> None:
    """An answer that was put in is judged on its own; only what follows from it follows."""
    weights = np.full((7, 7), 1 / 7)
    first = self_attention().replace(weights=weights)
    second = first.replace(Q=normal(7, 3, seed=9))
    changed = {"Q", "scores", "scaled", "exp", "sums"}
    assert set(first.values) - unchanged(first, second) == changed
    np.testing.assert_array_equal(second.values["weights"], weights)


def test_the_last_replacement_counts() -> None:
    ones, twos = np.ones((7, 7)), np.full((7, 7), 2.0)
    run = self_attention().replace(weights=ones).replace(weights=twos)
    np.testing.assert_allclose(run.values["context"], twos @ run.values["V"])
    assert set(run.replaced) == {"weights"}


def test_several_replacements_at_once() -> None:
    run = self_attention().replace(weights=np.eye(7), V=np.ones((7, 3)))
    np.testing.assert_array_equal(run.values["context"], np.ones((7, 3)))


def test_replacing_a_step_by_its_own_value_changes_nothing() -> None:
    before = self_attention()
    for name in before.values:
        after = before.replace(**{name: before.values[name]})
        for other, value in before.values.items():
            np.testing.assert_array_equal(after.values[other], value)


@pytest.mark.parametrize(
    ("value", "shape"), [(np.ones((3, 7)), "3×7"), (1.0, "a single number"), ([[]], "1×0")]
)
def test_a_replacement_of_another_shape_is_refused(value: Any, shape: str) -> None:
    with pytest.raises(ShapeError, match=f"replace: Q is 7×3, but {shape} was passed"):
        self_attention().replace(Q=value)


def test_what_is_passed_in_is_copied() -> None:
    x = normal(7, 5)
    before = worked("self-attention", X=x, **{n: normal(5, 3) for n in ("WQ", "WK", "WV")})
    x[:] = 0
    assert np.all(before.values["X"] != 0)


# ---- what is masked never leaks --------------------------------------------------------------

MASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "length": ({}, {"lengths": 3}),
    "boolean mask": ({}, {"mask": np.arange(7) < np.full((5, 1), 3)}),
    "additive mask": ({}, {"mask": np.where(np.arange(7) < np.full((5, 1), 3), 0, -np.inf)}),
    "window": ({"window": (2, 0), "causal": -3}, {}),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bad", [NAN, np.inf, -np.inf])
def test_masked_keys_and_values_never_leak(mask: str, bad: float) -> None:
    options, givens = MASKS[mask]
    q, k, v = normal(5, 2), normal(7, 2, seed=1), normal(7, 11, seed=2)
    clean = worked("attention", options, Q=q, K=k, V=v, **givens)
    hidden = clean.values["weights"].max(axis=0) == 0
    assert hidden.any()
    k[hidden], v[hidden] = bad, bad
    poisoned = worked("attention", options, Q=q, K=k, V=v, **givens)
    np.testing.assert_allclose(poisoned.values["context"], clean.values["context"], rtol=1e-12)
    np.testing.assert_array_equal(poisoned.values["weights"], clean.values["weights"])


def test_the_future_never_leaks() -> None:
    """Row i of the output stays as it is, whatever all later tokens are."""
    heads = {name: normal(3, 5, 2, seed=i) for i, name in enumerate(("WQ", "WK", "WV"))}
    x = normal(2, 7, 5)
    clean = worked("multi-head", {"causal": True}, X=x, **heads).values["merged"]
    for i in range(7):
        later = x.copy()
        later[:, i + 1 :] = NAN
        poisoned = worked("multi-head", {"causal": True}, X=later, **heads).values["merged"]
        np.testing.assert_allclose(poisoned[:, : i + 1], clean[:, : i + 1], rtol=1e-13)


def test_nan_in_a_live_input_stays_nan() -> None:
    k, v = normal(7, 2), normal(7, 11)
    v[2, 4] = NAN
    context = worked("attention", {"causal": 0}, Q=normal(5, 2), K=k, V=v).values["context"]
    wanted = np.zeros((5, 11), dtype=bool)
    wanted[2:, 4] = True  # the queries that see key 2
    np.testing.assert_array_equal(np.isnan(context), wanted)


def test_a_live_weight_that_vanishes_is_not_masked() -> None:
    """e^−2000 is 0 in float64, and still 0 · NaN is NaN: the key may be attended to."""
    givens = {"Q": [[1.0]], "K": [[0.0], [-2000.0], [5.0]], "V": [[1.0], [NAN], [3.0]]}
    run = worked("attention", {"scale": 1}, lengths=2, **givens)
    assert run.values["weights"].tolist() == [[1, 0, 0]]
    assert np.isnan(run.values["context"]).all()


@pytest.mark.parametrize("options", [{}, {"softcap": 3}, {"positions": "alibi"}])
def test_a_query_that_sees_nothing_gets_nothing(options: dict[str, Any]) -> None:
    mask = np.ones((5, 7), dtype=bool)
    mask[3] = False
    v = normal(7, 11)
    v[0] = NAN
    mask[:, 0] = False
    values = worked("attention", options, Q=normal(5, 2), K=normal(7, 2), V=v, mask=mask).values
    assert not values["weights"][3].any()
    assert not values["context"][3].any()
    assert np.isfinite(values["context"]).all()


@given(st.integers(-8, 8), st.integers(1, 4), st.integers(1, 4))
def test_more_queries_than_keys_and_fewer(offset: int, queries: int, keys: int) -> None:
    q, k, v = normal(queries, 2), normal(keys, 2), np.eye(keys)
    context = worked("attention", {"causal": offset}, Q=q, K=k, V=v).values["context"]
    seen = np.arange(keys) <= np.arange(queries)[:, None] + offset
    np.testing.assert_array_equal(context > 0, seen)


def test_large_scores_do_not_overflow() -> None:
    values = worked("attention", {"scale": 1}, Q=[[1e6]], K=[[1], [2], [-3]], V=np.eye(3)).values
    assert values["weights"].tolist() == [[0, 1, 0]]
    values = worked("attention", {"scale": 1}, Q=[[-1e3]], K=[[1], [1]], V=np.eye(2)).values
    assert values["weights"].tolist() == [[0.5, 0.5]]


# ---- nothing there ---------------------------------------------------------------------------


def test_no_keys_give_zeros() -> None:
    values = worked("attention", Q=normal(5, 2), K=np.ones((0, 2)), V=np.ones((0, 3))).values
    assert values["weights"].shape == (5, 0)
    assert values["context"].tolist() == [[0, 0, 0]] * 5


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"positions": "alibi"}, {"window": 1}])
@pytest.mark.parametrize("shape", [(0, 5), (2, 0, 5), (0, 7, 5)])
def test_no_tokens_give_an_empty_result(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    weights = {name: np.ones((5, 6)) for name in ("WQ", "WK", "WV")}
    run = worked("multi-head", options | {"heads": 3}, X=np.ones(shape), **weights)
    assert run.values["merged"].shape == (*shape[:-1], 6)


def test_no_tokens_with_a_sink() -> None:
    givens = {"Q": normal(5, 2), "K": np.ones((0, 2)), "V": np.ones((0, 3)), "sinks": 1}
    values = worked("attention", **givens).values
    assert values["weights"].tolist() == [[1]] * 5
    assert values["context"].tolist() == [[0, 0, 0]] * 5


# ---- numbers that are passed in --------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (["1/4", "0.1", "−2"], [0.25, 0.1, -2]),
        (["inf", "−∞", "NaN"], [np.inf, -np.inf, NAN]),
        ([2**60 + 1], [float(2**60)]),
        (np.array([0.5], dtype=np.float32), [0.5]),
        ([[]], [[]]),
    ],
)
def test_numbers_in_many_spellings(value: Any, read: Any) -> None:
    found = np.asarray(read_given("Q", value), dtype=float)
    np.testing.assert_array_equal(found, read)


def test_text_and_large_integers_stay_exact() -> None:
    assert read_given("Q", ["1/3"])[0] * 3 == 1
    assert read_given("Q", [2**60 + 1])[0] == 2**60 + 1
    assert read_given("Q", "1/3").shape == ()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1j], "an array of complex128"),
        ([[1, 2], [3]], "the rows have different lengths"),
        (["0.8", "abc"], "'abc' is no number"),
        (["1/0"], "'1/0' is no number"),
        (["1e99999999"], "'1e99999999' is no number"),
        ([b"1"], "b'1' is no number"),
        ([None], "None is no number"),
        ({}, "{} is no number"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "datetime64"),
    ],
)
def test_what_is_no_number(value: Any, reason: str) -> None:
    with pytest.raises(NumberError, match=f"Q: .*{reason}"):
        read_given("Q", value)


def test_true_and_false_are_for_masks_alone() -> None:
    givens: dict[str, Any] = {"Q": normal(5, 2), "K": normal(7, 2), "V": normal(7, 3)}
    with pytest.raises(NumberError, match="V: numbers are wanted, but True and False were passed"):
        worked("attention", **givens | {"V": np.ones((7, 3), dtype=bool)})
    run = worked("attention", {"causal": 0}, **givens)
    seen = run.replace(mask_causal=np.ones((5, 7), dtype=bool))
    assert not seen.values["mask_causal"].any()
    with pytest.raises(NumberError, match="masked: numbers are wanted"):
        run.replace(masked=np.ones((5, 7), dtype=bool))


@pytest.mark.parametrize("kind", [float, int, str])
def test_a_mask_of_the_numbers_0_and_1_is_refused(kind: type) -> None:
    ones = np.arange(7) < np.full((5, 1), 3)
    givens = {"Q": normal(5, 2), "K": normal(7, 2), "V": normal(7, 3)}
    message = r"mask: a mask of the numbers 0 and 1 is unclear: .* `bias` to add them"
    with pytest.raises(NumberError, match=message):
        worked("attention", mask=ones.astype(int).astype(kind), **givens)
    for adding in (np.zeros((5, 7)), np.where(ones, 0, 2), np.where(ones, 1, -np.inf)):
        run = worked("attention", mask=adding, **givens)
        np.testing.assert_allclose(run.values["masked"], run.values["scaled"] + adding)
    added = worked("attention", bias=ones.astype(float), **givens)
    np.testing.assert_allclose(added.values["biased"], added.values["scaled"] + ones)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_short_floats_are_read_as_the_decimals_that_they_print_as(kind: type) -> None:
    value = np.array([0.8, -0.1, 1e-7, np.inf], dtype=kind)
    given = read_given("Q", value)
    assert as_printed(given).tolist()[:2] == [Fraction(4, 5), Fraction(-1, 10)]
    assert as_printed(given)[3] == np.inf
    assert Float64().array(given).tolist() == value.astype(float).tolist()
    value[:] = 0
    assert given.any()


def test_a_number_beyond_float64_is_named() -> None:
    with pytest.raises(NumberError, match="Q: a number is too large for float64"):
        worked("attention", Q=[["1e999"]], K=[[1]], V=[[1]])


def test_torch_tensors_keep_their_kind() -> None:
    torch = pytest.importorskip("torch")
    assert read_given("mask", torch.tensor([True, False])).dtype == bool
    assert read_given("Q", torch.ones(2, dtype=torch.bfloat16, requires_grad=True)).tolist() == [
        1,
        1,
    ]
    assert as_printed(read_given("Q", torch.tensor([0.8])))[0] == Fraction(4, 5)
    with pytest.raises(NumberError, match="complex64"):
        read_given("Q", torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("name", ["lengths", "prefix"])
@pytest.mark.parametrize("count", [8, -1, 2.5, NAN, np.inf])
def test_lengths_that_are_none(name: str, count: float) -> None:
    options = {"causal": "top-left"} if name == "prefix" else {}
    givens = {"Q": normal(5, 2), "K": normal(7, 2), "V": normal(7, 3), name: count}
    with pytest.raises(
        NumberError, match=f"a whole number from 0 to 7 .*but {float(count)} was passed"
    ):
        worked("attention", options, **givens)


def test_the_operations_are_frozen() -> None:
    with pytest.raises(AttributeError):
        MatMul().rows = "key"  # type: ignore[misc]
    assert Negate() == Negate()


def test_a_computation_that_cannot_fit_is_refused_before_it_runs() -> None:
    x = np.zeros((30_000, 1))
    message = (
        r"self-attention: every step is kept, which takes 43\.2 GB, and 4\.0 GB is the most; "
        r"the largest is scores with 7\.2 GB"
    )
    with pytest.raises(SizeLimitError, match=message):
        worked("self-attention", {"causal": True}, X=x, WQ=[[1]], WK=[[1]], WV=[[1]])
