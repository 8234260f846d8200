"""Which words of the source each word of a translation looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from regard.ops import Inspect
from regard.translation.tokenizer import Tokenizer
from regard.translation.translating import Said, Translator


class Aligned(NamedTuple):
    """A word of the translation, and what share of its look each word of the source has."""

    word: str
    shares: list[tuple[str, float]]

    @property
    def most(self) -> str:
        return max(self.shares, key=lambda each: each[1])[0]


@torch.inference_mode()  # type: ignore[untyped-decorator]
def align(translator: Translator, source: str, said: Said) -> list[Aligned]:
    """Shares of attention, averaged over all heads of all layers; none for what is too long.

    A word is chosen by the token before it: what that one looks at is what the word is made from.
    """
    model, tokenizer = translator.model, translator.tokenizer
    config = model.config
    (tokens,) = tokenizer.encode([source.strip()])
    row = [config.begin, *tokens, config.separator, *said.tokens]
    if not tokens or not said.tokens or len(row) > config.longest:
        return []
    start = len(tokens) + 2
    prefix = None if config.source_mask == "causal" else torch.tensor([start])
    wanted = Inspect(rows=range(start - 1, len(row) - 1))
    seen = model.inspect(torch.tensor([row]), wanted, prefix=prefix)
    weights = torch.stack([each.rows[0].float().mean(0) for each in seen]).mean(0)
    weights = weights[:, 1 : start - 1]
    source_words, target_words = _words(tokenizer, tokens), _words(tokenizer, said.tokens)
    aligned = []
    for word, places in target_words:
        looked = weights[places].mean(0)
        shares = (looked / looked.sum().clamp_min(1e-9)).tolist()
        named = [(name, sum(shares[at] for at in here)) for name, here in source_words]
        aligned.append(Aligned(word, named))
    return aligned


def _words(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Words as blanks part them, and the places of their tokens."""
    groups: list[list[int]] = []
    for place, spelled in enumerate(tokenizer.tokens(tokens)):
        if spelled.startswith(" ") or not groups:
            groups.append([])
        groups[-1].append(place)
    rows: list[Any] = [[tokens[place] for place in group] for group in groups]
    return list(zip((text.strip() for text in tokenizer.decode(rows)), groups, strict=True))
