"""The decoder-only Transformer: embeddings, attention, feed-forward, norms, residuals, output."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from regard._errors import OptionError, SizeLimitError
from regard.model._cache import Cache
from regard.model._config import Config
from regard.model._dropout import dropped
from regard.ops import Inspect, Inspection, attention
from regard.ops.step import has_kernel, step

Tensor = Any
USUAL_STD = 0.02


class Norm(nn.Module):  # type: ignore[misc]
    """RMSNorm, or LayerNorm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.weight = nn.Parameter(torch.ones(config.width))
        self.bias = nn.Parameter(torch.zeros(config.width)) if config.norm == "layer" else None

    def forward(self, x: Tensor) -> Tensor:
        if self.bias is None:
            return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return F.layer_norm(x, self.weight.shape, weight, bias, self.eps)


class Attention(nn.Module):  # type: ignore[misc]
    """Many heads; the matrices of queries, keys and values stand in one, in this order."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        heads = config.heads + 2 * config.kv_heads
        self.wqkv = nn.Linear(config.width, heads * config.head_dim, bias=config.bias)
        self.wo = nn.Linear(config.heads * config.head_dim, config.width, bias=config.bias)

    def wide(self, x: Tensor) -> Tensor:
        """Queries, keys and values of every token: batch, token, head, dim."""
        return self.wqkv(x).unflatten(-1, (-1, self.config.head_dim))

    def heads(self, wide: Tensor, turns: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values apart, turned by their places: batch, head, token, dim."""
        config = self.config
        parts = (config.heads, config.kv_heads, config.kv_heads)
        q, k, v = wide.split(parts, dim=2)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(
        self, x: Tensor, turns: Tensor | None, cache: Cache | None, layer: int, seen: Any
    ) -> Tensor:
        wide = self.wide(x)
        if cache is None:
            q, k, v = self.heads(wide, turns)
        elif isinstance(seen, torch.Tensor):
            keys, values = cache.held[layer]
            context = step(wide.to(keys.dtype), keys, values, cache.filled, turns, seen)
            return self.wo(context.flatten(2).to(wide.dtype))
        else:  # the cache may hold wider numbers than the weights have
            q, k, v = self.heads(wide.to(cache.held.dtype), turns)
            k, v = cache.put(layer, k, v)
        context = attention(q, k, v, **seen).to(wide.dtype)
        return self.wo(context.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):  # type: ignore[misc]
    """SwiGLU, whose gate and up matrices stand in one, or two matrices around an activation."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.kind = config.feed_forward
        wide = 2 * config.hidden if self.kind == "swiglu" else config.hidden
        self.inside = nn.Linear(config.width, wide, bias=config.bias)
        self.outside = nn.Linear(config.hidden, config.width, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inside(x)
        if self.kind == "swiglu":
            gate, up = hidden.chunk(2, dim=-1)
            return self.outside(F.silu(gate) * up)
        if self.kind == "relu":
            return self.outside(F.relu(hidden))
        approximate = "tanh" if self.kind == "gelu-tanh" else "none"
        return self.outside(F.gelu(hidden, approximate=approximate))


class Block(nn.Module):  # type: ignore[misc]
    """Attention and feed-forward, each with its norm and its residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm_first = config.norm_place == "before"
        self.dropout = config.dropout
        self.norm_1 = Norm(config)
        self.attention = Attention(config)
        self.norm_2 = Norm(config)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, *how: Any) -> Tensor:
        if self.norm_first:
            x = x + self._dropped(self.attention(self.attended(x), *how))
            return x + self._dropped(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self._dropped(self.attention(x, *how)))
        return self.norm_2(x + self._dropped(self.feed_forward(x)))

    def attended(self, x: Tensor) -> Tensor:
        """What the attention of this block reads."""
        return self.norm_1(x) if self.norm_first else x

    def _dropped(self, x: Tensor) -> Tensor:
        return dropped(x, self.dropout, self.training)


class Transformer(nn.Module):  # type: ignore[misc]
    """Tokens in, logits out; `hidden` is what the output head reads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        if config.positions == "learned":
            self.places = nn.Embedding(config.longest, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = Norm(config) if config.norm_place == "before" else None
        self.head = None if config.tied else nn.Linear(config.width, config.vocabulary, bias=False)
        self.compute_turns()
        self._initialise()

    @classmethod
    def holding(cls, config: Config, tensors: Mapping[str, Tensor]) -> Transformer:
        """A model with these weights, which are not copied, ready to translate."""
        with torch.device("meta"):
            model = cls(config)
        model.load_state_dict(tensors, assign=True)
        model.compute_turns()
        model.to(model.embedding.weight.device)
        model.eval()
        return model

    def compute_turns(self) -> None:
        """The table of positions, which follows from the config and is in no checkpoint."""
        self.register_buffer("turns", _turns(self.config), persistent=False)

    def _initialise(self) -> None:
        """Small everywhere; what is added to a residual is smaller the more of them there are."""
        config = self.config
        stds = {"embedding": config.width**-0.5} if config.scale_embeddings else {}
        stds |= dict.fromkeys(("wo", "outside"), USUAL_STD / sqrt(2 * config.layers))
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                part = name.split(".")[-2]
                nn.init.normal_(weight, std=stds.get(part, USUAL_STD))
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    @property
    def output_weight(self) -> Tensor:
        return self.embedding.weight if self.head is None else self.head.weight

    def forward(self, tokens: Tensor, **how: Any) -> Tensor:
        """Logits of the next token after each; options as of `hidden`."""
        return self.logits(self.hidden(tokens, **how))

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.output_weight)

    def hidden(
        self,
        tokens: Tensor,
        *,
        prefix: Tensor | None = None,
        seen: Tensor | None = None,
        places: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """What the output head reads: batch, token, width.

        prefix: how many first tokens of each batch entry all see each other; 0 for none.
        seen: which places of a cache each token may see (batch, token, place), itself among them,
            instead of everything up to itself; needs `places`.
        places: where each token stands (batch, token); without it they are counted from the cache.
        cache: holds earlier tokens, and gets these.
        """
        before = 0 if cache is None else cache.filled
        x, turns = self._placed(tokens, places, before)
        # True where there is no cache: a compiler sees through it, and not through 0.
        how: Any = {"prefix": prefix, "causal": True if cache is None else before}
        if seen is not None:
            how = self._seen(seen, cache, tokens.shape[1])
        for layer, block in enumerate(self.blocks):
            x = block(x, turns, cache, layer, how)
        if cache is not None:
            cache.filled += tokens.shape[1]
        return x if self.norm is None else self.norm(x)

    def _seen(self, seen: Tensor, cache: Cache | None, tokens: int) -> Any:
        """As the kernel's step takes it, or as an option of `attention` where there is none."""
        if cache is None:
            raise OptionError("model: `seen` tells of the places of a cache, but there is none")
        if has_kernel(cache.held.device, cache.held.dtype):
            return seen
        bias = torch.zeros_like(seen, dtype=cache.held.dtype).masked_fill_(~seen, -inf)
        return {"bias": bias[:, None, :, : cache.filled + tokens]}

    def inspect(
        self, tokens: Tensor, wanted: Inspect, *, prefix: Tensor | None = None
    ) -> list[Inspection]:
        """What every layer attended to."""
        x, turns = self._placed(tokens, None, 0)
        seen = {"prefix": prefix, "causal": 0}
        told = []
        for layer, block in enumerate(self.blocks):
            own = block.attention
            q, k, v = own.heads(own.wide(block.attended(x)), turns)
            told.append(attention(q, k, v, inspect=wanted, **seen)[1])
            x = block(x, turns, None, layer, seen)
        return told

    def _placed(
        self, tokens: Tensor, places: Tensor | None, before: int
    ) -> tuple[Tensor, Tensor | None]:
        """The embeddings with their positions, and the turns of rotary positions."""
        config, after = self.config, before + tokens.shape[1]
        if places is None and after > config.longest:
            raise SizeLimitError(
                f"model: {after} tokens are more than the {config.longest} it has places for"
            )
        x = self.embedding(tokens)
        x = x * sqrt(config.width) if config.scale_embeddings else x
        turns = None
        if config.positions == "learned":
            table = self.places.weight
            x = x + (table[before:after] if places is None else table[places])
        else:
            at = self.turns[:, before:after] if places is None else self.turns[:, places]
            turns = at if config.positions == "rotary" else None
            x = x if turns is not None else x + at[0].to(x.dtype)
        return dropped(x, config.dropout, self.training), turns


def _turns(config: Config) -> Tensor | None:
    """Rotary: cosines and signed sines of every place and coordinate; sinusoidal: what is added."""
    if config.positions == "learned":
        return None
    size = config.head_dim if config.positions == "rotary" else config.width
    steps = torch.arange(0, size, 2, dtype=torch.float64) / size
    base = config.rotary_base if config.positions == "rotary" else 10000.0
    angles = torch.arange(config.longest, dtype=torch.float64)[:, None] * base**-steps
    cos, sin = angles.cos(), angles.sin()
    if config.positions == "rotary":
        return torch.stack([torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)]).float()
    return torch.stack([sin, cos], dim=-1).flatten(1)[None, :, :size].float()


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each vector by its place; coordinate i goes with coordinate i + half."""
    cos, sin = turns.unsqueeze(-2)
    return (x * cos + x.roll(x.shape[-1] // 2, -1) * sin).to(x.dtype)
