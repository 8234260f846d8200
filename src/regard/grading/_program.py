"""Grading programs: run shut in, on numbers chosen here, and compared here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import MissingExtraError, OptionError, RegardError
from regard.exercises._compute import trace_of
from regard.exercises._exercise import CodeRules, CodeRun, Exercise
from regard.grading._grade import FAILED, GRADED, NOT_GRADABLE, Finding, Grade, Item
from regard.grading._rules import broken_rules
from regard.grading._sandbox import Isolation, Limits, Outcome, printable, received, run
from regard.grading._trials import WORDS, Caller, Trial, variants_drawn
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


def grade_program(
    exercise: Exercise,
    name: str,
    program: str,
    shut_in: Isolation,
    limits: Limits,
    seed: int = 0,
) -> Grade:
    """Run a program on the exercise's numbers, on fresh ones and on probes."""
    rules = rules_of(exercise)
    outcome, results = try_program(exercise, rules, program, shut_in, limits, seed)
    items: list[Item] = []
    findings: list[Finding] = []
    for tried in results:
        own_items, own_findings = _judged(tried, rules.probe_cost)
        items += own_items
        findings += own_findings
    status, reason = _status(outcome, results)
    broken = tuple(broken_rules(program, rules))
    return Grade(name, status, tuple(items), reason, tuple(findings), broken, outcome.printed)


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
        near = max((NEAR.get(kind, NEAR_FLOAT64) for kind in self.kinds), default=NEAR_FLOAT64)
        with np.errstate(all="ignore"):
            away = np.where(value == wanted, 0.0, np.abs(value - wanted))
        size = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
        worst = float(away.max(initial=0.0))
        return worst / (near * size) if np.isfinite(worst) else np.inf

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


def try_program(
    exercise: Exercise,
    rules: CodeRules,
    program: str,
    shut_in: Isolation,
    limits: Limits,
    seed: int = 0,
) -> tuple[Outcome, list[Tried]]:
    """Everything that a program is tried on, in one process."""
    trials = [list(Caller(exercise, rules, one, seed).trials()) for one in rules.run]
    imports = ("numpy", "torch") if rules.library == "torch" else ("numpy",)
    calls = [trial.call for those in trials for trial in those]
    outcome = run(program, calls, shut_in, limits, imports)
    if not outcome.first("ready") and "No module named 'torch'" in outcome.printed:
        raise MissingExtraError("running this exercise's programs", "torch", "torch")
    told = {event.get("call"): event for event in reversed(outcome.events) if "call" in event}
    places = count()
    tried = []
    for one, those in zip(rules.run, trials, strict=True):
        events = [(trial, told.get(next(places))) for trial in those]
        tried.append(_tried(exercise, one, events, outcome))
    return outcome, tried


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
        return Answered(trial, {}, _exception(event))
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
    return tuple(one.arguments[place] for place in places if place in known)


def _exception(event: Mapping[str, Any]) -> str:
    line = event.get("line")
    where = f" (line {line})" if type(line) is int else ""
    error, message = printable(event.get("error"), 60), printable(event.get("message"), 300)
    return f"{error}{': ' if message else ''}{message}{where}"


def why_failed(outcome: Outcome) -> str:
    """Why a program gave no results at all."""
    failed = outcome.first("failed")
    return outcome.stopped or (_exception(failed) if failed else "it gave no results")


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


# ---- judging -------------------------------------------------------------------------------


def _status(outcome: Outcome, results: Sequence[Tried]) -> tuple[str, str]:
    """The whole program: one result anywhere is enough to be graded."""
    if any(answered.values for tried in results for answered in tried.answered):
        return GRADED, ""
    failed = outcome.first("failed")
    if failed and failed.get("error") == "ModuleNotFoundError" and "matplotlib" in str(failed):
        words = "it imports matplotlib, which is not installed here: pip install 'regard[figures]'"
        return NOT_GRADABLE, words
    if not outcome.first("ready"):
        return NOT_GRADABLE, outcome.stopped or outcome.printed
    wrong = next(each.wrong for tried in results for each in tried.answered)
    return FAILED, wrong


def _judged(tried: Tried, probe_cost: float) -> tuple[list[Item], list[Finding]]:
    """Points for what is right on all numbers of the exercise's sizes; probes may take some."""
    numbers = tried.of_kind("exercise", "fresh")
    each = tried.run.points / len(tried.steps)
    items = []
    for name, step in zip(tried.run.results, tried.steps, strict=True):
        wrong = [answered for answered in numbers if not answered.is_right(step)]
        verdict, message = ("wrong", _difference(wrong[0], step)) if wrong else ("right", "")
        if wrong and not any(a.trial.kind == "fresh" for a in wrong):
            message = f"right on other numbers, but not on the exercise's: {message}"
        elif wrong and not any(a.trial.kind == "exercise" for a in wrong):
            message = f"right on the exercise's numbers, but not on others: {message}"
        points = 0.0 if wrong else each
        items.append(Item(f"{tried.run.name}: {name}", points, each, verdict, message))
    if not any(answered.values for answered in tried.answered):
        return items, []
    cost = probe_cost * sum(item.points for item in items)
    found = [*tried.notes, *_findings(tried, cost)]
    return items, found


def _difference(answered: Answered, step: str) -> str:
    """What is wrong with one step in one trial."""
    if answered.wrong:
        return answered.wrong
    value, wanted = answered.values[step], answered.trial.trace[step].value
    if value.shape != wanted.shape:
        return f"its shape is {written(value.shape)}; it must be {written(wanted.shape)}"
    with np.errstate(all="ignore"):
        away = np.where(value == wanted, 0.0, np.abs(value - wanted))
    place = np.unravel_index(int(np.argmax(np.nan_to_num(away, nan=np.inf))), away.shape)
    entry = ", ".join(str(int(index) + 1) for index in place)
    shown = f"{value[place]:.6g} instead of {wanted[place]:.6g}"
    off = int((away > 0).sum()) if answered.gap(step) > 1 else 0
    return f"{off} of {away.size} entries differ; entry {entry} is {shown}"


def _findings(tried: Tried, cost: float) -> Iterator[Finding]:
    """What the probes say, each once; most say something only of what is otherwise right."""
    name = tried.run.name
    changed = sorted({each for answered in tried.answered for each in answered.changed})
    if changed:
        words = f"{name} changes its input {', '.join(changed)} in place"
        yield Finding("in place", words, cost)
    right = [
        step for step in tried.steps
        if all(answered.is_right(step) for answered in tried.of_kind("fresh"))
    ]  # fmt: skip
    yield from _batches(tried)
    yield from _causal(tried, cost)
    if not right:
        return
    again = tried.of_kind("again")
    if any(not answered.is_right(step) for answered in again for step in right):
        words = f"{name} called again with the same inputs gives other results"
        yield Finding("again", words, cost)
    yield from _sizes(tried, right, cost)
    yield from _overflow(tried, right)


def _batches(tried: Tried) -> Iterator[Finding]:
    """Whether only batches of one go right, or only those of the exercise's size."""
    batches = [a for a in tried.of_kind("size") if a.trial.about == "batch"]
    single = [a for a in batches if a.trial.trace.run.graph.sizes["batch"] == 1]
    if single and all(a.is_right(step) for a in single for step in tried.steps):
        several = [a for a in (*batches, *tried.of_kind("fresh")) if a not in single]
        if not any(a.is_right(step) for a in several for step in tried.steps[-1:]):
            yield Finding("batch", f"{tried.run.name} fails only when batch > 1")


def _sizes(tried: Tried, right: Sequence[str], cost: float) -> Iterator[Finding]:
    for answered in tried.of_kind("size"):
        wrong = [step for step in right if not answered.is_right(step)]
        if not wrong:
            continue
        symbol = answered.trial.about
        old = tried.of_kind("fresh")[0].trial.trace.run.graph.sizes[symbol]
        new = answered.trial.trace.run.graph.sizes[symbol]
        words = (
            f"{tried.run.name} fails when {WORDS[symbol]} is {new} instead of {old}: "
            f"{_difference(answered, wrong[0])}"
        )
        # Nobody was told of other widths; tokens and batches may be as many as one likes.
        yield Finding("size", words, 0 if symbol.startswith("d_") else cost)


def _overflow(tried: Tried, right: Sequence[str]) -> Iterator[Finding]:
    for answered in tried.of_kind("overflow"):
        wrong = [step for step in right if not answered.is_right(step)]
        values = [answered.values[step] for step in wrong if step in answered.values]
        if any(not np.isfinite(value).all() for value in values):
            words = (
                f"{tried.run.name} overflows for scores above {answered.trial.about}: subtract "
                "the largest score of each row before exp"
            )
            yield Finding("overflow", words)


def _causal(tried: Tried, cost: float) -> Iterator[Finding]:
    """Whether an earlier output changes when a later token does."""
    before = tried.of_kind("fresh")[0]
    for answered in tried.of_kind("causal"):
        token = int(answered.trial.about)
        for step in tried.steps:
            axes = before.trial.trace[step].axes
            axis = next((a for a in ("query", "token") if a in axes), None)
            if axis is None or step not in answered.values or step not in before.values:
                continue
            old, new = before.values[step], answered.values[step]
            if old.shape != new.shape:
                continue
            away = np.moveaxis(np.abs(new - old), axes.index(axis), 0)[: token - 1]
            rows = [i + 1 for i, row in enumerate(away) if row.max(initial=0.0) > 1e-6]
            if rows:
                words = (
                    f"{tried.run.name} is not causal: {step} {rows[0]} changes when "
                    f"token {token} changes"
                )
                yield Finding("causal", words, cost)
                return
