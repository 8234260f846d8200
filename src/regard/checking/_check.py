"""Checking: answers against an exercise or a trace, everything that is asked in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike, fspath
from typing import Any

import numpy as np

from regard._errors import NumberError, OptionError, RegardError
from regard._options import one_of
from regard.checking._answer import Answer, read_answer
from regard.checking._designs import judge_design
from regard.checking._key import Key
from regard.checking._questions import judge_choice, judge_formula, judge_mask, judge_shape
from regard.checking._sheet import Sheet, plain, read_sheet, sheet_from
from regard.checking._text import WORDS, Item, Wanted
from regard.checking._verdict import Finding, Judgement, Verdict
from regard.checking.report import HINTS, Report
from regard.exercises import Solution, solve
from regard.exercises._evidence import FACTS
from regard.exercises._exercise import (
    MAIN,
    Asked,
    AskedChoice,
    AskedDesign,
    AskedFormula,
    AskedMask,
    AskedShape,
    AskedSteps,
    Exercise,
    Variant,
)
from regard.graph.cost import count
from regard.graph.graph import Graph
from regard.graph.operation import Cost
from regard.graph.polynomial import Polynomial
from regard.show._values import plain_values
from regard.show.trace import Trace

MOST_NUMBERS = 100_000  # in one answer
JUDGED = (AskedSteps, AskedShape, AskedChoice, AskedFormula, AskedMask, AskedDesign)


def check(
    work: Trace | Solution | str | PathLike[str],
    answers: Mapping[str, Any] | str | PathLike[str],
    *,
    hint: str = "why",
    step: str = "",
) -> Report:
    """Judge answers to an exercise or to a trace: what is right, and what went wrong where.

    `work` is a trace, a solution, or what `regard.solve` takes; `answers` are values by step, or
    a file of them; with `step` only that one is judged. `hint` is how much the report gives away:
    "where", "why" or "full".

    >>> import regard
    >>> work = regard.work("attention", Q=[[1, 2], [3, 1]], K=[[2, 1], [1, 1]], V=[[1, 2], [0, 1]])
    >>> report = check(work, {"weights": [[0.73, 0.27], [0.95, 0.05]]})
    >>> report.findings[0].mistakes
    (('no-scale',),)
    """
    checker = checker_for(work)
    sheet = (
        sheet_from(answers)
        if isinstance(answers, Mapping)
        else read_sheet(answers, checker.wanted, checker.real(step))
    )
    return checker.check(sheet, hint, checker.real(step))


def checker_for(work: Trace | Solution | str | PathLike[str]) -> Checker:
    """What judges answers to this work; it serves any number of them."""
    if isinstance(work, Trace):
        return Checker(_solution_of(work), any_step=True)
    return Checker(work if isinstance(work, Solution) else solve(fspath(work)))


def _solution_of(trace: Trace) -> Solution:
    """A trace as an exercise that asks for whatever is answered."""
    title = f"{trace.run.graph.kind}, step by step".capitalize()
    exercise = Exercise(title, {MAIN: Variant(trace.run.graph.kind, {})}, (), names=trace.names)
    solution = Solution("trace", exercise)
    solution._answering.traces[MAIN] = trace
    return solution


@dataclass(frozen=True)
class _Question:
    """Something asked, with the label of its group and its place."""

    asked: Asked
    label: str
    place: int


@dataclass(frozen=True)
class _Part:
    """One thing to judge: how it is called, where its answer may stand, what judges it."""

    called: str
    paths: tuple[tuple[str, ...], ...]
    judge: Callable[[Item], Judgement]
    wanted: str


@dataclass(eq=False)
class Checker:
    """An exercise with its keys: one for each variant, made when it is first needed.

    `any_step` lets answers to steps count that nothing asks for.
    """

    solution: Solution
    any_step: bool = False
    keys: dict[str, Key] = field(default_factory=dict)

    @property
    def exercise(self) -> Exercise:
        return self.solution.exercise

    def trace(self, variant: str) -> Trace:
        return self.solution._answering.trace(variant)

    def key(self, variant: str) -> Key:
        if variant not in self.keys:
            self.keys[variant] = Key(self.trace(variant).run)
        return self.keys[variant]

    @cached_property
    def questions(self) -> tuple[_Question, ...]:
        found = []
        label = ""
        for place, asked in enumerate(self.exercise.asked):
            label = asked.label if asked.label or asked.title else label
            found.append(_Question(asked, label, place))
        return tuple(found)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(q.label for q in self.questions if q.label))

    def real(self, step: str) -> str:
        """A step's own name for its alias; an error when no variant has it."""
        real = {alias: name for name, alias in self.exercise.names.items()}.get(step, step)
        steps = {name for variant in self.exercise.variants for name in self._steps(variant)}
        return one_of("step", real, sorted(steps)) if step else ""

    def _steps(self, variant: str) -> tuple[str, ...]:
        return tuple(self.trace(variant).run.graph.step_names)

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What steps are called in running text: names, aliases, symbols, and other words."""
        found: dict[str, dict[str, None]] = {}
        for variant in self.exercise.variants:
            graph = self.trace(variant).run.graph
            for name in graph.step_names:
                symbol = graph.symbol(name)
                spelled = " ".join(filter(None, (symbol.base, symbol.sub)))
                for word in (name, self.called(name), spelled):
                    found.setdefault(word.replace("_", " "), {})[name] = None
        for variant in self.exercise.variants:
            steps = self._steps(variant)
            masks = [name for name in steps if name.startswith("mask_")]
            for name, words in (*WORDS.items(), *((mask, ("M", "mask")) for mask in masks[-1:])):
                for word in words if name in steps else ():
                    found.setdefault(word, {})[name] = None
        return {word: tuple(steps) for word, steps in found.items()}

    @cached_property
    def wanted(self) -> Wanted:
        """What to look for in a text."""
        announced: dict[str, tuple[str, ...]] = {}
        for question in self.questions:
            for part in self._parts(question.asked):
                for path in part.paths:
                    for words in (" ".join(path), " of ".join(path), " ".join(path[::-1])):
                        announced.setdefault(words.replace("_", " ").lower(), path)
            if isinstance(question.asked.question, AskedDesign):
                for name in question.asked.question.design:
                    for each in self._calls(name):
                        announced.setdefault(each.replace("_", " ").lower(), (each,))
        choices = tuple(
            q.label for q in self.questions if isinstance(q.asked.question, AskedChoice)
        )
        asked: dict[str, list[str]] = {}
        for q in self.questions:
            asked.setdefault(q.label, []).extend(self._asked_steps(q.asked))
        return Wanted(self.names, announced, self.labels, choices, asked)

    # ---- judging

    def check(self, sheet: Sheet, hint: str = "why", step: str = "") -> Report:
        """The report on a sheet of answers, or on the answer to one step alone."""
        one_of("hint", hint, HINTS)
        taken: set[int] = set()
        judged = self._all_steps(sheet, taken)
        findings: list[Finding] = []
        for question in self.questions:
            findings += self._findings(question, sheet, judged, taken)
        findings += self._extra(judged)
        if step:
            findings = [finding for finding in findings if finding.step == step]
        if self.any_step and not findings:
            known = ", ".join(self._steps(MAIN))
            raise OptionError(f"check: none of the answers is for a step; the steps are {known}")
        unread = [item for place, item in enumerate(sheet.items) if place not in taken]
        notes = tuple(
            f"{item.where or item.path[-1]}: nothing asks for this; it was not judged."
            for item in unread
        )
        return Report(
            self.exercise.title, self.solution.name, tuple(findings), hint, sheet.name, notes,
            {variant: self.trace(variant) for variant in self.exercise.variants},
        )  # fmt: skip

    def _all_steps(
        self, sheet: Sheet, taken: set[int]
    ) -> dict[tuple[str, str], tuple[Judgement, str]]:
        """By variant and step: the judgement of each answered step, and what was read."""
        judged: dict[tuple[str, str], tuple[Judgement, str]] = {}
        for variant in self.exercise.variants:
            answers: dict[str, Answer] = {}
            for name in self._steps(variant):
                items = self._items_for(sheet, variant, name)
                if items is None:
                    continue
                taken.update(items)
                chosen = [sheet.items[place] for place in items]
                answer, problem = self._answer(name, chosen)
                where = chosen[0].where
                if answer is None:
                    judged[variant, name] = Judgement(Verdict.UNGRADABLE, problem), where
                else:
                    answers[name] = answer
                    judged[variant, name] = Judgement(Verdict.WRONG), where
            if answers:
                for name, judgement in self.key(variant).judge(answers).items():
                    judged[variant, name] = judgement, judged[variant, name][1]
        return judged

    @staticmethod
    def _answer(name: str, items: list[Item]) -> tuple[Answer | None, str]:
        if problem := next((item.problem for item in items if item.problem), ""):
            return None, problem
        values: Any = items[0].value
        if items[0].head is not None:
            ordered = sorted(items, key=lambda item: item.head or 0)
            values = [item.value for item in ordered] if len(ordered) > 1 else ordered[0].value
        if _count(values) > MOST_NUMBERS:
            return None, f"More than {MOST_NUMBERS:,} numbers were read."
        try:
            return read_answer(name, values, items[0].where), ""
        except NumberError as error:
            return None, f"{error}."
        except RegardError as error:
            return None, str(error)

    def _items_for(self, sheet: Sheet, variant: str, step: str) -> list[int] | None:
        """The places of the items that answer a step of a variant."""
        labels = {
            q.label
            for q in self.questions
            if q.asked.variant == variant and step in self._asked_steps(q.asked)
        }  # fmt: skip
        scopes = {plain(scope) for scope in (variant, *labels) if scope}
        called = {plain(step), plain(self.exercise.names.get(step, step))}
        best: tuple[int, list[int]] = (-1, [])
        for place, item in enumerate(sheet.items):
            *outer, name = (plain(word) for word in item.path)
            if name not in called or not set(outer) <= scopes:
                continue
            rank = 2 if outer or (item.near and plain(item.near) in scopes) else 1
            if item.near and plain(item.near) not in scopes and labels:
                rank = 0
            if rank < 2 and not self._unscoped_fits(item, variant, step):
                continue
            if rank > best[0]:
                best = (rank, [place])
            elif rank == best[0] and item.head is not None:
                kept = [at for at in best[1] if sheet.items[at].head != item.head]
                best = (rank, [*kept, place])
            elif rank == best[0] and item.near:
                best = (rank, [place])  # what stands last in a text is the result
        return best[1] or None

    def _unscoped_fits(self, item: Item, variant: str, step: str) -> bool:
        """Whether a value without a label belongs to this variant: by its shape, else the first."""
        having = [name for name in self.exercise.variants if step in self._steps(name)]
        if len(having) == 1:
            return True
        asking = [
            q.asked.variant for q in self.questions if step in self._asked_steps(q.asked)
        ] or having  # fmt: skip
        shapes = {name: self.trace(name).run.values[step].shape for name in asking}
        try:
            shape = np.shape(item.value) if item.head is None else None
        except ValueError:
            shape = None
        fitting = [name for name, wanted in shapes.items() if wanted == shape]
        return variant == (fitting or asking)[0]

    def _asked_steps(self, asked: Asked) -> tuple[str, ...]:
        trace = self.trace(asked.variant)
        question = asked.question
        steps = question.step if isinstance(question, AskedSteps) else ()
        return tuple(trace[name].name for name in steps)

    def _asked_mask(self, asked: Asked) -> str:
        question = asked.question
        if not isinstance(question, AskedMask):
            return ""
        name: str = self.trace(asked.variant)[question.mask].name
        return name

    # ---- one question

    def _findings(
        self,
        question: _Question,
        sheet: Sheet,
        judged: Mapping[tuple[str, str], tuple[Judgement, str]],
        taken: set[int],
    ) -> Iterator[Finding]:
        asked = question.asked
        kind = asked.question
        common = {"label": question.label, "variant": asked.variant}
        if not isinstance(kind, JUDGED):
            if asked.points:
                words = Judgement(Verdict.BY_HAND)
                yield Finding(asked.title or kind.word, words, points=asked.points, **common)
            return
        if isinstance(kind, AskedSteps):
            if kind.numbers:
                return
            steps = self._asked_steps(asked)
            for name in steps:
                found = judged.get((asked.variant, name))
                judgement, read = found or (_missing(), "")
                yield Finding(
                    self.called(name), judgement, name, points=asked.points / len(steps),
                    read=read, **common,
                )  # fmt: skip
            return
        if isinstance(kind, AskedDesign):
            yield self._design(question, kind, sheet, taken)
            return
        parts = list(self._parts(asked))
        for part in parts:
            place = self._find(sheet, question, part.paths, alone=len(parts) == 1)
            judgement, read = _missing(), ""
            if place is not None:
                taken.add(place)
                judgement, read = part.judge(sheet.items[place]), sheet.items[place].where
            yield Finding(
                part.called, judgement, points=asked.points / len(parts), read=read,
                wanted=part.wanted, **common,
            )  # fmt: skip

    def _parts(self, asked: Asked) -> Iterator[_Part]:
        """What a question beyond the values of steps is made of."""
        trace = self.trace(asked.variant)
        graph = trace.run.graph
        match asked.question:
            case AskedShape(steps):
                for name in (trace[step].name for step in steps):
                    yield _Part(
                        f"shape of {self.called(name)}",
                        tuple(("shape", each) for each in self._calls(name)),
                        partial(_judge_shape, graph, name),
                        " × ".join(str(axis.size) for axis in graph.axes[name]),
                    )
            case AskedChoice(choices, fact):
                yield _Part(
                    "choice",
                    (("choice",), ("answer",)),
                    lambda item: judge_choice(item.value, choices, fact, trace),
                    FACTS[fact].decide(trace)[0],
                )
            case AskedFormula():
                yield from self._formulas(asked, asked.question)
            case AskedMask(mask):
                name = trace[mask].name
                yield _Part(
                    self.called(name),
                    tuple((each,) for each in (*self._calls(name), "mask")),
                    lambda item: judge_mask(item.value, trace.run.values[name], item.where),
                    f"{plain_values(trace.run.values[name])}".replace("'", ""),
                )

    def _design(
        self, question: _Question, kind: AskedDesign, sheet: Sheet, taken: set[int]
    ) -> Finding:
        places = {
            name: self._find(
                sheet,
                question,
                tuple((each,) for each in self._calls(name)),
                alone=len(kind.design) == 1,
            )
            for name in kind.design
        }
        asked = question.asked
        lacking = [self.called(name) for name, place in places.items() if place is None]
        found = [place for place in places.values() if place is not None]
        taken.update(found)
        if lacking:
            judgement = Judgement(Verdict.UNGRADABLE, f"No {' and '.join(lacking)} was found.")
        else:
            given = {name: sheet.items[place or 0].value for name, place in places.items()}
            judgement = judge_design(self.exercise, asked.variant, kind, given)
        called = ", ".join(self.called(name) for name in kind.design)
        read = sheet.items[found[0]].where if found else ""
        chosen = self.exercise.variants[asked.variant]
        formulas = {**chosen.constants, **chosen.givens}
        own = ", ".join(f"{self.called(name)} = {formulas[name]}" for name in kind.design)
        return Finding(
            called, judgement, "", question.label, asked.variant, asked.points, read, own
        )

    def _formulas(self, asked: Asked, kind: AskedFormula) -> Iterator[_Part]:
        """The counts of all groups together."""
        trace = self.trace(asked.variant)
        table = count(trace.run.graph, kind.convention)
        steps = [trace[step].name for group in kind.formula.values() for step in group]
        total = sum((table.row(step).counts for step in steps), Cost())
        for name in kind.count:
            wanted = total.items()[name]
            if wanted.terms:
                yield _Part(
                    name, ((name,),), partial(_judge_formula, wanted, trace.run.graph),
                    str(wanted),
                )  # fmt: skip

    def _calls(self, name: str) -> tuple[str, ...]:
        """A step's own name and the one that the exercise gives it."""
        return tuple(dict.fromkeys((name, self.called(name))))

    def asked_in(self, variant: str) -> tuple[str, ...]:
        """The steps of a variant that questions ask for."""
        steps = (
            name
            for question in self.questions
            if question.asked.variant == variant
            for name in self._asked_steps(question.asked)
        )
        return tuple(dict.fromkeys(steps))

    def called(self, name: str) -> str:
        return self.exercise.names.get(name, name)

    @staticmethod
    def _find(
        sheet: Sheet, question: _Question, paths: tuple[tuple[str, ...], ...], alone: bool
    ) -> int | None:
        """The item that stands under these words, within the question's label or on its own.

        When nothing else belongs to the question, the label `alone` is enough.
        """
        scopes = {plain(question.label), plain(question.asked.variant)}
        wanted = [tuple(plain(word) for word in each) for each in paths]
        found = None
        for place, item in enumerate(sheet.items):
            path = tuple(plain(word) for word in item.path)
            while len(path) > 1 and path[0] in scopes:
                path = path[1:]
            is_label = alone and bool(question.label) and path == (plain(question.label),)
            if (path in wanted or is_label) and (found is None or len(path) < len(item.path)):
                found = place
        return found

    def _extra(self, judged: Mapping[tuple[str, str], tuple[Judgement, str]]) -> Iterator[Finding]:
        """Steps that were answered although nothing asks for them."""
        asked = {
            (q.asked.variant, name)
            for q in self.questions
            for name in (*self._asked_steps(q.asked), self._asked_mask(q.asked))
        }
        for (variant, name), (judgement, read) in judged.items():
            if (variant, name) not in asked:
                points = 1.0 if self.any_step else 0.0
                yield Finding(
                    self.called(name), judgement, name, variant=variant, points=points, read=read
                )


def _count(values: Any) -> int:
    """How many numbers there are; nothing is converted to tell."""
    if isinstance(values, (list, tuple)):
        return sum(map(_count, values))
    return int(np.prod(values.shape)) if hasattr(values, "shape") else 1


def _judge_shape(graph: Graph, name: str, item: Item) -> Judgement:
    return judge_shape(item.value, graph.axes[name], graph.sizes)


def _judge_formula(wanted: Polynomial, graph: Graph, item: Item) -> Judgement:
    return judge_formula(item.value, wanted, graph.sizes)


def _missing() -> Judgement:
    return Judgement(Verdict.UNGRADABLE, "No answer to this was found.", is_missing=True)
