"""Training: from a recipe to a checkpoint, in a way that can be stopped and gone on with."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from regard._errors import JobError
from regard.model import Config, Transformer, load, loss, predicting, save
from regard.translation import distributed
from regard.translation.batches import Batch, Feed
from regard.translation.corpora import Corpus, read_corpus
from regard.translation.devices import choose
from regard.translation.distributed import Place
from regard.translation.optimizers import Average, Optimizers
from regard.translation.recipes import Recipe
from regard.translation.runs import BEST, RECIPE, Progress, Run
from regard.translation.tokenizer import Tokenizer
from regard.translation.validating import Scores, validate

Tensor = Any
Told = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Result:
    """How a run ended: where its best checkpoint is, and how it scored."""

    folder: Path
    steps: int
    best: float
    finished: bool
    seconds: float
    signal: int = 0
    test: Scores | None = None

    def lines(self) -> list[str]:
        """In words, and what to do next."""
        told = [
            f"{self.steps:,} updates in {self.seconds:,.0f} s; best checkpoint: {self.best_folder}"
        ]
        if self.test is not None:
            told.append(f"test set: BLEU {self.test.bleu:.1f}, chrF {self.test.chrf:.1f}")
            told += self.test.signatures
        return told

    @property
    def best_folder(self) -> Path:
        return self.folder / BEST


class Objective(nn.Module):  # type: ignore[misc]
    """The loss of a batch, summed over what it predicts; one module, so that it can be spread."""

    def __init__(self, model: Transformer, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe

    def forward(self, batch: Batch, prefixed: bool) -> Tensor:
        recipe = self.recipe
        tokens, sources, lengths = batch.tokens, batch.sources, batch.lengths
        if recipe.r_drop and self.training:
            tokens, sources, lengths = (
                torch.cat([each, each]) for each in (tokens, sources, lengths)
            )
        places, labels = predicting(tokens, sources, lengths, recipe.with_source)
        prefix = sources if prefixed else None
        if not (recipe.r_drop and self.training):
            return loss(
                self.model, tokens, places, labels, prefix=prefix, smoothing=recipe.smoothing,
                reduction="sum",
            )  # fmt: skip
        hidden = self.model.hidden(tokens, prefix=prefix).flatten(0, 1)
        logits = self.model.logits(hidden[places]).float()
        apart = F.cross_entropy(logits, labels, label_smoothing=recipe.smoothing, reduction="sum")
        return (apart + recipe.r_drop * _disagreement(logits)) / 2


def _disagreement(logits: Tensor) -> Tensor:
    """How far two passes with different dropout are apart: divergence both ways, R-Drop's term."""
    one, other = logits.log_softmax(-1).chunk(2)
    there = F.kl_div(one, other, reduction="sum", log_target=True)
    back = F.kl_div(other, one, reduction="sum", log_target=True)
    return (there + back) / 2


class Trainer:
    """One run in one process."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        corpus: Corpus,
        tokenizer: Tokenizer,
        place: Place,
        told: Told,
    ) -> None:
        self.run, self.recipe, self.corpus = run, recipe, corpus
        self.tokenizer, self.place, self.told = tokenizer, place, told
        self.feed = Feed(corpus.train, tokenizer, recipe)
        per_epoch = self.feed.updates_per_epoch
        self.steps = recipe.steps or max(1, round(recipe.epochs * per_epoch))
        self.machine = choose(recipe, self.steps, place.local)
        self.progress = Progress()
        torch.manual_seed(recipe.seed)
        self.model = Transformer(model_config(recipe, len(tokenizer))).to(self.machine.device)
        self.objective = self._spread(Objective(self.model, recipe))
        self.optimizers = Optimizers(self.model, recipe, self.steps)
        self.average = Average(self.model, recipe)
        self.scaler = (
            torch.amp.GradScaler(self.machine.device.type) if self.machine.scaled else None
        )
        torch.manual_seed(recipe.seed + 7919 * (place.rank + 1))  # each has its own dropout
        self.stopped_by: int | None = None

    def _spread(self, objective: Objective) -> Any:
        """Compiled, and shared with the other processes."""
        if self.machine.compiled:
            for block in self.model.blocks:  # their hooks, which gather shards, stay outside
                block.forward = torch.compile(block.forward, dynamic=True)
        if self.place.world == 1:
            return objective
        if not self.recipe.sharded:
            return distributed.copied(objective)
        device, dtype = self.machine.device, self.machine.dtype
        return distributed.sharded(objective, self.model.blocks, self.place, device, dtype)

    def describe(self) -> list[str]:
        """What is trained on what, before it begins."""
        count = sum(p.numel() for p in self.model.parameters())
        feed, rows = self.feed, len(self.feed.rows)
        return [
            *self.corpus.report.lines(),
            *feed.report.lines(),
            f"corpus: {rows:,} pairs, {feed.tokens_per_epoch:,} tokens; validation "
            f"{len(self.corpus.validation):,} pairs",
            f"model: {count:,} parameters, {len(self.tokenizer):,} of vocabulary",
            f"batches: {self.recipe.batch_tokens:,} tokens, {100 * feed.padding:.1f}% padding; "
            f"{self.steps:,} updates, {feed.updates_per_epoch:,} an epoch",
            *(f"machine: {reason}" for reason in (*self.machine.reasons, *self._together())),
        ]

    def _together(self) -> list[str]:
        if self.place.world == 1:
            return []
        held = "a part of the model" if self.recipe.sharded else "a copy of the model"
        return [f"each of {self.place.world} processes holds {held}"]

    # --- The loop ---------------------------------------------------------------------------

    def train(self) -> bool:
        """Until the end, or until stopped; whether the end was reached."""
        start, before = time.perf_counter(), self.progress.seconds
        progress = self.progress
        updates = self.feed.updates(progress.epoch, progress.skip)
        while progress.step < self.steps and not self._stale():
            progress.epoch, progress.skip, batches = next(updates)
            facts = self._update(batches)
            progress.seconds = before + time.perf_counter() - start
            self._tell(facts)
            last = progress.step == self.steps
            if last or progress.step % self.recipe.validate_every == 0:
                self._validate()
                progress.seconds = before + time.perf_counter() - start
            stopping = self._stopping()
            if last or stopping or progress.step % self.recipe.checkpoint_every == 0:
                self._save()
            if stopping and not last:
                return False
        return True

    def _update(self, batches: Sequence[Batch]) -> dict[str, Any]:
        predicted = sum(batch.predicted for batch in batches)
        lost = 0.0
        for batch in batches:
            share = batch.share(self.place.rank, self.place.world).to(self.machine.device)
            lost += self._backward(share, predicted)
        norm = self._clip()
        changed = isfinite(norm) or self.scaler is None  # a number too large for float16 is skipped
        learning_rate = self.optimizers.step(self.progress.step, self.scaler, changed)
        if self.scaler is not None:
            self.scaler.update()
        self.average.after_update()
        self.progress.step += 1
        self.progress.tokens += sum(batch.real for batch in batches)
        lost = distributed.total(lost, self.place, self.machine.device) / predicted
        facts = {"loss": lost, "rate": learning_rate}
        if self.scaler is not None and not changed:
            return {**facts, "skipped": True, "scale": self.scaler.get_scale()}
        self._check(lost, norm)
        return {**facts, "norm": norm}

    def _check(self, lost: float, norm: float) -> None:
        if not (isfinite(lost) and isfinite(norm)):
            raise JobError(
                f"train: after update {self.progress.step:,} the loss is {lost} and the gradient's "
                f"norm {norm}, so that nothing can be learned any more; lower `learning_rate` or "
                "`matrix_rate`, or let them rise for longer (`warmup`)"
            )

    def _backward(self, share: Batch, predicted: int) -> float:
        if not len(share.tokens):
            share, weight = self._placeholder(), 0.0
        else:
            weight = self.place.world / predicted  # the processes' gradients are averaged
        with self.machine.autocast():
            lost = self.objective(share, self._prefixed())
        scaled = lost * weight if self.scaler is None else self.scaler.scale(lost * weight)
        scaled.backward()
        return float(lost.detach()) * (weight > 0)

    def _placeholder(self) -> Batch:
        """A row for a process that a small batch leaves without one: all must take part."""
        return self.feed.rows.batch([0]).to(self.machine.device)

    def _prefixed(self) -> bool:
        """Whether the source sees itself whole; by chance where both masks are trained."""
        mask = self.recipe.source_mask
        if mask == "mixed":
            # Odd and even updates, so that all processes agree.
            return self.progress.step % 2 == 0
        return mask == "prefix"

    def _clip(self) -> float:
        if self.scaler is not None:
            self.optimizers.unscale(self.scaler)
        most = self.recipe.clip or float("inf")
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), most)
        return float(distributed.whole(norm))

    def _tell(self, facts: dict[str, Any]) -> None:
        facts = {"step": self.progress.step, **facts, "tokens": self.progress.tokens,
                 "seconds": round(self.progress.seconds, 3)}  # fmt: skip
        if self.place.first:
            self.run.log(**facts)
            self.told("update", {**facts, "steps": self.steps, "last": self.progress.last})

    # --- Validation -------------------------------------------------------------------------

    def _validate(self) -> None:
        """Translate the validation set with the averaged weights; keep the best."""
        self.average.before_validation()
        progress = self.progress
        if not self.corpus.validation:  # then the last is the best
            with self._averaged() as model:
                if self.place.first:
                    self._export(model)
            return
        scores = None
        with self._averaged() as model:
            if self.place.first:
                scores = self._scores(model)
                if scores.bleu > progress.best:
                    self._export(model)
        bleu = distributed.total(scores.bleu if scores else 0.0, self.place, self.machine.device)
        better = bleu > progress.best
        progress.stale = 0 if better else progress.stale + 1
        if better:
            progress.best, progress.best_step = bleu, progress.step
        progress.last = f"BLEU {bleu:.1f}"
        if scores:
            facts = {"step": progress.step, "bleu": round(scores.bleu, 3),
                     "chrf": round(scores.chrf, 3), "signature": scores.signatures[0],
                     "best": better, "seconds": round(progress.seconds, 3)}  # fmt: skip
            self.run.log(**facts)
            self.told("validation", facts)

    def tested(self) -> Scores | None:
        """How the best checkpoint translates the test set."""
        if not self.corpus.test or not (self.run.folder / BEST).is_dir():
            return None
        best = load(self.run.folder / BEST).to(self.machine.device)
        pairs = self.corpus.test[: self.recipe.test_pairs]
        scores = validate(best, self.tokenizer, pairs, self.machine.dtype)
        self.run.log(
            step=self.progress.step, finished=True, test_bleu=scores.bleu, test_chrf=scores.chrf,
            signatures=scores.signatures,
        )  # fmt: skip
        return scores

    def _scores(self, model: Transformer) -> Scores:
        pairs = self.corpus.validation[: self.recipe.validate_pairs]
        return validate(model, self.tokenizer, pairs, self.machine.dtype)

    @contextmanager
    def _averaged(self) -> Iterator[Transformer]:
        """The model with the averaged weights: for a while in place of its own, unless sharded."""
        if self.recipe.sharded:
            yield self._gathered()
            return
        if not self.average.kept:
            yield self.model
            return
        parameters = dict(self.model.named_parameters())
        own = {name: p.detach().clone() for name, p in parameters.items()}
        _put(parameters, self.average.weights())
        try:
            yield self.model
        finally:
            _put(parameters, own)

    def _gathered(self) -> Transformer:
        """In the first process a second model, of whole tensors; all must take part."""
        weights = distributed.gathered(self.average.weights(), self.place)
        model: Transformer = self.model
        if self.place.first:
            model = Transformer.holding(model.config, weights).to(self.machine.device)
        return model

    def _export(self, model: Transformer) -> None:
        files = {
            "tokenizer.json": self.tokenizer.written(),
            RECIPE: self.recipe.written(),
        }
        save(self.run.folder / BEST, model, files=files)

    def _stale(self) -> bool:
        return bool(self.recipe.patience) and self.progress.stale >= self.recipe.patience

    # --- States -----------------------------------------------------------------------------

    def _save(self) -> None:
        parts = {
            "model": self.model.state_dict(), "optimizer": self.optimizers.state(),
            "average": self.average.state(), "random": _random_state(),
        }  # fmt: skip
        held = {f"{part}.{name}": t for part, held in parts.items() for name, t in held.items()}
        tensors = distributed.gathered(held, self.place)
        if not self.place.first:
            return
        if self.scaler is not None:
            tensors |= {
                f"scaler.{k}": torch.tensor(v, dtype=torch.float64)
                for k, v in self.scaler.state_dict().items()
            }
        self.run.save_state(tensors, self.progress, self.recipe.keep)

    def restore(self) -> None:
        """Go on from the newest state that is whole."""
        found = self.run.last_state()
        if found is None:
            if self.place.first:
                self.run.rewind_log(0)
            return
        tensors, self.progress, troubles = found
        for trouble in troubles:
            self.told("note", {"text": trouble})
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = tensor
        held = self.model.state_dict()
        self.model.load_state_dict(
            {name: distributed.placed(t, held[name]) for name, t in parts["model"].items()}
        )
        self.optimizers.restore(parts["optimizer"])
        self.average.restore(parts.get("average", {}))
        if self.scaler is not None and "scaler" in parts:
            state = {k: float(v) for k, v in parts["scaler"].items()}
            self.scaler.load_state_dict({**state, "_growth_tracker": int(state["_growth_tracker"])})
        if self.place.first:
            _set_random_state(parts["random"])
            self.run.rewind_log(self.progress.step)
        else:
            torch.manual_seed(self.recipe.seed + 7919 * self.place.rank + self.progress.step)

    # --- Stopping ---------------------------------------------------------------------------

    def stop(self, number: int, frame: object = None) -> None:
        """What a signal calls: stop after this update, with a state; the second time at once."""
        if self.stopped_by is not None:
            raise KeyboardInterrupt
        self.stopped_by = number

    def _stopping(self) -> bool:
        asked = distributed.total(
            float(self.stopped_by is not None), self.place, self.machine.device
        )
        return asked > 0


def _put(parameters: dict[str, Tensor], weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def _random_state() -> dict[str, Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state: dict[str, Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def model_config(recipe: Recipe, vocabulary: int) -> Config:
    from regard.translation.tokenizer import BEGIN, END, PAD, SEPARATOR

    tokens = {"pad": PAD, "begin": BEGIN, "separator": SEPARATOR, "end": END}
    return Config.shaped(
        recipe.shape, vocabulary=vocabulary, **recipe.model_words(), **tokens,
        longest=max(2 * recipe.longest, 512),
    )  # fmt: skip


def train(recipe: Recipe, folder: str | Path, told: Told, resume: bool = False) -> Result:
    """Train what the recipe says into the folder, or go on with what is there."""
    run = Run(folder)
    model_config(recipe, recipe.vocabulary)  # refuses sizes that fit no model, before all else
    place = distributed.join()
    distributed.check(place, recipe.sharded)
    with closing(run), distributed.together(place, folder):
        corpus = read_corpus(recipe)
        if not resume and place.first:
            texts = (text for pair in corpus.train for text in pair)
            run.begin(recipe, Tokenizer.trained(texts, recipe.vocabulary))
        distributed.wait(place)
        trainer = Trainer(run, recipe, corpus, run.tokenizer(), place, told)
        if resume:
            trainer.restore()
        if place.first:
            told("begin", {"lines": trainer.describe(), "step": trainer.progress.step})
        with _signals(trainer.stop):
            finished = trainer.train()
        test = trainer.tested() if finished and place.first else None
    progress, number = trainer.progress, trainer.stopped_by or 0
    return Result(
        run.folder, progress.step, progress.best, finished, progress.seconds, number, test
    )


@contextmanager
def _signals(stop: Callable[..., None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run after the update that is under way."""
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
