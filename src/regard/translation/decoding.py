"""Greedy and beam search over a batch of sources.

The hypotheses of a sentence are queries over one set of keys: the source once, then a place for
every hypothesis at every step. A mask tells whose past each place belongs to, so that nothing in
the cache is ever moved when a hypothesis dies or has two successors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from regard._errors import OptionError, SizeLimitError
from regard._options import is_integer, one_of, positive_integer
from regard.model import Cache, Config, Transformer
from regard.ops.step import has_kernel

Tensor = Any
STOPS = ("first", "likely", "sure")
AT_ONCE = 320  # hypotheses that are extended together: enough to keep matrix products busy
SENTENCES_AT_ONCE = 128  # more would take memory and save no time
WORTH_A_WORKER = 8  # for fewer sentences each, a second thread would be started in vain
MOST_WORKERS = 8  # each has memory of its own, and Python lets only one at a time prepare its steps
SHORT = 64  # tokens of a source up to which the kernel's step reads it as quickly as its blocks
CHUNK = 80  # the best of a row are looked for in those of its chunks that hold the largest
WORTH_MOVING = 0.75  # once fewer sentences than this share go on, the others' rows are dropped


@dataclass(frozen=True)
class Search:
    """How to search.

    beam: how many hypotheses are kept; 1 is greedy.
    best: how many of them are told, at most `beam`.
    length_penalty: a hypothesis of n tokens scores log p / n to this power.
    stop: a sentence is finished when it has `beam` complete hypotheses and: "first" at once;
        "likely" no other one scores better as long as it is now; "sure" none can however it goes
        on. Greedy search stops at its first end.
    longest: how many tokens a translation has at most; 0 stands for 2 for each of the source
        and 20 more.
    source_mask: how a model that was trained for both sees the source.
    """

    beam: int = 5
    best: int = 1
    length_penalty: float = 1.0
    stop: str = "likely"
    longest: int = 0
    source_mask: str = "prefix"

    def __post_init__(self) -> None:
        positive_integer("beam", self.beam)
        positive_integer("best", self.best)
        one_of("stop", self.stop, STOPS)
        one_of("source_mask", self.source_mask, ("prefix", "causal"))
        if self.best > self.beam:
            raise OptionError(f"`best` must be at most `beam` ({self.beam}), but is {self.best}")
        if not is_integer(self.longest) or self.longest < 0:
            raise OptionError(
                "`longest` must be how many tokens a translation has at most, or 0 for twice those "
                f"of its source and 20, but {self.longest!r} was passed"
            )
        if not isfinite(self.length_penalty):
            raise OptionError(f"`length_penalty` must be a number, but is {self.length_penalty}")


class Hypothesis(NamedTuple):
    """A translation as tokens without the end; `complete` if the model ended it by itself."""

    tokens: list[int]
    score: float
    complete: bool


def most_source_tokens(config: Config) -> int:
    """The longest source that leaves room for a translation of its length."""
    return (config.longest - 2) // 2


def search(
    model: Transformer, sources: Sequence[Sequence[int]], how: Search
) -> list[list[Hypothesis]]:
    """The best translations of every source (tokens without special ones), best first."""
    for number, source in enumerate(sources):
        if len(source) > most_source_tokens(model.config):
            raise SizeLimitError(
                f"search: source {number} has {len(source)} tokens, but the model's "
                f"{model.config.longest} places allow {most_source_tokens(model.config)}"
            )
    found: list[list[Hypothesis]] = [[] for _ in sources]
    for numbers, told in _each_batch(model, sources, how):
        for number, hypotheses in zip(numbers, told, strict=True):
            found[number] = hypotheses
    return found


def _each_batch(
    model: Transformer, sources: Sequence[Sequence[int]], how: Search
) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
    """Numbers of sources and what was found for them, batch by batch.

    On a CPU every thread has batches of its own: matrix products of this size gain little from
    many threads, and everything between them gains nothing.
    """
    threads = torch.get_num_threads() if model.embedding.weight.device.type == "cpu" else 1
    workers = min(threads, MOST_WORKERS, -(-len(sources) // WORTH_A_WORKER))
    by_length = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
    share = -(-len(sources) // max(1, workers))
    many = max(1, min(SENTENCES_AT_ONCE, AT_ONCE // how.beam, share))
    batches = [by_length[start : start + many] for start in range(0, len(by_length), many)]

    def found(numbers: list[int]) -> list[list[Hypothesis]]:
        with torch.inference_mode():  # each thread has its own mode
            return _Beams(model, [sources[number] for number in numbers], how).run()

    if workers <= 1:
        yield from ((numbers, found(numbers)) for numbers in batches)
        return
    with ThreadPoolExecutor(
        workers, "search", torch.set_num_threads, (threads // workers,)
    ) as pool:
        try:
            yield from zip(batches, pool.map(found, batches), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)


class _Beams:
    """The state of a batch: live hypotheses of the sentences that go on, and complete ones."""

    def __init__(self, model: Transformer, sources: Sequence[Sequence[int]], how: Search) -> None:
        self.model, self.how, config = model, how, model.config
        weight = model.embedding.weight
        self.device = weight.device
        self.tokens, self.lengths = _padded(sources, config, self.device)
        batch, width = self.tokens.shape
        room = config.longest - self.lengths
        asked = how.longest if how.longest else 2 * (self.lengths - 2) + 20
        self.limits = torch.minimum(room, torch.as_tensor(asked, device=self.device))
        steps = int(self.limits.max())
        capacity = width + how.beam * (steps - 1)
        self.cache = Cache(config, batch, capacity, _stored(weight), self.device)
        shape = (batch, how.beam, capacity)
        self.seen = torch.zeros(shape, dtype=torch.bool, device=self.device)
        at = torch.arange(width, device=self.device)
        self.seen[:, :, :width] = (at < self.lengths[:, None])[:, None]
        self.output = _in_chunks(model.output_weight)
        # Large and of every step: to allocate them anew would take as long as to fill them.
        self.logits = weight.new_empty(batch * how.beam, len(self.output))
        self.log_chances = torch.empty_like(self.logits, dtype=torch.float32)
        self.rows_at = torch.arange(batch, device=self.device)
        self.rows = self.rows_at  # whose sentence each row is
        self.sums = torch.zeros(batch, 1, device=self.device)
        self.written = torch.zeros(batch, how.beam, steps, dtype=torch.long, device=self.device)
        self.done_scores = torch.full((batch, how.beam), -inf, device=self.device)
        self.done_written = torch.full_like(self.written, config.end)
        self.done_lengths = torch.zeros(batch, how.beam, dtype=torch.long, device=self.device)
        self.barred = torch.tensor([config.pad, config.begin, config.separator])
        self.barred = self.barred[self.barred != config.end].to(self.device)
        self.found: list[list[Hypothesis]] = [[] for _ in sources]
        self.going = torch.ones(batch, dtype=torch.bool, device=self.device)

    def run(self) -> list[list[Hypothesis]]:
        hidden = self._read_sources()
        for step in range(self.written.shape[2]):
            self._advance(step, *self._candidates(hidden))
            if not self.going.any():
                break
            if self.going.sum() <= WORTH_MOVING * len(self.rows):
                self._keep(self.going.nonzero().squeeze(1))
            hidden = self._extend(step)
        return self.found

    def _read_sources(self) -> Tensor:
        """Fill the cache with the sources; what their separators say."""
        mask = self.model.config.source_mask
        mask = self.how.source_mask if mask == "mixed" else mask
        how = self._short(mask) if self.tokens.shape[1] <= SHORT else {}
        if not how and mask == "prefix":
            how = {"prefix": self.lengths}
        hidden = self.model.hidden(self.tokens, cache=self.cache, **how)
        return hidden[self.rows, self.lengths - 1][:, None]

    def _short(self, mask: str) -> dict[str, Tensor]:
        """What each token of short sources sees, which is quicker told than found out."""
        batch, width = self.tokens.shape
        at = torch.arange(width, device=self.device)
        real = at < self.lengths[:, None]
        seen = torch.zeros(batch, width, self.cache.capacity, dtype=torch.bool, device=self.device)
        seen[:, :, :width] = real[:, None] & real[:, :, None]
        if mask == "causal":
            seen[:, :, :width] &= at <= at[:, None]
        return {"seen": seen, "places": at.expand(batch, -1)}

    def _candidates(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Twice as many successors as the beam holds, best first: sum, parent, token."""
        batch, beam, width = hidden.shape
        rows, vocabulary = batch * beam, self.model.config.vocabulary
        logits, chances = self.logits[:rows], self.log_chances[:rows]
        torch.mm(hidden.reshape(rows, width), self.output.mT, out=logits)
        logits[:, vocabulary:] = -inf
        torch.log_softmax(logits, dim=-1, dtype=chances.dtype, out=chances)
        chances[:, self.barred] = -inf
        chunks = chances.view(batch, beam, -1, CHUNK)
        largest = (chunks.amax(-1) + self.sums[..., None]).flatten(1)
        many = min(2 * self.how.beam, largest.shape[1])
        places = largest.topk(many).indices
        parents = places // chunks.shape[2]
        sums = chunks.flatten(1, 2)[self.rows_at[:batch, None], places]
        sums = (sums + self.sums.gather(1, parents)[..., None]).flatten(1)
        lacking = max(0, 2 * self.how.beam - sums.shape[1])
        best, at = F.pad(sums, (0, lacking), value=-inf).topk(2 * self.how.beam)
        chunk = (at // CHUNK).clamp_max(many - 1)
        tokens = places.gather(1, chunk) % chunks.shape[2] * CHUNK + at % CHUNK
        # What stands for a token that is not there has no chance, but must be a number of one.
        return best, parents.gather(1, chunk), tokens.clamp_max(vocabulary - 1)

    def _advance(self, step: int, sums: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """Successors take the places of the hypotheses; those that end are put aside."""
        beam = self.how.beam
        ends = tokens == self.model.config.end
        self._put_aside(step, sums[:, :beam], parents[:, :beam], ends[:, :beam])
        # A stable sort keeps their order: first those that go on, best first.
        order = ends.int().sort(dim=1, stable=True).indices[:, :beam]
        goes_on = ~ends.gather(1, order)
        self.sums = sums.gather(1, order).masked_fill(~goes_on, -inf)
        parents = parents.gather(1, order)
        if beam > 1:
            self.seen = _of_parents(self.seen, parents)
            self.written = _of_parents(self.written, parents)
        self.written[:, :, step] = tokens.gather(1, order)
        at_limit = self.limits == step + 1
        if at_limit.any():
            self._put_aside_unfinished(step, at_limit)
        done = self.going & (at_limit | self._is_done(step))
        if done.any():
            self._tell(done.nonzero().squeeze(1))
            self.going &= ~done

    def _put_aside(self, step: int, sums: Tensor, parents: Tensor, ends: Tensor) -> None:
        if not ends.any():
            return
        scores = self._scores(sums, step + 1).masked_fill(~ends, -inf)
        self._merge(scores, _of_parents(self.written, parents), step)

    def _put_aside_unfinished(self, step: int, rows: Tensor) -> None:
        scores = self._scores(self.sums, step + 1).masked_fill(~rows[:, None], -inf)
        self._merge(scores, self.written, step + 1)

    def _merge(self, scores: Tensor, written: Tensor, length: int) -> None:
        """Keep the best of those put aside before and these."""
        lengths = torch.full_like(scores, length, dtype=torch.long)
        every = torch.cat([self.done_scores, scores], dim=1)
        self.done_scores, order = every.topk(self.how.beam, dim=1)
        self.done_written = _of_parents(torch.cat([self.done_written, written], dim=1), order)
        self.done_lengths = torch.cat([self.done_lengths, lengths], dim=1).gather(1, order)

    def _scores(self, sums: Tensor, length: Any) -> Tensor:
        return sums / length**self.how.length_penalty

    def _is_done(self, step: int) -> Tensor:
        worst = self.done_scores[:, -1]
        if self.how.stop == "first" or self.how.beam == 1:
            return worst > -inf
        best = self.sums.amax(1)
        far = self.how.stop == "sure" and self.how.length_penalty > 0
        return worst >= self._scores(best, self.limits.float() if far else step + 1)

    def _tell(self, rows: Tensor) -> None:
        told = zip(
            self.rows[rows].tolist(),
            self.done_scores[rows].tolist(),
            self.done_lengths[rows].tolist(),
            self.done_written[rows].tolist(),
            self.limits[rows].tolist(),
            strict=True,
        )
        for number, scores, lengths, written, limit in told:
            each = zip(written, scores, lengths, strict=True)
            self.found[number] = [
                Hypothesis(tokens[:length], score, length < limit)
                for tokens, score, length in each
                if score > -inf
            ][: self.how.best]

    def _keep(self, rows: Tensor) -> None:
        self.cache.keep(rows)
        for name in ("lengths", "limits", "seen", "rows", "sums", "written", "going",
                     "done_scores", "done_written", "done_lengths"):  # fmt: skip
            setattr(self, name, getattr(self, name)[rows])

    def _extend(self, step: int) -> Tensor:
        """Every hypothesis reads the token it has just got."""
        beam, start = self.how.beam, self.cache.filled
        own = torch.arange(beam, device=self.device)
        self.seen[:, own, start + own] = True
        return self.model.hidden(
            self.written[:, :, step],
            seen=self.seen,
            places=(self.lengths + step)[:, None].expand(-1, beam),
            cache=self.cache,
        )


def _in_chunks(weight: Tensor) -> Tensor:
    """The output weights, with rows of zeros until they are whole chunks."""
    lacking = -len(weight) % CHUNK
    return F.pad(weight, (0, 0, 0, lacking)) if lacking else weight


def _stored(weight: Tensor) -> Any:
    """What keys and values are held as; where products attend to them, float32 is quicker."""
    wider = torch.promote_types(weight.dtype, torch.float32)
    return weight.dtype if has_kernel(weight.device, weight.dtype) else wider


def _padded(sources: Sequence[Sequence[int]], config: Config, device: Any) -> tuple[Tensor, Tensor]:
    rows = [[config.begin, *source, config.separator] for source in sources]
    width = max(map(len, rows))
    padded = [row + [config.pad] * (width - len(row)) for row in rows]
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return torch.tensor(padded, device=device), lengths


def _of_parents(held: Tensor, parents: Tensor) -> Tensor:
    """What each successor has from its parent: batch, successor, whatever."""
    return held.gather(1, parents[..., None].expand(-1, -1, held.shape[2]))
