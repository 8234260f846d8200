"""self_attention and multi_head_attention against the graph of named steps and torch's module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import regard

BATCH, TOKENS, D_MODEL, HEADS, D_K, D_V, D_OUT = 3, 5, 7, 2, 11, 13, 17
OTHER_TOKENS, D_OTHER = 19, 23
RNG = np.random.default_rng(5)


def random(*shape: int) -> Any:
    return RNG.normal(size=shape)


X, Y = random(BATCH, TOKENS, D_MODEL), random(BATCH, OTHER_TOKENS, D_OTHER)


def close(have: Any, want: Any) -> None:
    np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12)


def as_arrays(given: dict[str, Any]) -> dict[str, Any]:
    return given


def as_tensors(given: dict[str, Any]) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    return {
        name: torch.from_numpy(each) if isinstance(each, np.ndarray) else each
        for name, each in given.items()
    }


KINDS = pytest.mark.parametrize("kind", [as_arrays, as_tensors])


@KINDS
@pytest.mark.parametrize("with_biases", [False, True])
def test_one_head_is_the_graph(kind: Any, with_biases: bool) -> None:
    given = {
        "x": X,
        "wq": random(D_MODEL, D_K),
        "wk": random(D_MODEL, D_K),
        "wv": random(D_MODEL, D_V),
        "wo": random(D_V, D_OUT),
    }
    if with_biases:
        given |= {"bq": random(D_K), "bk": random(D_K), "bv": random(D_V), "bo": random(D_OUT)}
    trace = regard.work("self-attention", causal=True, scale=0.3, **in_graph(given))
    output = regard.self_attention(**kind(given), causal=True, scale=0.3)
    close(output, trace["output"].value)
    without = {name: each for name, each in given.items() if name not in ("wo", "bo")}
    output = regard.self_attention(**kind(without), causal=True, scale=0.3)
    close(output, trace["context"].value)


def in_graph(given: dict[str, Any]) -> dict[str, Any]:
    """The same with the names that they have in a graph: wq is WQ, bq is bQ."""
    letters = {"w": "W", "b": "b"}
    return {
        letters[name[0]] + name[1:].upper() if len(name) == 2 else name.upper(): each
        for name, each in given.items()
    }


def wide_weights(kv_heads: int = HEADS, source: int = D_MODEL) -> dict[str, Any]:
    return {
        "wq": random(D_MODEL, HEADS * D_K),
        "wk": random(source, kv_heads * D_K),
        "wv": random(source, kv_heads * D_V),
        "bq": random(HEADS * D_K),
        "bk": random(kv_heads * D_K),
        "bv": random(kv_heads * D_V),
        "wo": random(HEADS * D_V, D_OUT),
        "bo": random(D_OUT),
    }


@KINDS
@pytest.mark.parametrize("kv_heads", [1, HEADS])
def test_columns_are_split_as_in_the_graph(kind: Any, kv_heads: int) -> None:
    given = {"x": X, **wide_weights(kv_heads)}
    counts = {"heads": HEADS, "kv_heads": kv_heads}
    counted = counts if kv_heads != HEADS else {"heads": HEADS}
    trace = regard.work("multi-head", window=(2, 1), **in_graph(given), **counted)
    output = regard.multi_head_attention(**kind(given), **counts, window=(2, 1))
    close(output, trace["output"].value)


def per_head() -> dict[str, Any]:
    shapes = {"wq": (D_MODEL, D_K), "wk": (D_MODEL, D_K), "wv": (D_MODEL, D_V), "bq": (D_K,),
              "bk": (D_K,), "bv": (D_V,)}  # fmt: skip
    return {name: random(HEADS, *shape) for name, shape in shapes.items()}


@KINDS
def test_one_matrix_for_each_head_is_the_graph(kind: Any) -> None:
    given = {"x": X, **per_head()}
    trace = regard.work("multi-head", softcap=2.0, **in_graph(given))
    output = regard.multi_head_attention(**kind(given), softcap=2.0)
    close(output, trace["merged"].value)


@KINDS
def test_a_list_of_matrices_is_one_for_each_head(kind: Any) -> None:
    given = {"x": X, **per_head()}
    whole = kind(given)
    listed = {name: list(each) if name != "x" else each for name, each in whole.items()}
    output = regard.multi_head_attention(**listed)
    np.testing.assert_array_equal(output, regard.multi_head_attention(**whole))


@KINDS
def test_keys_and_values_of_another_sequence(kind: Any) -> None:
    given = {"x": X, "y": Y, **wide_weights(source=D_OTHER)}
    lengths = np.array([19, 3, 1])
    trace = regard.work("cross-attention", heads=HEADS, lengths=lengths, **in_graph(given))
    output = regard.multi_head_attention(**kind(given | {"lengths": lengths}), heads=HEADS)
    close(output, trace["output"].value)


@KINDS
def test_past_and_new_tokens_give_what_all_tokens_give(kind: Any) -> None:
    weights = wide_weights()
    whole = regard.multi_head_attention(X, **weights, heads=HEADS, causal=True)
    early, late = X[:, :3], X[:, 3:]
    past = tuple(
        (early @ weights[f"w{letter}"] + weights[f"b{letter}"])
        .reshape(BATCH, 3, HEADS, -1)
        .swapaxes(1, 2)
        for letter in "kv"
    )
    past = tuple(kind(dict(enumerate(past))).values())
    last = regard.multi_head_attention(
        **kind({"x": late, **weights}), past=past, heads=HEADS, causal=True
    )
    close(last, whole[:, 3:])


@KINDS
def test_inspection_speaks_of_the_scores(kind: Any) -> None:
    given = {"x": X, **wide_weights()}
    asked = regard.Inspect(received=True, rows=[1])
    _, seen = regard.multi_head_attention(**kind(given), heads=HEADS, inspect=asked)
    trace = regard.work("multi-head", heads=HEADS, **in_graph(given))
    weights = trace["weights"].value
    close(seen.received, weights.sum(-2))
    close(seen.rows, weights[..., [1], :])


def test_torch_module_has_the_same_output_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    width = HEADS * D_K
    module = torch.nn.MultiheadAttention(width, HEADS, batch_first=True, dtype=torch.float64)
    torch.nn.init.normal_(module.in_proj_bias)
    x = torch.randn(BATCH, TOKENS, width, dtype=torch.float64, requires_grad=True)
    hidden = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    want, _ = module(x, x, x, attn_mask=hidden, need_weights=False)
    wq, wk, wv = (part.T for part in module.in_proj_weight.chunk(3))
    bq, bk, bv = module.in_proj_bias.chunk(3)
    have = regard.multi_head_attention(
        x, wq, wk, wv, module.out_proj.weight.T, heads=HEADS, causal=True,
        bq=bq, bk=bk, bv=bv, bo=module.out_proj.bias,
    )  # fmt: skip
    torch.testing.assert_close(have, want)
    inputs = (x, module.in_proj_weight, module.in_proj_bias, module.out_proj.weight)
    d_out = torch.randn_like(want)
    torch.testing.assert_close(
        torch.autograd.grad(have, inputs, d_out), torch.autograd.grad(want, inputs, d_out)
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@KINDS
def test_types(kind: Any, dtype: str) -> None:
    given = {"x": X, **wide_weights()}
    if kind is as_tensors:
        torch = pytest.importorskip("torch")
        given = {name: each.to(getattr(torch, dtype)) for name, each in kind(given).items()}
        wide = {name: each.double().numpy() for name, each in given.items()}
    else:
        own = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
        given = {name: each.astype(own) for name, each in given.items()}
        wide = {name: each.astype(float) for name, each in given.items()}
    output = regard.multi_head_attention(**given, heads=HEADS)
    assert output.dtype == given["x"].dtype
    want = regard.multi_head_attention(**wide, heads=HEADS)
    have = output.double().numpy() if kind is as_tensors else output.astype(float)
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}[dtype]
    assert np.abs(have - want).max() < 40 * unit * np.abs(want).max()


def test_a_hidden_token_that_is_no_number_leaks_nowhere() -> None:
    poisoned = X.copy()
    poisoned[:, 4] = np.nan
    weights = wide_weights()
    clean = regard.multi_head_attention(X, **weights, heads=HEADS, causal=True)
    output = regard.multi_head_attention(poisoned, **weights, heads=HEADS, causal=True)
    np.testing.assert_array_equal(output[:, :4], clean[:, :4])
    assert np.isnan(output[:, 4]).all()


def test_empty_axes() -> None:
    weights = wide_weights()
    for x in (X[:0], X[:, :0]):
        output = regard.multi_head_attention(x, **weights, heads=HEADS)
        assert output.shape == (*x.shape[:2], D_OUT)


ONE = {"x": X, "wq": random(D_MODEL, D_K), "wk": random(D_MODEL, D_K), "wv": random(D_MODEL, D_V)}
WIDE = {"x": X, "heads": HEADS, **wide_weights()}
WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (regard.self_attention, ONE | {"wq": ONE["wq"].T}, regard.ShapeError,
     r"self_attention: x is 3×5×7 and wq is 11×7: 7 coordinates cannot meet 11 rows; torch's"),
    (regard.self_attention, ONE | {"x": X[0, 0]}, regard.ShapeError,
     "x is 7, but it needs at least tokens × d_model"),
    (regard.self_attention, ONE | {"wk": ONE["wk"][:, :-1]}, regard.ShapeError,
     "wq is 7×11 and wk is 7×10: that makes 11 coordinates for the queries .* 10 for its keys"),
    (regard.self_attention, ONE | {"wq": ONE["wq"][None]}, regard.ShapeError,
     "wq is 1×7×11, but it needs 2 axes; for many heads use multi_head_attention"),
    (regard.self_attention, ONE | {"bq": random(3)}, regard.ShapeError,
     "bq is 3 and wq is 7×11: sizes differ"),
    (regard.self_attention, ONE | {"bo": random(3)}, regard.OptionError, "`bo` .* without wo"),
    (regard.self_attention, ONE | {"wo": random(3, 4)}, regard.ShapeError,
     "the heads have 13 coordinates together and wo is 3×4: 13 coordinates cannot meet 3 rows"),
    (regard.self_attention, ONE | {"casual": True}, regard.OptionError,
     "self_attention: no option 'casual': did you mean 'causal'?"),
    (regard.self_attention, ONE | {"layout": "token-head"}, regard.OptionError,
     "no option 'layout'"),
    (regard.self_attention, ONE | {"wv": ONE["wv"].astype("f4")}, regard.NumberError,
     "types differ .*wv float32"),
    (regard.multi_head_attention, WIDE | {"heads": None}, regard.OptionError,
     r"needs heads: pass heads=… to split the columns of wq \(7×22\)"),
    (regard.multi_head_attention, WIDE | {"heads": 0}, regard.OptionError, "at least 1, but 0"),
    (regard.multi_head_attention, WIDE | {"heads": 3}, regard.ShapeError,
     "wq is 7×22, whose 22 columns cannot be split among 3 heads"),
    (regard.multi_head_attention, WIDE | {"wk": random(7, 11), "bk": None}, regard.ShapeError,
     "whose 11 columns cannot be split among 2 heads; if query heads share them, pass kv_heads=…"),
    (regard.multi_head_attention, WIDE | {"wk": random(2, 7, 11)}, regard.ShapeError,
     "wk is 2×7×11, but it needs 2 axes"),
    (regard.multi_head_attention, {"x": X, **per_head(), "heads": 3}, regard.OptionError,
     "wq has 2 matrices, but heads=3"),
    (regard.multi_head_attention, {"x": X, **per_head(), "bk": random(11)}, regard.ShapeError,
     "bk is 11, but it needs 2 axes, because wq is 2×7×11: one for each head"),
    (regard.multi_head_attention, {"x": X, **per_head(), "wv": random(3, 7, 13)},
     regard.ShapeError, "wv is 3×7×13 and wk is 2×7×11: one is for 3 heads and one for 2"),
    (regard.multi_head_attention, WIDE | {"wq": [random(7, 11), random(7, 3)]}, regard.ShapeError,
     "wq must be matrices of one shape, but they are 7×11, 7×3"),
    (regard.multi_head_attention, WIDE | {"y": X[0]}, regard.ShapeError, "equally many axes"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given", "error", "message"), WRONG)
def test_messages(call: Any, given: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(**given)
