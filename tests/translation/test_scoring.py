"""Scores against sacreBLEU's own, and intervals that hold what they should."""

from __future__ import annotations

import pytest

sacrebleu = pytest.importorskip("sacrebleu")

from regard import OptionError  # noqa: E402
from regard.translation.scoring import evaluate  # noqa: E402

REFERENCES = [
    "the black cat sleeps on the old table .",
    "two small girls eat three apples in the garden .",
    "he does not see the big house .",
    "we are reading a book .",
    "the dog runs behind the red car .",
    "she gives him the letter .",
    "Do you know the teacher ?",
]
SAID = [
    "the black cat sleeps on the old table .",
    "two small girls eat apples in the garden .",
    "he does not see the large house .",
    "we read a book .",
    "the dog runs behind the red car .",
    "bread",
    "do you know the teacher ?",
]


def test_the_scores_are_sacrebleus() -> None:
    bleu, chrf = evaluate(SAID, REFERENCES).scores
    assert bleu.score == sacrebleu.corpus_bleu(SAID, [REFERENCES]).score
    assert chrf.score == sacrebleu.corpus_chrf(SAID, [REFERENCES]).score
    assert "case:mixed" in bleu.signature
    assert "tok:13a" in bleu.signature
    assert "bs:1000" in bleu.signature


def test_intervals_hold_the_score_and_repeat() -> None:
    once, again = evaluate(SAID, REFERENCES), evaluate(SAID, REFERENCES)
    assert once.scores == again.scores
    for score in once.scores:
        assert score.low < score.score < score.high


def test_the_worst_sentences_come_first() -> None:
    worst = evaluate(SAID, REFERENCES, ["source"] * 7).worst(2)
    assert (worst[0].line, worst[0].said, worst[0].source) == (6, "bread", "source")
    assert worst[0].chrf < worst[1].chrf < 100


def test_a_perfect_translation() -> None:
    assert [score.score for score in evaluate(REFERENCES, REFERENCES).scores] == pytest.approx(
        [100, 100]
    )


def test_every_line_needs_its_reference() -> None:
    with pytest.raises(OptionError, match="translations: 7, of references: 6"):
        evaluate(SAID, REFERENCES[:6])
    with pytest.raises(OptionError, match="nothing to score"):
        evaluate([], [])
