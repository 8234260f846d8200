"""Which mistakes the numbers of an exercise cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from regard.graph.operation import Array
from regard.graph.run import Run
from regard.mistakes._catalogue import CATALOGUE
from regard.mistakes._mistake import Mistake
from regard.mistakes._replay import Committed, commit_all

SAME = 1e-9  # relative to the largest entry: results that differ by less are rounding


@dataclass(frozen=True)
class Discrimination:
    """By the words of mistakes: those that change an answer, those that do not, and the ties.

    `unseen` mistakes leave every answer as it is; the mistakes of one group in `alike` give the
    same answers.
    """

    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    alike: tuple[tuple[str, ...], ...]


def same(one: Array, other: Array, within: float = 0.0) -> bool:
    """Whether two results are the same numbers, up to rounding (or up to `within`)."""
    if one.shape != other.shape:
        return False
    a, b = (np.asarray(array, dtype=np.float64) for array in (one, other))
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    largest = float(np.abs(a[finite]).max(initial=0.0))
    return bool((np.abs(a[finite] - b[finite]) <= max(within, SAME * largest)).all())


def discriminate(
    run: Run,
    asked: Iterable[str],
    mistakes: Iterable[Mistake] = CATALOGUE,
    within: float = 0.0,
) -> Discrimination:
    """Which mistakes the asked steps of a run show, and which of them look alike.

    `within` is how near two numbers must be to count as the same: 0.005 for two decimals.
    """
    steps = tuple(asked)
    unseen: dict[str, None] = {}
    groups: list[tuple[Mapping[str, Array], list[str]]] = []
    for _, committed in commit_all(run, mistakes):
        (word,) = committed.words
        if shows(run, committed, steps, within):
            _join(groups, _answers(committed, steps), word, within)
        else:
            unseen.setdefault(word)
    seen = dict.fromkeys(word for _, words in groups for word in words)
    return Discrimination(
        tuple(seen),
        tuple(word for word in unseen if word not in seen),
        tuple(tuple(words) for _, words in groups if len(words) > 1),
    )


def shows(run: Run, committed: Committed, steps: tuple[str, ...], within: float = 0.0) -> bool:
    """Whether a mistake changes any of these steps."""
    return any(
        name in committed.changed
        and not (
            name in committed.values and same(run.values[name], committed.values[name], within)
        )
        for name in steps
    )


def _answers(committed: Committed, steps: tuple[str, ...]) -> dict[str, Array]:
    return {name: committed.values[name] for name in steps if name in committed.values}


def _join(
    groups: list[tuple[Mapping[str, Array], list[str]]],
    answers: Mapping[str, Array],
    word: str,
    within: float,
) -> None:
    for known, words in groups:
        if known.keys() == answers.keys() and all(
            same(known[name], answers[name], within) for name in known
        ):
            if word not in words:
                words.append(word)
            return
    groups.append((answers, [word]))
