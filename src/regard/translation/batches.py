"""Batches: pairs of like length together, filled up to a number of tokens, made ahead of use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from regard._errors import OptionError
from regard.translation.corpora import Pair, Report
from regard.translation.recipes import Recipe
from regard.translation.tokenizer import BEGIN, END, PAD, SEPARATOR, Tokenizer

Tensor = Any
Numbers = npt.NDArray[np.int64]
AHEAD = 4


@dataclass(frozen=True)
class Batch:
    """Rows of tokens: begin, source, separator, target, end, padding.

    `sources` counts up to and with the separator, `lengths` all tokens; `predicted` is how many
    tokens the loss is over.
    """

    tokens: Tensor
    sources: Tensor
    lengths: Tensor
    predicted: int

    @property
    def real(self) -> int:
        return int(self.lengths.sum())

    def to(self, device: Any) -> Batch:
        tokens, sources, lengths = (
            part.to(device, non_blocking=True) for part in (self.tokens, self.sources, self.lengths)
        )
        return Batch(tokens, sources, lengths, self.predicted)

    def share(self, rank: int, world: int) -> Batch:
        """Every world-th row; `predicted` stays that of all."""
        tokens, sources, lengths = (
            part[rank::world].contiguous() for part in (self.tokens, self.sources, self.lengths)
        )
        return Batch(tokens, sources, lengths, self.predicted)


class Rows:
    """Tokenised pairs: each `begin source separator target end`, and where the target begins."""

    def __init__(self, sources: list[list[int]], targets: list[list[int]]) -> None:
        self.rows = [
            [BEGIN, *source, SEPARATOR, *target, END]
            for source, target in zip(sources, targets, strict=True)
        ]
        self.sources = np.array([len(source) + 2 for source in sources], dtype=np.int64)
        self.lengths = np.array([len(row) for row in self.rows], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, chosen: Sequence[int] | Numbers, with_source: bool = False) -> Batch:
        lengths, sources = self.lengths[chosen], self.sources[chosen]
        tokens = np.full((len(chosen), int(lengths.max())), PAD, dtype=np.int64)
        for row, at in zip(tokens, chosen, strict=True):
            row[: self.lengths[at]] = self.rows[at]
        predicted = int((lengths - 1).sum() if with_source else (lengths - sources).sum())
        from_numpy = torch.from_numpy
        return Batch(from_numpy(tokens), from_numpy(sources), from_numpy(lengths), predicted)


def tokenized(
    pairs: Sequence[Pair], tokenizer: Tokenizer, longest: int, report: Report | None = None
) -> Rows:
    """The pairs as rows; those of more than `longest` tokens are left out and reported."""
    sources = tokenizer.encode([source for source, _ in pairs])
    targets = tokenizer.encode([target for _, target in pairs])
    fits = [
        len(source) + len(target) + 3 <= longest
        for source, target in zip(sources, targets, strict=True)
    ]
    if report is not None:
        for number, (fit, (source, _)) in enumerate(zip(fits, pairs, strict=True), 1):
            if not fit:
                report.add("too long", f"pair {number}: {source[:30]}…")
    kept = [at for at, fit in enumerate(fits) if fit]
    return Rows([sources[at] for at in kept], [targets[at] for at in kept])


def planned(lengths: Numbers, tokens: int, rng: np.random.Generator) -> list[Numbers]:
    """Every row once: sorted by length, equal ones in random order; full batches, shuffled."""
    order = np.lexsort((rng.random(len(lengths)), lengths))
    batches, start = [], 0
    for at in range(len(order)):
        if (at + 1 - start) * lengths[order[at]] > tokens and at > start:
            batches.append(order[start:at])
            start = at
    batches.append(order[start:])
    return [batches[at] for at in rng.permutation(len(batches))]


def padding(lengths: Numbers, batches: Sequence[Numbers]) -> float:
    """Which share of all places holds no token."""
    places = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1 - float(lengths.sum()) / places


class Feed:
    """Endless updates, each a list of batches, in an order that seed and epoch decide.

    It can begin anywhere, which is what resuming asks for. A thread makes them ahead of use;
    with BPE-dropout it also draws each epoch's segmentations.
    """

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, recipe: Recipe) -> None:
        self.recipe, self.tokenizer = recipe, tokenizer
        self.report = Report()
        self.rows = tokenized(pairs, tokenizer, recipe.longest, self.report)
        if not len(self.rows):
            raise OptionError(
                f"`longest`: every pair of the corpus has more than {recipe.longest} tokens"
            )
        self._pairs = pairs
        plan = self._plan(0, self.rows)
        self.updates_per_epoch = -(-len(plan) // recipe.accumulate)
        self.padding = padding(self.rows.lengths, plan)
        self.tokens_per_epoch = int(self.rows.lengths.sum())

    def _plan(self, epoch: int, rows: Rows) -> list[Numbers]:
        rng = np.random.default_rng((self.recipe.seed, epoch))
        return planned(rows.lengths, self.recipe.batch_tokens, rng)

    def _rows(self, epoch: int) -> Rows:
        if not self.recipe.bpe_dropout:
            return self.rows
        rng = Random(self.recipe.seed * 1_000_003 + epoch)
        sides = [
            self.tokenizer.encode_dropping(
                [pair[side] for pair in self._pairs], self.recipe.bpe_dropout, rng, self.recipe.seed
            )
            for side in (0, 1)
        ]
        whole = Rows(*sides)
        kept = np.flatnonzero(whole.lengths <= self.recipe.longest)
        return Rows([sides[0][at] for at in kept], [sides[1][at] for at in kept])

    def _updates(self, epoch: int, skip: int) -> Iterator[tuple[int, int, list[Batch]]]:
        """Updates from (epoch, skip) on, each with the place after it."""
        while True:
            rows = self._rows(epoch)
            plan = self._plan(epoch, rows)
            size = self.recipe.accumulate
            starts = range(skip * size, len(plan), size)
            for start in starts:
                chosen = plan[start : start + size]
                made = [rows.batch(each, self.recipe.with_source) for each in chosen]
                yield epoch, start // size + 1, made
            epoch, skip = epoch + 1, 0

    def updates(self, epoch: int = 0, skip: int = 0) -> Iterator[tuple[int, int, list[Batch]]]:
        return ahead(lambda: self._updates(epoch, skip), AHEAD)


def ahead(make: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
    """What `make` iterates over, made in a thread, `size` things ahead; its errors come through."""
    made: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(size)
    stopped = threading.Event()

    def put(thing: Any, error: BaseException | None = None) -> bool:
        while not stopped.is_set():
            try:
                made.put((thing, error), timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for thing in make():
                if not put(thing):
                    return
            put(None, StopIteration())
        except BaseException as error:  # told to whoever waits
            put(None, error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            thing, error = made.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield thing
    finally:
        stopped.set()
