"""Batches: every pair once an epoch, little padding, the same order for the same seed."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("torch")

from regard.translation import pocket
from regard.translation.batches import Feed, Rows, ahead, padding, planned, tokenized
from regard.translation.corpora import Report
from regard.translation.recipes import Recipe
from regard.translation.tokenizer import BEGIN, END, PAD, SEPARATOR, Tokenizer

PAIRS = list(pocket.pairs("train", 1500))
TOKENIZER = Tokenizer.trained([text for pair in PAIRS for text in pair], 500)
RECIPE = Recipe(batch_tokens=700)


def test_a_row_is_begin_source_separator_target_end_and_padding() -> None:
    batch = Rows([[7, 8], [9]], [[10], [11, 12, 13]]).batch([0, 1])
    assert batch.tokens.tolist() == [
        [BEGIN, 7, 8, SEPARATOR, 10, END, PAD],
        [BEGIN, 9, SEPARATOR, 11, 12, 13, END],
    ]
    assert (batch.sources.tolist(), batch.lengths.tolist()) == ([4, 3], [6, 7])
    assert batch.predicted == 2 + 4
    assert batch.real == 13


def test_every_pair_comes_once_within_the_budget_with_little_padding() -> None:
    lengths = tokenized(PAIRS, TOKENIZER, 256).lengths
    plan = planned(lengths, 700, np.random.default_rng(1))
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(PAIRS)))
    assert max(len(batch) * lengths[batch].max() for batch in plan) <= 700
    assert padding(lengths, plan) < 0.05


def test_padding_is_the_share_of_empty_places() -> None:
    assert padding(np.array([3, 5, 2]), [np.array([0, 1]), np.array([2])]) == pytest.approx(2 / 12)


def test_too_long_pairs_are_reported_not_cut() -> None:
    report = Report()
    rows = tokenized([("un " * 50, "one"), ("un", "one")], TOKENIZER, 20, report)
    assert len(rows) == 1
    assert report.found == {"too long": ["pair 1: un un un un un un un un un un …"]}


@pytest.mark.parametrize("dropped", [0.0, 0.2])
def test_it_goes_on_from_anywhere_as_if_it_had_not_stopped(dropped: float) -> None:
    recipe = replace(RECIPE, bpe_dropout=dropped, accumulate=2)
    feed = Feed(PAIRS[:400], TOKENIZER, recipe)
    whole = list(islice(feed.updates(), 3 * feed.updates_per_epoch))
    epoch, skip, _ = whole[feed.updates_per_epoch + 2]
    rest = list(islice(Feed(PAIRS[:400], TOKENIZER, recipe).updates(epoch, skip), 3))
    for (_, _, ours), (_, _, theirs) in zip(
        whole[feed.updates_per_epoch + 3 :][:3], rest, strict=True
    ):
        for one, other in zip(ours, theirs, strict=True):
            assert one.tokens.equal(other.tokens)


def test_epochs_come_in_different_orders() -> None:
    feed = Feed(PAIRS[:400], TOKENIZER, RECIPE)
    updates = list(islice(feed.updates(), 2 * feed.updates_per_epoch))
    first, second = (updates[at][2][0].tokens for at in (0, feed.updates_per_epoch))
    assert not first.equal(second)


def test_processes_share_a_batch_among_them() -> None:
    batch = Rows([[7], [8], [9]], [[10], [11], [12]]).batch([0, 1, 2])
    shares = [batch.share(rank, 2) for rank in (0, 1)]
    assert [share.tokens[:, 1].tolist() for share in shares] == [[7, 9], [8]]
    assert [share.predicted for share in shares] == [6, 6]


def test_an_error_in_the_thread_reaches_whoever_waits() -> None:
    def broken() -> object:
        yield 1
        raise OSError("disk gone")

    made = ahead(broken, 2)
    assert next(made) == 1
    with pytest.raises(OSError, match="disk gone"):
        next(made)
