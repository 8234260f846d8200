"""Attention of one more token of every hypothesis, as decoding asks at each of its steps.

The kernel rotates the queries and keys, writes keys and values into the cache, and attends to the
places that each hypothesis may see, without a copy of anything.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch

from regard.ops import _kernel
from regard.ops._torch import _as_array

Tensor = Any
TYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def has_kernel(device: Any, dtype: Any) -> bool:
    """Whether the kernel takes steps of such tensors; otherwise `attention` with a bias does."""
    return bool(_kernel.AVAILABLE and device.type == "cpu" and dtype in TYPES)


def step(
    wide: Tensor, keys: Tensor, values: Tensor, filled: int, turns: Tensor | None, seen: Tensor
) -> Tensor:
    """What each new token gets: batch, token, head, dim.

    wide: queries, keys and values of the new tokens: batch, token, heads + 2 kv_heads, dim.
    keys, values: batch, kv_heads, place, dim; the new ones are written from place `filled` on.
    turns: cosines and signed sines of each new token's place, if positions are rotary.
    seen: batch, token, place: True where a token may look.
    """
    torch.get_num_threads()  # which a thread does not know until torch is asked
    batch, tokens, heads, dim = wide.shape
    heads -= 2 * keys.shape[1]
    out = wide.new_empty(batch, tokens, heads, dim)
    computing = torch.float64 if wide.dtype == torch.float64 else torch.float32
    turned = None if turns is None else _as_array(turns.to(computing).contiguous())
    given = (_as_array(each) for each in (wide.contiguous(), keys, values))
    name = str(wide.dtype).removeprefix("torch.")
    _kernel.native.step(
        name, *given, filled, turned, _as_array(seen.view(torch.uint8)), 1 / sqrt(dim),
        _as_array(out),
    )  # fmt: skip
    return out
