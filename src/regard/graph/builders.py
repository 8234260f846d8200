"""From what is given to a graph: one function for each kind of attention computation.

A builder looks at shapes only, never at values, so that a computation can be counted without
having its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from regard._axes import written
from regard._errors import OptionError, ShapeError, did_you_mean
from regard._options import look_up, one_of, positive_integer
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operation import Axes, Axis, Operation
from regard.graph.operations import (
    Add,
    Affine,
    Alibi,
    AppendSink,
    Causal,
    Divide,
    Exp,
    Mask,
    MatMul,
    Mean,
    Merge,
    Multiply,
    NormalCdf,
    Normalise,
    Padding,
    PickHead,
    Prefix,
    Repeat,
    Rotary,
    Scale,
    Sigmoid,
    Sinusoidal,
    SoftCap,
    Split,
    Sqrt,
    Subtract,
    Sum,
    Take,
    Window,
)
from regard.graph.polynomial import Polynomial

Shape = tuple[int, ...]
Spec = tuple[tuple[str, str], ...]  # (axis name, size formula) for each axis

GIVEN_SYMBOLS = {
    "X": Symbol("X"), "Y": Symbol("Y"), "P": Symbol("P"), "P_Y": Symbol("P", "Y"),
    "Q": Symbol("Q"), "K": Symbol("K"), "V": Symbol("V"),
    "WQ": Symbol("W", "Q"), "WK": Symbol("W", "K"), "WV": Symbol("W", "V"), "WO": Symbol("W", "O"),
    "bQ": Symbol("b", "Q"), "bK": Symbol("b", "K"), "bV": Symbol("b", "V"), "bO": Symbol("b", "O"),
    "s": Symbol("s"), "h": Symbol("H"), "v": Symbol("V"),
    "mask": Symbol("M", "given"), "bias": Symbol("B"), "lengths": Symbol("ℓ"),
    "prefix": Symbol("p"), "sinks": Symbol("z"),
    "gamma_1": Symbol("γ", "1"), "beta_1": Symbol("β", "1"),
    "gamma_2": Symbol("γ", "2"), "beta_2": Symbol("β", "2"),
    "W1": Symbol("W", "1"), "b1": Symbol("b", "1"), "W2": Symbol("W", "2"), "b2": Symbol("b", "2"),
    "WG": Symbol("W", "G"), "WU": Symbol("W", "U"), "WD": Symbol("W", "D"),
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """How the computation is to be made; the words are the same everywhere in regard."""

    scale: Any = "sqrt"
    causal: Any = False
    window: Any = None
    softcap: Any = None
    positions: str | None = None
    rotary_layout: str = "half"
    rotary_base: Any = 10000
    heads: int | None = None
    kv_heads: int | None = None
    norm: str = "layer"
    feed_forward: str = "gelu"
    eps: Any = "1e-5"

    def __post_init__(self) -> None:
        if self.positions is not None:
            one_of("positions", self.positions, ("sinusoidal", "learned", "rotary", "alibi"))
        one_of("norm", self.norm, ("layer", "rms"))
        one_of("feed_forward", self.feed_forward, ("gelu", "swiglu"))
        for name in ("heads", "kv_heads"):
            if getattr(self, name) is not None:
                positive_integer(name, getattr(self, name))


OPTION_NAMES = tuple(option.name for option in fields(Options))


def exact_text(option: str, value: Any) -> str:
    """A number as the text of a Fraction: 0.8 is 4/5."""
    if isinstance(value, bool) or value is None:
        raise OptionError(f"`{option}` must be a number, but {value!r} was passed")
    try:
        return str(Fraction(str(value)))
    except (ValueError, ZeroDivisionError) as error:
        raise OptionError(f"`{option}` must be a number, but {value!r} was passed") from error


@dataclass
class _Builder:
    """Givens and steps so far; sizes are bound as givens come in."""

    kind: str
    shapes: Mapping[str, Shape]
    options: Options
    givens: list[Given] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.shapes

    def rank(self, name: str) -> int:
        if name not in self.shapes:
            raise OptionError(f"{self.kind} needs {name}, which was not given")
        return len(self.shapes[name])

    def given(self, name: str, *spec: tuple[str, str]) -> str:
        """Take in a given whose axes have these names and sizes."""
        if self.rank(name) != len(spec):
            sizes = " × ".join(size for _, size in spec)
            raise ShapeError(
                f"{self.kind}: {name} must have {len(spec)} axes ({sizes}), "
                f"but it is {written(self.shapes[name])}"
            )
        axes = []
        for (axis, size), number in zip(spec, self.shapes[name], strict=True):
            self._bind(name, axis, Polynomial.parse(size), number)
            axes.append(Axis(axis, Polynomial.parse(size)))
        self.givens.append(Given(name, GIVEN_SYMBOLS[name], tuple(axes)))
        return name

    def _bind(self, name: str, axis: str, size: Polynomial, number: int) -> None:
        unknown = [symbol for symbol in size.symbols if symbol not in self.sizes]
        if unknown:
            (symbol,) = unknown
            rest = size.over(Polynomial.of(symbol)).evaluate(self.sizes)
            if number % rest or number < rest:
                raise ShapeError(
                    f"{self.kind}: {name} is {written(self.shapes[name])}; its {axis} axis of "
                    f"{number} is to hold {size}, but {number} is not divisible by {rest}"
                )
            self.sizes[symbol] = number // rest
            self.origins[symbol] = name
        elif size.evaluate(self.sizes) != number:
            wanted = size.evaluate(self.sizes)
            origins = " and ".join(sorted({self.origins[symbol] for symbol in size.symbols}))
            raise ShapeError(
                f"{self.kind}: {name} is {written(self.shapes[name])}; its {axis} axis must have "
                f"{size} = {wanted} entries to fit {origins}, but it has {number}"
            )

    def set_size(self, symbol: str, number: int, origin: str) -> None:
        self.sizes[symbol] = number
        self.origins[symbol] = origin

    def step(self, name: str, symbol: Symbol, operation: Operation, *operands: str) -> str:
        self.steps.append(Step(name, symbol, operation, operands))
        return name

    def axes(self, name: str) -> Axes:
        """The axes of a given or step so far."""
        return Graph(self.kind, tuple(self.givens), tuple(self.steps)).axes[name]

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes(name))

    def finish(self) -> Graph:
        taken = {given.name for given in self.givens}
        if unused := [name for name in self.shapes if name not in taken]:
            raise OptionError(
                f"{self.kind} does not use {', '.join(unused)} "
                f"(it was given {', '.join(self.shapes)})"
            )
        return Graph(self.kind, tuple(self.givens), tuple(self.steps), self.sizes)


def build(kind: str, shapes: Mapping[str, Shape], **options: Any) -> Graph:
    """The graph of a kind of computation for givens of these shapes."""
    make = look_up("kind", kind, KINDS)
    for name in options:
        if name not in OPTION_NAMES:
            raise OptionError(f"no option {name!r}: {did_you_mean(name, OPTION_NAMES)}")
    for name in shapes:
        if name not in GIVEN_SYMBOLS:
            known = [*GIVEN_SYMBOLS, *OPTION_NAMES]
            raise OptionError(f"{kind} knows no given or option {name!r}: {did_you_mean(name, known)}")
    builder = _Builder(kind, shapes, Options(**options))
    make(builder)
    return builder.finish()


# ---- the kinds -----------------------------------------------------------------------------


def _dot_product(b: _Builder) -> None:
    """A source vector s over a set of vectors h, whose values are h or given apart as v."""
    h = b.given("h", ("key", "n_k"), ("dim", "d_k"))
    s = b.given("s", ("dim", "d_k"))
    v = b.given("v", ("key", "n_k"), ("dim", "d_v")) if b.has("v") else h
    scores = b.step("scores", Symbol("e"), MatMul(rows="key"), h, s)
    weights = _softmax(b, _scaled(b, scores, default=1, letter="e"), Symbol("α"))
    b.step("context", Symbol("c"), MatMul(columns="dim"), weights, v)


def _attention(b: _Builder) -> None:
    """Q, K and V as given."""
    leading: Spec = (("batch", "batch"), ("head", "h"))[: max(b.rank("Q") - 2, 0)]
    q = b.given("Q", *leading, ("query", "n_q"), ("dim", "d_k"))
    k = b.given("K", *leading, ("key", "n_k"), ("dim", "d_k"))
    v = b.given("V", *leading, ("key", "n_k"), ("dim", "d_v"))
    _attend(b, q, k, v)


def _self_attention(b: _Builder) -> None:
    """One head over one sequence."""
    x = _sequence(b, "X", "n")
    _attend(b, *_single_head(b, x, x))
    _output(b, "context")


def _cross_attention(b: _Builder) -> None:
    """Queries from X, keys and values from Y."""
    x = _sequence(b, "X", "n_q")
    y = _sequence(b, "Y", "n_k")
    if b.options.heads is None and b.rank("WQ") == 2:
        _attend(b, *_single_head(b, x, y))
        _output(b, "context")
    else:
        _many_heads(b, x, y)


def _multi_head(b: _Builder) -> None:
    """Many heads over one sequence."""
    x = _sequence(b, "X", "n")
    _many_heads(b, x, x)


def _decoder_block(b: _Builder) -> None:
    """Norm, attention, residual, norm, feed-forward, residual."""
    x = _sequence(b, "X", "n")
    normed = _norm(b, x, "1")
    attended = _many_heads(b, normed, normed, rows="token")
    between = b.step("residual_1", Symbol("R", "1"), Add(), x, attended)
    hidden = _feed_forward(b, _norm(b, between, "2"))
    b.step("residual_2", Symbol("R", "2"), Add(), between, hidden)


KINDS = {
    "dot-product": _dot_product,
    "attention": _attention,
    "self-attention": _self_attention,
    "cross-attention": _cross_attention,
    "multi-head": _multi_head,
    "decoder-block": _decoder_block,
}


# ---- the parts -----------------------------------------------------------------------------


def _sequence(b: _Builder, name: str, tokens: str) -> str:
    """A sequence or a batch of them, with its positions added when they are asked for."""
    batch: Spec = (("batch", "batch"),) if b.rank(name) == 3 else ()
    b.given(name, *batch, ("token", tokens), ("model", "d_model" if name == "X" else f"d_{name}"))
    width = str(b.givens[-1].axes[-1].size)
    learned = "P" if name == "X" else f"P_{name}"
    tag = "" if name == "X" else f"_{name}"
    if b.options.positions == "learned":
        positions = b.given(learned, ("token", tokens), ("model", width))
    elif b.options.positions == "sinusoidal":
        operation = Sinusoidal(tokens, width)
        positions = b.step(f"positions{tag}", GIVEN_SYMBOLS[learned], operation)
    else:
        return name
    return b.step(f"positioned{tag}", Symbol(name, "pos"), Add(), name, positions)


def _projected(b: _Builder, x: str, letter: str, rows: str, width: str) -> str:
    """x W, or x W + b when a bias is given."""
    source = str(b.axes(x)[-1].size)
    heads: Spec = (("head", "h_kv" if "h_kv" in b.sizes and letter != "Q" else "h"),)
    per_head = b.rank(f"W{letter}") == 3
    spec: Spec = (("model", source), ("dim", width))
    weight = b.given(f"W{letter}", *(heads if per_head else ()), *spec)
    biased = b.has(f"b{letter}")
    symbol = Symbol(letter, "0") if biased else Symbol(letter)
    name = f"{letter}_unbiased" if biased else letter
    product = b.step(name, symbol, MatMul(rows, "dim"), x, weight)
    if not biased:
        return product
    bias = b.given(f"b{letter}", *(heads if per_head else ()), ("dim", width))
    return b.step(letter, Symbol(letter), Add(), product, bias)


def _single_head(b: _Builder, x: str, y: str) -> tuple[str, str, str]:
    if b.rank("WQ") == 3:
        raise ShapeError(
            f"{b.kind}: WQ has one matrix for each of {b.shapes['WQ'][0]} heads; "
            "a single head takes one matrix; use the kind 'multi-head'"
        )
    if b.options.heads not in (None, 1):
        raise OptionError(
            f"{b.kind} has one head, but heads={b.options.heads} was passed; "
            "use the kind 'multi-head'"
        )
    q = _projected(b, x, "Q", "query", "d_k")
    k = _projected(b, y, "K", "key", "d_k")
    return q, k, _projected(b, y, "V", "key", "d_v")


def _many_heads(b: _Builder, x: str, y: str, rows: str = "query") -> str:
    """Heads from one matrix each, or from the columns of wide ones; merged, then W_O."""
    _bind_heads(b)
    shared = "h_kv" in b.sizes
    few = "h_kv" if shared else "h"
    wide = b.rank("WQ") == 2
    q = _projected(b, x, "Q", "query", "h d_k" if wide else "d_k")
    k = _projected(b, y, "K", "key", f"{few} d_k" if wide else "d_k")
    v = _projected(b, y, "V", "key", f"{few} d_v" if wide else "d_v")
    if wide:
        q, k, v = (
            b.step(f"{letter}_heads", Symbol(letter, "heads"), Split(heads), letter)
            for letter, heads in (("Q", "h"), ("K", few), ("V", few))
        )
    if shared:
        k, v = (
            b.step(f"{letter}_shared", Symbol(letter, "shared"), Repeat("h"), source)
            for letter, source in (("K", k), ("V", v))
        )
    context = _attend(b, q, k, v)
    merged = b.step("merged", Symbol("Z"), Merge("h", "columns", rows, "dim"), context)
    return _output(b, merged, rows, "h d_v")


def _bind_heads(b: _Builder) -> None:
    """The number of heads, from the option or from one matrix a head."""
    per_head = b.rank("WQ") == 3
    heads = b.shapes["WQ"][0] if per_head else b.options.heads
    if heads is None:
        raise OptionError(
            f"{b.kind} needs heads: pass heads=… to split WQ {written(b.shapes['WQ'])} by columns, "
            "or one matrix for each head"
        )
    if b.options.heads not in (None, heads):
        raise OptionError(f"{b.kind}: WQ has {heads} matrices, but heads={b.options.heads}")
    b.set_size("h", heads, "heads")
    few = b.shapes["WK"][0] if per_head and b.rank("WK") == 3 else b.options.kv_heads
    if few is None or few == heads:
        return
    if heads % few:
        raise OptionError(
            f"{b.kind}: {heads} query heads cannot share {few} key heads: "
            f"{heads} is not divisible by {few}"
        )
    b.set_size("h_kv", few, "kv_heads")


def _attend(b: _Builder, q: str, k: str, v: str) -> str:
    """Scores, weights and context from queries, keys and values of any number of heads."""
    if b.options.positions == "rotary":
        q, k = (_rotated(b, name, axis) for name, axis in ((q, "query"), (k, "key")))
    product = MatMul("query", "key", transpose_b=True)
    scores = _scaled(b, b.step("scores", Symbol("S"), product, q, k), default="sqrt", letter="S")
    if b.options.softcap is not None:
        cap = SoftCap(exact_text("softcap", b.options.softcap))
        scores = b.step("capped", Symbol("S", "capped"), cap, scores)
    scores = _masked(b, _biased(b, scores, bool({"head"} & set(b.names(q)))))
    if b.has("sinks"):
        sinks = b.given("sinks", *((("head", "h"),) if "head" in b.names(q) else ()))
        scores = b.step("with_sink", Symbol("S", "sink"), AppendSink(), scores, sinks)
    weights = _softmax(b, scores, Symbol("A"))
    if b.has("sinks"):
        count = str(_tokens(b)[1])
        weights = b.step("attended", Symbol("A", "keys"), Take("key", "0", count), weights)
    return b.step("context", Symbol("C"), MatMul("query", "dim"), weights, v)


def _rotated(b: _Builder, name: str, axis: str) -> str:
    options = b.options
    base = exact_text("rotary_base", options.rotary_base)
    operation = Rotary(axis, options.rotary_layout, base)
    letter = name.partition("_")[0]
    return b.step(f"{letter}_rotated", Symbol(letter, "rot"), operation, name)


def _scaled(b: _Builder, scores: str, default: Any, letter: str) -> str:
    scale = b.options.scale
    if scale is None:
        raise OptionError(
            "`scale=None` could mean 1/√d_k or no scaling at all: "
            'pass scale="sqrt" for the first, scale=1 for the second'
        )
    if b.kind == "dot-product" and scale == "sqrt":
        scale = default
    symbol = Symbol(letter, "scaled")
    if isinstance(scale, str) and scale == "sqrt":
        return b.step("scaled", symbol, Scale("d_k"), scores)
    if isinstance(scale, str) and not scale[:1].isdigit():
        raise OptionError(f'`scale` must be "sqrt" or a number, but {scale!r} was passed')
    factor = exact_text("scale", scale)
    return scores if factor == "1" else b.step("scaled", symbol, Affine(factor), scores)


def _tokens(b: _Builder) -> tuple[str, str]:
    """The sizes of the query and the key axis."""
    return ("n", "n") if "n" in b.sizes else ("n_q", "n_k")


def _aligned_at_end(b: _Builder) -> str:
    queries, keys = _tokens(b)
    return "0" if queries == keys else f"{keys} - {queries}"


def _causal_offset(b: _Builder) -> str:
    causal = b.options.causal
    queries, keys = (b.sizes[size] for size in _tokens(b))
    if causal is True:
        if queries != keys:
            raise OptionError(
                f"`causal=True` is unclear for {queries} queries and {keys} keys: pass "
                '"top-left" (the first query at the first key) or "bottom-right" (the last at the '
                "last)"
            )
        return "0"
    if isinstance(causal, int):
        return str(causal)
    word = one_of("causal", causal, ("top-left", "bottom-right"))
    return "0" if word == "top-left" else _aligned_at_end(b)


def _biased(b: _Builder, scores: str, heads: bool) -> str:
    rows, columns = _tokens(b)
    if b.options.positions == "alibi":
        offset = _aligned_at_end(b)
        if not heads:
            b.set_size("h", 1, "alibi")
        slopes = b.step("distance", Symbol("D"), Alibi("h", rows, columns, offset))
        if not heads:
            slopes = b.step("distance_1", Symbol("D", "1"), PickHead(0), slopes)
        scores = b.step("distanced", Symbol("S", "alibi"), Add(), scores, slopes)
    if b.has("bias"):
        bias = b.given("bias", *_score_axes(b, "bias", heads))
        scores = b.step("biased", Symbol("S", "biased"), Add(), scores, bias)
    return scores


def _score_axes(b: _Builder, name: str, heads: bool) -> Spec:
    """A matrix over queries and keys, one for each batch entry or head when it has more axes."""
    rows, columns = _tokens(b)
    core: Spec = (("query", rows), ("key", columns))
    leading: Spec = (("batch", "batch"),) if "batch" in b.sizes else ()
    leading += (("head", "h"),) if heads else ()
    extra = b.rank(name) - 2
    return (*(leading[len(leading) - extra :] if extra else ()), *core)


def _masked(b: _Builder, scores: str) -> str:
    rows, columns = _tokens(b)
    masks: list[str] = []
    if b.has("prefix"):
        prefix = b.given("prefix", *((("batch", "batch"),) if b.rank("prefix") else ()))
        offset = "0" if b.options.causal is False else _causal_offset(b)
        masks.append(b.step("mask_prefix", Symbol("M", "prefix"), Prefix(rows, columns, offset), prefix))
    elif b.options.causal is not False:
        causal = Causal(rows, columns, _causal_offset(b))
        masks.append(b.step("mask_causal", Symbol("M", "causal"), causal))
    if b.options.window is not None:
        masks.append(b.step("mask_window", Symbol("M", "window"), _window(b, rows, columns)))
    if b.has("lengths"):
        lengths = b.given("lengths", *((("batch", "batch"),) if b.rank("lengths") else ()))
        masks.append(b.step("mask_padding", Symbol("M", "padding"), Padding(columns), lengths))
    if b.has("mask"):
        heads = "head" in b.names(scores)
        masks.append(b.given("mask", *_score_axes(b, "mask", heads)))
    if not masks:
        return scores
    mask = masks[0]
    for place, other in enumerate(masks[1:], 2):
        name = "mask_all" if place == len(masks) else f"mask_{place}"
        mask = b.step(name, Symbol("M", "" if place == len(masks) else str(place)), Mask(), mask, other)
    return b.step("masked", Symbol("S", "masked"), Mask(), scores, mask)


def _window(b: _Builder, rows: str, columns: str) -> Window:
    window = b.options.window
    sides = (window, window) if isinstance(window, int) else window
    if (
        not isinstance(sides, (tuple, list))
        or len(sides) != 2
        or not all(isinstance(side, int) and side >= -1 for side in sides)
    ):
        raise OptionError(
            "`window` must be how many keys to see on each side (one number, or (left, right); "
            f"−1 is unbounded), but {window!r} was passed"
        )
    offset = "0" if b.options.causal is False else _causal_offset(b)
    return Window(sides[0], sides[1], rows, columns, offset)


def _softmax(b: _Builder, scores: str, symbol: Symbol) -> str:
    b.step("exp", Symbol("E"), Exp(), scores)
    b.step("sums", Symbol("r"), Sum(("key",)), "exp")
    return b.step("weights", symbol, Normalise(), "exp", "sums")


def _output(b: _Builder, context: str, rows: str = "query", width: str = "d_v") -> str:
    if not b.has("WO"):
        return context
    weight = b.given("WO", ("dim", width), ("model", "d_out"))
    if not b.has("bO"):
        return b.step("output", Symbol("O"), MatMul(rows, "model"), context, weight)
    product = b.step("output_unbiased", Symbol("O", "0"), MatMul(rows, "model"), context, weight)
    bias = b.given("bO", ("model", "d_out"))
    return b.step("output", Symbol("O"), Add(), product, bias)


def _norm(b: _Builder, x: str, number: str) -> str:
    """LayerNorm or RMSNorm, in steps; gain and offset where they are given."""
    name, tag = f"norm_{number}", f"norm{number}"
    centred = x
    if b.options.norm == "layer":
        mean = b.step(f"{name}_mean", Symbol("μ", number), Mean(("model",)), x)
        centred = b.step(f"{name}_centred", Symbol("D", number), Subtract(), x, mean)
    squares = b.step(f"{name}_squares", Symbol("D", number, "2"), Multiply(), centred, centred)
    variance = b.step(f"{name}_variance", Symbol("σ²", number), Mean(("model",)), squares)
    safe = Affine(offset=exact_text("eps", b.options.eps))
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


def _feed_forward(b: _Builder, x: str) -> str:
    if b.options.feed_forward == "swiglu":
        gate = _layer(b, "gate", Symbol("G"), x, "WG", ("model", "d_model"), ("hidden", "d_ff"))
        up = _layer(b, "up", Symbol("U"), x, "WU", ("model", "d_model"), ("hidden", "d_ff"))
        share = b.step("gate_share", Symbol("σ", "G"), Sigmoid(), gate)
        silu = b.step("gated", Symbol("G", "silu"), Multiply(), gate, share)
        active = b.step("active", Symbol("H"), Multiply(), silu, up)
        down = "WD"
    else:
        hidden = _layer(b, "hidden", Symbol("H", "0"), x, "W1", ("model", "d_model"), ("hidden", "d_ff"))
        share = b.step("hidden_share", Symbol("Φ", "H"), NormalCdf(), hidden)
        active = b.step("active", Symbol("H"), Multiply(), hidden, share)
        down = "W2"
    return _layer(b, "feed_forward", Symbol("F"), active, down, ("hidden", "d_ff"), ("model", "d_model"))


def _layer(
    b: _Builder, name: str, symbol: Symbol, x: str, weight: str, *spec: tuple[str, str]
) -> str:
    """x W, or x W + b when the bias of the same number is given."""
    matrix = b.given(weight, *spec)
    bias = weight.replace("W", "b")
    product = MatMul("token", spec[1][0])
    if not b.has(bias):
        return b.step(name, symbol, product, x, matrix)
    unbiased = b.step(f"{name}_unbiased", Symbol(symbol.base, "0"), product, x, matrix)
    return b.step(name, symbol, Add(), unbiased, b.given(bias, spec[1]))
