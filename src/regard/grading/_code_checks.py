"""Checks as Python that stands on its own: for notebooks that are graded where regard is not."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from regard.exercises import Exercise
from regard.exercises._compute import trace_of
from regard.exercises._exercise import (
    AskedProgram,
    AskedSteps,
    CodeRules,
    CodeRun,
    LinearDraw,
)
from regard.grading._trials import Caller, Trial
from regard.grading._wrong import wrong_values
from regard.graph.operation import Array
from regard.show.trace import Trace

BY_HAND = 0.01  # how near numbers must come that a person gives with two decimals
COMPUTED = {"numpy": 1e-6, "torch": 1e-4}
COMPARE = '''
def compare(name, value, right, wrong, within):
    """Raise an AssertionError that says what is wrong with a value."""
    value = value.detach() if hasattr(value, "detach") else value
    value, right = np.asarray(value, dtype=float), np.asarray(right)
    assert value.shape == right.shape, f"{name} has the shape {value.shape}, not {right.shape}"
    if np.allclose(value, right, rtol=within, atol=within):
        return
    for values, words in wrong:
        assert not np.allclose(value, values, rtol=within, atol=within), f"{name}: {words}"
    away = np.abs(value - right)
    raise AssertionError(f"{name} is wrong: {(away > within).sum()} of {away.size} entries differ")
'''.strip()


@dataclass(frozen=True)
class CodeCheck:
    """One thing to check: `names` are what it takes from the student's program.

    `body` are the statements of the check, `stub` is what the student completes, and `solution`
    what completes it; "" where no short program does.
    """

    name: str
    title: str
    points: float
    names: tuple[str, ...]
    body: str
    stub: str
    solution: str


def code_checks(exercise: Exercise) -> list[CodeCheck]:
    """For each function that programs are to define, else for each question about steps."""
    if exercise.code and exercise.code.run:
        rules = exercise.code
        return [
            _of_run(exercise, rules, run) if run.function else _of_module(exercise, rules, run)
            for run in rules.run
            if run.function or exercise.variants[run.variant].draws
        ]
    return list(_of_steps(exercise))


def _of_run(exercise: Exercise, rules: CodeRules, run: CodeRun) -> CodeCheck:
    trials = [
        t for t in Caller(exercise, rules, run, 0).trials() if t.kind in ("exercise", "fresh")
    ]
    within = COMPUTED[rules.library]
    body = "\n".join(line for trial in trials[:2] for line in _calling(rules, run, trial, within))
    names = ", ".join(run.arguments)
    stub = f"def {run.name}({names}):\n    raise NotImplementedError()"
    trace = trials[0].trace
    lines = _program(trace)
    returned = ", ".join(trace.names.get(n, n) for n in (trace[r].name for r in run.results))
    code = "\n".join(
        [f"def {run.name}({names}):", *(f"    {x}" for x in lines), f"    return {returned}"]
    )
    solution = code if rules.library == "numpy" else ""
    return CodeCheck(run.name, run.name, run.points, (run.name,), body, stub, solution)


def _of_module(exercise: Exercise, rules: CodeRules, run: CodeRun) -> CodeCheck:
    """A module made after the seed, with biases or without: each draws numbers of its own."""
    within = COMPUTED[rules.library]
    by_biases: dict[bool, list[str]] = {}
    for name, variant in exercise.variants.items():
        if variant.draws is None or variant.kind != exercise.variants[run.variant].kind:
            continue
        has_biases = any(isinstance(d, LinearDraw) and d.bias for d in variant.draws.tensors)
        trial = next(Caller(exercise, rules, replace(run, variant=name), 0).trials())
        by_biases[has_biases] = [
            _comparing(trial.trace, trial.trace[result].name, f"results[{place}]", result, within)
            for place, result in enumerate(run.results)
        ]
    trial = next(Caller(exercise, rules, run, 0).trials())
    made = ", ".join(repr(value) for value in trial.call["makes"])
    drawn = ", ".join(
        f"torch.randn({', '.join(map(str, a['normal']))})" for a in trial.call["arguments"]
    )
    body = [
        f"torch.manual_seed({rules.seed})",
        f"module = {run.name}({made})",
        f"results = module({drawn})",
        "has_biases = any(parameter.ndim == 1 for parameter in module.parameters())",
    ]
    for has_biases, lines in by_biases.items():
        body += [f"if has_biases == {has_biases}:", *(indented(line) for line in lines)]
    programs = [a.question.program for a in exercise.asked if isinstance(a.question, AskedProgram)]
    solution = exercise.files[programs[0]] if programs else ""
    stub = exercise.files.get(rules.skeleton, "")
    return CodeCheck(
        run.name, run.name, run.points, (run.name,), "\n".join(body), stub, _without_main(solution)
    )


def _without_main(program: str) -> str:
    return program.partition("\nif __name__ ==")[0].rstrip()


def _calling(rules: CodeRules, run: CodeRun, trial: Trial, within: float) -> Iterator[str]:
    """Statements that call the function once and compare its results."""
    givens = trial.trace.run.givens
    arguments = ", ".join(
        _passed(rules, givens[name]) if name in givens else repr(call)
        for name, call in zip(run.arguments, trial.call["arguments"], strict=True)
    )
    yield f"results = {run.name}({arguments})"
    if len(run.results) == 1:
        yield "results = results if isinstance(results, tuple) else (results,)"
    wanted = f"{len(run.results)} results are wanted: {', '.join(run.results)}"
    yield f"assert len(results) == {len(run.results)}, {wanted!r}"
    for place, name in enumerate(run.results):
        step = trial.trace[name].name
        yield _comparing(trial.trace, step, f"results[{place}]", name, within)


def _passed(rules: CodeRules, array: Array) -> str:
    text = _array(array)
    return f"torch.tensor({text}, dtype=torch.float32)" if rules.library == "torch" else text


def _comparing(trace: Trace, step: str, value: str, name: str, within: float) -> str:
    wrong = [
        f"    ({_array(each.value)}, {_told(each.titles, each.feedback)!r}),"
        for each in wrong_values(trace.run, step, within)
    ]
    known = "\n".join(["[", *wrong, "]"]) if wrong else "[]"
    return f"compare({name!r}, {value}, {_array(trace.run.values[step])}, {known}, {within!r})"


def _told(titles: tuple[str, ...], hint: str) -> str:
    return f"{' or '.join(titles)}? {hint}"


def _array(array: Array) -> str:
    return f"np.array({np.round(np.asarray(array, dtype=float), 8).tolist()!r})".replace(
        "inf", "np.inf"
    )


def _of_steps(exercise: Exercise) -> Iterator[CodeCheck]:
    """Variables named as the steps are."""
    label = ""
    for place, asked in enumerate(exercise.asked, 1):
        label = " ".join(filter(None, (asked.label, asked.title))) or label
        if not isinstance(asked.question, AskedSteps) or not asked.points or asked.question.numbers:
            continue
        trace = trace_of(exercise.variants[asked.variant], exercise.names)
        steps = [trace[name].name for name in asked.question.step]
        called = [identifier(trace.names.get(step, step)) for step in steps]
        body = "\n".join(
            _comparing(trace, step, name, name, BY_HAND)
            for step, name in zip(steps, called, strict=True)
        )
        stub = "\n".join(f"{name} = ..." for name in called)
        whole = trace.to_code("numpy").partition("\nprint(")[0].strip()
        yield CodeCheck(
            f"q{place}",
            label or f"Question {place}",
            asked.points,
            tuple(called),
            body,
            stub,
            whole,
        )


def identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _program(trace: Trace) -> list[str]:
    """The lines that compute the steps, without the givens and the printing."""
    blocks = trace.to_code("numpy").strip().split("\n\n")
    sizes = [block for block in blocks[1:-2] if "np.array" not in block]
    return "\n".join([*sizes, blocks[-2]]).splitlines()


def indented(text: str, by: int = 4) -> str:
    return textwrap.indent(text, " " * by)
