"""BLEU and chrF of translations, with signatures and intervals, and the sentences that went worst.

Cased and detokenised, as sacreBLEU scores by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard._errors import MissingExtraError, OptionError

RESAMPLED = 1000
SEED = 12345


@dataclass(frozen=True)
class Score:
    """A metric's score; 95% of the resampled test sets score between `low` and `high`."""

    metric: str
    score: float
    low: float
    high: float
    signature: str

    def __str__(self) -> str:
        interval = f"[{self.low:.1f}, {self.high:.1f}]" if self.low < self.high else "no interval"
        return f"{self.metric:4}  {self.score:5.1f}  {interval}  {self.signature}"


@dataclass(frozen=True)
class Sentence:
    """One sentence with its own chrF."""

    line: int
    source: str
    said: str
    reference: str
    chrf: float


@dataclass(frozen=True)
class Evaluation:
    """The scores of a translated test set."""

    sentences: tuple[Sentence, ...]
    scores: tuple[Score, ...]

    def worst(self, many: int) -> list[Sentence]:
        return sorted(self.sentences, key=lambda each: each.chrf)[:many]


def evaluate(
    said: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> Evaluation:
    """Score translations against one reference each."""
    sources = [""] * len(said) if sources is None else sources
    check_lines("translations", said, "references", references)
    check_lines("translations", said, "sources", sources)
    if not said:
        raise OptionError("evaluate: there is nothing to score")
    bleu, chrf = _metrics()
    own = [chrf.sentence_score(a, [b]).score for a, b in zip(said, references, strict=True)]
    numbered = enumerate(zip(sources, said, references, own, strict=True), 1)
    sentences = tuple(Sentence(number, *parts) for number, parts in numbered)
    scores = (_score("BLEU", bleu, said, references), _score("chrF", chrf, said, references))
    return Evaluation(sentences, scores)


def check_lines(name: str, lines: Sequence[str], other: str, others: Sequence[str]) -> None:
    """Every line of one needs a line of the other."""
    if len(lines) != len(others):
        raise OptionError(
            f"evaluate: lines of {name}: {len(lines):,}, of {other}: {len(others):,}: each needs "
            "one of its own"
        )


def _metrics() -> tuple[Any, Any]:
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ModuleNotFoundError as error:
        raise MissingExtraError("scoring", "translate", "sacrebleu") from error
    return BLEU(), CHRF()


def _score(name: str, metric: Any, said: Sequence[str], references: Sequence[str]) -> Score:
    """With the range that 95% of resampled test sets score in.

    sacreBLEU's own resampling fails on a test set that can score 0, so this one adds up its
    statistics of the sentences itself.
    """
    found = metric.corpus_score(list(said), [list(references)])
    statistics = np.array(metric._extract_corpus_statistics(list(said), [list(references)]))
    drawn = np.random.default_rng(SEED).integers(len(said), size=(RESAMPLED, len(said)))
    scores = [
        metric._compute_score_from_stats(statistics[rows].sum(0).tolist()).score for rows in drawn
    ]
    low, high = np.percentile(scores, (2.5, 97.5))
    signature = f"{metric.get_signature()}|bs:{RESAMPLED}|seed:{SEED}"
    return Score(name, float(found.score), float(low), float(high), signature)
