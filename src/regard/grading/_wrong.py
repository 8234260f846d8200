"""What known mistakes make of a step: for platforms that answer a wrong number with feedback."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regard.graph.operation import Array
from regard.graph.run import Run
from regard.mistakes import CATALOGUE, commit_all


class WrongValue(NamedTuple):
    """The value of a step as a mistake makes it, and what to tell the one who gives it."""

    value: Array
    titles: tuple[str, ...]
    feedback: str


def wrong_values(run: Run, step: str, within: float) -> list[WrongValue]:
    """One for each group of mistakes that give the same; none that looks right."""
    right = run.values[step]
    found: list[tuple[Array, dict[str, str]]] = []
    for _, committed in commit_all(run, CATALOGUE):
        value = committed.values.get(step)
        if value is None or step not in committed.changed or value.shape != right.shape:
            continue
        if not np.isfinite(value).all() or np.abs(value - right).max() <= 2 * within:
            continue
        words = {cause.mistake.title: cause.mistake.hint for cause in committed.causes}
        for known, titles in found:
            if np.abs(known - value).max() <= within:
                titles.update(words)
                break
        else:
            found.append((value, words))
    return [
        WrongValue(value, tuple(words), " ".join(dict.fromkeys(words.values())))
        for value, words in found
    ]


def telling_entry(run: Run, step: str, within: float) -> tuple[int, ...]:
    """The entry of a step that tells the most mistakes from the right value and from each other."""
    values = [wrong.value for wrong in wrong_values(run, step, within)]
    right = run.values[step]
    if not values:
        return tuple(int(i) for i in np.unravel_index(0, right.shape))
    table = np.round(np.stack([right, *values]) / (2 * within + 1e-12))
    kinds = [len(np.unique(column)) for column in table.reshape(len(table), -1).T]
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(kinds)), right.shape))
