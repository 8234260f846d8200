"""From what is given to a graph: one function for each kind of attention computation.

A builder looks at shapes only, never at values, so that a computation can be counted without
having its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard._axes import LEADING, written
from regard._errors import OptionError, ShapeError, did_you_mean
from regard._options import is_integer, look_up, one_of, positive_integer
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.numbers import written_fraction
from regard.graph.operation import Axes, Axis, Operation
from regard.graph.operations import (
    Add,
    Affine,
    Alibi,
    AppendSink,
    Attend,
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

# What there may be none of; the result is then empty, or 0 where there is no key to attend to.
MAY_BE_EMPTY = ("batch", "token", "query", "key")
LARGEST_NUMBER = 10**300  # near the end of float64

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


# How the computation is to be made; the words are the same everywhere in regard.
DEFAULTS: Mapping[str, Any] = {
    "scale": "sqrt",
    "causal": False,
    "window": None,
    "softcap": None,
    "positions": None,
    "rotary_layout": "half",
    "rotary_base": 10000,
    "heads": None,
    "kv_heads": None,
    "norm": "layer",
    "feed_forward": "gelu",
    "eps": "1e-5",
}
OPTION_NAMES = tuple(DEFAULTS)


def exact_text(option: str, value: Any, at_least: int | None = None) -> str:
    """A number as the text of a Fraction: 0.8 is 4/5."""
    wanted = "a number" if at_least is None else f"a number of at least {at_least}"
    try:
        if isinstance(value, bool):
            raise ValueError("True and False are no numbers here")
        number = written_fraction(str(value))
        if abs(number) > LARGEST_NUMBER or (at_least is not None and number < at_least):
            raise ValueError("out of range")
    except (ValueError, ZeroDivisionError) as error:
        raise OptionError(f"`{option}` must be {wanted}, but {value!r} was passed") from error
    return str(number)


def positive_text(option: str, value: Any) -> str:
    text = exact_text(option, value, at_least=0)
    if text == "0":
        raise OptionError(f"`{option}` must be a number above 0, but {value!r} was passed")
    return text


@dataclass
class _Builder:
    """Givens and steps so far; sizes are bound as givens come in."""

    kind: str
    shapes: Mapping[str, Shape]
    options: Mapping[str, Any]
    givens: list[Given] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    known: dict[str, Axes] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def option(self, name: str) -> Any:
        """The option as passed, or its default."""
        self.asked.add(name)
        return self.options.get(name, DEFAULTS[name])

    def has(self, name: str) -> bool:
        return name in self.shapes

    def rank(self, name: str) -> int:
        if name not in self.shapes:
            raise OptionError(f"{self.kind} needs {name}, which was not given")
        return len(self.shapes[name])

    def given(self, name: str, *spec: tuple[str, str]) -> str:
        """Take in a given whose axes have these names and sizes."""
        if self.rank(name) != len(spec):
            sizes = " × ".join(str(Polynomial.parse(size)) for _, size in spec)
            wanted = f"have {len(spec)} axes ({sizes})" if spec else "be a single number"
            raise ShapeError(
                f"{self.kind}: {name} must {wanted}, but it is {written(self.shapes[name])}"
            )
        axes = tuple(Axis(axis, Polynomial.parse(size)) for axis, size in spec)
        for axis, number in zip(axes, self.shapes[name], strict=True):
            if number == 0 and axis.name not in MAY_BE_EMPTY:
                raise ShapeError(
                    f"{self.kind}: {name} is {written(self.shapes[name])}; "
                    f"its {axis.name} axis must have at least one entry"
                )
            self._bind(name, axis.name, axis.size, number)
        self.givens.append(Given(name, GIVEN_SYMBOLS[name], axes))
        self.known[name] = axes
        return name

    def _bind(self, name: str, axis: str, size: Polynomial, number: int) -> None:
        unknown = [symbol for symbol in size.symbols if symbol not in self.sizes]
        if unknown:
            (symbol,) = unknown
            rest = size.over(Polynomial.of(symbol)).evaluate(self.sizes)
            if number % rest:
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
        self.known[name] = operation.axes(*(self.known[operand] for operand in operands))
        return name

    def axes(self, name: str) -> Axes:
        """The axes of a given or step so far."""
        return self.known[name]

    def finish(self) -> Graph:
        taken = {given.name for given in self.givens}
        if unused := [name for name in self.shapes if name not in taken]:
            raise OptionError(
                f"{self.kind} does not use {', '.join(unused)} "
                f"(it was given {', '.join(self.shapes)})"
            )
        for name, value in self.options.items():
            if name not in self.asked and not _same(value, DEFAULTS[name]):
                raise OptionError(
                    f"`{name}={value!r}` changes nothing in this {self.kind}: leave it out"
                )
        return Graph(self.kind, tuple(self.givens), tuple(self.steps), self.sizes)


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def build(kind: str, shapes: Mapping[str, Shape], **options: Any) -> Graph:
    """The graph of a kind of computation for givens of these shapes."""
    make = look_up("kind", kind, KINDS)
    for name in options:
        if name not in OPTION_NAMES:
            raise OptionError(f"no option {name!r}: {did_you_mean(name, OPTION_NAMES)}")
    for name in shapes:
        if name not in GIVEN_SYMBOLS:
            hint = did_you_mean(name, [*GIVEN_SYMBOLS, *OPTION_NAMES])
            raise OptionError(f"{kind} knows no given or option {name!r}: {hint}")
    builder = _Builder(kind, shapes, options)
    make(builder)
    return builder.finish()


# ---- the kinds -----------------------------------------------------------------------------


def _dot_product(b: _Builder) -> None:
    """A source vector s over a set of vectors h, whose values are h or given apart as v."""
    h = b.given("h", ("key", "n_k"), ("dim", "d_k"))
    s = b.given("s", ("dim", "d_k"))
    v = b.given("v", ("key", "n_k"), ("dim", "d_v")) if b.has("v") else h
    scores = b.step("scores", Symbol("e"), MatMul(rows="key"), h, s)
    weights = _softmax(b, _scaled(b, scores, "e", default=1), Symbol("α"))
    b.step("context", Symbol("c"), MatMul(columns="dim"), weights, v)


def _attention(b: _Builder) -> None:
    """Q, K and V as given."""
    positions = _positions(b)
    if positions in ("sinusoidal", "learned"):
        raise OptionError(
            f"attention: {positions} positions are added to X, which is not there: "
            "add them before, or use the kind 'self-attention'"
        )
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
    if b.rank("X") != b.rank("Y"):
        raise ShapeError(
            f"{b.kind}: X is {written(b.shapes['X'])} and Y is {written(b.shapes['Y'])}; "
            "either both have a batch axis or neither"
        )
    if b.option("heads") is None and b.rank("WQ") == 2:
        _attend(b, *_single_head(b, x, y))
        _output(b, "context")
    else:
        _output(b, _many_heads(b, x, y))


def _multi_head(b: _Builder) -> None:
    """Many heads over one sequence."""
    x = _sequence(b, "X", "n")
    _output(b, _many_heads(b, x, x))


def _decoder_block(b: _Builder) -> None:
    """Norm, attention, residual, norm, feed-forward, residual."""
    x = _sequence(b, "X", "n")
    normed = _norm(b, x, "1")
    b.rank("WO")  # what is added to X must be as wide as X
    attended = _output(b, _many_heads(b, normed, normed, rows="token"), "d_model")
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
    kind_of_positions = _positions(b)
    if kind_of_positions == "learned":
        positions = b.given(learned, ("token", tokens), ("model", width))
    elif kind_of_positions == "sinusoidal":
        operation = Sinusoidal(tokens, width)
        positions = b.step(f"positions{tag}", GIVEN_SYMBOLS[learned], operation)
    else:
        return name
    return b.step(f"positioned{tag}", Symbol(name, "pos"), Add(), name, positions)


def _positions(b: _Builder) -> str | None:
    positions = b.option("positions")
    if positions is None:
        return None
    return one_of("positions", positions, ("sinusoidal", "learned", "rotary", "alibi"))


def _linear(
    b: _Builder,
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


def _projected(b: _Builder, x: str, letter: str, rows: str, width: str, heads: Spec = ()) -> str:
    product, out = MatMul(rows, "dim"), ("dim", width)
    return _linear(b, letter, Symbol(letter), product, x, f"W{letter}", out, heads)


def _single_head(b: _Builder, x: str, y: str) -> tuple[str, str, str]:
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


def _many_heads(b: _Builder, x: str, y: str, rows: str = "query") -> str:
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
    context = _attend(b, q, k, v)
    return b.step("merged", Symbol("Z"), Merge(heads, "columns", rows, "dim"), context)


def _headed(b: _Builder, x: str, letter: str, rows: str, width: str, heads: str) -> str:
    """Q, K or V of every head; `width` holds the number of heads when they share one matrix."""
    if b.rank("WQ") == 3:
        return _projected(b, x, letter, rows, width, (("head", heads),))
    wide = _projected(b, x, letter, rows, width)
    return b.step(f"{letter}_heads", Symbol(letter, "heads"), Split(heads), wide)


def _bind_heads(b: _Builder) -> tuple[str, str]:
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


def _count_heads(b: _Builder, option: str, weight: str | None) -> int | None:
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


def _attend(b: _Builder, q: str, k: str, v: str) -> str:
    """Scores, weights and context from queries, keys and values of any number of heads."""
    if _positions(b) == "rotary":
        q = _rotated(b, q, _standing(b, "0"))
        k = _rotated(b, k, "0")
    scores = b.step("scores", Symbol("S"), MatMul("query", "key", transpose_b=True), q, k)
    scores = _scaled(b, scores, "S")
    if b.option("softcap") is not None:
        cap = SoftCap(positive_text("softcap", b.option("softcap")))
        scores = b.step("capped", Symbol("S", "capped"), cap, scores)
    unmasked = _biased(b, scores)
    scores = masked = _masked(b, unmasked)
    if b.has("sinks"):
        sinks = b.given("sinks", *_leading(b, scores, "head"))
        scores = b.step("with_sink", Symbol("S", "sink"), AppendSink(), scores, sinks)
    weights = _softmax(b, scores, Symbol("A"))
    if b.has("sinks"):
        take = Take("key", "0", _tokens(b)[1])
        weights = b.step("attended", Symbol("A", "keys"), take, weights)
    if masked == unmasked:
        return b.step("context", Symbol("C"), MatMul("query", "dim"), weights, v)
    return b.step("context", Symbol("C"), Attend("query", "dim"), weights, v, masked)


def _leading(b: _Builder, name: str, *wanted: str) -> Spec:
    """Those of the wanted axes that a step has."""
    return tuple((axis.name, str(axis.size)) for axis in b.axes(name) if axis.name in wanted)


def _rotated(b: _Builder, name: str, start: str) -> str:
    base = positive_text("rotary_base", b.option("rotary_base"))
    letter = name.partition("_")[0]
    operation = Rotary(b.option("rotary_layout"), base, start)
    return b.step(f"{letter}_rotated", Symbol(letter, "rot"), operation, name)


def _scaled(b: _Builder, scores: str, letter: str, default: Any = "sqrt") -> str:
    scale = b.option("scale") if "scale" in b.options else default
    if scale is None:
        raise OptionError(
            "`scale=None` could mean 1/√d_k or no scaling at all: "
            'pass scale="sqrt" for the first, scale=1 for the second'
        )
    symbol = Symbol(letter, "scaled")
    if isinstance(scale, str) and scale == "sqrt":
        return b.step("scaled", symbol, Scale("d_k"), scores)
    try:
        factor = exact_text("scale", scale)
    except OptionError as error:
        message = f'`scale` must be "sqrt" or a number, but {scale!r} was passed'
        raise OptionError(message) from error
    return scores if factor == "1" else b.step("scaled", symbol, Affine(factor), scores)


def _tokens(b: _Builder) -> tuple[str, str]:
    """The sizes of the query and the key axis."""
    return ("n", "n") if "n" in b.sizes else ("n_q", "n_k")


def _aligned_at_end(b: _Builder) -> str:
    queries, keys = _tokens(b)
    return "0" if queries == keys else f"{keys} - {queries}"


def _standing(b: _Builder, otherwise: str) -> str:
    """At which key the first query stands, when the word for `causal` tells."""
    words = {"top-left": "0", "bottom-right": _aligned_at_end(b)}
    causal = b.option("causal")
    return words.get(causal, otherwise) if isinstance(causal, str) else otherwise


def _causal_offset(b: _Builder, causal: Any) -> str:
    """At which key the diagonal of the causal mask begins."""
    queries, keys = (b.sizes[size] for size in _tokens(b))
    if causal is True:
        if queries != keys:
            raise OptionError(
                f"`causal=True` is unclear for {queries} queries and {keys} keys: pass "
                '"top-left" (the first query at the first key) or "bottom-right" (the last at the '
                "last)"
            )
        return "0"
    if is_integer(causal):
        return str(int(causal))
    if not isinstance(causal, str) or causal not in ("top-left", "bottom-right"):
        raise OptionError(
            "`causal` must be False, True, 'top-left', 'bottom-right' or a whole number (the key "
            f"at which the first query stands), but {causal!r} was passed"
        )
    return _standing(b, "0")


def _biased(b: _Builder, scores: str) -> str:
    rows, columns = _tokens(b)
    if _positions(b) == "alibi":
        has_heads = bool(_leading(b, scores, "head"))
        start = _standing(b, _aligned_at_end(b))
        operation = Alibi("h" if has_heads else "1", rows, columns, start)
        slopes = b.step("distance", Symbol("D"), operation)
        if not has_heads:
            slopes = b.step("distance_1", Symbol("D", "1"), PickHead(0), slopes)
        scores = b.step("distanced", Symbol("S", "alibi"), Add(), scores, slopes)
    if b.has("bias"):
        bias = b.given("bias", *_score_axes(b, "bias", scores))
        scores = b.step("biased", Symbol("S", "biased"), Add(), scores, bias)
    return scores


def _score_axes(b: _Builder, name: str, scores: str) -> Spec:
    """A matrix over queries and keys, one for each batch entry or head when it has more axes."""
    rows, columns = _tokens(b)
    core: Spec = (("query", rows), ("key", columns))
    leading = _leading(b, scores, *LEADING)
    if b.rank(name) <= 2:
        return core
    if b.rank(name) > 3 or len(leading) < 2:
        return (*leading, *core)
    number = b.shapes[name][0]
    fitting = tuple(axis for axis in leading if b.sizes[axis[1]] == number)
    if len(fitting) == 1:
        return (*fitting, *core)
    counts = " and ".join(f"{b.sizes[size]} for the {axis} axis" for axis, size in leading)
    raise ShapeError(
        f"{b.kind}: {name} is {written(b.shapes[name])}; its first axis could be the batch or the "
        f"heads ({counts}): pass it with {len(leading) + 2} axes (batch × h × {rows} × {columns})"
    )


def _masked(b: _Builder, scores: str) -> str:
    rows, columns = _tokens(b)
    causal = b.option("causal")
    causal = bool(causal) if isinstance(causal, np.bool_) else causal
    masks: list[str] = []
    if b.has("prefix"):
        prefix = b.given("prefix", *_per_sequence(b, "prefix", scores))
        offset = _causal_offset(b, True if causal is False else causal)
        operation = Prefix(rows, columns, offset)
        masks.append(b.step("mask_prefix", Symbol("M", "prefix"), operation, prefix))
    elif causal is not False:
        diagonal = Causal(rows, columns, _causal_offset(b, causal))
        masks.append(b.step("mask_causal", Symbol("M", "causal"), diagonal))
    if b.option("window") is not None:
        offset = _aligned_at_end(b) if causal is False else _causal_offset(b, causal)
        window = Window(*_window(b.option("window")), rows, columns, offset)
        masks.append(b.step("mask_window", Symbol("M", "window"), window))
    if b.has("lengths"):
        lengths = b.given("lengths", *_per_sequence(b, "lengths", scores))
        masks.append(b.step("mask_padding", Symbol("M", "padding"), Padding(columns), lengths))
    if b.has("mask"):
        masks.append(b.given("mask", *_score_axes(b, "mask", scores)))
    if not masks:
        return scores
    return b.step("masked", Symbol("S", "masked"), Mask(), scores, _all_masks(b, masks))


def _all_masks(b: _Builder, masks: list[str]) -> str:
    """One mask that hides whatever any of them hides."""
    mask, *others = masks
    for place, other in enumerate(others, 2):
        tag = str(place) if place < len(masks) else ""
        mask = b.step(f"mask_{tag or 'all'}", Symbol("M", tag), Mask(), mask, other)
    return mask


def _per_sequence(b: _Builder, name: str, scores: str) -> Spec:
    """One number for all sequences, or one for each of the batch."""
    return _leading(b, scores, "batch") if b.rank(name) else ()


def _window(window: Any) -> tuple[int, int]:
    sides = (window, window) if is_integer(window) else window
    if (
        isinstance(sides, (tuple, list))
        and len(sides) == 2
        and all(is_integer(side) and side >= -1 for side in sides)
    ):
        return int(sides[0]), int(sides[1])
    raise OptionError(
        "`window` must be how many keys to see on each side (one number, or (left, right); "
        f"−1 is unbounded), but {window!r} was passed"
    )


def _softmax(b: _Builder, scores: str, symbol: Symbol) -> str:
    b.step("exp", Symbol("E"), Exp(), scores)
    b.step("sums", Symbol("r"), Sum(("key",)), "exp")
    return b.step("weights", symbol, Normalise(), "exp", "sums")


def _output(b: _Builder, context: str, width: str = "d_out") -> str:
    """Through W_O, if there is one."""
    if not b.has("WO"):
        return context
    product = MatMul(b.axes(context)[-2].name, "model")
    return _linear(b, "output", Symbol("O"), product, context, "WO", ("model", width))


def _norm(b: _Builder, x: str, number: str) -> str:
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


def _feed_forward(b: _Builder, x: str) -> str:
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
