"""Masks as other libraries mean them, said in the options of `regard.attention`.

Each function takes the arguments that say who sees whom under the names that its library gives
them, and returns the options that mean the same:

>>> import numpy as np
>>> x = np.eye(3)
>>> theirs = flash_attn(causal=True, window_size=(1, -1))
>>> theirs == {"layout": "token-head", "causal": "bottom-right", "window": (1, -1)}
True

Only what is seen is translated: the scale stays an option of its own. Where a library gives a
query that sees nothing something else than 0, regard gives 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from regard._errors import OptionError
from regard.ops._arrays import is_tensor, type_name

__all__ = ["flash_attn", "jax", "mlx", "onnx", "torch", "torch_module"]

Options = dict[str, Any]


def torch(attn_mask: Any = None, is_causal: bool = False) -> Options:
    """Of torch.nn.functional.scaled_dot_product_attention."""
    return _masked(attn_mask) | ({"causal": "top-left"} if is_causal else {})


def torch_module(
    attn_mask: Any = None, key_padding_mask: Any = None, *, heads: int | None = None
) -> Options:
    """Of a call of torch.nn.MultiheadAttention, whose booleans are True where a key is hidden.

    heads: how many there are; needed for an attn_mask with three axes, (batch · heads, …).
    """
    options: Options = {}
    if attn_mask is not None:
        given = _array(attn_mask)
        if given.ndim == 3:
            count = _needed("torch_module", "heads", heads, "attn_mask has three axes")
            given = given.reshape(-1, count, *given.shape[1:])
        options |= _masked(~given if _is_boolean(given) else given)
    if key_padding_mask is not None:
        given = _array(key_padding_mask)[..., None, None, :]
        for name, padding in _masked(~given if _is_boolean(given) else given).items():
            before = options.get(name)
            both = before is not None and name == "mask"
            options[name] = padding if before is None else _joined(before, padding, both)
    return options


def _joined(a: Any, b: Any, both: bool) -> Any:
    """One mask that hides what either hides, or one bias that adds both."""
    return a & b if both else a + b


def jax(
    bias: Any = None,
    mask: Any = None,
    *,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    queries: int | None = None,
    keys: int | None = None,
) -> Options:
    """Of jax.nn.dot_product_attention.

    queries, keys: how many there are; needed with query_seq_lengths and with local_window_size.
    """
    options: Options = {"layout": "token-head"}
    if bias is not None:
        options["bias"] = _array(bias)
    if mask is not None:
        options["mask"] = _array(mask)
    if query_seq_lengths is not None:
        count = _needed("jax", "queries", queries, "there are query_seq_lengths")
        real = np.arange(count) < np.asarray(query_seq_lengths)[:, None]
        real = real[:, None, :, None]
        options["mask"] = real & options["mask"] if mask is not None else real
    if key_value_seq_lengths is not None:
        options["lengths"] = _array(key_value_seq_lengths)
    if local_window_size is not None:
        window = local_window_size
        window = window if isinstance(window, tuple) else (window, window)
        return options | _placed("jax", 0, is_causal, window, keys)
    return options | ({"causal": "top-left"} if is_causal else {})


def onnx(
    attn_mask: Any = None,
    *,
    is_causal: int = 0,
    nonpad_kv_seqlen: Any = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
    queries: int,
    keys: int,
    past: int = 0,
) -> Options:
    """Of ONNX's operator Attention.

    queries, keys: how many there are, the keys of the past included.
    past: how many keys past_key has.
    """
    options = _masked(attn_mask)
    for name, given in options.items():
        missing = keys - given.shape[-1]
        if missing > 0:
            options[name] = _padded(given, missing, False if name == "mask" else -np.inf)
    offset: Any = past
    if nonpad_kv_seqlen is not None:
        options["lengths"] = _array(nonpad_kv_seqlen)
        offset = options["lengths"] - queries
    window = left_window_size, right_window_size
    if window == (-1, -1):
        return options | ({"causal": offset} if is_causal else {})
    return options | _placed("onnx", offset, bool(is_causal), window, keys)


def flash_attn(
    *,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
) -> Options:
    """Of flash_attn_func, and with cu_seqlens of flash_attn_varlen_func, of flash-attn from 2.1."""
    options: Options = {"layout": "token-head"}
    if causal:
        options["causal"] = "bottom-right"
    if window_size != (-1, -1):
        options["window"] = tuple(window_size)
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        raise OptionError("flash_attn: cu_seqlens_q and cu_seqlens_k belong together: pass both")
    if cu_seqlens_q is None:
        return options
    ends = [np.asarray(each).tolist() for each in (cu_seqlens_q, cu_seqlens_k)]
    if len(options) > 1 and ends[0] != ends[1]:
        raise OptionError(
            "flash_attn: sequences with different numbers of queries and keys each have their own "
            "diagonal, which no option says: call regard.attention once for each sequence"
        )
    q_ids, k_ids = (_ids(each) for each in ends)
    return options | {"segments": (q_ids, k_ids)}


def mlx(mask: Any = None) -> Options:
    """Of mlx.core.fast.scaled_dot_product_attention."""
    if isinstance(mask, str):
        if mask != "causal":
            raise OptionError(f"mlx: the only word that `mask` takes is 'causal', not {mask!r}")
        return {"causal": "bottom-right"}
    return _masked(mask)


def _masked(given: Any) -> Options:
    """A mask that is True where a key is seen, or numbers that are added."""
    if given is None:
        return {}
    array = _array(given)
    return {"mask" if _is_boolean(array) else "bias": array}


def _array(given: Any) -> Any:
    return given if is_tensor(given) else np.asarray(given)


def _is_boolean(array: Any) -> bool:
    return (type_name(array) if is_tensor(array) else array.dtype.name) == "bool"


def _needed(function: str, name: str, given: int | None, because: str) -> int:
    if given is None:
        raise OptionError(f"conventions.{function}: pass `{name}`, because {because}")
    return given


def _placed(
    function: str, offset: Any, causal: bool, window: tuple[int, int], keys: int | None
) -> Options:
    """A window around key i + offset; what is not causal sees all keys as its prefix."""
    options: Options = {"causal": offset, "window": window}
    if not causal:
        options["prefix"] = _needed(function, "keys", keys, "there is a window")
    return options


def _padded(array: Any, missing: int, value: Any) -> Any:
    if is_tensor(array):
        from torch.nn.functional import pad

        padded: Any = pad(array, (0, missing), value=value)
        return padded
    wider = [(0, 0)] * (array.ndim - 1) + [(0, missing)]
    return np.pad(array, wider, constant_values=value)


def _ids(ends: Iterable[int]) -> Any:
    """The number of the sequence of each packed token, from where sequences begin and end."""
    counts = np.diff(list(ends))
    return np.repeat(np.arange(len(counts)), counts)
