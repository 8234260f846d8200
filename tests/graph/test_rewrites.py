"""Rewrites: mistakes against NumPy code that makes them, and what every rewrite keeps."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._errors import RegardError, RewriteError
from regard.graph.builders import build
from regard.graph.graph import Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operations import OPERATIONS, Add, Exp, MatMul, Negate, Split
from regard.graph.rewrites import (
    HEADS_BY_VIEW,
    NO_SCALE,
    SCALE_BY_SIZE,
    SOFTMAX_OVER_HEADS,
    SOFTMAX_OVER_QUERIES,
    Change,
    Drop,
    Expand,
    Insert,
    MoveAfter,
    Operands,
    Rewrite,
    Skip,
    Substitute,
    Swap,
    softmax_over,
)
from regard.graph.run import run

Arrays = dict[str, Any]
HEADS, TOKENS, MODEL = 3, 5, 6  # 3 · 4 columns


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


GIVENS: Arrays = {
    "X": normal(1, 2, TOKENS, MODEL),
    "WQ": normal(2, MODEL, 12),
    "WK": normal(3, MODEL, 12),
    "WV": normal(4, MODEL, 12),
    "WO": normal(5, 12, 7),
}


def shapes(givens: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in givens.items()}


def multi_head(**options: Any) -> Graph:
    return build("multi-head", shapes(GIVENS), heads=HEADS, **options)


def attention() -> tuple[Graph, Arrays]:
    givens = {"Q": normal(1, 5, 3), "K": normal(2, 7, 3), "V": normal(3, 7, 11)}
    return build("attention", shapes(givens), causal="bottom-right"), givens


# ---- the five, against code that makes the mistake -------------------------------------------


def by_hand(
    scale: float = 0.5,  # 1/√4
    softmax_axis: int = -1,
    split: Callable[[Any], Any] = lambda a: a.reshape(2, TOKENS, HEADS, 4).transpose(0, 2, 1, 3),
    normalise: bool = True,
) -> Any:
    """Multi-head attention as a student writes it."""
    q, k, v = (split(GIVENS["X"] @ GIVENS[name]) for name in ("WQ", "WK", "WV"))
    weights = np.exp(scale * q @ k.swapaxes(-1, -2))
    if normalise:
        weights = weights / weights.sum(axis=softmax_axis, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(2, TOKENS, 12) @ GIVENS["WO"]


MISTAKES: dict[str, tuple[Rewrite, Any]] = {
    "no scale": (NO_SCALE, by_hand(scale=1)),
    "scale by d_k": (SCALE_BY_SIZE, by_hand(scale=0.25)),
    "scale multiplied": (Change("scaled", multiply=True), by_hand(scale=2)),
    "softmax over queries": (SOFTMAX_OVER_QUERIES, by_hand(softmax_axis=-2)),
    "softmax over heads": (SOFTMAX_OVER_HEADS, by_hand(softmax_axis=1)),
    "softmax over the batch": (softmax_over("batch"), by_hand(softmax_axis=0)),
    "softmax over everything of a head": (
        softmax_over("query", "key"), by_hand(softmax_axis=(-2, -1)),  # type: ignore[arg-type]
    ),
    "heads by view": (HEADS_BY_VIEW, by_hand(split=lambda a: a.reshape(2, HEADS, TOKENS, 4))),
    "heads interleaved": (
        Change(Split, layout="interleaved"),
        by_hand(split=lambda a: a.reshape(2, TOKENS, 4, HEADS).transpose(0, 3, 1, 2)),
    ),
    "exp without normalising": (
        Drop("weights") | Change(Exp, shift=False), by_hand(normalise=False),
    ),
    "no scale and softmax over queries": (
        NO_SCALE | SOFTMAX_OVER_QUERIES, by_hand(scale=1, softmax_axis=-2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    rewrite, wanted = MISTAKES[mistake]
    found = run(rewrite(multi_head()), GIVENS).values["output"]
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    assert not np.allclose(wanted, by_hand())


def test_no_mistake() -> None:
    np.testing.assert_allclose(run(multi_head(), GIVENS).values["output"], by_hand(), rtol=1e-11)


def test_softmax_over_another_axis_shifts_over_that_axis() -> None:
    """Shifted by the wrong maxima, large scores would give wrong quotients, or none."""
    givens = {"Q": 40 * normal(1, 5, 3), "K": 40 * normal(2, 7, 3), "V": normal(3, 7, 11)}
    graph = SOFTMAX_OVER_QUERIES(build("attention", shapes(givens)))
    scores = givens["Q"] @ givens["K"].T / np.sqrt(3)
    assert np.abs(scores).max() > 800  # e^800 is beyond float64
    powers = np.exp(scores - scores.max(axis=0))
    np.testing.assert_allclose(run(graph, givens).values["weights"], powers / powers.sum(axis=0))


def test_softmax_before_the_scale() -> None:
    """As a figure of a course has it: softmax, then division by √d_k."""
    graph, g = attention()
    found = run(MoveAfter("scaled", "weights")(graph), g)
    scores = np.where(np.tri(5, 7, 2) > 0, g["Q"] @ g["K"].T, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.values["scaled"], weights / np.sqrt(3), rtol=1e-12)
    np.testing.assert_allclose(found.values["context"], weights / np.sqrt(3) @ g["V"], rtol=1e-12)
    assert list(found.values)[-4:] == ["sums", "weights", "scaled", "context"]


def test_dropped_mask() -> None:
    graph, g = attention()
    found = run(Drop("masked")(graph), g)
    scores = np.exp(g["Q"] @ g["K"].T / np.sqrt(3))
    wanted = scores / scores.sum(axis=1, keepdims=True) @ g["V"]
    np.testing.assert_allclose(found.values["context"], wanted, rtol=1e-12)


def test_swapped_queries_and_keys() -> None:
    graph, g = attention()
    square = {"Q": g["Q"], "K": normal(4, 5, 3), "V": normal(5, 5, 11)}
    graph = build("attention", shapes(square))
    found = run(Swap("Q", "K")(graph), square).values["scores"]
    np.testing.assert_allclose(found, square["K"] @ square["Q"].T, rtol=1e-12)


def test_other_operands() -> None:
    graph, g = attention()
    g = {"Q": g["Q"], "K": g["K"], "V": normal(9, 7, 3)}
    graph = build("attention", shapes(g))
    run_ = run(Operands("context", ("weights", "K"))(graph), g)
    np.testing.assert_allclose(run_.values["context"], run_.values["weights"] @ g["K"])


def test_another_operation() -> None:
    graph, g = attention()
    before, after = run(graph, g), run(Substitute("scaled", Negate())(graph), g)
    np.testing.assert_array_equal(after.values["scaled"], -before.values["scores"])


# ---- what every rewrite keeps ----------------------------------------------------------------

GRAPHS = {
    "dot-product": build("dot-product", {"s": (3,), "h": (5, 3)}),
    "attention": attention()[0],
    "multi-head": multi_head(causal=True),
    "grouped": build(
        "multi-head",
        {"X": (2, 5, 7), "WQ": (6, 7, 2), "WK": (3, 7, 2), "WV": (3, 7, 2), "sinks": (6,)},
        positions="rotary",
    ),
    "block": build(
        "decoder-block",
        {"X": (5, 6), "WQ": (6, 6), "WK": (6, 6), "WV": (6, 6), "WO": (6, 6)}
        | {"W1": (6, 11), "W2": (11, 6), "gamma_1": (6,)},
        heads=3, positions="alibi",
    ),
}  # fmt: skip
ALL_NAMES = sorted({name for graph in GRAPHS.values() for name in graph.names} | {"nothing"})
names = st.sampled_from(ALL_NAMES)
operations = st.sampled_from(sorted(OPERATIONS.values(), key=lambda operation: operation.word))
places = st.one_of(names, operations)
settings = st.sampled_from([
    {"over": ("query",)}, {"over": ("head",)}, {"over": ()}, {"over": ("key", "query")},
    {"layout": "rows"}, {"layout": "view"}, {"layout": "diagonal"}, {"root": False},
    {"transpose_a": True}, {"transpose_b": False}, {"rows": "key"}, {"index": 7}, {"colour": 1},
    {"size": "h"}, {"offset": "1"}, {"start": "1"}, {"heads": "n"},
])  # fmt: skip
single_rewrites = st.one_of(
    st.builds(Drop, places),
    st.builds(lambda where, options: Change(where, **options), places, settings),
    st.builds(Operands, names, st.lists(names, max_size=3).map(tuple)),
    st.builds(Swap, names, names),
    st.builds(Substitute, places, operations.map(lambda operation: operation())),
    st.builds(MoveAfter, names, names),
    st.builds(Skip, places, st.integers(0, 2)),
    st.builds(
        lambda anchor: Insert(anchor, Step("inserted", Symbol("I"), Negate(), (anchor,))), names
    ),
    st.builds(
        lambda name, source: Expand(name, (Step(name, Symbol("E"), Negate(), (source,)),)),
        names, names,
    ),
)  # fmt: skip
rewrites = st.one_of(
    single_rewrites, st.builds(lambda one, other: one | other, single_rewrites, single_rewrites)
)
graphs = st.sampled_from(sorted(GRAPHS)).map(GRAPHS.__getitem__)


def numbers_for(graph: Graph) -> Arrays:
    sizes = {g.name: [axis.size.evaluate(graph.sizes) for axis in g.axes] for g in graph.givens}
    return {name: normal(len(name), *shape) for name, shape in sizes.items()}


@given(rewrites, graphs)
def test_a_rewrite_applies_or_says_why_not(rewrite: Rewrite, graph: Graph) -> None:
    """Either a graph all of whose steps have shapes, or a RewriteError; run or a RegardError."""
    before = pickle.dumps(graph)
    try:
        after = rewrite(graph)
    except RewriteError:
        pass
    else:
        assert set(after.axes) == set(after.names)
        assert after.givens == graph.givens
        assert after.sizes == graph.sizes
        with suppress(RegardError):
            run(after, numbers_for(after))
    assert pickle.dumps(graph) == before


@given(rewrites)
def test_rewrites_are_values(rewrite: Rewrite) -> None:
    again = pickle.loads(pickle.dumps(rewrite))
    assert again == rewrite
    assert hash(again) == hash(rewrite)
    assert repr(again) == repr(rewrite)


@given(graphs, st.data())
def test_drop_removes_one_step_and_no_more(graph: Graph, data: st.DataObject) -> None:
    step = data.draw(st.sampled_from([s for s in graph.steps if s.operands]))
    try:
        after = Drop(step.name)(graph)
    except RewriteError:
        return
    assert step.name not in after
    assert [s.name for s in after.steps] == [s.name for s in graph.steps if s != step]
    for kept in after.steps:
        was = graph.step(kept.name)
        assert kept.operation == was.operation
        stand_in = tuple(step.operands[0] if n == step.name else n for n in was.operands)
        assert kept.operands == stand_in


@given(graphs, st.data(), settings)
def test_change_keeps_every_other_step(
    graph: Graph, data: st.DataObject, options: dict[str, Any]
) -> None:
    name = data.draw(st.sampled_from([s.name for s in graph.steps]))
    try:
        after = Change(name, **options)(graph)
    except RewriteError:
        return
    for step in graph.steps:
        if step.name != name:
            assert after.step(step.name) == step
    changed = after.step(name)
    assert (changed.operands, changed.symbol) == (graph.step(name).operands, graph.symbol(name))
    for option, value in options.items():
        assert getattr(changed.operation, option) == value


@given(graphs, st.data())
def test_swapping_twice_is_doing_nothing(graph: Graph, data: st.DataObject) -> None:
    one, other = data.draw(st.tuples(*[st.sampled_from(graph.names)] * 2))
    try:
        after = Swap(one, other)(graph)
    except RewriteError:
        return
    assert Swap(one, other)(after) == graph == Swap(other, one)(after)


@given(graphs, st.data())
def test_move_after_keeps_what_comes_before(graph: Graph, data: st.DataObject) -> None:
    name, anchor = data.draw(st.tuples(*[st.sampled_from([s.name for s in graph.steps])] * 2))
    try:
        after = MoveAfter(name, anchor)(graph)
    except RewriteError:
        return
    order = [s.name for s in graph.steps if s.name != name]
    order.insert(order.index(anchor) + 1, name)
    assert [s.name for s in after.steps] == order
    assert after.step(name).operands == (anchor, *graph.step(name).operands[1:])
    assert {s.name: s.operation for s in after.steps} == {s.name: s.operation for s in graph.steps}
    for step in after.steps:
        before = graph.step(step.name)
        if not {name, anchor} & {step.name, *step.operands, *before.operands}:
            assert step == before


@given(graphs, st.data())
def test_in_turn_is_one_after_the_other(graph: Graph, data: st.DataObject) -> None:
    one, other = data.draw(st.tuples(single_rewrites, single_rewrites))
    try:
        wanted = other(one(graph))
    except RewriteError:
        return
    assert (one | other)(graph) == wanted


def test_skipping_keeps_the_name() -> None:
    graph, givens = attention()
    skipped = run(Skip("scaled")(graph), givens).values
    assert np.array_equal(skipped["scaled"], skipped["scores"])
    dropped = run(Drop("scaled")(graph), givens).values
    assert np.array_equal(skipped["context"], dropped["context"])


def test_one_step_more_and_a_step_made_of_several() -> None:
    graph, givens = attention()
    twice = Step("scaled_again", Symbol("S"), graph.step("scaled").operation, ("scaled",))
    inserted = run(Insert("scaled", twice)(graph), givens).values
    assert np.allclose(inserted["scaled_again"], inserted["scores"] / 3)
    once = Step("scaled_once", Symbol("S"), twice.operation, ("scores",))
    again = Step("scaled", Symbol("S"), twice.operation, ("scaled_once",))
    expanded = run(Expand("scaled", (once, again))(graph), givens).values
    assert np.allclose(expanded["context"], inserted["context"])


def test_a_kind_of_operation_means_every_step_of_it() -> None:
    after = Change(Split, layout="rows")(multi_head())
    found = {s.name for s in after.steps if getattr(s.operation, "layout", "") == "rows"}
    assert found == {"Q_heads", "K_heads", "V_heads"}


def test_options_in_any_order_are_the_same_change() -> None:
    assert Change("scores", rows="a", columns="b") == Change("scores", columns="b", rows="a")
    assert Change("scores", rows="a") != Change("exp", rows="a")
    assert len({NO_SCALE, Drop("scaled"), SCALE_BY_SIZE}) == 2


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (Drop("weight"), "no step 'weight' to rewrite"),
        (Drop(Split), "this attention has no split step to rewrite"),
        (Drop("mask_causal"), "'mask_causal' has no operand that could stand in"),
        (
            Change("scaled", roots=True),
            "operation scale of 'scaled' has no option 'roots'; it has mul",
        ),
        (Change("Q", rows="x"), "no step 'Q' to rewrite"),
        (SOFTMAX_OVER_HEADS, r"step 'exp': exp: there is no head axis; the axes are query, key"),
        (Change("sums", over=("hed",)), "step 'sums': sum: there is no hed axis"),
        (HEADS_BY_VIEW, "no split step"),
        (Operands("scores", ("Q", "weights")), r"'scores' uses \['weights'\] before"),
        (Operands("scores", ("Q", "zzz")), r"'scores' uses \['zzz'\] before"),
        (Operands("scores", ("Q",)), "'scores' has 1 operands, but the operation matmul takes 2"),
        (
            Operands("masked", ("K", "mask_causal")),
            "step 'masked': mask: operands over dim, key and over key, query; one must have all",
        ),
        (Swap("scores", "weights"), r"'scaled' uses \['weights'\] before"),
        (Swap("Q", "L"), "no step 'L'"),
        (Substitute("sums", Add()), "'sums' has 1 operands, but the operation add takes 2"),
        (MoveAfter("weights", "scores"), "'weights' does not come before 'scores'"),
        (MoveAfter("scores", "scores"), "'scores' does not come before 'scores'"),
        (MoveAfter("scores", "wieghts"), "no step 'wieghts' .* did you mean 'weights'"),
        (NO_SCALE | NO_SCALE, "no step 'scaled' to rewrite"),
        (Skip("mask_causal"), "'mask_causal' has no operand 1 to pass on"),
        (Skip("scaled", 1), "'scaled' has no operand 2 to pass on"),
        (Expand("scaled", ()), "the last of the steps for 'scaled' must bear its name"),
        (Insert("scald", Step("s", Symbol("s"), Add(), ())), "did you mean 'scaled'"),
    ],
)
def test_why_a_rewrite_does_not_apply(rewrite: Rewrite, reason: str) -> None:
    with pytest.raises(RewriteError, match=reason):
        rewrite(attention()[0])


def test_nothing_is_left() -> None:
    graph = build("dot-product", {"s": (3,), "h": (5, 3)}).pruned("scores")
    with pytest.raises(RewriteError, match="without 'scores' nothing is left to compute"):
        Drop(MatMul)(graph)


def test_a_wrong_word_for_an_option_names_the_words() -> None:
    with pytest.raises(RewriteError, match="'columns', 'interleaved', 'rows', 'view'"):
        Change(Split, layout="viewed")(multi_head())
