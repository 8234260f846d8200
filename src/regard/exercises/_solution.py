"""A solution: an exercise's questions with their answers, in every format a trace has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from regard._errors import ExerciseError, OptionError, RegardError
from regard._options import one_of
from regard.exercises._answers import Answer, Answering, answer
from regard.exercises._exercise import Asked, Exercise
from regard.show.document import Block, Document, Heading, Note, Paragraph
from regard.show.layout import LEVELS
from regard.show.trace import Shown, Trace

SCHEMA = "regard-solution"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Solution(Shown):
    """An exercise solved: it shows itself as a Trace does, and gives its traces by variant."""

    name: str
    exercise: Exercise
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        """The exercise's own computation."""
        return self.traces["main"]

    @property
    def traces(self) -> dict[str, Trace]:
        at = Answering(self.exercise, self.how)
        return {name: at.trace(name) for name in self.exercise.variants}

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        one_of("level", level, LEVELS)
        blocks: list[Block] = []
        if self.exercise.understood:
            blocks.append(Heading("Understood as", 2))
            blocks += [Paragraph((note,)) for note in self.exercise.understood]
        if level != "result":
            blocks += [Paragraph((text,)) for text in self.exercise.text.split("\n\n") if text]
            blocks += [Note((remark,)) for remark in self.exercise.remarks]
        for asked, solved in self._answers(level, only):
            if asked.label or asked.text:
                heading = " ".join(filter(None, (asked.label, asked.text)))
                blocks.append(Heading(heading, 1))
            blocks += solved.blocks
        return Document(self.exercise.title, tuple(blocks))

    def _answers(self, level: str, only: tuple[str, ...]) -> list[tuple[Asked, Answer]]:
        at = Answering(self.exercise, self.how, level)
        chosen = [asked for asked in self.exercise.asked if not only or self._is_wanted(asked, only)]
        if not chosen:
            raise OptionError(
                f"{self.name}: nothing asked is called {', '.join(only)}; "
                f"it asks for {', '.join(self._called())}"
            )
        try:
            return [(asked, answer(asked, at)) for asked in chosen]
        except RegardError as error:
            if isinstance(error, ExerciseError | ImportError):
                raise
            raise type(error)(f"{self.name}: {error}") from error

    def _is_wanted(self, asked: Asked, only: tuple[str, ...]) -> bool:
        return bool(set(only) & self._words(asked))

    def _words(self, asked: Asked) -> set[str]:
        steps = {*asked.step, asked.shape, asked.mask}
        aliases = {self.exercise.names[name] for name in steps if name in self.exercise.names}
        return {word for word in (*steps, *aliases, asked.label) if word}

    def _called(self) -> list[str]:
        return sorted({word for asked in self.exercise.asked for word in self._words(asked)})

    def to_json(self) -> str:
        """The answers as data, and the traces they were read off."""
        from regard.show.data import to_data

        answers = [
            {"label": asked.label, "text": asked.text, "points": asked.points, "answer": solved.value}
            for asked, solved in self._answers("result", ())
        ]
        data = {
            "schema": SCHEMA,
            "version": VERSION,
            "name": self.name,
            "title": self.exercise.title,
            "answers": answers,
            "traces": {name: to_data(trace) for name, trace in self.traces.items()},
        }
        return json.dumps(data, ensure_ascii=False, indent=1)

    def to_code(self, language: str = "numpy") -> str:
        """A program for the exercise's own computation."""
        return self.trace.to_code(language)
