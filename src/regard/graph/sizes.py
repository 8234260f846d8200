"""The givens of each kind of computation when only its sizes are known: for counting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard._errors import OptionError, did_you_mean
from regard._options import look_up
from regard.graph.builders import build
from regard.graph.construction import OPTION_NAMES
from regard.graph.graph import Graph
from regard.graph.polynomial import Polynomial

_WEIGHTS = {
    "WQ": ("d_model", "d_k"),
    "WK": ("d_model", "d_k"),
    "WV": ("d_model", "d_v"),
}
_HEADS = {
    "WQ": ("d_model", "h d_k"),
    "WK": ("d_model", "h d_k"),
    "WV": ("d_model", "h d_v"),
    "WO": ("h d_v", "d_model"),
}
_FEED_FORWARD = {
    "gelu": {"W1": ("d_model", "d_ff"), "W2": ("d_ff", "d_model")},
    "swiglu": {"WG": ("d_model", "d_ff"), "WU": ("d_model", "d_ff"), "WD": ("d_ff", "d_model")},
}
GIVENS: dict[str, dict[str, tuple[str, ...]]] = {
    "dot-product": {"s": ("d_k",), "h": ("n_k", "d_k")},
    "attention": {"Q": ("n_q", "d_k"), "K": ("n_k", "d_k"), "V": ("n_k", "d_v")},
    "self-attention": {"X": ("n", "d_model"), **_WEIGHTS},
    "cross-attention": {
        "X": ("n_q", "d_model"), "Y": ("n_k", "d_Y"), "WQ": ("d_model", "d_k"),
        "WK": ("d_Y", "d_k"), "WV": ("d_Y", "d_v"),
    },
    "multi-head": {"X": ("n", "d_model"), **_HEADS},
    "decoder-block": {"X": ("n", "d_model"), **_HEADS},
}  # fmt: skip

# Sizes that stand for themselves when only formulas are wanted; h_kv must divide h.
_EXAMPLE = {"n": 8, "n_q": 8, "n_k": 8, "d_model": 8, "d_Y": 8, "d_k": 4, "d_v": 4, "h": 2,
            "d_ff": 8, "batch": 2}  # fmt: skip


def count_graph(kind: str, sizes: Mapping[str, int], **options: Any) -> Graph:
    """The graph of a kind of computation at these sizes; sizes not named get an example's."""
    wanted = dict(look_up("kind", kind, GIVENS))
    if kind == "decoder-block":
        wanted |= look_up("feed_forward", options.get("feed_forward", "gelu"), _FEED_FORWARD)
    if "batch" in sizes:
        for name in ("X", "Y", "Q", "K", "V"):
            if name in wanted:
                wanted[name] = ("batch", *wanted[name])
    known = {symbol for shape in wanted.values() for size in shape for symbol in
             Polynomial.parse(size).symbols}  # fmt: skip
    for name, size in sizes.items():
        if name not in known:
            hint = did_you_mean(name, [*sorted(known), *OPTION_NAMES])
            raise OptionError(f"count: {kind} has no size or option {name!r}: {hint}")
        if size < 1:
            raise OptionError(f"count: {name} must be at least 1, but {size} was passed")
    at = {**_EXAMPLE, **sizes}
    shapes = {
        name: tuple(Polynomial.parse(size).evaluate(at) for size in shape)
        for name, shape in wanted.items()
    }
    if "h" in known:
        options["heads"] = at["h"]
    return build(kind, shapes, **options)


def sizes_of(kind: str) -> tuple[str, ...]:
    """The sizes that a kind of computation has, in the order in which they are written."""
    wanted = look_up("kind", kind, GIVENS)
    every = Polynomial.of(1)
    for shape in wanted.values():
        for size in shape:
            every = every * Polynomial.parse(size)
    return every.symbols
