"""Running programs: shut in, on numbers chosen here, and what comes back taken for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np

from regard._errors import MissingExtraError, OptionError, RegardError
from regard.exercises._compute import trace_of
from regard.exercises._exercise import CodeRules, CodeRun, Exercise
from regard.grading._grade import Finding
from regard.grading._sandbox import Isolation, Limits, Outcome, printable, received, run
from regard.grading._trials import Trial, variants_drawn
from regard.graph.operation import Array
from regard.show.trace import Trace, work

# How near numbers of a kind must come, relative to the largest entry of the step.
NEAR = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4}
NEAR_FLOAT64 = 1e-8
CLOSE_TO_SEED = 1e-6


def rules_of(exercise: Exercise) -> CodeRules:
    """The exercise's rules for programs, which must say what to run."""
    if exercise.code is None or not exercise.code.run:
        raise OptionError(
            f"grade: the exercise {exercise.title!r} does not say what to call in a program; add "
            "[[code.run]] with `function`, `arguments` and `results` to it, or pass answer files"
        )
    return exercise.code


@dataclass(frozen=True)
class Answered:
    """What a program gave in one trial: values by step, or what went wrong instead."""

    trial: Trial
    values: Mapping[str, Array]
    wrong: str = ""
    kinds: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def gap(self, step: str) -> float:
        """How far a step is off, in units of how near it must come; 1 is as far as it may be."""
        if step not in self.values:
            return np.inf
        value, wanted = self.values[step], self.trial.trace[step].value
        if value.shape != wanted.shape:
            return np.inf
        with np.errstate(all="ignore"):
            away = np.where(value == wanted, 0.0, np.abs(value - wanted))
        worst = float(away.max(initial=0.0))
        return worst / self.nearness(wanted) if np.isfinite(worst) else np.inf

    def nearness(self, wanted: Array) -> float:
        """How near numbers of the kind that it gave must come to these."""
        near = max((NEAR.get(kind, NEAR_FLOAT64) for kind in self.kinds), default=NEAR_FLOAT64)
        return near * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))

    def is_right(self, step: str) -> bool:
        return not self.wrong and self.gap(step) <= 1


@dataclass(frozen=True)
class Tried:
    """All trials of one run."""

    run: CodeRun
    steps: tuple[str, ...]
    answered: tuple[Answered, ...]
    notes: tuple[Finding, ...] = ()

    def of_kind(self, *kinds: str) -> list[Answered]:
        return [each for each in self.answered if each.trial.kind in kinds]


def tried(
    exercise: Exercise,
    trials: Sequence[Sequence[Trial]],
    program: str,
    shut_in: Isolation,
    limits: Limits,
) -> tuple[Outcome, list[Tried]]:
    """Everything that a program is tried on, in one process."""
    rules = rules_of(exercise)
    imports = ["numpy", *(["torch"] if rules.library == "torch" else [])]
    if "matplotlib" in program and find_spec("matplotlib"):
        imports.append("matplotlib.pyplot")  # which takes seconds that are not the program's
    calls = [trial.call for those in trials for trial in those]
    outcome = run(program, calls, shut_in, limits, imports)
    if not outcome.first("ready") and "No module named 'torch'" in outcome.printed:
        raise MissingExtraError("running this exercise's programs", "torch", "torch")
    calls_told = [event for event in outcome.events if type(event.get("call")) is int]
    told = {event["call"]: event for event in reversed(calls_told)}
    places = count()
    found = []
    for one, those in zip(rules.run, trials, strict=True):
        events = [(trial, told.get(next(places))) for trial in those]
        found.append(_tried(exercise, one, events, outcome))
    return outcome, found


def _tried(
    exercise: Exercise,
    one: CodeRun,
    events: Sequence[tuple[Trial, Mapping[str, Any] | None]],
    outcome: Outcome,
) -> Tried:
    steps = tuple(events[0][0].trace[name].name for name in one.results)
    notes: list[Finding] = []
    answered = []
    for trial, event in events:
        if event and trial.call["weights"] and not trial.call["weights"]["values"]:
            trial, note = _as_the_module_drew(exercise, one, trial, event)
            notes += note
        answered.append(_answered(one, steps, trial, event, outcome))
    return Tried(one, steps, tuple(answered), tuple(notes))


def _answered(
    one: CodeRun,
    steps: Sequence[str],
    trial: Trial,
    event: Mapping[str, Any] | None,
    outcome: Outcome,
) -> Answered:
    if event is None:
        return Answered(trial, {}, outcome.stopped or why_failed(outcome))
    if event.get("event") != "called":
        return Answered(trial, {}, exception_words(event))
    returned, data = event.get("returned"), event.get("results")
    if returned != len(steps) or not isinstance(data, list) or len(data) != len(steps):
        wanted = f"{len(steps)} ({', '.join(one.results)})"
        wrong = f"{one.name} gives {printable(returned, 20)} results; {wanted} are wanted"
        return Answered(trial, {}, wrong)
    try:
        arrays = [received(each) for each in data]
    except ValueError as error:
        return Answered(trial, {}, f"{one.name}: {printable(error, 200)}")
    values = dict(zip(steps, (array.value for array in arrays), strict=True))
    return Answered(
        trial, values, "", tuple(a.kind for a in arrays), _changed(one, event.get("changed"))
    )


def _changed(one: CodeRun, places: Any) -> tuple[str, ...]:
    known = range(len(one.arguments))
    places = places if isinstance(places, list) else []
    found = {place for place in places if type(place) is int and place in known}
    return tuple(one.arguments[place] for place in sorted(found))


def exception_words(event: Mapping[str, Any]) -> str:
    line = event.get("line")
    where = f" (line {line})" if type(line) is int else ""
    error, message = printable(event.get("error"), 60), printable(event.get("message"), 300)
    return f"{error}{': ' if message else ''}{message}{where}"


def why_failed(outcome: Outcome) -> str:
    """Why a program gave no results at all."""
    failed = outcome.first("failed")
    return outcome.stopped or (exception_words(failed) if failed else "it gave no results")


def _as_the_module_drew(
    exercise: Exercise, one: CodeRun, trial: Trial, event: Mapping[str, Any]
) -> tuple[Trial, list[Finding]]:
    """The exercise's computation on the parameters that the module says it has.

    Nothing is won by lying about them: on fresh numbers they are put in from here.
    """
    try:
        parameters = {str(k): received(v).value for k, v in dict(event["parameters"]).items()}
        passed = [received(value).value for value in event["arguments"]]
        variant = variants_drawn(exercise, one, list(parameters))
        base = trace_of(variant, exercise.names)
        givens: dict[str, Any] = {**parameters, **dict(zip(one.arguments, passed, strict=True))}
        if {k: v.shape for k, v in givens.items()} != {
            k: v.shape for k, v in base.run.givens.items()
        }:
            return trial, []  # other sizes would make regard compute whatever it is told to
        trace = work(variant.kind, **givens, **variant.options)
    except (KeyError, TypeError, ValueError, RegardError):
        return trial, []
    own = Trial(trial.kind, Trace(trace.run, base.names), trial.call, trial.about)
    unlike = [
        name for name, value in givens.items()
        if np.abs(value - base.run.givens[name]).max() > CLOSE_TO_SEED
    ]  # fmt: skip
    if not unlike:
        return own, []
    seed = variant.draws.seed if variant.draws else ""
    words = (
        f"its {', '.join(unlike)} after the seed {seed} are not those of the exercise: layers made "
        "in another order, or with other shapes, draw other numbers; it was judged by its own"
    )
    return own, [Finding("parameters", words)]
