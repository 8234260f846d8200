"""The backward pass as a graph: its names, each operation's adjoint, and rewritten graphs.

Values for every kind and option are compared in test_against_torch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard._errors import NoSuchStepError, OptionError
from regard.graph.builders import build
from regard.graph.gradient import backward
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operation import Axis, Operation
from regard.graph.operations import (
    OPERATIONS,
    Add,
    Affine,
    AppendSink,
    Attend,
    Divide,
    Exp,
    GroupSum,
    Mask,
    MatMul,
    Mean,
    Merge,
    Multiply,
    Negate,
    NormalCdf,
    NormalDensity,
    Normalise,
    OpenProduct,
    Outer,
    PickHead,
    Place,
    PutHead,
    Repeat,
    Rotary,
    Scale,
    Sigmoid,
    SoftCap,
    Split,
    Spread,
    Sqrt,
    Subtract,
    Sum,
    Take,
    Tanh,
    Transpose,
)
from regard.graph.polynomial import Polynomial
from regard.graph.rewrites import (
    SOFTMAX_OVER_HEADS,
    SOFTMAX_OVER_QUERIES,
    Change,
    Drop,
    Rewrite,
    Substitute,
    softmax_over,
)
from regard.graph.run import run

Arrays = dict[str, Any]
Shape = tuple[tuple[str, str], ...]  # (axis, size) pairs
SIZES = {"batch": 2, "h": 6, "h_kv": 3, "n": 5, "n_q": 5, "n_k": 7, "d_k": 4, "d_v": 11, "wide": 12}


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def shapes(givens: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in givens.items()}


# ---- each operation's adjoint against differences --------------------------------------------

ROW: Shape = (("query", "n_q"), ("dim", "d_k"))
COLUMN: Shape = (("key", "n_k"), ("dim", "d_k"))
SCORES: Shape = (("query", "n_q"), ("key", "n_k"))
HEADS: Shape = (("batch", "batch"), ("head", "h"), *SCORES)
WIDE: Shape = (("batch", "batch"), ("token", "n"), ("dim", "wide"))
QUERY: Shape = (("query", "n_q"),)
KEY: Shape = (("key", "n_k"),)
DIM: Shape = (("dim", "d_k"),)

ADJOINTS: dict[str, tuple[Operation, tuple[Shape, ...]]] = {
    "add": (Add(), (SCORES, SCORES)),
    "add a row to each": (Add(), (HEADS, KEY)),
    "add to each head": (Add(), (SCORES, HEADS)),
    "subtract a column": (Subtract(), (SCORES, QUERY)),
    "multiply": (Multiply(), (HEADS, KEY)),
    "divide": (Divide(), (SCORES, QUERY)),
    "normalise": (Normalise(), (HEADS, (("head", "h"), ("query", "n_q")))),
    "negate": (Negate(), (SCORES,)),
    "affine": (Affine("2/3", "5"), (SCORES,)),
    "scale": (Scale(), (SCORES,)),
    "scale by the size, multiplied": (Scale(root=False, multiply=True), (SCORES,)),
    "sqrt": (Sqrt(), (SCORES,)),
    "tanh": (Tanh(), (SCORES,)),
    "softcap": (SoftCap("3/2"), (SCORES,)),
    "sigmoid": (Sigmoid(), (SCORES,)),
    "normal cdf": (NormalCdf(), (SCORES,)),
    "normal density": (NormalDensity(), (SCORES,)),
    "exp": (Exp(shift=False), (SCORES,)),
    "mask": (Mask(), (HEADS, SCORES)),
    "attend": (Attend("query", "dim"), (SCORES, COLUMN, SCORES)),
    "attend, transposed": (Attend("key", "dim", transpose_a=True), (SCORES, ROW, SCORES)),
    "open product": (OpenProduct("query", "key", transpose_b=True), (ROW, COLUMN, SCORES)),
    "product": (MatMul("query", "dim"), (SCORES, COLUMN)),
    "product, second transposed": (MatMul("query", "key", transpose_b=True), (ROW, COLUMN)),
    "product, first transposed": (MatMul("key", "dim", transpose_a=True), (SCORES, ROW)),
    "product, both transposed": (
        MatMul("key", "token", transpose_a=True, transpose_b=True),
        (SCORES, (("token", "n"), QUERY[0])),
    ),
    "product of heads with one matrix": (MatMul("query", "dim"), (HEADS, COLUMN)),
    "product of one matrix with heads": (
        MatMul("query", "dim"), (SCORES, (("head", "h"), *COLUMN)),
    ),
    "matrix and vector": (MatMul(rows="token"), (SCORES, KEY)),
    "transposed matrix and vector": (MatMul(rows="token", transpose_a=True), (SCORES, QUERY)),
    "vector and matrix": (MatMul(columns="dim"), (KEY, COLUMN)),
    "vector and transposed matrix": (MatMul(columns="token", transpose_b=True), (KEY, SCORES)),
    "vectors": (MatMul(), (KEY, KEY)),
    "vectors of heads": (MatMul(transpose_b=True), ((("head", "h"), *KEY), KEY)),
    "transpose": (Transpose(), (HEADS,)),
    "outer": (Outer(), (QUERY, DIM)),
    "outer of heads": (Outer("token", "model"), ((("head", "h"), *QUERY), KEY)),
    "sum": (Sum(("query", "head")), (HEADS,)),
    "mean": (Mean(("key",)), (HEADS,)),
    "spread": (Spread(), (KEY, HEADS)),
    "take": (Take("key", "2", "n_k"), (HEADS,)),
    "place": (Place("key", "1", "n_k + 3"), (HEADS,)),
    "append a sink": (AppendSink(), (HEADS, (("head", "h"),))),
    "append one sink": (AppendSink(), (SCORES, ())),
    "split": (Split(), (WIDE,)),
    "split interleaved": (Split(layout="interleaved"), (WIDE,)),
    "split by view": (Split(layout="view"), (WIDE,)),
    "split rows": (Split(layout="rows"), ((("token", "wide"), ("dim", "d_k")),)),
    "merge": (Merge(), (HEADS,)),
    "merge interleaved": (Merge(layout="interleaved"), (HEADS,)),
    "merge by view": (Merge(layout="view"), (HEADS,)),
    "merge rows": (Merge(layout="rows"), (HEADS,)),
    "repeat": (Repeat(), ((("head", "h_kv"), *COLUMN),)),
    "group sum": (GroupSum(), (HEADS,)),
    "pick a head": (PickHead(2), (HEADS,)),
    "put a head": (PutHead(2), ((("batch", "batch"), *SCORES),)),
    "rotary": (Rotary(offset="2"), (ROW,)),
    "rotary interleaved": (Rotary("interleaved", "50"), (ROW,)),
}  # fmt: skip
NOT_DIFFERENTIABLE = {"causal", "window", "prefix", "padding", "alibi", "sinusoidal"}


def single(operation: Operation, operands: tuple[Shape, ...]) -> Graph:
    """A graph of one step."""
    givens = tuple(
        Given(
            f"g{place}",
            Symbol("g", str(place)),
            tuple(Axis(name, Polynomial.parse(size)) for name, size in shape),
        )
        for place, shape in enumerate(operands)
    )
    step = Step("result", Symbol("R"), operation, tuple(given.name for given in givens))
    return Graph("single step", givens, (step,), SIZES)


def positive_numbers(graph: Graph) -> Arrays:
    """Away from 0, so that every operation is smooth there."""
    rng = np.random.default_rng(7)
    sizes = {g.name: [axis.size.evaluate(graph.sizes) for axis in g.axes] for g in graph.givens}
    return {name: rng.uniform(0.5, 2, size=shape) for name, shape in sizes.items()}


def slope(f: Callable[[Any], float], at: Any, direction: Any) -> float:
    """The derivative along a direction, from two differences (the error is of fourth order)."""
    step = 2e-3
    near = f(at + step * direction) - f(at - step * direction)
    far = f(at + 2 * step * direction) - f(at - 2 * step * direction)
    return (8 * near - far) / (12 * step)


@pytest.mark.parametrize("case", ADJOINTS)
def test_adjoints_against_differences(case: str) -> None:
    operation, operands = ADJOINTS[case]
    graph = single(operation, operands)
    givens = positive_numbers(graph)
    seed = normal(1, *run(graph, givens).values["result"].shape)
    smooth = tuple(givens)[:2] if isinstance(operation, (Attend, OpenProduct)) else tuple(givens)
    smooth = smooth[:1] if isinstance(operation, Spread) else smooth
    back = run(backward(graph, "result", smooth), givens | {"d_result": seed}).values
    for name in smooth:
        direction = normal(2, *givens[name].shape)

        def weighed(value: Any, name: str = name) -> float:
            return float((run(graph, givens | {name: value}).values["result"] * seed).sum())

        wanted = slope(weighed, givens[name], direction)
        assert float((back[f"d_{name}"] * direction).sum()) == pytest.approx(
            wanted, rel=1e-7, abs=1e-9
        )


def test_every_operation_has_its_adjoint_tested() -> None:
    tested = {operation.word for operation, _ in ADJOINTS.values()}
    assert tested | NOT_DIFFERENTIABLE == set(OPERATIONS)


# ---- names, symbols and steps ----------------------------------------------------------------

BLOCK_SHAPES = {
    "X": (2, 5, 6), "WQ": (6, 12), "WK": (6, 12), "WV": (6, 9), "WO": (9, 6), "W1": (6, 11),
    "W2": (11, 6), "b1": (11,), "gamma_1": (6,), "bQ": (12,), "sinks": (3,),
}  # fmt: skip
BLOCK = build("decoder-block", BLOCK_SHAPES, heads=3, causal=True, positions="rotary", softcap=5)


def test_the_output_of_self_attention_by_hand() -> None:
    """dV = Aᵀ dC, dA = dC Vᵀ, dS = A ⊙ (dA − rowsum(A ⊙ dA)), dQ = dS K / √d_k."""
    g = {"Q": normal(1, 5, 3), "K": normal(2, 7, 3), "V": normal(3, 7, 11)}
    seed = normal(4, 5, 11)
    back = run(
        backward(build("attention", shapes(g)), "context", tuple(g)), g | {"d_context": seed}
    )
    powers = np.exp(g["Q"] @ g["K"].T / np.sqrt(3))
    a = powers / powers.sum(axis=1, keepdims=True)
    d_a = seed @ g["V"].T
    d_s = a * (d_a - (a * d_a).sum(axis=1, keepdims=True)) / np.sqrt(3)
    wanted = {
        "V": a.T @ seed,
        "weights": d_a,
        "scores": d_s,
        "Q": d_s @ g["K"],
        "K": d_s.T @ g["Q"],
    }
    for name, value in wanted.items():
        np.testing.assert_allclose(back.values[f"d_{name}"], value, rtol=1e-11, err_msg=name)


def test_names_and_order() -> None:
    g = {"Q": (5, 3), "K": (7, 3), "V": (7, 11)}
    graph = backward(build("attention", g), "context", ("Q", "K", "V"))
    assert graph.kind == "gradient of attention"
    assert [step.name for step in graph.worked_steps] == [
        "d_weights", "d_V", "d_scaled_via_1", "d_scaled_via_2", "d_scaled_via_3", "d_scaled",
        "d_scores", "d_Q", "d_K",
    ]  # fmt: skip
    assert graph.givens[-1].name == "d_context"


@pytest.mark.parametrize("wrt", [("X",), ("WQ", "b1"), tuple(BLOCK_SHAPES), ("residual_1",)])
def test_every_gradient_between_has_its_name(wrt: tuple[str, ...]) -> None:
    graph = backward(BLOCK, "residual_2", wrt)
    between = BLOCK.downstream(*wrt) & BLOCK.upstream("residual_2") | set(wrt)
    softmax_parts = {"exp", "sums"}  # their gradients go into that of the scores at once
    constants = {"mask_causal"}
    for name in between - softmax_parts - constants:
        assert f"d_{name}" in graph
        assert graph.axes[f"d_{name}"] == graph.axes[name]
        symbol, own = graph.symbol(f"d_{name}"), BLOCK.symbol(name)
        assert (symbol.base, symbol.sub, symbol.sup, symbol.hat) == (
            own.base,
            own.sub,
            own.sup,
            "d",
        )


def test_no_step_is_in_vain() -> None:
    """Every step is needed for what was asked, and none is there twice."""
    for wrt in (("X",), ("WV",), tuple(BLOCK_SHAPES)):
        graph = backward(BLOCK, "residual_2", wrt)
        needed = graph.upstream(*(f"d_{name}" for name in wrt))
        assert {step.name for step in graph.worked_steps} <= needed
        work = [step for step in graph.worked_steps if step.operation != Affine()]
        what = [(step.operation, step.operands) for step in work]
        assert len(set(what)) == len(what)


def test_steps_that_only_pass_on_are_few() -> None:
    graph = backward(BLOCK, "residual_2", tuple(BLOCK_SHAPES))
    passing = [step.name for step in graph.worked_steps if step.operation == Affine()]
    assert len(passing) <= len(graph.worked_steps) // 6


def test_symbols_are_of_one_step_each() -> None:
    graph = backward(BLOCK, "residual_2", tuple(BLOCK_SHAPES))
    symbols = [graph.symbol(name) for name in graph.names]
    assert len(set(symbols)) == len(symbols)
    assert graph.symbol("d_X_via_1") == Symbol("X", "via 1", hat="d")
    assert graph.symbol("d_with_sink_via_1") == Symbol("S", "sink, via 1", hat="d")


def test_forward_values_are_kept() -> None:
    g = {"Q": normal(1, 5, 3), "K": normal(2, 7, 3), "V": normal(3, 7, 11)}
    graph = build("attention", shapes(g))
    before = run(graph, g).values
    after = run(backward(graph, "context", ("Q",)), g | {"d_context": normal(4, 5, 11)}).values
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


# ---- what is asked for -----------------------------------------------------------------------


def test_the_gradient_of_an_intermediate_step() -> None:
    g = {"Q": normal(1, 5, 3), "K": normal(2, 7, 3), "V": normal(3, 7, 11)}
    graph = build("attention", shapes(g))
    seed = normal(4, 5, 7)
    values = run(backward(graph, "scaled", ("K",)), {n: g[n] for n in "QK"} | {"d_scaled": seed})
    np.testing.assert_allclose(values.values["d_K"], seed.T @ g["Q"] / np.sqrt(3))
    assert "V" not in values.graph


def test_the_output_itself() -> None:
    graph = backward(
        build("attention", {"Q": (5, 3), "K": (7, 3), "V": (7, 2)}), "context", ("context",)
    )
    assert graph.worked_steps == ()
    assert "d_context" in graph


def test_a_given_that_is_added_to_itself() -> None:
    """X goes into the sum twice: the gradient counts both."""
    graph = single(Add(), (SCORES, SCORES))
    twice = graph.with_steps((Step("result", Symbol("R"), Add(), ("g0", "g0")),))
    seed = normal(1, 5, 7)
    values = run(backward(twice, "result", ("g0",)), positive_numbers(graph) | {"d_result": seed})
    np.testing.assert_array_equal(values.values["d_g0"], 2 * seed)


@pytest.mark.parametrize(
    ("output", "wrt", "error", "reason"),
    [
        ("contxt", ("Q",), NoSuchStepError, "no step 'contxt' .* did you mean 'context'"),
        ("context", ("q",), NoSuchStepError, "no step 'q' .* did you mean 'Q'"),
        ("scores", ("V",), OptionError, "scores does not depend on 'V'"),
        ("scores", ("context",), OptionError, "scores does not depend on 'context'"),
        ("context", ("lengths",), OptionError, "context does not change smoothly with 'lengths'"),
        ("context", ("Q", "mask_padding"), None, ""),
    ],
)
def test_what_cannot_be_differentiated(
    output: str, wrt: tuple[str, ...], error: type[Exception] | None, reason: str
) -> None:
    graph = build("attention", {"Q": (5, 3), "K": (7, 3), "V": (7, 2), "lengths": ()})
    if error is None:
        assert f"d_{wrt[-1]}" in backward(graph, output, wrt)
        return
    with pytest.raises(error, match=reason):
        backward(graph, output, wrt)


# ---- the softmax in one piece and in its parts -----------------------------------------------

SOFTMAXES: dict[str, tuple[Graph, Rewrite | None]] = {
    "plain": (build("attention", {"Q": (5, 3), "K": (7, 3), "V": (7, 2)}), None),
    "masked rows": (
        build("attention", {"Q": (5, 3), "K": (7, 3), "V": (7, 2)}, causal=-2), None,
    ),
    "sinks": (build("attention", {"Q": (5, 3), "K": (7, 3), "V": (7, 2), "sinks": ()}), None),
    "heads": (
        build("multi-head", {"X": (2, 5, 6), "WQ": (3, 6, 4), "WK": (3, 6, 4), "WV": (3, 6, 2)}),
        SOFTMAX_OVER_HEADS,
    ),
    "one source": (build("dot-product", {"s": (3,), "h": (7, 3)}), None),
}  # fmt: skip


@pytest.mark.parametrize("case", SOFTMAXES)
def test_exp_sum_and_quotient_one_by_one_give_the_same(case: str) -> None:
    """Asked for d_exp and d_sums too, the parts are gone through one after the other."""
    graph, rewrite = SOFTMAXES[case]
    graph = rewrite(graph) if rewrite else graph
    givens = {
        given.name: normal(9, *(axis.size.evaluate(graph.sizes) for axis in given.axes))
        for given in graph.givens
    }
    last = graph.steps[-1].name
    givens[f"d_{last}"] = normal(5, *run(graph, givens).values[last].shape)
    wrt = tuple(given.name for given in graph.givens)
    whole = run(backward(graph, last, wrt), givens)
    parts = run(backward(graph, last, (*wrt, "exp", "sums")), givens)
    assert "d_sums" in parts.graph
    assert "d_sums" not in whole.graph
    for name in wrt:
        np.testing.assert_allclose(
            parts.values[f"d_{name}"], whole.values[f"d_{name}"], rtol=1e-10, atol=1e-14
        )


def test_a_query_that_sees_nothing_has_no_gradient() -> None:
    g = {"Q": normal(1, 5, 3), "K": normal(2, 7, 3), "V": normal(3, 7, 2)}
    graph = build("attention", shapes(g), causal=-2)
    back = run(backward(graph, "context", tuple(g)), g | {"d_context": normal(4, 5, 2)}).values
    assert not back["d_Q"][:2].any()
    assert back["d_Q"][2:].any()
    assert not back["d_V"][3:].any()


# ---- through rewritten graphs ----------------------------------------------------------------

GIVENS = {
    "X": normal(1, 2, 6, 5), "WQ": normal(2, 5, 12), "WK": normal(3, 5, 12), "WV": normal(4, 5, 12),
}  # fmt: skip


def in_torch(
    g: Arrays,
    split: Callable[[Any], Any],
    merge: Callable[[Any], Any],
    weigh: Callable[[Any], Any] = lambda scores: scores.softmax(-1),
) -> Any:
    q, k, v = (split(g["X"] @ g[name]) for name in ("WQ", "WK", "WV"))
    return merge(weigh(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5) @ v)


def columns(a: Any) -> Any:
    return a.reshape(2, 6, 3, 4).transpose(1, 2)


def side_by_side(a: Any) -> Any:
    return a.transpose(1, 2).reshape(2, 6, 12)


REWRITTEN: dict[str, tuple[Rewrite, Callable[[Arrays], Any]]] = {
    "softmax over queries": (
        SOFTMAX_OVER_QUERIES,
        lambda g: in_torch(g, columns, side_by_side, lambda s: s.softmax(-2)),
    ),
    "softmax over heads": (
        SOFTMAX_OVER_HEADS,
        lambda g: in_torch(g, columns, side_by_side, lambda s: s.softmax(1)),
    ),
    "softmax over everything of a head": (
        softmax_over("query", "key"),
        lambda g: in_torch(
            g, columns, side_by_side, lambda s: s.flatten(2).softmax(-1).reshape(s.shape)
        ),
    ),
    "exp alone": (
        Drop("weights") | Change(Exp, shift=False),
        lambda g: in_torch(g, columns, side_by_side, lambda s: s.exp()),
    ),
    "sigmoid instead": (
        Substitute("exp", Sigmoid()),
        lambda g: in_torch(
            g, columns, side_by_side, lambda s: s.sigmoid() / s.sigmoid().sum(-1, keepdim=True)
        ),
    ),
    "view": (
        Change(Split, layout="view"),
        lambda g: in_torch(g, lambda a: a.reshape(2, 3, 6, 4), side_by_side),
    ),
    "view both ways": (
        Change(Split, layout="view") | Change(Merge, layout="view"),
        lambda g: in_torch(g, lambda a: a.reshape(2, 3, 6, 4), lambda a: a.reshape(2, 6, 12)),
    ),
    "interleaved": (
        Change(Split, layout="interleaved") | Change(Merge, layout="interleaved"),
        lambda g: in_torch(
            g,
            lambda a: a.reshape(2, 6, 4, 3).permute(0, 3, 1, 2),
            lambda a: a.permute(0, 2, 3, 1).reshape(2, 6, 12),
        ),
    ),
    "rows": (
        Change(Split, layout="rows") | Change(Merge, layout="rows"),
        lambda g: in_torch(g, lambda a: a.reshape(2, 3, 2, 12), lambda a: a.reshape(2, 6, 12)),
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_gradients_of_rewritten_graphs(case: str) -> None:
    torch = pytest.importorskip("torch")
    rewrite, theirs = REWRITTEN[case]
    if case == "rows":  # √d_k is of the width of a head, which is not that of its rows
        rewrite = rewrite | Change("scaled", size="h d_k")
    graph = rewrite(build("multi-head", shapes(GIVENS), heads=3))
    leaves = {n: torch.tensor(v, requires_grad=True) for n, v in GIVENS.items()}
    wanted = theirs(leaves)
    seed = normal(6, *wanted.shape)
    wanted.backward(torch.tensor(seed))
    back = run(backward(graph, "merged", tuple(GIVENS)), GIVENS | {"d_merged": seed})
    np.testing.assert_allclose(back.values["merged"], wanted.detach(), rtol=1e-10)
    for name, leaf in leaves.items():
        np.testing.assert_allclose(back.values[f"d_{name}"], leaf.grad, rtol=1e-8, atol=1e-11)


# ---- what is masked never leaks --------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "options", [{}, {"softcap": "3"}, {"positions": "rotary"}, {"positions": "alibi"}, {"scale": 1}]
)
def test_masked_keys_and_values_never_leak_into_gradients(
    bad: float, options: dict[str, Any]
) -> None:
    hidden = np.array([False, False, True, False, True])
    givens: dict[str, Any] = {
        "Q": normal(1, 3, 7, 4), "K": normal(2, 3, 5, 4), "V": normal(3, 3, 5, 2),
        "mask": np.broadcast_to(~hidden, (7, 5)), "bias": normal(4, 7, 5),
    }  # fmt: skip
    names = ("Q", "K", "V", "bias")
    graph = build("attention", {name: value.shape for name, value in givens.items()}, **options)
    whole = backward(graph, "context", names)
    givens["d_context"] = normal(5, 3, 7, 2)
    clean = run(whole, givens).values
    for name in "KV":
        givens[name] = np.where(hidden[:, None], bad, givens[name])
    poisoned = run(whole, givens).values
    for name in names:
        np.testing.assert_allclose(
            poisoned[f"d_{name}"], clean[f"d_{name}"], rtol=1e-12, atol=1e-14, err_msg=name
        )


def test_the_future_never_leaks_into_gradients() -> None:
    """A query that is no number spoils the keys that it sees, and no others."""
    q, k, v = normal(1, 5, 2), normal(2, 5, 2), normal(3, 5, 3)
    q[2] = np.nan
    graph = build("attention", {"Q": (5, 2), "K": (5, 2), "V": (5, 3)}, causal=True)
    whole = backward(graph, "context", ("Q", "K", "V"))
    values = run(whole, {"Q": q, "K": k, "V": v, "d_context": normal(4, 5, 3)}).values
    for name in ("d_K", "d_V"):
        spoilt = np.isnan(values[name]).any(axis=1)
        assert spoilt.tolist() == [True, True, True, False, False], name
    assert np.isnan(values["d_Q"]).any(axis=1).tolist() == [False, False, True, False, False]
