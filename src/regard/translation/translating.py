"""Text to text: a model with its tokenizer, over lines that may be empty or far too long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from regard._errors import CheckpointError, MissingExtraError
from regard._options import look_up

try:
    import torch

    from regard.model import Transformer, best_of, load
    from regard.translation.decoding import Hypothesis, Search, most_source_tokens, search
except ModuleNotFoundError as missing:
    raise MissingExtraError("translating", "translate", str(missing.name)) from missing

from regard.kernel import report
from regard.translation.tokenizer import Tokenizer

TRAINED_HERE = Path("runs/pocket/best")
PRECISIONS = {"auto": None, "float32": torch.float32, "bfloat16": torch.bfloat16}
SENTENCE_ENDS = re.compile(r"(?<=[.!?…;])\s+")


class Said(NamedTuple):
    """One translation: its text, its score (log p for each token, penalised), its tokens.

    `complete` is False where the model did not come to an end.
    """

    text: str
    score: float
    complete: bool
    tokens: list[int]


@dataclass(frozen=True)
class Translation:
    """A line and its translations, best first; `notes` say what was done to it."""

    source: str
    best: tuple[Said, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.best[0].text


class Translator:
    """A model with its tokenizer; `reason` says which numbers it computes with, and why."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, reason: str = "") -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.reason = reason

    @classmethod
    def load(cls, path: str | Path | None = None, precision: str = "auto") -> Translator:
        """From a checkpoint or a run's folder; without one, from the pocket run in this folder."""
        dtype, reason = _chosen(precision)
        folder = find_checkpoint(path)
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise CheckpointError(
                f"translate: {str(folder)!r} has no tokenizer.json, as one that translates has: "
                "pass a run of `regard train`, or the folder of one of its checkpoints"
            )
        model, tokenizer = load(folder, dtype), Tokenizer.read(file)
        if model.config.separator == model.config.end:
            raise CheckpointError(
                f"translate: {str(folder)!r} was not trained to translate: its config.json names "
                "no token that stands between a source and its translation"
            )
        if len(tokenizer) > model.config.vocabulary:
            raise CheckpointError(
                f"translate: {str(folder)!r} has a tokenizer of {len(tokenizer):,} tokens, but its "
                f"model knows {model.config.vocabulary:,}"
            )
        return cls(model, tokenizer, reason)

    def translate(
        self, lines: Sequence[str], how: Search | None = None, first: int = 1
    ) -> list[Translation]:
        """Translate lines, in their order; `first` is the number of the first in its file."""
        how = how or Search()
        cut = [self._pieces(line) for line in lines]
        sources = self.tokenizer.encode([piece for pieces in cut for piece in pieces])
        found = iter(search(self.model, sources, how))
        return [
            self._joined(line, pieces, list(islice(found, len(pieces))), number)
            for number, (line, pieces) in enumerate(zip(lines, cut, strict=True), first)
        ]

    def _joined(
        self, line: str, pieces: list[str], found: list[list[Hypothesis]], number: int
    ) -> Translation:
        if not pieces:
            return Translation(line, (Said("", 0.0, True, []),))
        many = min(map(len, found))
        texts = self.tokenizer.decode(each.tokens for best in found for each in best[:many])
        ranked = []
        for rank in range(many):
            parts = [best[rank] for best in found]
            score = sum(part.score for part in parts) / len(parts)
            tokens = [token for part in parts for token in part.tokens]
            complete = all(part.complete for part in parts)
            text = " ".join(texts[rank::many]).strip()
            # A line must stay one, whatever the model says.
            ranked.append(Said(" ".join(text.splitlines()), score, complete, tokens))
        notes = []
        if len(pieces) > 1:
            most = most_source_tokens(self.model.config)
            notes.append(
                f"line {number}: longer than the {most} tokens that the model reads at a time; "
                f"translated in {len(pieces)} pieces"
            )
        if not ranked[0].complete:
            notes.append(f"line {number}: the translation came to no end and was cut")
        return Translation(line, tuple(ranked), tuple(notes))

    # ---- lines that are too long

    def _pieces(self, line: str) -> list[str]:
        """The line, or parts of it that the model has room for; none of a line without words."""
        line = line.strip()
        if not line:
            return []
        if self._fits(line):
            return [line]
        sentences = (part for part in SENTENCE_ENDS.split(line) if part)
        return list(self._packed([each for part in sentences for each in self._broken(part)]))

    def _fits(self, text: str) -> bool:
        return len(self.tokenizer.encode([text])[0]) <= most_source_tokens(self.model.config)

    def _broken(self, sentence: str) -> Iterator[str]:
        """A sentence, or halves of it at a blank, or in a word if there is none."""
        if self._fits(sentence):
            yield sentence
            return
        middle = len(sentence) // 2
        blank = max(sentence.rfind(" ", 1, middle), 0) or sentence.find(" ", middle)
        at = blank if 0 < blank < len(sentence) - 1 else middle
        for half in (sentence[:at].strip(), sentence[at:].strip()):
            if half:
                yield from self._broken(half)

    def _packed(self, parts: Sequence[str]) -> Iterator[str]:
        """Neighbours together while there is room."""
        held = ""
        for part in parts:
            longer = f"{held} {part}".strip()
            if held and not self._fits(longer):
                yield held
                longer = part
            held = longer
        if held:
            yield held


def find_checkpoint(path: str | Path | None) -> Path:
    """The checkpoint that a path means: its own folder, or a run whose best one it holds."""
    if path is None:
        if not TRAINED_HERE.is_dir():
            raise CheckpointError(
                f"translate: no model was named, and there is none in {str(TRAINED_HERE)!r}: "
                "`regard train` makes one there in under two minutes; --model takes any other"
            )
        return TRAINED_HERE
    folder = Path(path)
    if folder.is_file():
        raise CheckpointError(f"translate: {str(path)!r} is a file: pass the folder that it is in")
    if not folder.is_dir():
        raise CheckpointError(f"translate: there is no folder {str(path)!r}")
    return best_of(folder)


def _chosen(precision: str) -> tuple[torch.dtype, str]:
    """The numbers to compute with. In half precision the CPU must be made for it to be quicker."""
    dtype = look_up("precision", precision, PRECISIONS)
    if dtype is not None:
        return dtype, f"{precision}: as asked"
    if {"avx512_bf16", "amx_bf16"} & set(report().instruction_sets):
        return torch.bfloat16, "bfloat16: this CPU computes with it"
    return torch.float32, "float32: this CPU would only emulate bfloat16"
