"""The loss: cross-entropy of the tokens that are to be predicted, and of no others."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from regard.model._transformer import Transformer

Tensor = Any


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
    hidden = model.hidden(tokens, prefix=prefix).flatten(0, 1)
    logits = model.logits(hidden[places]).float()
    return F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction=reduction)
