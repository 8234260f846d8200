"""Attention of sequences: queries, keys and values projected from tokens, heads merged again."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, TypedDict, Unpack

from regard._axes import written
from regard._errors import OptionError, ShapeError, did_you_mean
from regard._options import positive_integer
from regard.ops._arguments import pose, same_type
from regard.ops._arrays import kind_of, stacked
from regard.ops._attention import solved
from regard.ops._inspection import Inspect


class Options(TypedDict, total=False):
    """What may be said about the attention itself; `attention` explains each."""

    mask: Any
    bias: Any
    causal: Any
    window: Any
    prefix: Any
    segments: Any
    scale: Any
    softcap: Any
    sinks: Any
    lengths: Any
    past: Any


def self_attention(
    x: Any,
    wq: Any,
    wk: Any,
    wv: Any,
    wo: Any = None,
    *,
    bq: Any = None,
    bk: Any = None,
    bv: Any = None,
    bo: Any = None,
    inspect: Inspect | None = None,
    **options: Unpack[Options],
) -> Any:
    """One head over one sequence: attention(x wq, x wk, x wv) wo.

    x is (…batch, tokens, d_model), wq and wk are (d_model, d_k), wv is (d_model, d_v) and wo, if
    there is one, (d_v, d_out); a bias is a vector as long as its matrix is wide. Arrays of NumPy
    or tensors of torch, all of one type. The other options and `inspect` are those of `attention`,
    for scores (…batch, tokens, tokens); `past` holds k and v as projected.

    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> self_attention(x, [[0.0], [0.0]], [[1.0], [2.0]], [[2.0], [6.0]])
    array([[4.],
           [4.]])
    """
    given = {"x": x, "wq": wq, "wk": wk, "wv": wv, "wo": wo,
             "bq": bq, "bk": bk, "bv": bv, "bo": bo}  # fmt: skip
    return _Projected("self_attention", given, options).attend(None, None, inspect)


def multi_head_attention(
    x: Any,
    wq: Any,
    wk: Any,
    wv: Any,
    wo: Any = None,
    *,
    heads: int | None = None,
    kv_heads: int | None = None,
    y: Any = None,
    bq: Any = None,
    bk: Any = None,
    bv: Any = None,
    bo: Any = None,
    inspect: Inspect | None = None,
    **options: Unpack[Options],
) -> Any:
    """Many heads over one sequence, side by side and then through wo.

    The weights are wide matrices whose columns are split among `heads` (wq (d_model, heads · d_k),
    wk (d_model, kv_heads · d_k), wv (d_model, kv_heads · d_v)), or have one matrix for each head:
    (heads, d_model, d_k), or a list of matrices. A bias is a vector for wide matrices and has one
    for each head otherwise. wo is (heads · d_v, d_out); without it the merged heads are returned.

    kv_heads: how many heads keys and values have, when several query heads share one.
    y: the sequence, (…batch, keys, d_y), that keys and values come from; x itself if not given.

    The other options and `inspect` are those of `attention`, for scores (…batch, heads, queries,
    keys); `past` holds k and v as projected, (…batch, kv_heads, tokens, dim).

    >>> import numpy as np
    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> multi_head_attention(x, np.zeros((2, 2)), np.ones((2, 2)), np.eye(2), heads=2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    given = {"x": x, "y": y, "wq": wq, "wk": wk, "wv": wv, "wo": wo,
             "bq": bq, "bk": bk, "bv": bv, "bo": bo}  # fmt: skip
    projected = _Projected("multi_head_attention", given, options)
    return projected.attend(*projected.count_heads(heads, kv_heads), inspect)


class _Projected:
    """Sequences and weights, read and of one type."""

    def __init__(self, operation: str, given: Mapping[str, Any], options: Mapping[str, Any]):
        self.operation = operation
        for name in options:
            if name not in Options.__annotations__:
                hint = did_you_mean(name, Options.__annotations__)
                raise OptionError(f"{operation}: no option {name!r}: {hint}")
        self.options = options
        whole = {name: stacked(name, array) for name, array in given.items()}
        self.arrays = kind_of(whole.items())
        self.read, self.dtype = same_type(self.arrays, whole)
        self.own_type = getattr(whole["x"], "dtype", None)
        self.per_head = operation == "multi_head_attention" and self.read["wq"].ndim == 3
        if self.read.get("y") is None:
            self.read["y"] = self.read["x"]
        self._check_axes()

    def _check_axes(self) -> None:
        for name, array in self.read.items():
            if array is None or name in ("x", "y"):
                continue
            each = self.per_head and name not in ("wo", "bo")
            wanted = (2 if name.startswith("w") else 1) + each
            if array.ndim != wanted:
                hint = self._hint(each, array.ndim)
                raise self._wrong(f"{self._told(name)}, but it needs {wanted} axes{hint}")
        for name in ("x", "y"):
            if self.read[name].ndim < 2:
                raise self._wrong(f"{self._told(name)}, but it needs at least tokens × d_model")

    def _hint(self, each: bool, axes: int) -> str:
        if each:
            return f", because {self._told('wq')}: one for each head"
        if self.operation == "self_attention" and axes == 3:
            return "; for many heads use multi_head_attention"
        return ""

    def _told(self, name: str) -> str:
        return f"{name} is {written(tuple(self.read[name].shape))}"

    def _wrong(self, message: str) -> ShapeError:
        return ShapeError(f"{self.operation}: {message}")

    def count_heads(self, heads: int | None, kv_heads: int | None) -> tuple[int, int]:
        """How many heads queries have, and how many keys and values."""
        counts = {}
        for option, said, weight in (("heads", heads, "wq"), ("kv_heads", kv_heads, "wk")):
            if said is not None:
                counts[option] = positive_integer(option, said)
            if not self.per_head:
                continue
            found = self.read[weight].shape[0]
            if counts.setdefault(option, found) != found:
                raise OptionError(
                    f"{self.operation}: {weight} has {found} matrices, but {option}={said}"
                )
        if "heads" not in counts:
            raise OptionError(
                f"{self.operation} needs heads: pass heads=… to split the columns of wq "
                f"({written(tuple(self.read['wq'].shape))}), or one matrix for each head"
            )
        return counts["heads"], counts.get("kv_heads", counts["heads"])

    def attend(self, heads: int | None, kv_heads: int | None, inspect: Inspect | None) -> Any:
        """The output for so many heads; None is one head without an axis."""
        q = self._headed("x", "q", heads)
        k, v = self._headed("y", "k", kv_heads), self._headed("y", "v", kv_heads)
        if q.shape[-1] != k.shape[-1]:
            raise self._wrong(
                f"{self._told('wq')} and {self._told('wk')}: that makes {q.shape[-1]} coordinates "
                f"for the queries of a head and {k.shape[-1]} for its keys"
            )
        posed = pose(q, k, v, has_heads=heads is not None, **self.options)
        answer = solved(posed, inspect)
        output, *seen = answer if inspect is not None else (answer,)
        if heads is not None:
            output = output.swapaxes(-3, -2)
            output = output.reshape(*output.shape[:-2], prod(output.shape[-2:]))
        if self.read["wo"] is not None:
            self.read["merged"] = self.arrays.numbers("merged", output)[0]
            output = self._linear("merged", self.read["wo"], self.read["bo"], "wo", "bo")
        elif self.read["bo"] is not None:
            raise OptionError(f"{self.operation}: `bo` was passed without wo")
        return (output, *seen) if seen else output

    def _headed(self, source: str, letter: str, heads: int | None) -> Any:
        """Queries, keys or values: (…batch, tokens, dim), heads before tokens if there are any."""
        names = f"w{letter}", f"b{letter}"
        weight, bias = (self.read[name] for name in names)
        if self.per_head:
            self._check_count(names[0], weight, heads)
            weight = weight.swapaxes(0, 1)
            weight = weight.reshape(weight.shape[0], prod(weight.shape[1:]))
            if bias is not None:
                self._check_count(names[1], bias, heads)
                bias = bias.reshape(prod(bias.shape))
        wide = self._linear(source, weight, bias, *names)
        if heads is None:
            return wide
        if wide.shape[-1] % heads:
            raise self._wrong(
                f"{self._told(names[0])}, whose {wide.shape[-1]} columns cannot be split among "
                f"{heads} heads" + self._sharing(letter)
            )
        split = wide.reshape(*wide.shape[:-1], heads, wide.shape[-1] // heads)
        return split.swapaxes(-3, -2)

    def _check_count(self, name: str, array: Any, heads: int | None) -> None:
        if array.shape[0] != heads:
            whose = "wq" if name == "bq" else "wk"
            raise self._wrong(
                f"{self._told(name)} and {self._told(whose)}: one is for {array.shape[0]} heads "
                f"and one for {heads}"
            )

    def _sharing(self, letter: str) -> str:
        return "" if letter == "q" else "; if query heads share them, pass kv_heads=…"

    def _linear(self, source: str, weight: Any, bias: Any, of: str, with_bias: str) -> Any:
        vectors = self.read[source]
        if vectors.shape[-1] != weight.shape[0]:
            told = f"the heads have {vectors.shape[-1]} coordinates together"
            told = told if source == "merged" else self._told(source)
            raise self._wrong(
                f"{told} and {self._told(of)}: {vectors.shape[-1]} coordinates cannot meet "
                f"{weight.shape[0]} rows{self._turned(vectors, weight)}"
            )
        if bias is not None and bias.shape[0] != weight.shape[1]:
            raise self._wrong(f"{self._told(with_bias)} and {self._told(of)}: sizes differ")
        made = self.arrays.linear(vectors, weight, bias, self.dtype)
        return made.view(self.own_type) if self.own_type_is_bits else made

    @property
    def own_type_is_bits(self) -> bool:
        """Whether numbers are held as their bits; then they are given back in their own type."""
        return self.dtype == "bfloat16" and self.read["x"].dtype != self.own_type

    @staticmethod
    def _turned(vectors: Any, weight: Any) -> str:
        if vectors.shape[-1] != weight.shape[1]:
            return ""
        return "; torch's Linear keeps its matrix transposed: pass weight.T"
