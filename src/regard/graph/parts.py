"""What computations are put together from: sequences, projections, heads, norms, feed-forward."""

from __future__ import annotations

from regard._axes import written
from regard._errors import OptionError, ShapeError
from regard._options import one_of, positive_integer
from regard.graph.attending import attend
from regard.graph.construction import GIVEN_SYMBOLS, Builder, Spec, chosen_positions, exact_text
from regard.graph.notation import Symbol
from regard.graph.operations import (
    Add,
    Affine,
    Divide,
    MatMul,
    Mean,
    Merge,
    Multiply,
    NormalCdf,
    Repeat,
    Sigmoid,
    Sinusoidal,
    Split,
    Sqrt,
    Subtract,
)


def sequence(b: Builder, name: str, tokens: str) -> str:
    """A sequence or a batch of them, with its positions added when they are asked for."""
    batch: Spec = (("batch", "batch"),) if b.rank(name) == 3 else ()
    b.given(name, *batch, ("token", tokens), ("model", "d_model" if name == "X" else f"d_{name}"))
    width = str(b.givens[-1].axes[-1].size)
    learned = "P" if name == "X" else f"P_{name}"
    tag = "" if name == "X" else f"_{name}"
    kind = chosen_positions(b)
    if kind == "learned":
        positions = b.given(learned, ("token", tokens), ("model", width))
    elif kind == "sinusoidal":
        operation = Sinusoidal(tokens, width)
        positions = b.step(f"positions{tag}", GIVEN_SYMBOLS[learned], operation)
    else:
        return name
    return b.step(f"positioned{tag}", Symbol(name, "pos"), Add(), name, positions)


def _linear(
    b: Builder,
    name: str,
    symbol: Symbol,
    product: MatMul,
    x: str,
    weight: str,
    out: tuple[str, str],
    heads: Spec = (),
) -> str:
    """x W, or x W + b when the bias of the same letter is given."""
    source = b.axes(x)[-1]
    matrix = b.given(weight, *heads, (source.name, str(source.size)), out)
    bias = weight.replace("W", "b")
    if not b.has(bias):
        return b.step(name, symbol, product, x, matrix)
    unbiased = b.step(f"{name}_unbiased", Symbol(symbol.base, "0"), product, x, matrix)
    return b.step(name, symbol, Add(), unbiased, b.given(bias, *heads, out))


def _projected(b: Builder, x: str, letter: str, rows: str, width: str, heads: Spec = ()) -> str:
    product, out = MatMul(rows, "dim"), ("dim", width)
    return _linear(b, letter, Symbol(letter), product, x, f"W{letter}", out, heads)


def single_head(b: Builder, x: str, y: str) -> tuple[str, str, str]:
    if b.rank("WQ") == 3:
        raise ShapeError(
            f"{b.kind}: WQ has one matrix for each of {b.shapes['WQ'][0]} heads; "
            "a single head takes one matrix; use the kind 'multi-head'"
        )
    heads = b.option("heads")
    if heads is not None and positive_integer("heads", heads) != 1:
        raise OptionError(
            f"{b.kind} has one head, but heads={heads} was passed; use the kind 'multi-head'"
        )
    q = _projected(b, x, "Q", "query", "d_k")
    k = _projected(b, y, "K", "key", "d_k")
    return q, k, _projected(b, y, "V", "key", "d_v")


def many_heads(b: Builder, x: str, y: str, rows: str = "query") -> str:
    """Heads from one matrix each, or from the columns of wide ones; merged."""
    heads, few = _bind_heads(b)
    factor = f"{heads} " if b.rank("WQ") == 2 else ""
    q = _headed(b, x, "Q", "query", f"{factor}d_k", heads)
    factor = f"{few} " if factor else ""
    k = _headed(b, y, "K", "key", f"{factor}d_k", few)
    v = _headed(b, y, "V", "key", f"{factor}d_v", few)
    if few != heads:
        k, v = (
            b.step(f"{letter}_shared", Symbol(letter, "shared"), Repeat(heads), source)
            for letter, source in (("K", k), ("V", v))
        )
    context = attend(b, q, k, v)
    return b.step("merged", Symbol("Z"), Merge(heads, "columns", rows, "dim"), context)


def _headed(b: Builder, x: str, letter: str, rows: str, width: str, heads: str) -> str:
    """Q, K or V of every head; `width` holds the number of heads when they share one matrix."""
    if b.rank("WQ") == 3:
        return _projected(b, x, letter, rows, width, (("head", heads),))
    wide = _projected(b, x, letter, rows, width)
    return b.step(f"{letter}_heads", Symbol(letter, "heads"), Split(heads), wide)


def _bind_heads(b: Builder) -> tuple[str, str]:
    """The sizes that count heads: of queries, and of keys and values when those are fewer."""
    ranks = {name: b.rank(name) for name in ("WQ", "WK", "WV")}
    if len(set(ranks.values())) > 1:
        given = ", ".join(f"{name} {written(b.shapes[name])}" for name in ranks)
        raise ShapeError(
            f"{b.kind}: either each of WQ, WK and WV is one matrix, whose columns are split into "
            f"heads, or each has one matrix for every head, but {given} were passed"
        )
    per_head = ranks["WQ"] == 3
    heads = _count_heads(b, "heads", "WQ" if per_head else None)
    if heads is None:
        raise OptionError(
            f"{b.kind} needs heads: pass heads=… to split WQ {written(b.shapes['WQ'])} by columns, "
            "or one matrix for each head"
        )
    few = _count_heads(b, "kv_heads", "WK" if per_head else None) or heads
    if heads % few:
        raise OptionError(
            f"{b.kind}: {heads} query heads cannot share {few} key heads: "
            f"{heads} is not divisible by {few}"
        )
    b.set_size("h", heads, "heads")
    if few == heads:
        return "h", "h"
    b.set_size("h_kv", few, "kv_heads")
    return "h", "h_kv"


def _count_heads(b: Builder, option: str, weight: str | None) -> int | None:
    """How many heads the option says, or how many matrices the weight has."""
    passed = b.option(option)
    said = None if passed is None else positive_integer(option, passed)
    if weight is None:
        return said
    found = b.shapes[weight][0]
    if found < 1:
        raise ShapeError(f"{b.kind}: {weight} is {written(b.shapes[weight])}: it has no head")
    if said not in (None, found):
        raise OptionError(f"{b.kind}: {weight} has {found} matrices, but {option}={said}")
    return found


def output(b: Builder, context: str, width: str = "d_out") -> str:
    """Through W_O, if there is one."""
    if not b.has("WO"):
        return context
    product = MatMul(b.axes(context)[-2].name, "model")
    return _linear(b, "output", Symbol("O"), product, context, "WO", ("model", width))


def norm(b: Builder, x: str, number: str) -> str:
    """LayerNorm or RMSNorm, in steps; gain and offset where they are given."""
    name, tag = f"norm_{number}", f"norm{number}"
    centred = x
    if one_of("norm", b.option("norm"), ("layer", "rms")) == "layer":
        mean = b.step(f"{name}_mean", Symbol("μ", number), Mean(("model",)), x)
        centred = b.step(f"{name}_centred", Symbol("D", number), Subtract(), x, mean)
    squares = b.step(f"{name}_squares", Symbol("D²", number), Multiply(), centred, centred)
    variance = b.step(f"{name}_variance", Symbol("σ²", number), Mean(("model",)), squares)
    safe = Affine(offset=exact_text("eps", b.option("eps"), at_least=0))
    shifted = b.step(f"{name}_shifted", Symbol("σ²", f"{number},ε"), safe, variance)
    deviation = b.step(f"{name}_deviation", Symbol("σ", number), Sqrt(), shifted)
    result = b.step(f"{name}_unit", Symbol("U", number), Divide(), centred, deviation)
    for greek, operation in (("gamma", Multiply()), ("beta", Add())):
        if b.has(f"{greek}_{number}"):
            given = b.given(f"{greek}_{number}", ("model", "d_model"))
            part = f"{name}_{greek}"
            result = b.step(part, Symbol("X", f"{tag},{greek[0]}"), operation, result, given)
    last = b.steps.pop()
    return b.step(name, Symbol("X", tag), last.operation, *last.operands)


def feed_forward(b: Builder, x: str) -> str:
    inside, hidden = MatMul("token", "hidden"), ("hidden", "d_ff")
    if one_of("feed_forward", b.option("feed_forward"), ("gelu", "swiglu")) == "swiglu":
        gate = _linear(b, "gate", Symbol("G"), inside, x, "WG", hidden)
        up = _linear(b, "up", Symbol("U"), inside, x, "WU", hidden)
        share = b.step("gate_share", Symbol("σ", "G"), Sigmoid(), gate)
        silu = b.step("gated", Symbol("G", "silu"), Multiply(), gate, share)
        active = b.step("active", Symbol("H"), Multiply(), silu, up)
        down = "WD"
    else:
        before = _linear(b, "hidden", Symbol("H", "in"), inside, x, "W1", hidden)
        share = b.step("hidden_share", Symbol("Φ", "H"), NormalCdf(), before)
        active = b.step("active", Symbol("H"), Multiply(), before, share)
        down = "W2"
    outside = MatMul("token", "model")
    return _linear(b, "feed_forward", Symbol("F"), outside, active, down, ("model", "d_model"))
