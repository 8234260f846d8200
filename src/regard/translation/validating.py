"""Validation: the model translates, and sacreBLEU and chrF judge what it said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard._errors import MissingExtraError
from regard.model import Cache, Transformer
from regard.translation.corpora import Pair
from regard.translation.tokenizer import BEGIN, END, SEPARATOR, Tokenizer

ROWS = 128
MORE = 20  # a translation may be half as long again as its source, and this many tokens


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF with their signatures, and what was said."""

    bleu: float
    chrf: float
    signatures: tuple[str, str]
    said: tuple[str, ...]


def validate(
    model: Transformer, tokenizer: Tokenizer, pairs: Sequence[Pair], autocast: Any
) -> Scores:
    said = greedy(model, tokenizer, [source for source, _ in pairs], autocast)
    return score(said, [target for _, target in pairs])


def score(said: Sequence[str], references: Sequence[str]) -> Scores:
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ModuleNotFoundError as error:
        raise MissingExtraError("scoring", "translate", "sacrebleu") from error
    bleu, chrf = BLEU(), CHRF()
    found = [metric.corpus_score(list(said), [list(references)]).score for metric in (bleu, chrf)]
    signatures = (str(bleu.get_signature()), str(chrf.get_signature()))
    return Scores(found[0], found[1], signatures, tuple(said))


@torch.inference_mode()  # type: ignore[untyped-decorator]
def greedy(
    model: Transformer, tokenizer: Tokenizer, sources: Sequence[str], autocast: Any
) -> list[str]:
    """The likeliest token each time; sources of one length together, so that none is padded."""
    by_length: dict[int, list[int]] = {}
    rows = [[BEGIN, *row, SEPARATOR] for row in tokenizer.encode(sources)]
    for at, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(at)
    found: dict[int, list[int]] = {}
    training = model.training
    model.eval()
    with autocast:
        for length in sorted(by_length):
            for start in range(0, len(by_length[length]), ROWS):
                chosen = by_length[length][start : start + ROWS]
                told = _greedy(model, torch.tensor([rows[at] for at in chosen]))
                found.update(zip(chosen, told, strict=True))
    model.train(training)
    return tokenizer.decode(found[at] for at in range(len(rows)))


def _greedy(model: Transformer, tokens: Any) -> list[list[int]]:
    rows, length = tokens.shape
    device = model.embedding.weight.device
    dtype = (
        torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
    )
    most = length + length // 2 + MORE
    cache = Cache(model.config, rows, length + most, dtype=dtype, device=device)
    prefix = None if model.config.source_mask == "causal" else torch.full((rows,), length)
    hidden = model.hidden(
        tokens.to(device), prefix=None if prefix is None else prefix.to(device), cache=cache
    )
    at = torch.arange(rows)
    said: list[list[int]] = [[] for _ in range(rows)]
    for _ in range(most):
        chosen = model.logits(hidden[:, -1]).argmax(-1)
        going = []
        for place, token in enumerate(chosen.tolist()):
            if token != END:
                said[int(at[place])].append(token)
                going.append(place)
        if not going:
            break
        if len(going) < len(chosen):
            kept = torch.tensor(going)
            at, chosen = at[kept], chosen[kept.to(device)]
            cache.keep(kept.to(device))
        hidden = model.hidden(chosen[:, None], cache=cache)
    return said
