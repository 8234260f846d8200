"""Checking: answers against an exercise or a trace, everything that is asked in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from typing import Any

from regard._errors import OptionError
from regard._options import one_of
from regard.checking._answer import Answer
from regard.checking._asking import Asking, Question
from regard.checking._designs import judge_design
from regard.checking._key import Key
from regard.checking._matching import answer_of, find_item, items_for, what_to_find
from regard.checking._parts import parts_of
from regard.checking._sheet import Sheet, read_sheet, sheet_from
from regard.checking._text import Wanted
from regard.checking._verdict import Finding, Judgement, Verdict
from regard.checking.report import HINTS, Report
from regard.exercises import Solution, solve
from regard.exercises._exercise import (
    MAIN,
    AskedChoice,
    AskedDesign,
    AskedFormula,
    AskedMask,
    AskedShape,
    AskedSteps,
    Exercise,
    Variant,
)
from regard.show.trace import Trace

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
        else read_sheet(answers, checker.wanted, checker.asking.real(step))
    )
    return checker.check(sheet, hint, checker.asking.real(step))


def checker_for(work: Trace | Solution | str | PathLike[str]) -> Checker:
    """What judges answers to this work; it serves any number of them."""
    if isinstance(work, Trace):
        return Checker(Asking(_solution_of(work)), any_step=True)
    return Checker(Asking(work if isinstance(work, Solution) else solve(fspath(work))))


def _solution_of(trace: Trace) -> Solution:
    """A trace as an exercise that asks for whatever is answered."""
    title = f"{trace.run.graph.kind}, step by step".capitalize()
    exercise = Exercise(title, {MAIN: Variant(trace.run.graph.kind, {})}, (), names=trace.names)
    solution = Solution("trace", exercise)
    solution._answering.traces[MAIN] = trace
    return solution


@dataclass(eq=False)
class Checker:
    """An exercise with its keys: one for each variant, made when it is first needed.

    `any_step` lets answers to steps count that nothing asks for.
    """

    asking: Asking
    any_step: bool = False
    keys: dict[str, Key] = field(default_factory=dict)

    def key(self, variant: str) -> Key:
        if variant not in self.keys:
            self.keys[variant] = Key(self.asking.trace(variant).run)
        return self.keys[variant]

    @cached_property
    def wanted(self) -> Wanted:
        """What to look for in a text."""
        return what_to_find(self.asking)

    def check(self, sheet: Sheet, hint: str = "why", step: str = "") -> Report:
        """The report on a sheet of answers, or on the answer to one step alone."""
        one_of("hint", hint, HINTS)
        taken: set[int] = set()
        judged = self._all_steps(sheet, taken)
        findings: list[Finding] = []
        for question in self.asking.questions:
            findings += self._findings(question, sheet, judged, taken)
        findings += self._extra(judged)
        if step:
            findings = [finding for finding in findings if finding.step == step]
        if self.any_step and not findings:
            known = ", ".join(self.asking.steps(MAIN))
            raise OptionError(f"check: none of the answers is for a step; the steps are {known}")
        unread = [item for place, item in enumerate(sheet.items) if place not in taken]
        notes = tuple(
            f"{item.where or item.path[-1]}: nothing asks for this; it was not judged."
            for item in unread
        )
        exercise = self.asking.exercise
        traces = {variant: self.asking.trace(variant) for variant in exercise.variants}
        name = self.asking.solution.name
        return Report(exercise.title, name, tuple(findings), hint, sheet.name, notes, traces)

    def _all_steps(
        self, sheet: Sheet, taken: set[int]
    ) -> dict[tuple[str, str], tuple[Judgement, str]]:
        """By variant and step: the judgement of each answered step, and what was read."""
        judged: dict[tuple[str, str], tuple[Judgement, str]] = {}
        for variant in self.asking.exercise.variants:
            answers: dict[str, Answer] = {}
            for name in self.asking.steps(variant):
                items = items_for(self.asking, sheet, variant, name)
                if items is None:
                    continue
                taken.update(items)
                chosen = [sheet.items[place] for place in items]
                answer, problem = answer_of(name, chosen)
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

    def _findings(
        self,
        question: Question,
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
            steps = self.asking.asked_steps(asked)
            for name in steps:
                found = judged.get((asked.variant, name))
                judgement, read = found or (_missing(), "")
                yield Finding(
                    self.asking.called(name), judgement, name, points=asked.points / len(steps),
                    read=read, **common,
                )  # fmt: skip
            return
        if isinstance(kind, AskedDesign):
            yield self._design(question, kind, sheet, taken)
            return
        parts = list(parts_of(self.asking, asked))
        for part in parts:
            place = find_item(sheet, question, part.paths, alone=len(parts) == 1)
            judgement, read = _missing(), ""
            if place is not None:
                taken.add(place)
                judgement, read = part.judge(sheet.items[place]), sheet.items[place].where
            yield Finding(
                part.called, judgement, points=asked.points / len(parts), read=read,
                wanted=part.wanted, **common,
            )  # fmt: skip

    def _design(
        self, question: Question, kind: AskedDesign, sheet: Sheet, taken: set[int]
    ) -> Finding:
        places = {
            name: find_item(
                sheet,
                question,
                tuple((each,) for each in self.asking.calls(name)),
                alone=len(kind.design) == 1,
            )
            for name in kind.design
        }
        asked = question.asked
        lacking = [self.asking.called(name) for name, place in places.items() if place is None]
        found = [place for place in places.values() if place is not None]
        taken.update(found)
        if lacking:
            judgement = Judgement(Verdict.UNGRADABLE, f"No {' and '.join(lacking)} was found.")
        else:
            given = {name: sheet.items[place or 0].value for name, place in places.items()}
            judgement = judge_design(self.asking.exercise, asked.variant, kind, given)
        called = ", ".join(self.asking.called(name) for name in kind.design)
        read = sheet.items[found[0]].where if found else ""
        chosen = self.asking.exercise.variants[asked.variant]
        formulas = {**chosen.constants, **chosen.givens}
        own = ", ".join(f"{self.asking.called(name)} = {formulas[name]}" for name in kind.design)
        return Finding(
            called, judgement, "", question.label, asked.variant, asked.points, read, own
        )

    def _extra(self, judged: Mapping[tuple[str, str], tuple[Judgement, str]]) -> Iterator[Finding]:
        """Steps that were answered although nothing asks for them."""
        asked = {
            (q.asked.variant, name)
            for q in self.asking.questions
            for name in (*self.asking.asked_steps(q.asked), self.asking.asked_mask(q.asked))
        }
        for (variant, name), (judgement, read) in judged.items():
            if (variant, name) not in asked:
                points = 1.0 if self.any_step else 0.0
                called = self.asking.called(name)
                yield Finding(called, judgement, name, variant=variant, points=points, read=read)


def _missing() -> Judgement:
    return Judgement(Verdict.UNGRADABLE, "No answer to this was found.", is_missing=True)
