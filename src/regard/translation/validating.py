"""Validation: the model translates, and sacreBLEU and chrF judge what it said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard._errors import MissingExtraError
from regard.model import Transformer
from regard.translation.corpora import Pair
from regard.translation.decoding import Search
from regard.translation.tokenizer import Tokenizer
from regard.translation.translating import Translator


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF with their signatures, and what was said."""

    bleu: float
    chrf: float
    signatures: tuple[str, str]
    said: tuple[str, ...]


def validate(model: Transformer, tokenizer: Tokenizer, pairs: Sequence[Pair], dtype: Any) -> Scores:
    """Greedy translations by the weights of `model`, computed in `dtype`."""
    weights = {name: each.detach().to(dtype) for name, each in model.state_dict().items()}
    translator = Translator(Transformer.holding(model.config, weights), tokenizer)
    translated = translator.translate([source for source, _ in pairs], Search(beam=1))
    return score([each.text for each in translated], [target for _, target in pairs])


def score(said: Sequence[str], references: Sequence[str]) -> Scores:
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ModuleNotFoundError as error:
        raise MissingExtraError("scoring", "translate", "sacrebleu") from error
    bleu, chrf = BLEU(), CHRF()
    found = [metric.corpus_score(list(said), [list(references)]).score for metric in (bleu, chrf)]
    signatures = (str(bleu.get_signature()), str(chrf.get_signature()))
    return Scores(found[0], found[1], signatures, tuple(said))
