"""A solution: an exercise's questions with their answers, in every format a trace has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from regard._errors import ExerciseError, MissingExtraError, OptionError, RegardError, did_you_mean
from regard._options import one_of
from regard.exercises._answers import Answer, Answering, answer, given_blocks
from regard.exercises._compute import graph_of
from regard.exercises._exercise import (
    MAIN,
    Asked,
    AskedMask,
    AskedPermute,
    AskedShape,
    AskedSteps,
    CodeRules,
    Exercise,
)
from regard.show.document import Block, Document, Heading, Note, Paragraph
from regard.show.layout import LEVELS
from regard.show.shown import Shown
from regard.show.trace import Trace

if TYPE_CHECKING:
    from regard.graph.graph import Graph
    from regard.show.costs import Costs

SCHEMA = "regard-solution"
VERSION = 1


class Group(NamedTuple):
    """What is asked under one heading."""

    label: str
    heading: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True, eq=False)
class Solution(Shown):
    """An exercise solved: it shows itself as a Trace does, and gives its traces by variant."""

    name: str
    exercise: Exercise
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        """The exercise's own computation."""
        return self._answering.trace(MAIN)

    @property
    def traces(self) -> dict[str, Trace]:
        return {name: self._answering.trace(name) for name in self.exercise.variants}

    @property
    def graph(self) -> Graph:
        """The graph of the exercise's own computation; only shapes are needed for it."""
        return graph_of(self.exercise.variants[MAIN])

    def cost(self, convention: str = "schoolbook", itemsize: int = 8) -> Costs:
        """What every step takes; nothing is computed or drawn for it."""
        from regard.graph.cost import count
        from regard.show.costs import Costs

        table = count(self.graph, convention, itemsize)
        return Costs(table.graph, table.convention, table.rows)

    @property
    def skeleton(self) -> str:
        """The program with gaps that is to be completed."""
        code = self.exercise.code
        if code is None or not code.skeleton:
            raise OptionError(f"{self.name}: this exercise has no skeleton of a program")
        return self.exercise.files[code.skeleton]

    @cached_property
    def _answering(self) -> Answering:
        return Answering(self.exercise, self.how)

    def document(self, *, level: str = "steps", only: tuple[str, ...] | str = ()) -> Document:
        one_of("level", level, LEVELS)
        words = (only,) if isinstance(only, str) else tuple(only)
        at = self._answering.at_level(level)
        blocks = self._opening(at, short=at.is_short or bool(words))
        if not words and not at.is_short:
            blocks += given_blocks(MAIN, at)
        for group, alone in self._chosen(words):
            body = self._solved(group, replace(at, alone=alone))
            blocks += [Heading(group.heading, 1)] if group.heading and body else []
            blocks += body
        return Document(self.exercise.title, tuple(blocks))

    def _opening(self, at: Answering, short: bool) -> list[Block]:
        """How an assignment was read; the situation, and what its source gets wrong."""
        blocks: list[Block] = []
        if self.exercise.understood:
            blocks.append(Heading("Understood as", 2))
            for title, notes in self.exercise.understood:
                blocks += [Heading(title, 3)] if title else []
                blocks += [Paragraph((note,)) for note in notes]
        if not short:
            blocks += at.paragraphs(self.exercise.text)
            blocks += [Note(at.prose(remark)) for remark in self.exercise.remarks]
            if self.exercise.code:
                blocks.append(Paragraph((_rules(self.exercise.code),)))
        return blocks

    def _solved(self, group: Group, at: Answering) -> list[Block]:
        blocks: list[Block] = []
        for asked in group.asked:
            if not (at.is_short or at.alone):
                blocks += self._question(asked, at)
            blocks += self._answer(asked, at).blocks
        return blocks

    def _question(self, asked: Asked, at: Answering) -> list[Block]:
        """The question, and the numbers that a worked answer starts from."""
        works = isinstance(asked.question, AskedSteps | AskedPermute)
        givens = given_blocks(asked.variant, at) if works else []
        return [*at.paragraphs(asked.text, asked.variant), *givens]

    def _answer(self, asked: Asked, at: Answering) -> Answer:
        try:
            return answer(asked, at)
        except MissingExtraError:
            raise
        except RegardError as error:
            kind = ExerciseError if isinstance(error, ExerciseError) else type(error)
            raise kind(f"{self.name}: {error}") from error

    # ---- some of what is asked

    def _groups(self) -> Iterator[Group]:
        group = Group("", "", ())
        for asked in self.exercise.asked:
            if asked.label or asked.title:
                if group.asked:
                    yield group
                group = Group(asked.label, f"{asked.label} {asked.title}".strip(), ())
            group = group._replace(asked=(*group.asked, asked))
        yield group

    def _chosen(self, words: tuple[str, ...]) -> list[tuple[Group, frozenset[str]]]:
        """The groups with these labels, whole, and of the others the steps of these names alone."""
        groups = list(self._groups())
        homes = {word: self._homes(word, groups) for word in words}
        chosen: list[tuple[Group, frozenset[str]]] = []
        for place, group in enumerate(groups):
            alone = frozenset(word for word, places in homes.items() if place in places)
            if not words or alone & _labels(group):
                chosen.append((group, frozenset()))
            elif alone:
                kept = (asked for asked in group.asked if alone & self._shown_by(asked))
                chosen.append((group._replace(asked=tuple(kept)), alone))
        return chosen

    def _homes(self, word: str, groups: list[Group]) -> set[int]:
        """The groups with this label, or that ask for this step, or whose work comes upon it."""
        readings: tuple[Callable[[Group], set[str]], ...] = (
            _labels,
            lambda group: set().union(*(self._asked_by(asked) for asked in group.asked)),
            lambda group: set().union(*(self._shown_by(asked) for asked in group.asked)),
        )
        known: dict[str, None] = {}
        for reading in readings:
            words = [reading(group) for group in groups]
            if places := {place for place, found in enumerate(words) if word in found}:
                return places
            known |= dict.fromkeys(sorted(set().union(*words)))
        raise OptionError(f"{self.name}: nothing asked is {word!r}: {did_you_mean(word, known)}")

    def _asked_by(self, asked: Asked) -> set[str]:
        """The steps that this asks for, by their names and their aliases."""
        match asked.question:
            case AskedSteps(steps) | AskedShape(steps):
                return self._named(steps)
            case AskedMask(mask):
                return self._named((mask,))
        return set()

    def _shown_by(self, asked: Asked) -> set[str]:
        """What it asks for and, when it is worked out, the steps that lead there."""
        found = self._asked_by(asked)
        if isinstance(asked.question, AskedSteps) and not asked.question.numbers:
            graph = self._answering.trace(asked.variant).run.graph
            needed = graph.upstream(*(name for name in found if name in graph))
            found |= self._named(name for name in needed if not graph.is_given(name))
        return found

    def _named(self, steps: Iterable[str]) -> set[str]:
        names = self.exercise.names
        real = {alias: name for name, alias in names.items()}
        found = {real.get(name, name) for name in steps}
        return found | {names[name] for name in found if name in names}

    # ---- for other programs

    def to_json(self) -> str:
        """The answers as data, and the traces they were read off."""
        import json

        from regard.show.data import to_data

        at = self._answering.at_level("result")
        answers = [
            {
                "label": group.label, "title": asked.title, "text": asked.text,
                "asks": asked.question.word, "points": asked.points,
                "answer": self._answer(asked, at).value,
            }
            for group in self._groups()
            for asked in group.asked
        ]  # fmt: skip
        data = {
            "schema": SCHEMA,
            "version": VERSION,
            "name": self.name,
            "title": self.exercise.title,
            "answers": answers,
            "traces": {name: to_data(trace) for name, trace in self.traces.items()},
        }
        return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)

    def to_code(self, language: str = "numpy") -> str:
        """A program for the exercise's own computation."""
        return self.trace.to_code(language)


def _rules(code: CodeRules) -> str:
    """What a submitted program must keep to, in a sentence."""
    rules: tuple[Any, ...] = (
        code.imports and f"it imports nothing but {', '.join(code.imports)}",
        code.calls and f"it calls {', '.join(code.calls)}",
        code.seed is not None and f"its random numbers start from the seed {code.seed}",
        code.skeleton and f"it fills the gaps of {code.skeleton}",
    )
    return f"Rules for the program: {'; '.join(rule for rule in rules if rule)}."


def _labels(group: Group) -> set[str]:
    """A label as it is, and without its brackets."""
    return {group.label, group.label.strip("()")} - {""}
