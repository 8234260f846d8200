"""From queries, keys and values to the context: scores, masks, softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard._axes import LEADING, written
from regard._errors import OptionError, ShapeError
from regard._options import is_integer
from regard.graph.construction import Builder, Spec, chosen_positions, exact_text, positive_text
from regard.graph.notation import Symbol
from regard.graph.operations import (
    Add,
    Affine,
    Alibi,
    AppendSink,
    Attend,
    Causal,
    Exp,
    Mask,
    MatMul,
    Normalise,
    Padding,
    PickHead,
    Prefix,
    Rotary,
    Scale,
    SoftCap,
    Sum,
    Take,
    Window,
)


def attend(b: Builder, q: str, k: str, v: str) -> str:
    """Scores, weights and context from queries, keys and values of any number of heads."""
    if chosen_positions(b) == "rotary":
        q = _rotated(b, q, _standing(b, "0"))
        k = _rotated(b, k, "0")
    scores = b.step("scores", Symbol("S"), MatMul("query", "key", transpose_b=True), q, k)
    scores = scaled(b, scores, "S")
    if b.option("softcap") is not None:
        cap = SoftCap(positive_text("softcap", b.option("softcap")))
        scores = b.step("capped", Symbol("S", "capped"), cap, scores)
    unmasked = _biased(b, scores)
    scores = masked = _masked(b, unmasked)
    if b.has("sinks"):
        sinks = b.given("sinks", *_leading(b, scores, "head"))
        scores = b.step("with_sink", Symbol("S", "sink"), AppendSink(), scores, sinks)
    weights = softmax(b, scores, Symbol("A"))
    if b.has("sinks"):
        take = Take("key", "0", _tokens(b)[1])
        weights = b.step("attended", Symbol("A", "keys"), take, weights)
    if masked == unmasked:
        return b.step("context", Symbol("C"), MatMul("query", "dim"), weights, v)
    return b.step("context", Symbol("C"), Attend("query", "dim"), weights, v, masked)


def _leading(b: Builder, name: str, *wanted: str) -> Spec:
    """Those of the wanted axes that a step has."""
    return tuple((axis.name, str(axis.size)) for axis in b.axes(name) if axis.name in wanted)


def _rotated(b: Builder, name: str, start: str) -> str:
    base = positive_text("rotary_base", b.option("rotary_base"))
    letter = name.partition("_")[0]
    operation = Rotary(b.option("rotary_layout"), base, start)
    return b.step(f"{letter}_rotated", Symbol(letter, "rot"), operation, name)


def scaled(b: Builder, scores: str, letter: str, default: Any = "sqrt") -> str:
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


def _tokens(b: Builder) -> tuple[str, str]:
    """The sizes of the query and the key axis."""
    return ("n", "n") if "n" in b.sizes else ("n_q", "n_k")


def _aligned_at_end(b: Builder) -> str:
    queries, keys = _tokens(b)
    return "0" if queries == keys else f"{keys} - {queries}"


def _standing(b: Builder, otherwise: str) -> str:
    """At which key the first query stands, when the word for `causal` tells."""
    words = {"top-left": "0", "bottom-right": _aligned_at_end(b)}
    causal = b.option("causal")
    return words.get(causal, otherwise) if isinstance(causal, str) else otherwise


def _causal_offset(b: Builder, causal: Any) -> str:
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


def _biased(b: Builder, scores: str) -> str:
    rows, columns = _tokens(b)
    if chosen_positions(b) == "alibi":
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


def _score_axes(b: Builder, name: str, scores: str) -> Spec:
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


def _masked(b: Builder, scores: str) -> str:
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
        masks.append(b.given("mask", *_score_axes(b, "mask", scores), is_mask=True))
    if not masks:
        return scores
    return b.step("masked", Symbol("S", "masked"), Mask(), scores, _all_masks(b, masks))


def _all_masks(b: Builder, masks: list[str]) -> str:
    """One mask that hides whatever any of them hides."""
    mask, *others = masks
    for place, other in enumerate(others, 2):
        tag = str(place) if place < len(masks) else ""
        mask = b.step(f"mask_{tag or 'all'}", Symbol("M", tag), Mask(), mask, other)
    return mask


def _per_sequence(b: Builder, name: str, scores: str) -> Spec:
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


def softmax(b: Builder, scores: str, symbol: Symbol) -> str:
    b.step("exp", Symbol("E"), Exp(), scores)
    b.step("sums", Symbol("r"), Sum(("key",)), "exp")
    return b.step("weights", symbol, Normalise(), "exp", "sums")
