"""What an exercise asks, step by step, and what people call it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from regard._options import one_of
from regard.checking._text import WORDS
from regard.exercises import Solution
from regard.exercises._exercise import Asked, AskedMask, AskedSteps, Exercise
from regard.show.trace import Trace


@dataclass(frozen=True)
class Question:
    """Something asked, with the label of its group."""

    asked: Asked
    label: str


@dataclass(frozen=True, eq=False)
class Asking:
    """The questions of an exercise, the steps that they ask for, and the names of these."""

    solution: Solution

    @property
    def exercise(self) -> Exercise:
        return self.solution.exercise

    def trace(self, variant: str) -> Trace:
        return self.solution._answering.trace(variant)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        found = []
        label = ""
        for asked in self.exercise.asked:
            label = asked.label if asked.label or asked.title else label
            found.append(Question(asked, label))
        return tuple(found)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(q.label for q in self.questions if q.label))

    def steps(self, variant: str) -> tuple[str, ...]:
        return tuple(self.trace(variant).run.graph.step_names)

    def real(self, step: str) -> str:
        """A step's own name for its alias; an error when no variant has it."""
        real = {alias: name for name, alias in self.exercise.names.items()}.get(step, step)
        steps = {name for variant in self.exercise.variants for name in self.steps(variant)}
        return one_of("step", real, sorted(steps)) if step else ""

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
            steps = self.steps(variant)
            masks = [name for name in steps if name.startswith("mask_")]
            for name, words in (*WORDS.items(), *((mask, ("M", "mask")) for mask in masks[-1:])):
                for word in words if name in steps else ():
                    found.setdefault(word, {})[name] = None
        return {word: tuple(steps) for word, steps in found.items()}

    def called(self, name: str) -> str:
        return self.exercise.names.get(name, name)

    def calls(self, name: str) -> tuple[str, ...]:
        """A step's own name and the one that the exercise gives it."""
        return tuple(dict.fromkeys((name, self.called(name))))

    def asked_steps(self, asked: Asked) -> tuple[str, ...]:
        trace = self.trace(asked.variant)
        question = asked.question
        steps = question.step if isinstance(question, AskedSteps) else ()
        return tuple(trace[name].name for name in steps)

    def asked_mask(self, asked: Asked) -> str:
        question = asked.question
        if not isinstance(question, AskedMask):
            return ""
        name: str = self.trace(asked.variant)[question.mask].name
        return name

    def asked_in(self, variant: str) -> tuple[str, ...]:
        """The steps of a variant that questions ask for."""
        steps = (
            name
            for question in self.questions
            if question.asked.variant == variant
            for name in self.asked_steps(question.asked)
        )
        return tuple(dict.fromkeys(steps))
