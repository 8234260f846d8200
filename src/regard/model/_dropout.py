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
    drawn = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    kept = drawn.view(torch.uint8)[: x.numel()].view(x.shape) >= least
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - least))
