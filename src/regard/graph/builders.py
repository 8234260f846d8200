"""From what is given to a graph: one function for each kind of attention computation.

A builder looks at shapes only, never at values, so that a computation can be counted without
having its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard._axes import written
from regard._errors import OptionError, ShapeError, did_you_mean
from regard._options import look_up
from regard.graph.attending import attend, scaled, softmax
from regard.graph.construction import (
    GIVEN_SYMBOLS,
    OPTION_NAMES,
    Builder,
    Shape,
    Spec,
    chosen_positions,
)
from regard.graph.graph import Graph
from regard.graph.notation import Symbol
from regard.graph.operations import Add, MatMul
from regard.graph.parts import (
    feed_forward,
    many_heads,
    norm,
    output,
    sequence,
    single_head,
)


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
    builder = Builder(kind, shapes, options)
    make(builder)
    return builder.finish()


def _dot_product(b: Builder) -> None:
    """A source vector s over a set of vectors h, whose values are h or given apart as v."""
    h = b.given("h", ("key", "n_k"), ("dim", "d_k"))
    s = b.given("s", ("dim", "d_k"))
    v = b.given("v", ("key", "n_k"), ("dim", "d_v")) if b.has("v") else h
    scores = b.step("scores", Symbol("e"), MatMul(rows="key"), h, s)
    weights = softmax(b, scaled(b, scores, "e", default=1), Symbol("α"))
    b.step("context", Symbol("c"), MatMul(columns="dim"), weights, v)


def _attention(b: Builder) -> None:
    """Q, K and V as given."""
    positions = chosen_positions(b)
    if positions in ("sinusoidal", "learned"):
        raise OptionError(
            f"attention: {positions} positions are added to X, which is not there: "
            "add them before, or use the kind 'self-attention'"
        )
    leading: Spec = (("batch", "batch"), ("head", "h"))[: max(b.rank("Q") - 2, 0)]
    q = b.given("Q", *leading, ("query", "n_q"), ("dim", "d_k"))
    k = b.given("K", *leading, ("key", "n_k"), ("dim", "d_k"))
    v = b.given("V", *leading, ("key", "n_k"), ("dim", "d_v"))
    attend(b, q, k, v)


def _self_attention(b: Builder) -> None:
    """One head over one sequence."""
    x = sequence(b, "X", "n")
    attend(b, *single_head(b, x, x))
    output(b, "context")


def _cross_attention(b: Builder) -> None:
    """Queries from X, keys and values from Y."""
    x = sequence(b, "X", "n_q")
    y = sequence(b, "Y", "n_k")
    if b.rank("X") != b.rank("Y"):
        raise ShapeError(
            f"{b.kind}: X is {written(b.shapes['X'])} and Y is {written(b.shapes['Y'])}; "
            "either both have a batch axis or neither"
        )
    if b.option("heads") is None and b.rank("WQ") == 2:
        attend(b, *single_head(b, x, y))
        output(b, "context")
    else:
        output(b, many_heads(b, x, y))


def _multi_head(b: Builder) -> None:
    """Many heads over one sequence."""
    x = sequence(b, "X", "n")
    output(b, many_heads(b, x, x))


def _decoder_block(b: Builder) -> None:
    """Norm, attention, residual, norm, feed-forward, residual."""
    x = sequence(b, "X", "n")
    normed = norm(b, x, "1")
    b.rank("WO")  # what is added to X must be as wide as X
    attended = output(b, many_heads(b, normed, normed, rows="token"), "d_model")
    between = b.step("residual_1", Symbol("R", "1"), Add(), x, attended)
    hidden = feed_forward(b, norm(b, between, "2"))
    b.step("residual_2", Symbol("R", "2"), Add(), between, hidden)


KINDS = {
    "dot-product": _dot_product,
    "attention": _attention,
    "self-attention": _self_attention,
    "cross-attention": _cross_attention,
    "multi-head": _multi_head,
    "decoder-block": _decoder_block,
}
