"""What is asked, as questions with one right number each: for Moodle and for QTI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from regard.exercises import Exercise
from regard.exercises._compute import trace_of
from regard.exercises._exercise import AskedSteps
from regard.grading._wrong import WrongValue, telling_entry, wrong_values
from regard.graph.operation import Array
from regard.show.trace import Trace

WITHIN = 0.01  # how near a number given with two decimals must come
DECIMALS = 4  # with which right and wrong numbers are written into a question


@dataclass(frozen=True)
class StepQuestion:
    """The values of one step: what a reader needs, the right numbers and the known wrong ones.

    `telling` is the entry that tells the most mistakes apart.
    """

    name: str
    title: str
    symbol: str
    given: str
    points: float
    right: Array
    wrong: tuple[WrongValue, ...]
    telling: tuple[int, ...]

    def feedback(self, entry: tuple[int, ...]) -> Iterator[tuple[float, str]]:
        """The wrong numbers that known mistakes put in this entry, and what to tell."""
        seen = [float(self.right[entry])]
        for wrong in self.wrong:
            number = float(wrong.value[entry])
            if all(abs(number - other) > 2 * WITHIN for other in seen):
                seen.append(number)
                yield number, f"{' or '.join(wrong.titles)}? {wrong.feedback}"

    def called(self, entry: tuple[int, ...]) -> str:
        """The entry in words: row 1, column 2."""
        words = {1: ("entry",), 2: ("row", "column"), 3: ("head", "row", "column")}
        names = words.get(len(entry), tuple("index" for _ in entry))
        return ", ".join(f"{w} {i + 1}" for w, i in zip(names, entry, strict=True))


def step_questions(exercise: Exercise) -> Iterator[StepQuestion]:
    """Every step whose values are asked for."""
    for place, asked in enumerate(exercise.asked, 1):
        question = asked.question
        if not isinstance(question, AskedSteps) or not asked.points or question.numbers:
            continue
        trace = trace_of(exercise.variants[asked.variant], exercise.names)
        for name in question.step:
            step = trace[name].name
            called = trace.names.get(step, step)
            yield StepQuestion(
                name=f"q{place}-{step}".replace("_", "-"),
                title=f"{exercise.title}: {called} {asked.label}".strip(),
                symbol=called,
                given=_given(exercise, trace, asked.text),
                points=asked.points / len(question.step),
                right=trace.run.values[step],
                wrong=tuple(wrong_values(trace.run, step, WITHIN)),
                telling=telling_entry(trace.run, step, WITHIN),
            )


def written(number: float) -> str:
    """Without an exponent, which some platforms do not read."""
    text = f"{number:.{DECIMALS}f}"
    return text.rstrip("0").rstrip(".") if float(text) else "0"


def _given(exercise: Exercise, trace: Trace, text: str) -> str:
    """The situation and the given matrices, as plain HTML that every platform shows."""
    paragraphs = [part for prose in (exercise.text, text) for part in prose.split("\n\n") if part]
    parts = [f"<p>{_prose(part)}</p>" for part in paragraphs]
    for given in trace.run.graph.givens:
        called = trace.names.get(given.name, given.name)
        parts.append(f"<p>{escape(called)} =</p>{table(trace.run.givens[given.name])}")
    scale = trace.run.graph.step_names
    parts.append(
        "<p>The scores are divided by the square root of d_k.</p>" if "scaled" in scale
        else "<p>The scores are not divided by anything.</p>"
    )  # fmt: skip
    return "".join(parts)


def _prose(text: str) -> str:
    parts = text.split("$")
    return "".join(f"<i>{escape(p)}</i>" if i % 2 else escape(p) for i, p in enumerate(parts))


def table(array: Array, cells: dict[tuple[int, ...], str] | None = None) -> str:
    """A matrix as an HTML table; a vector is one row, heads and batches stand one below another."""
    array = np.asarray(array, dtype=float)
    if array.ndim > 2:
        parts = []
        for place, part in enumerate(array):
            own = {k[1:]: v for k, v in cells.items() if k[0] == place} if cells else None
            parts.append(table(part, own))
        return "".join(parts)
    rows = np.atleast_2d(array)
    lines = []
    for i, row in enumerate(rows):
        places = [(j,) if array.ndim == 1 else (i, j) for j in range(len(row))]
        inside = [cells[p] if cells else written(v) for p, v in zip(places, row, strict=True)]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in inside) + "</tr>")
    return f'<table border="1"><tbody>{"".join(lines)}</tbody></table>'
