"""The sizes of the axes of an attention problem, read from shapes that must fit together."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from regard._axes import written
from regard._errors import ShapeError

LAYOUTS = {
    "head-token": ("heads", "tokens", "dim"),
    "token-head": ("tokens", "heads", "dim"),
}
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sizes:
    """How long every axis is; a problem without a head axis has one head."""

    batch: Shape
    heads: int
    kv_heads: int
    queries: int
    new: int  # keys that are not of the past
    past: int
    d_k: int
    d_v: int
    has_heads: bool

    @property
    def keys(self) -> int:
        return self.past + self.new

    @property
    def entries(self) -> int:
        """How many batch entries there are."""
        return prod(self.batch)

    @property
    def scores(self) -> Shape:
        """The axes of the scores as the user sees them."""
        heads = (self.heads,) if self.has_heads else ()
        return (*self.batch, *heads, self.queries, self.keys)


@dataclass(frozen=True)
class _Operand:
    name: str
    shape: Shape
    batch: Shape
    heads: int
    tokens: int
    dim: int

    def __str__(self) -> str:
        return f"{self.name} is {written(self.shape)}"


def read_sizes(
    q: Any, k: Any, v: Any, past: tuple[Any, Any] | None, layout: str, has_heads: bool
) -> Sizes:
    """The sizes, or an error that names the first two shapes that do not fit."""
    names = ("q", "k", "v") if past is None else ("q", "k", "v", "past k", "past v")
    arrays = (q, k, v, *(past or ()))
    operands = [
        _operand(name, tuple(array.shape), layout, has_heads)
        for name, array in zip(names, arrays, strict=True)
    ]
    first, key, value, *before = operands
    for other in operands[1:]:
        if len(other.shape) != len(first.shape):
            raise ShapeError(f"attention: {first} and {other}: they need equally many axes")
        _same("batch axes", first, other, first.batch, other.batch)
    for a, b in ((key, value), *((key, each) for each in before)):
        _same("heads", a, b, a.heads, b.heads, _swapped(layout, has_heads))
    for a, b in ((key, value), tuple(before)) if before else ((key, value),):
        _same("tokens", a, b, a.tokens, b.tokens)
    for a, b in ((first, key), *zip((key, value), before, strict=False)):
        _same("last axes", a, b, a.dim, b.dim)
    _check_groups(first, key, layout)
    past_tokens = before[0].tokens if before else 0
    return Sizes(first.batch, first.heads, key.heads, first.tokens, key.tokens, past_tokens,
                 first.dim, value.dim, has_heads)  # fmt: skip


def _operand(name: str, shape: Shape, layout: str, has_heads: bool) -> _Operand:
    order = LAYOUTS[layout] if has_heads else ("tokens", "dim")
    if len(shape) < len(order):
        raise ShapeError(
            f"attention: {name} is {written(shape)}, but it needs at least {len(order)} axes "
            f"({' × '.join(order)})"
        )
    axes = dict(zip(order, shape[len(shape) - len(order) :], strict=True))
    batch = shape[: len(shape) - len(order)]
    return _Operand(name, shape, batch, axes.get("heads", 1), axes["tokens"], axes["dim"])


def _same(what: str, a: _Operand, b: _Operand, of_a: Any, of_b: Any, hint: str = "") -> None:
    if of_a != of_b:
        sizes = [written(of) if isinstance(of, tuple) else str(of) for of in (of_a, of_b)]
        differ = f"{what} differ, {' ≠ '.join(sizes)}"
        raise ShapeError(f"attention: {a} and {b}: their {differ}{hint}")


def _swapped(layout: str, has_heads: bool) -> str:
    """What to try when head counts do not fit: perhaps they are token counts."""
    if not has_heads:
        return ""
    other = "token-head" if layout == "head-token" else "head-token"
    first, second, _ = LAYOUTS[other]
    return f"; if {first} stand before {second}, pass layout={other!r}"


def _check_groups(q: _Operand, k: _Operand, layout: str) -> None:
    if q.heads == k.heads or (k.heads > 0 and q.heads % k.heads == 0):
        return
    raise ShapeError(
        f"attention: {q} and {k}: {q.heads} query heads cannot share {k.heads} key heads evenly"
        + _swapped(layout, has_heads=True)
    )
