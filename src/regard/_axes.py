"""The glossary of axes: every axis of every array in regard bears one of these names."""

from __future__ import annotations

GLOSSARY = {
    "batch": "which sequence",
    "head": "which head",
    "token": "a position in a sequence, before it looks or is looked at",
    "query": "the token that looks",
    "key": "the token that is looked at",
    "model": "a coordinate of a token's vector (d_model)",
    "dim": "a coordinate of a query, key or value (d_k, d_v)",
    "hidden": "a coordinate inside the feed-forward part (d_ff)",
}

# These come first, and every operation treats each of their entries alike.
LEADING = ("batch", "head")


def written(shape: tuple[int, ...]) -> str:
    """A shape as people write it: 3×2."""
    return "×".join(str(size) for size in shape) if shape else "a single number"
