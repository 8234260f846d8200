"""From what a user passes to a Problem: every check with its message, every default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite, sqrt
from numbers import Real
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import NumberError, OptionError, ShapeError
from regard._options import is_integer, one_of
from regard.ops._arrays import Arrays, NumpyArrays, is_tensor, kind_of
from regard.ops._dtypes import ACCEPTED
from regard.ops._problem import FARTHEST, UNBOUNDED, WIDEST, Problem
from regard.ops._sizes import LAYOUTS, Shape, Sizes, read_sizes

NEEDED = ("q", "k", "v", "x", "wq", "wk", "wv")


@dataclass(frozen=True)
class Posed:
    """A problem, and how its user sees the axes."""

    problem: Problem
    sizes: Sizes
    tokens_first: bool
    bfloat16: Any  # NumPy's type of such numbers, where they are held as their bits

    @property
    def is_torch(self) -> bool:
        return is_tensor(self.problem.q)

    def output(self, array: Any) -> Any:
        """The output with the axes and the type that the user's q has."""
        array = array if self.bfloat16 is None else array.view(self.bfloat16)
        array = self.leading(array)
        return array.swapaxes(-3, -2) if self.tokens_first else array

    def leading(self, array: Any) -> Any:
        """An answer with the user's batch axes, and without the head axis if there was none."""
        heads = array.shape[1:2] if self.sizes.has_heads else ()
        return array.reshape(*self.sizes.batch, *heads, *array.shape[2:])


def pose(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any = None,
    bias: Any = None,
    causal: Any = False,
    window: Any = None,
    prefix: Any = None,
    segments: Any = None,
    scale: Any = "sqrt",
    softcap: Any = None,
    sinks: Any = None,
    lengths: Any = None,
    past: Any = None,
    layout: Any = "head-token",
    has_heads: bool | None = None,
) -> Posed:
    """Read the arguments of `attention`; `has_heads` is True for three axes or more."""
    layout = one_of("layout", layout, LAYOUTS)
    past_k, past_v = _pair("past", past) if past is not None else (None, None)
    q_ids, k_ids = segments if isinstance(segments, tuple) else (segments, segments)
    arrays = kind_of(
        [("q", q), ("k", k), ("v", v), ("past k", past_k), ("past v", past_v), ("mask", mask),
         ("bias", bias), ("causal", causal), ("prefix", prefix), ("segments", q_ids),
         ("segments", k_ids), ("sinks", sinks), ("lengths", lengths)]
    )  # fmt: skip
    numbers, dtype = same_type(arrays, {"q": q, "k": k, "v": v, "past_k": past_k, "past_v": past_v})
    has_heads = numbers["q"].ndim > 2 if has_heads is None else has_heads
    before = None if past is None else (numbers["past_k"], numbers["past_v"])
    sizes = read_sizes(numbers["q"], numbers["k"], numbers["v"], before, layout, has_heads)
    tokens_first = has_heads and layout == "token-head"
    reader = _Reader(arrays, sizes)
    left, right = read_window(window)
    causal = bool(causal) if isinstance(causal, np.bool_) else causal
    causal = True if prefix is not None and causal is False else causal
    return Posed(
        Problem(
            dtype,
            **{
                name: None if array is None else _four_axes(array, sizes, tokens_first)
                for name, array in numbers.items()
            },
            mask=reader.over_scores("mask", mask, arrays.booleans),
            bias=reader.over_scores("bias", bias, partial(arrays.scores, dtype=dtype)),
            q_segments=reader.ids(q_ids, sizes.queries, "queries"),
            k_segments=reader.ids(k_ids, sizes.keys, "keys"),
            lengths=reader.per_entry("lengths", lengths),
            prefix=reader.per_entry("prefix", prefix),
            offsets=reader.offsets(causal, left >= 0 or right >= 0),
            sinks=reader.sinks(sinks, dtype),
            causal=causal is not False,
            left=left,
            right=right,
            scale=read_scale(scale, sizes.d_k),
            softcap=read_softcap(softcap),
        ),
        sizes,
        tokens_first,
        q.dtype if dtype == "bfloat16" and isinstance(arrays, NumpyArrays) else None,
    )


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        first, second = given
        if first is not None and second is not None:
            return first, second
    raise OptionError(f"attention: `{name}` must be a pair (k, v), but {_told(given)} was passed")


def _told(given: Any) -> str:
    """A value as a message shows it: an array by its shape."""
    if isinstance(given, tuple):
        return f"({', '.join(map(_told, given))})"
    shape = getattr(given, "shape", None)
    return repr(given) if shape is None else f"an array of {written(tuple(shape))}"


def same_type(arrays: Arrays, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arrays, `None` for those that are not there, and the one type that all of them have."""
    read: dict[str, Any] = {}
    types: dict[str, str] = {}
    for name, value in given.items():
        read[name] = None
        if value is None and name in NEEDED:
            raise NumberError(f"attention: {name} is None, but it must be an array of {ACCEPTED}")
        if value is not None:
            read[name], types[name] = arrays.numbers(name, value)
    if len(set(types.values())) > 1:
        listed = ", ".join(f"{name} {dtype}" for name, dtype in types.items())
        raise NumberError(f"attention: types differ ({listed}): convert them to one")
    return read, next(iter(types.values()))


def _four_axes(array: Any, sizes: Sizes, tokens_first: bool) -> Any:
    """batch, heads, tokens, dim; a view wherever the batch axes allow it."""
    if tokens_first:
        array = array.swapaxes(-3, -2)
    elif not sizes.has_heads:
        array = array[..., None, :, :]
    return array.reshape(sizes.entries, *array.shape[-3:])


class _Reader:
    """Reads the options whose shapes follow from the sizes."""

    def __init__(self, arrays: Arrays, sizes: Sizes) -> None:
        self.arrays = arrays
        self.sizes = sizes

    def over_scores(self, name: str, given: Any, read: Any) -> Any:
        """An array with an entry for each score, broadcast without a copy."""
        if given is None:
            return None
        array, sizes = read(name, given), self.sizes
        self._check_over_scores(name, tuple(array.shape))
        array = array.reshape((1,) * (len(sizes.scores) - array.ndim) + tuple(array.shape))
        if not sizes.has_heads:
            array = array[..., None, :, :]
        core = tuple(array.shape[-3:])
        if any(size != 1 for size in array.shape[:-3]):
            array = self.arrays.broadcast(array, (*sizes.batch, *core))
            array = array.reshape(sizes.entries, *core)
        else:
            array = array.reshape(1, *core)
        full = (sizes.entries, sizes.heads, sizes.queries, sizes.keys)
        return self.arrays.broadcast(array, full)

    def _check_over_scores(self, name: str, shape: Shape) -> None:
        scores = self.sizes.scores
        missing = len(scores) - len(shape)
        if missing >= 0 and all(
            have in (1, want) for have, want in zip(shape, scores[missing:], strict=True)
        ):
            return
        hint = ""
        batch, queries, keys = self.sizes.batch, self.sizes.queries, self.sizes.keys
        if batch and shape == (*batch, keys):
            axes = "None, None" if self.sizes.has_heads else "None"
            hint = f"; for keys of each batch entry pass {name}[..., {axes}, :]"
        elif batch and self.sizes.has_heads and shape == (*batch, queries, keys):
            hint = f"; for a matrix of each batch entry pass {name}[..., None, :, :]"
        raise ShapeError(
            f"attention: `{name}` is {written(shape)}, but the scores are {written(scores)}: each "
            f"of its axes must be 1 or equal to theirs, counted from the last{hint}"
        )

    def per_entry(self, name: str, given: Any) -> Any:
        """A whole number for each batch entry; one alone counts for all."""
        if given is None:
            return None
        if is_integer(given):
            return self.arrays.full(self.sizes.entries, in_range(name, int(given)))
        array = self.arrays.integers(name, given)
        shape, batch = tuple(array.shape), self.sizes.batch
        if shape not in ((), batch):
            raise ShapeError(
                f"attention: `{name}` has {written(shape)} numbers, but it must be one number"
                + (f", or one for each batch entry ({written(batch)})" if batch else "")
            )
        array = array.reshape(-1)
        return array if shape else self.arrays.broadcast(array, (self.sizes.entries,))

    def ids(self, given: Any, tokens: int, what: str) -> Any:
        if given is None:
            return None
        array = self.arrays.integers("segments", given)
        shape, batch = tuple(array.shape), self.sizes.batch
        if shape not in ((tokens,), (*batch, tokens)):
            raise ShapeError(
                f"attention: `segments` is {written(shape)} for {tokens} {what}, but it must be "
                f"{written((*batch, tokens))}, or {tokens} numbers for all batch entries; when "
                "queries and keys are not the same tokens, pass a tuple (ids of the queries, ids "
                "of the keys)"
            )
        full = self.arrays.broadcast(array, (*batch, tokens))
        return full.reshape(self.sizes.entries, tokens)

    def offsets(self, causal: Any, has_window: bool) -> Any:
        """At which key the first query of each batch entry stands, where anything asks for it."""
        at_end = self.sizes.keys - self.sizes.queries
        if causal is False:
            return self.arrays.full(self.sizes.entries, at_end) if has_window else None
        if causal is True:
            if self.sizes.queries != self.sizes.new:
                raise OptionError(
                    f"`causal=True` is unclear for {self.sizes.queries} queries and "
                    f'{self.sizes.new} keys: pass "top-left" (the first query at the first key) or '
                    '"bottom-right" (the last at the last)'
                )
            return self.arrays.full(self.sizes.entries, self.sizes.past)
        if isinstance(causal, str):
            words = {"top-left": 0, "bottom-right": at_end}
            if causal in words:
                return self.arrays.full(self.sizes.entries, words[causal])
        elif is_integer(causal) or isinstance(causal, (list, tuple)) or hasattr(causal, "shape"):
            return self.per_entry("causal", causal)
        raise OptionError(
            "`causal` must be False, True, 'top-left', 'bottom-right', or the key at which the "
            f"first query stands (a whole number, or an array of one for each batch entry), but "
            f"{causal!r} was passed"
        )

    def sinks(self, given: Any, dtype: str) -> Any:
        if given is None:
            return None
        array = self.arrays.scores("sinks", given, dtype)
        shape = tuple(array.shape)
        if shape != (self.sizes.heads,) and (self.sizes.has_heads or shape != ()):
            raise ShapeError(
                f"attention: `sinks` is {written(shape)}, but it must be one number for each of "
                f"the {self.sizes.heads} heads"
            )
        return array.reshape(self.sizes.heads)


def in_range(name: str, number: int) -> int:
    """A number that is safe in the arithmetic of positions."""
    if abs(number) > FARTHEST:
        raise OptionError(f"`{name}` must be between −2³⁰ and 2³⁰, but {number} was passed")
    return number


def read_window(window: Any) -> tuple[int, int]:
    if window is None:
        return UNBOUNDED, UNBOUNDED
    sides = (window, window) if is_integer(window) else window
    if (
        isinstance(sides, (tuple, list))
        and len(sides) == 2
        and all(is_integer(side) and side >= UNBOUNDED for side in sides)
    ):
        return min(int(sides[0]), WIDEST), min(int(sides[1]), WIDEST)
    raise OptionError(
        "`window` must be how many keys to see on each side (one number, or (left, right); "
        f"−1 is unbounded), but {window!r} was passed"
    )


def read_scale(scale: Any, d_k: int) -> float:
    if scale is None:
        raise OptionError(
            "`scale=None` could mean 1/√d_k or no scaling at all: "
            'pass scale="sqrt" for the first, scale=1 for the second'
        )
    if isinstance(scale, str) and scale == "sqrt":
        if d_k == 0:
            raise ShapeError("attention: q has no coordinates, and 1/√0 is no number: pass scale=1")
        return 1 / sqrt(d_k)
    if is_number(scale):
        return float(scale)
    raise OptionError(f'`scale` must be "sqrt" or a number, but {scale!r} was passed')


def read_softcap(softcap: Any) -> float:
    if softcap is None:
        return 0.0
    if is_number(softcap) and softcap > 0:
        return float(softcap)
    raise OptionError(f"`softcap` must be a number above 0, but {softcap!r} was passed")


def is_number(given: object) -> bool:
    if isinstance(given, bool) or not isinstance(given, Real):
        return False
    try:
        return isfinite(given)
    except OverflowError:  # a whole number that no float is
        return False
