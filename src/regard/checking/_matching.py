"""Which items of a sheet of answers belong to what is asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard._errors import NumberError, RegardError
from regard.checking._answer import Answer, read_answer
from regard.checking._asking import Asking, Question
from regard.checking._parts import parts_of
from regard.checking._sheet import Sheet, plain
from regard.checking._text import Item, Wanted
from regard.exercises._exercise import AskedChoice, AskedDesign

MOST_NUMBERS = 100_000  # in one answer


def what_to_find(asking: Asking) -> Wanted:
    """What to look for in a text."""
    announced: dict[str, tuple[str, ...]] = {}
    for question in asking.questions:
        for part in parts_of(asking, question.asked):
            for path in part.paths:
                for words in (" ".join(path), " of ".join(path), " ".join(path[::-1])):
                    announced.setdefault(words.replace("_", " ").lower(), path)
        if isinstance(question.asked.question, AskedDesign):
            for name in question.asked.question.design:
                for each in asking.calls(name):
                    announced.setdefault(each.replace("_", " ").lower(), (each,))
    choices = tuple(q.label for q in asking.questions if isinstance(q.asked.question, AskedChoice))
    asked: dict[str, list[str]] = {}
    for q in asking.questions:
        asked.setdefault(q.label, []).extend(asking.asked_steps(q.asked))
    return Wanted(asking.names, announced, asking.labels, choices, asked)


def answer_of(name: str, items: list[Item]) -> tuple[Answer | None, str]:
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


def items_for(asking: Asking, sheet: Sheet, variant: str, step: str) -> list[int] | None:
    """The places of the items that answer a step of a variant."""
    labels = {
        q.label
        for q in asking.questions
        if q.asked.variant == variant and step in asking.asked_steps(q.asked)
    }  # fmt: skip
    scopes = {plain(scope) for scope in (variant, *labels) if scope}
    called = {plain(step), plain(asking.exercise.names.get(step, step))}
    best: tuple[int, list[int]] = (-1, [])
    for place, item in enumerate(sheet.items):
        *outer, name = (plain(word) for word in item.path)
        if name not in called or not set(outer) <= scopes:
            continue
        rank = 2 if outer or (item.near and plain(item.near) in scopes) else 1
        if item.near and plain(item.near) not in scopes and labels:
            rank = 0
        if rank < 2 and not _unscoped_fits(asking, item, variant, step):
            continue
        if rank > best[0]:
            best = (rank, [place])
        elif rank == best[0] and item.head is not None:
            kept = [at for at in best[1] if sheet.items[at].head != item.head]
            best = (rank, [*kept, place])
        elif rank == best[0] and item.near:
            best = (rank, [place])  # what stands last in a text is the result
    return best[1] or None


def _unscoped_fits(asking: Asking, item: Item, variant: str, step: str) -> bool:
    """Whether a value without a label belongs to this variant: by its shape, else the first."""
    having = [name for name in asking.exercise.variants if step in asking.steps(name)]
    if len(having) == 1:
        return True
    wanting = [q.asked.variant for q in asking.questions if step in asking.asked_steps(q.asked)]
    candidates = wanting or having
    shapes = {name: asking.trace(name).run.values[step].shape for name in candidates}
    try:
        shape = np.shape(item.value) if item.head is None else None
    except ValueError:
        shape = None
    fitting = [name for name, wanted in shapes.items() if wanted == shape]
    return variant == (fitting or candidates)[0]


def find_item(
    sheet: Sheet, question: Question, paths: tuple[tuple[str, ...], ...], alone: bool
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


def _count(values: Any) -> int:
    """How many numbers there are; nothing is converted to tell."""
    if isinstance(values, (list, tuple)):
        return sum(map(_count, values))
    return int(np.prod(values.shape)) if hasattr(values, "shape") else 1
