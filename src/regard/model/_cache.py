"""Keys and values of earlier tokens: allocated once, written in place, never joined."""

from __future__ import annotations

from typing import Any

import torch

from regard._errors import SizeLimitError
from regard.model._config import Config

Tensor = Any


class Cache:
    """Room for the keys and values of every layer; `filled` places of `capacity` hold some.

    Made for decoding: what it holds carries no gradient.
    """

    def __init__(
        self, config: Config, batch: int, capacity: int, dtype: Any = None, device: Any = None
    ) -> None:
        shape = (config.layers, 2, batch, capacity, config.kv_heads, config.head_dim)
        # Nothing is read before it is written, so that room which is never needed takes no memory.
        # The heads of a place are neighbours, because they are read together.
        self.held = torch.empty(shape, dtype=dtype, device=device).transpose(3, 4)
        self.capacity = capacity
        self.filled = 0

    def put(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's new keys and values; give all that it has, as views."""
        after = self.filled + k.shape[2]
        if after > self.capacity:
            raise SizeLimitError(
                f"cache: {k.shape[2]} tokens after {self.filled} do not fit into {self.capacity}"
            )
        keys, values = self.held[layer, 0], self.held[layer, 1]
        keys[:, :, self.filled : after] = k.detach()
        values[:, :, self.filled : after] = v.detach()
        return keys[:, :, :after], values[:, :, :after]

    def keep(self, rows: Tensor) -> None:
        """Go on with these batch entries alone, in ascending order."""
        filled = self.held[:, :, :, :, : self.filled]
        for place, row in enumerate(rows.tolist()):
            if place != row:
                filled[:, :, place] = filled[:, :, row]
        self.held = self.held[:, :, : len(rows)]
