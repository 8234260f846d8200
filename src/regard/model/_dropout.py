"""Dropout whose chance costs little: on a CPU, drawing 32 bits for each number takes longer than
the layer itself; eight do, eight numbers at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

Tensor = Any
LEVELS = 256


def dropped(x: Tensor, share: float, training: bool) -> Tensor:
    """Each number 0 with chance `share` (in steps of 1/256 on a CPU), the others larger."""
    if not training or not share:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, share, True)
    least = round(LEVELS * share)
    draw = drawn if torch.compiler.is_compiling() else _drawn
    kept = draw(x.numel()).view(x.shape) >= least
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - least))


def _drawn(count: int) -> Tensor:
    """So many bytes."""
    words = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:count]


# What a compiler cannot look into, and may neither leave out nor do twice.
drawn = torch.library.custom_op(
    "regard::drawn", _drawn, mutates_args=(), schema="(SymInt count) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)  # fmt: skip
drawn.register_fake(lambda count: torch.empty(count, dtype=torch.uint8))
