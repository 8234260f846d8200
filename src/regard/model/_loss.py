"""The loss: cross-entropy of the tokens that are to be predicted, and of no others."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from regard.model._transformer import Transformer

Tensor = Any
ROWS = 256  # so many rows of logits at a time stay in a CPU's cache


def predicting(
    tokens: Tensor, sources: Tensor, lengths: Tensor, with_source: bool = False
) -> tuple[Tensor, Tensor]:
    """Which tokens predict, as places in the flattened batch, and what each has to predict.

    `sources` counts the tokens up to and with the separator, which predicts the first word of the
    target; `lengths` counts all tokens, the last of which predicts nothing.
    """
    at = torch.arange(tokens.shape[1], device=tokens.device)
    first = torch.zeros_like(sources) if with_source else sources - 1
    chosen = (at >= first[:, None]) & (at < lengths[:, None] - 1)
    places = chosen.flatten().nonzero().squeeze(1)
    return places, tokens.flatten()[places + 1]


def loss(
    model: Transformer,
    tokens: Tensor,
    places: Tensor,
    labels: Tensor,
    *,
    prefix: Tensor | None = None,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of the labels at the places that `predicting` gives."""
    hidden = model.hidden(tokens, prefix=prefix).flatten(0, 1)[places]
    if _in_parts(hidden):
        total = _CrossEntropy.apply(hidden, model.output_weight, labels, smoothing)
        return total if reduction == "sum" else total / len(labels)
    logits = model.logits(hidden).float()
    return F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction=reduction)


def _in_parts(hidden: Tensor) -> bool:
    """Whether a few rows at a time are better: on a CPU, where memory is what takes the time."""
    return (
        hidden.device.type == "cpu" and hidden.requires_grad and not torch.compiler.is_compiling()
    )


class _CrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    """Summed over rows, whose logits are forgotten at once: the gradients are what is kept."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Any:
        total = torch.zeros((), dtype=torch.float64)
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        with torch.autocast("cpu", enabled=False):
            lowered, spread = weight.to(dtype or weight.dtype), smoothing / len(weight)
            for start in range(0, len(hidden), ROWS):
                part = slice(start, start + ROWS)
                rows, label = hidden[part].to(lowered.dtype), labels[part, None]
                logits = (rows @ lowered.T).float()
                errors = logits.softmax(-1)  # quicker than exp
                sums = logits.amax(-1) - errors.amax(-1).log()  # log of the sum of exp
                wanted = (1 - smoothing) * logits.gather(1, label)[:, 0]
                if smoothing:
                    wanted += spread * logits.sum(-1)
                total += (sums - wanted).sum(dtype=torch.float64)
                errors.sub_(spread)
                errors.scatter_add_(1, label, errors.new_full(label.shape, smoothing - 1))
                d_logits = errors.to(lowered.dtype)
                d_hidden[part] = d_logits @ lowered
                d_weight += d_logits.T @ rows
        ctx.save_for_backward(d_hidden, d_weight)
        return total.to(torch.float32)

    @staticmethod
    def backward(ctx: Any, d_total: Tensor) -> Any:
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden * d_total, d_weight * d_total, None, None
