"""Local slips, found by elimination: one entry, a sign, a row; everything else is right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from regard.checking._answer import Answer
from regard.graph.operation import Array
from regard.graph.run import Run

MOST_FLIPS = 150  # entries whose sign is tried


def slip(answer: Answer, wanted: Array) -> str:
    """What kind of slip makes these numbers of the wanted ones; "" when none does."""
    wrong = answer.differs(wanted)
    if wrong.size > 1 and wrong.sum() == 1:
        return _of_entry(answer, wanted, tuple(int(i) for i in np.argwhere(wrong)[0]))
    if answer.is_near(-wanted) and np.any(wanted):
        return "Every entry has the wrong sign."
    if _are_percentages(answer, wanted):
        return "The numbers are percentages: write shares of 1, such as 0.25 for 25 %."
    if wanted.ndim < 2:
        return ""
    if wanted.shape[-1] == wanted.shape[-2] and answer.is_near(np.swapaxes(wanted, -1, -2)):
        return "The matrix is written transposed: rows and columns are exchanged."
    return _of_line(answer, wanted, wrong) or _exchanged(answer, wanted)


def _are_percentages(answer: Answer, wanted: Array) -> bool:
    """Shares of 1 times 100; whole percentages are rounded, as whole numbers else are not."""
    is_share = not np.any((wanted < 0) | (wanted > 1))
    if answer.shape != wanted.shape or not is_share or not np.any(answer.values > 1):
        return False
    radius = np.maximum(answer.radius, 0.5 if answer.decimals is None else 0)
    return Answer(answer.values / 100, radius / 100, noise=answer.noise).is_near(wanted)


def place_words(place: tuple[int, ...]) -> str:
    """A place as people say it, counted from 1."""
    if len(place) == 1:
        return f"entry {place[0] + 1}"
    *heads, row, column = (i + 1 for i in place)
    whose = f"head {heads[-1]}, " if heads else ""
    return f"{whose}row {row}, column {column}"


def _of_entry(answer: Answer, wanted: Array, place: tuple[int, ...]) -> str:
    given, right = float(answer.values[place]), float(wanted[place])
    where = place_words(place)
    alone = Answer(answer.values[place], answer.radius[place], noise=answer.noise)
    if alone.is_near(np.asarray(-right)):
        return f"One entry has the wrong sign: {where}. All others are right."
    for factor in (10.0, 0.1, 100.0, 0.01):
        if right and abs(given - right * factor) <= float(answer.radius[place]) + 1e-9 * abs(given):
            return f"One entry has its decimal point at the wrong place: {where}."
    return f"One entry is wrong: {where}. All others are right."


def _of_line(answer: Answer, wanted: Array, wrong: Array) -> str:
    for axis, word in ((-2, "row"), (-1, "column")):
        other = -1 if axis == -2 else -2
        lines = wrong.any(axis=other)
        if lines.size > 1 and lines.sum() == 1 and wrong.shape[axis] > 1:
            *heads, number = (int(i) + 1 for i in np.argwhere(lines)[0])
            whose = f" of head {heads[-1]}" if heads else ""
            line = np.take(lines, [number - 1], axis=-1)
            flipped = np.where(wrong.any(axis=other, keepdims=True) & line.any(), -wanted, wanted)
            signs = " has the wrong sign" if answer.is_near(flipped) else " is wrong"
            return f"One {word}{whose}{signs}: {word} {number}. All others are right."
    return ""


def _exchanged(answer: Answer, wanted: Array) -> str:
    for axis, word in ((-2, "rows"), (-1, "columns")):
        count = wanted.shape[axis]
        for one in range(count):
            for other in range(one + 1, count):
                order = list(range(count))
                order[one], order[other] = other, one
                if answer.is_near(np.take(wanted, order, axis=axis)):
                    return f"Two {word} are exchanged: {one + 1} and {other + 1}."
    return ""


def sign_slips(run: Run, step: str, answer: Answer, known: set[str]) -> Iterator[tuple[str, str]]:
    """Entries before a step, by name and place, whose sign alone makes the answer out of it.

    Steps that are `known` to be right are passed over.
    """
    before = run.graph.upstream(step, held=known) - {step} - known
    names = [name for name in run.graph.names if name in before and name not in run.graph.masks]
    if sum(run.values[name].size for name in names) > MOST_FLIPS:
        names = [name for name in names if not run.graph.is_given(name)]
    tried = 0
    for name in names:
        value = run.values[name]
        for place in np.ndindex(value.shape):
            if tried >= MOST_FLIPS or not np.isfinite(value[place]) or value[place] == 0:
                continue
            tried += 1
            flipped = np.array(value, dtype=np.float64)
            flipped[place] *= -1
            if answer.is_near(run.replace(**{name: flipped}).values[step]):
                yield name, place_words(place)
