"""Every kind of computation and every option: values and gradients, against torch.

The torch side is written from the definitions, with loops where regard has array code, and with
torch's own functions where it has them. Each axis has a size of its own, so that no wrong
transpose can go unnoticed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from regard.graph.builders import build  # noqa: E402
from regard.graph.gradient import backward  # noqa: E402
from regard.graph.heads import one_head  # noqa: E402
from regard.graph.numbers import read_given  # noqa: E402
from regard.graph.run import Run, run  # noqa: E402

BATCH, HEADS, QUERIES, KEYS, D_K, D_V, D_MODEL, D_OUT, D_Y, D_FF = (
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    19,
    23,
    29,
)
EVEN = 10  # a d_k for rotary positions
Givens = dict[str, Any]

# ---- the torch side --------------------------------------------------------------------------


def first_key(causal: Any, queries: int, keys: int) -> int:
    """The key up to which the first query sees."""
    if isinstance(causal, str):
        return {"top-left": 0, "bottom-right": keys - queries}[causal]
    return 0 if causal is True else causal


def of_sequence(numbers: Any, b: int) -> int:
    """One number for all sequences, or one for each."""
    listed = numbers.reshape(-1).tolist()
    return int(listed[b] if len(listed) > 1 else listed[0])


def allowed(g: Givens, o: Givens, queries: int, keys: int, batch: int) -> Any:
    """True where a query may attend to a key, entry by entry."""
    causal = o.get("causal", False)
    start = None if causal is False else first_key(causal, queries, keys)
    window = o.get("window", -1)
    left, right = (window, window) if isinstance(window, int) else window
    table = torch.ones(batch, queries, keys, dtype=torch.bool)
    for b in range(batch):
        length = of_sequence(g["lengths"], b) if "lengths" in g else keys
        prefix = of_sequence(g["prefix"], b) if "prefix" in g else 0
        for i in range(queries):
            for j in range(keys):
                here = i + (keys - queries if start is None else start)
                seen = j < length
                if start is not None:
                    seen &= j <= here or (i + start < prefix and j < prefix)
                seen &= (left < 0 or j >= here - left) and (right < 0 or j <= here + right)
                table[b, i, j] = bool(seen)
    return table


def slopes(heads: int) -> list[float]:
    """As the authors of ALiBi publish them."""
    if math.log2(heads).is_integer():
        first = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [first * first**i for i in range(heads)]
    closest = 2 ** math.floor(math.log2(heads))
    return slopes(closest) + slopes(2 * closest)[0::2][: heads - closest]


def turned(x: Any, layout: str, base: float, start: int) -> Any:
    """Rotary positions as a product of complex numbers."""
    pairs = x.shape[-1] // 2
    if layout == "half":
        z = torch.complex(x[..., :pairs].contiguous(), x[..., pairs:].contiguous())
    else:
        z = torch.view_as_complex(x.unflatten(-1, (pairs, 2)).contiguous())
    angle = torch.tensor([[t * base ** (-2 * i / (2 * pairs)) for i in range(pairs)]
                          for t in range(start, start + x.shape[-2])])  # fmt: skip
    z = z * torch.polar(torch.ones_like(angle), angle)
    if layout == "half":
        return torch.cat([z.real, z.imag], dim=-1)
    return torch.view_as_real(z).flatten(-2)


def attend(q: Any, k: Any, v: Any, g: Givens, o: Givens) -> Any:
    """Attention over (batch, head, token, dim); leading axes of size 1 stand in for none."""
    queries, keys, heads = q.shape[-2], k.shape[-2], q.shape[1]
    word = o.get("causal")
    end = keys - queries
    if o.get("positions") == "rotary":
        layout, base = o.get("rotary_layout", "half"), float(o.get("rotary_base", 10000))
        q = turned(q, layout, base, end if word == "bottom-right" else 0)
        k = turned(k, layout, base, 0)
    scale = o.get("scale", "sqrt")
    factor = 1 / math.sqrt(q.shape[-1]) if scale == "sqrt" else float(Fraction(scale))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * factor
    if "softcap" in o:
        scores = o["softcap"] * torch.tanh(scores / o["softcap"])
    if o.get("positions") == "alibi":
        start = 0 if word == "top-left" else end
        for h, slope in enumerate(slopes(heads)):
            distance = [[abs(i + start - j) for j in range(keys)] for i in range(queries)]
            row = torch.zeros(heads, 1, 1)
            row[h] = slope
            scores = scores - row * torch.tensor(distance)
    if "bias" in g:
        scores = scores + per_score(g["bias"], g["bias"].shape, scores)
    may = allowed(g, o, queries, keys, q.shape[0])[:, None].expand(scores.shape)
    if "mask" in g and g["mask"].dtype == torch.bool:
        may = may & per_score(g["mask"], g["mask"].shape, scores)
    elif "mask" in g:
        scores = scores + per_score(g["mask"], g["mask"].shape, scores)
        may = may & ~torch.isneginf(scores)
    scores = torch.where(may, scores, -torch.inf)
    if "sinks" in g:
        sink = g["sinks"].reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    else:
        live = may.any(-1, keepdim=True)
        weights = torch.where(live, torch.softmax(torch.where(live, scores, 0), dim=-1), 0)
    return weights @ v


def per_score(x: Any, shape: tuple[int, ...], scores: Any) -> Any:
    """A matrix, one for each batch entry or head, or one for both, in the axes of the scores."""
    if x.ndim == 3:
        x = x[:, None] if shape[0] == scores.shape[0] else x[None]
    return x


def projected(x: Any, g: Givens, letter: str, heads: int | None) -> Any:
    """(batch, head, token, dim) from (batch, token, model)."""
    weight, bias = g[f"W{letter}"], g.get(f"b{letter}")
    if weight.ndim == 3:
        each = [x @ w + (bias[i] if bias is not None else 0) for i, w in enumerate(weight)]
        return torch.stack(each, dim=1)
    wide = x @ weight + (bias if bias is not None else 0)
    return torch.stack(wide.chunk(heads or 1, dim=-1), dim=1)


def with_positions(x: Any, added: Any, o: Givens) -> Any:
    if o.get("positions") == "learned":
        return x + added
    if o.get("positions") != "sinusoidal":
        return x
    table = torch.zeros(x.shape[-2:])
    for t in range(x.shape[-2]):
        for c in range(x.shape[-1]):
            angle = t / 10000 ** ((c - c % 2) / x.shape[-1])
            table[t, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return x + table


def many_heads(x: Any, y: Any, g: Givens, o: Givens) -> Any:
    heads = o.get("heads") or (len(g["WQ"]) if g["WQ"].ndim == 3 else 1)
    few = o.get("kv_heads") or (len(g["WK"]) if g["WK"].ndim == 3 else heads)
    q = projected(x, g, "Q", heads)
    k, v = (projected(y, g, letter, few).repeat_interleave(heads // few, dim=1) for letter in "KV")
    merged = torch.cat(list(attend(q, k, v, g, o).unbind(1)), dim=-1)
    return merged @ g["WO"] + g.get("bO", 0) if "WO" in g else merged


def normed(x: Any, g: Givens, o: Givens, number: str) -> Any:
    gain, shift = g.get(f"gamma_{number}"), g.get(f"beta_{number}")
    eps = float(o.get("eps", 1e-5))
    if o.get("norm") == "rms":
        return F.rms_norm(x, x.shape[-1:], gain, eps) + (shift if shift is not None else 0)
    return F.layer_norm(x, x.shape[-1:], gain, shift, eps)


def block(x: Any, g: Givens, o: Givens) -> Any:
    inside = normed(x, g, o, "1")
    x = x + many_heads(inside, inside, g, o)
    inside = normed(x, g, o, "2")
    if o.get("feed_forward") == "swiglu":
        return x + (F.silu(inside @ g["WG"]) * (inside @ g["WU"])) @ g["WD"]
    return x + F.gelu(inside @ g["W1"] + g.get("b1", 0)) @ g["W2"] + g.get("b2", 0)


def in_torch(kind: str, g: Givens, o: Givens) -> Any:
    if kind == "dot-product":
        factor = (
            1 / math.sqrt(len(g["s"])) if o.get("scale") == "sqrt" else float(o.get("scale", 1))
        )
        return torch.softmax(g["h"] @ g["s"] * factor, dim=0) @ g.get("v", g["h"])
    if kind == "attention":
        missing = 4 - g["Q"].ndim
        q, k, v = (
            g[n][None, None] if missing == 2 else g[n][:, None] if missing else g[n] for n in "QKV"
        )
        result = attend(q, k, v, g, o)
        return result[0, 0] if missing == 2 else result[:, 0] if missing else result
    batched = g["X"].ndim == 3
    x, y = (g[n] if batched else g[n][None] for n in ("X", "Y" if "Y" in g else "X"))
    x = with_positions(x, g.get("P"), o)
    y = with_positions(y, g.get("P_Y"), o) if "Y" in g else x
    result = block(x, g, o) if kind == "decoder-block" else many_heads(x, y, g, o)
    return result if batched else result[0]


# ---- the cases -------------------------------------------------------------------------------

QKV = {"Q": (QUERIES, D_K), "K": (KEYS, D_K), "V": (KEYS, D_V)}
BATCHED_QKV = {name: (BATCH, *shape) for name, shape in QKV.items()}
HEADED_QKV = {name: (BATCH, HEADS, *shape) for name, shape in QKV.items()}
EVEN_QKV = {"Q": (QUERIES, EVEN), "K": (KEYS, EVEN), "V": (KEYS, D_V)}
X = {"X": (QUERIES, D_MODEL)}
XS = {"X": (BATCH, QUERIES, D_MODEL)}
ONE = {"WQ": (D_MODEL, D_K), "WK": (D_MODEL, D_K), "WV": (D_MODEL, D_V)}
WIDE = {"WQ": (D_MODEL, HEADS * D_K), "WK": (D_MODEL, HEADS * D_K), "WV": (D_MODEL, HEADS * D_V)}
EACH = {name: (HEADS, *shape) for name, shape in ONE.items()}
ONE_BIASES = {"bQ": (D_K,), "bK": (D_K,), "bV": (D_V,)}
WIDE_BIASES = {name: (HEADS * size,) for name, (size,) in ONE_BIASES.items()}
EACH_BIASES = {name: (HEADS, size) for name, (size,) in ONE_BIASES.items()}
OUT = {"WO": (HEADS * D_V, D_OUT)}
SIX_OVER_TWO = {"WQ": (6, D_MODEL, D_K), "WK": (2, D_MODEL, D_K), "WV": (2, D_MODEL, D_V)}
WIDE_SIX_OVER_TWO = {
    "WQ": (D_MODEL, 6 * D_K), "WK": (D_MODEL, 2 * D_K), "WV": (D_MODEL, 2 * D_V),
}  # fmt: skip
EVEN_WIDE = {"WQ": (D_MODEL, 3 * EVEN), "WK": (D_MODEL, 3 * EVEN), "WV": (D_MODEL, 3 * D_V)}
Y = {"Y": (KEYS, D_Y), "WQ": (D_MODEL, D_K), "WK": (D_Y, D_K), "WV": (D_Y, D_V)}
WIDE_Y = {
    "X": (BATCH, QUERIES, D_MODEL), "Y": (BATCH, KEYS, D_Y), "WQ": (D_MODEL, HEADS * D_K),
    "WK": (D_Y, HEADS * D_K), "WV": (D_Y, HEADS * D_V),
}  # fmt: skip
BLOCK = XS | WIDE | {"WO": (HEADS * D_V, D_MODEL)}
GELU = {"W1": (D_MODEL, D_FF), "W2": (D_FF, D_MODEL)}
SWIGLU = {"WG": (D_MODEL, D_FF), "WU": (D_MODEL, D_FF), "WD": (D_FF, D_MODEL)}
GAINS = {"gamma_1": (D_MODEL,), "gamma_2": (D_MODEL,)}
SHIFTS = {"beta_1": (D_MODEL,), "beta_2": (D_MODEL,)}


def permissions(*shape: int) -> Any:
    """A mask that hides about a third, and the first query's keys altogether."""
    mask = np.random.default_rng(5).random(shape) < 0.66
    mask[..., 0, :] = False
    return mask


def barriers(*shape: int) -> Any:
    """The same as an additive mask that also changes what it does not hide."""
    soft = np.random.default_rng(6).normal(size=shape)
    return np.where(permissions(*shape), soft, -np.inf)


SCORES = (QUERIES, KEYS)
CASES: dict[str, tuple[str, Givens, Givens]] = {
    "one source": ("dot-product", {"s": (D_K,), "h": (KEYS, D_K)}, {}),
    "one source, values apart": (
        "dot-product", {"s": (D_K,), "h": (KEYS, D_K), "v": (KEYS, D_V)}, {"scale": "sqrt"},
    ),
    "one source, scaled by a number": (
        "dot-product", {"s": (D_K,), "h": (KEYS, D_K)}, {"scale": 0.25},
    ),
    "rectangular": ("attention", QKV, {}),
    "batch": ("attention", BATCHED_QKV, {}),
    "batch and heads": ("attention", HEADED_QKV, {}),
    "unscaled": ("attention", QKV, {"scale": 1}),
    "scale as text": ("attention", QKV, {"scale": "0.5"}),
    "top-left": ("attention", QKV, {"causal": "top-left"}),
    "bottom-right": ("attention", QKV, {"causal": "bottom-right"}),
    "bottom-right, more queries": (
        "attention", {"Q": (7, D_K), "K": (5, D_K), "V": (5, D_V)}, {"causal": "bottom-right"},
    ),
    "whole-number alignment": ("attention", QKV, {"causal": 1}),
    "strictly causal": ("attention", QKV, {"causal": -1}),
    "boolean mask": ("attention", QKV | {"mask": permissions(*SCORES)}, {}),
    "boolean mask, batch": ("attention", BATCHED_QKV | {"mask": permissions(*SCORES)}, {}),
    "boolean mask for each of the batch": (
        "attention", BATCHED_QKV | {"mask": permissions(BATCH, *SCORES)}, {},
    ),
    "boolean mask for each of the batch, heads": (
        "attention", HEADED_QKV | {"mask": permissions(BATCH, *SCORES)}, {},
    ),
    "boolean mask for each head": (
        "attention", HEADED_QKV | {"mask": permissions(HEADS, *SCORES)}, {},
    ),
    "boolean mask for each of both": (
        "attention", HEADED_QKV | {"mask": permissions(BATCH, HEADS, *SCORES)}, {},
    ),
    "additive mask": ("attention", QKV | {"mask": barriers(*SCORES)}, {}),
    "additive mask for each of both": (
        "attention", HEADED_QKV | {"mask": barriers(BATCH, HEADS, *SCORES)}, {},
    ),
    "finite additive mask": ("attention", HEADED_QKV | {"mask": (HEADS, *SCORES)}, {}),
    "bias": ("attention", QKV | {"bias": SCORES}, {}),
    "bias for each head": ("attention", HEADED_QKV | {"bias": (HEADS, *SCORES)}, {}),
    "length": ("attention", QKV | {"lengths": np.array(4)}, {}),
    "length 0": ("attention", QKV | {"lengths": np.array(0)}, {}),
    "lengths": ("attention", HEADED_QKV | {"lengths": np.array([7, 3])}, {}),
    "window": ("attention", QKV, {"window": 1}),
    "window to the left": ("attention", QKV, {"window": (2, -1), "causal": "top-left"}),
    "window from the end": ("attention", QKV, {"window": (3, 0), "causal": "bottom-right"}),
    "prefix": ("attention", QKV | {"prefix": np.array(4)}, {"causal": "top-left"}),
    "prefixes": (
        "attention", HEADED_QKV | {"prefix": np.array([2, 5])}, {"causal": "bottom-right"},
    ),
    "many masks": (
        "attention", HEADED_QKV | {"lengths": np.array([6, 5]), "mask": permissions(*SCORES)},
        {"causal": "bottom-right", "window": 2},
    ),
    "softcap": ("attention", QKV, {"softcap": 1.5}),
    "sink": ("attention", QKV | {"sinks": ()}, {}),
    "sink of each head": (
        "attention", HEADED_QKV | {"sinks": (HEADS,), "lengths": np.array([7, 0])}, {},
    ),
    "rotary": ("attention", EVEN_QKV, {"positions": "rotary"}),
    "rotary, interleaved": (
        "attention", EVEN_QKV,
        {"positions": "rotary", "rotary_layout": "interleaved", "rotary_base": 50.5},
    ),
    "rotary, aligned at the end": (
        "attention", EVEN_QKV, {"positions": "rotary", "causal": "bottom-right"},
    ),
    "ALiBi, one head": ("attention", QKV, {"positions": "alibi"}),
    "ALiBi, three heads": ("attention", HEADED_QKV, {"positions": "alibi"}),
    "ALiBi, four heads": (
        "attention", {name: (BATCH, 4, *shape) for name, shape in QKV.items()},
        {"positions": "alibi", "causal": "bottom-right"},
    ),
    "ALiBi, five heads": (
        "attention", {name: (1, 5, *shape) for name, shape in QKV.items()},
        {"positions": "alibi", "causal": "top-left"},
    ),
    "everything on the scores": (
        "attention",
        HEADED_QKV
        | {"bias": (BATCH, HEADS, *SCORES), "sinks": (HEADS,), "lengths": np.array([7, 2])},
        {"softcap": 2, "positions": "alibi", "causal": "bottom-right", "scale": "1/3"},
    ),
    "self": ("self-attention", X | ONE, {}),
    "self, unscaled, causal": ("self-attention", X | ONE, {"scale": 1, "causal": True}),
    "self, batch, biases": ("self-attention", XS | ONE | ONE_BIASES, {}),
    "self, output": (
        "self-attention", XS | ONE | {"WO": (D_V, D_OUT), "bO": (D_OUT,)}, {"causal": True},
    ),
    "self, sinusoidal": (
        "self-attention",
        {"X": (QUERIES, 16), "WQ": (16, D_K), "WK": (16, D_K), "WV": (16, D_V)},
        {"positions": "sinusoidal"},
    ),
    "self, learned": ("self-attention", XS | ONE | {"P": X["X"]}, {"positions": "learned"}),
    "cross": ("cross-attention", X | Y, {}),
    "cross, output and learned positions": (
        "cross-attention",
        X | Y | {"WO": (D_V, D_OUT), "P": X["X"], "P_Y": (KEYS, D_Y)}, {"positions": "learned"},
    ),
    "cross, many heads": ("cross-attention", WIDE_Y | OUT, {"heads": HEADS}),
    "cross, many heads, padding": (
        "cross-attention", WIDE_Y | {"lengths": np.array([3, 7])}, {"heads": HEADS},
    ),
    "columns": ("multi-head", X | WIDE, {"heads": HEADS}),
    "columns, batch, biases, output": (
        "multi-head", XS | WIDE | WIDE_BIASES | OUT | {"bO": (D_OUT,)},
        {"heads": HEADS, "causal": True},
    ),
    "one matrix a head": ("multi-head", X | EACH | OUT, {}),
    "one matrix a head, batch, biases": ("multi-head", XS | EACH | EACH_BIASES, {"scale": 1}),
    "one wide head": ("multi-head", XS | ONE, {"heads": 1}),
    "grouped": ("multi-head", XS | SIX_OVER_TWO, {"causal": True}),
    "grouped, columns": (
        "multi-head", XS | WIDE_SIX_OVER_TWO | {"WO": (6 * D_V, D_OUT)},
        {"heads": 6, "kv_heads": 2},
    ),
    "one key head": (
        "multi-head", XS | WIDE_SIX_OVER_TWO | {"WK": (D_MODEL, D_K), "WV": (D_MODEL, D_V)},
        {"heads": 6, "kv_heads": 1},
    ),
    "columns, rotary": ("multi-head", XS | EVEN_WIDE, {"heads": 3, "positions": "rotary"}),
    "columns, ALiBi": ("multi-head", XS | WIDE, {"heads": 3, "positions": "alibi", "causal": True}),
    "columns, sinks": ("multi-head", XS | WIDE | {"sinks": (3,)}, {"heads": 3}),
    "block, LayerNorm, GELU": ("decoder-block", BLOCK | GELU, {"heads": 3, "causal": True}),
    "block, gains, shifts, biases": (
        "decoder-block",
        BLOCK | GELU | GAINS | SHIFTS | WIDE_BIASES
        | {"b1": (D_FF,), "b2": (D_MODEL,), "bO": (D_MODEL,)},
        {"heads": 3, "causal": True, "eps": 0.125},
    ),
    "block, RMSNorm, SwiGLU": (
        "decoder-block", BLOCK | SWIGLU | GAINS,
        {"heads": 3, "norm": "rms", "feed_forward": "swiglu"},
    ),
    "block, LayerNorm, SwiGLU": (
        "decoder-block", BLOCK | SWIGLU | SHIFTS, {"heads": 3, "feed_forward": "swiglu"},
    ),
    "block, RMSNorm, GELU, rotary, grouped": (
        "decoder-block",
        XS | {"WQ": (D_MODEL, 6 * EVEN), "WK": (D_MODEL, 2 * EVEN), "WV": (D_MODEL, 2 * D_V)}
        | {"WO": (6 * D_V, D_MODEL)} | GELU,
        {"heads": 6, "kv_heads": 2, "norm": "rms", "positions": "rotary", "causal": True},
    ),
}  # fmt: skip


def givens_of(case: str) -> Givens:
    """Small normal numbers for each shape; arrays as they are."""
    rng = np.random.default_rng(2)
    return {
        name: value if isinstance(value, np.ndarray) else 0.6 * rng.normal(size=value)
        for name, value in CASES[case][1].items()
    }


def prepared(case: str) -> tuple[Run, dict[str, Any]]:
    kind, _, options = CASES[case]
    givens = {name: read_given(name, value) for name, value in givens_of(case).items()}
    graph = build(kind, {name: value.shape for name, value in givens.items()}, **options)
    return run(graph, givens), givens


def tensors(givens: Givens) -> Givens:
    return {name: torch.tensor(value) for name, value in givens.items()}


@pytest.fixture(autouse=True)
def _double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    kind, _, options = CASES[case]
    ours, givens = prepared(case)
    wanted = in_torch(kind, tensors(givens), options)
    last = ours.graph.steps[-1].name
    np.testing.assert_allclose(ours.values[last], wanted, rtol=1e-11, atol=1e-13)


def differentiable(givens: Givens) -> tuple[str, ...]:
    return tuple(
        name
        for name, value in givens.items()
        if name not in ("lengths", "prefix") and value.dtype != bool and np.isfinite(value).all()
    )


@pytest.mark.parametrize("case", CASES)
def test_gradients(case: str) -> None:
    kind, _, options = CASES[case]
    ours, givens = prepared(case)
    wrt = differentiable(givens)
    leaves = tensors(givens)
    for name in wrt:
        leaves[name].requires_grad_()
    last = ours.graph.steps[-1].name
    seed = np.random.default_rng(3).normal(size=ours.values[last].shape)
    in_torch(kind, leaves, options).backward(torch.tensor(seed))
    back = run(backward(ours.graph, last, wrt), givens | {f"d_{last}": seed})
    for name in wrt:
        assert back.graph.axes[f"d_{name}"] == back.graph.axes[name]
        np.testing.assert_allclose(
            back.values[f"d_{name}"], leaves[name].grad, rtol=1e-9, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("case", CASES)
def test_weights_of_a_query_sum_to_one_or_to_nothing(case: str) -> None:
    ours, _ = prepared(case)
    sums = ours.values["weights"].sum(axis=-1)
    live = ours.values["sums"] != 0
    np.testing.assert_allclose(sums, live.astype(float), rtol=1e-13)


WITH_HEADS = [case for case in CASES if "h" in prepared(case)[0].graph.sizes]


@pytest.mark.parametrize("case", WITH_HEADS)
def test_one_head_alone(case: str) -> None:
    """Each step of a head is the slice of that step of all heads."""
    whole, _ = prepared(case)
    heads = whole.graph.sizes["h"]
    for index in range(heads):
        alone = one_head(whole, index)
        assert "context" in alone.graph
        for name in set(alone.graph.names) & set(whole.graph.names):
            tensor = whole.tensor(name)
            wanted = tensor.array
            if "head" in tensor.names:
                shared = heads // wanted.shape[tensor.place("head")]
                wanted = wanted.take(index // shared, axis=tensor.place("head"))
            np.testing.assert_allclose(alone.values[name], wanted, rtol=1e-12, err_msg=name)


# ---- torch's own attention -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"scale": 0.3}, {"scale": 0.3}),
        ({"causal": "top-left"}, {"is_causal": True}),  # torch aligns at the first token
    ],
)
def test_scaled_dot_product_attention(options: Givens, theirs: Givens) -> None:
    rng = np.random.default_rng(4)
    givens = {name: rng.normal(size=shape) for name, shape in HEADED_QKV.items()}
    graph = build("attention", {n: v.shape for n, v in givens.items()}, **options)
    wanted = F.scaled_dot_product_attention(*tensors(givens).values(), **theirs)
    np.testing.assert_allclose(run(graph, givens).values["context"], wanted, rtol=1e-12)


def test_multihead_attention_module() -> None:
    """torch keeps each matrix transposed, and Q, K, V in one."""
    embed, heads = 15, 3
    module = torch.nn.MultiheadAttention(embed, heads, batch_first=True)
    torch.nn.init.normal_(module.in_proj_bias)
    torch.nn.init.normal_(module.out_proj.bias)
    weights = [w.detach().numpy().T for w in module.in_proj_weight.chunk(3)]
    biases = [b.detach().numpy() for b in module.in_proj_bias.chunk(3)]
    x = np.random.default_rng(1).normal(size=(BATCH, QUERIES, embed))
    givens = {"X": x, **dict(zip(("WQ", "WK", "WV"), weights, strict=True))}
    givens |= dict(zip(("bQ", "bK", "bV"), biases, strict=True))
    givens["WO"] = module.out_proj.weight.detach().numpy().T
    givens["bO"] = module.out_proj.bias.detach().numpy()
    graph = build("multi-head", {n: v.shape for n, v in givens.items()}, heads=heads)
    ours = run(graph, givens)
    wanted, weights_seen = module(*[torch.tensor(x)] * 3, average_attn_weights=False)
    np.testing.assert_allclose(ours.values["output"], wanted.detach(), rtol=1e-10)
    np.testing.assert_allclose(ours.values["weights"], weights_seen.detach(), rtol=1e-10)
