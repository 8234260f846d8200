"""Two programs side by side: where their results part, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.grading._grader import Grader
from regard.grading._program import Answered, Tried, tried
from regard.grading._sandbox import Isolation, Limits
from regard.grading._submission import Submission

KINDS = {
    "exercise": "the exercise's numbers", "fresh": "fresh numbers", "size": "another size",
    "causal": "a later token changed", "overflow": "large scores",
}  # fmt: skip


@dataclass(frozen=True)
class Divergence:
    """One result of one run on one kind of numbers: how far the two are apart at most.

    A run that fails on all numbers alike has neither result nor numbers of its own.
    """

    result: str
    numbers: str
    difference: float
    words: str = ""

    @property
    def is_same(self) -> bool:
        return self.difference <= 1


def divergence(
    grader: Grader, one: Submission, other: Submission, shut_in: Isolation, limits: Limits
) -> list[Divergence]:
    """Every result on every kind of numbers, in the order of the work."""
    found = []
    runs = [
        tried(grader.exercise, grader.trials, program, shut_in, limits)[1]
        for program in (one.program, other.program)
    ]
    names = (one.name, other.name)
    if broken := _broken(names, *map(_failure, runs)):
        return [Divergence("the whole program", "", np.inf, broken)]
    for first, second in zip(*runs, strict=True):
        if broken := _broken(names, _failure([first]), _failure([second])):
            found.append(Divergence(first.run.name, "", np.inf, broken))
            continue
        order = first.answered[0].trial.trace.run.graph.names
        for step in sorted(first.steps, key=order.index):
            found += _of_step(first, second, step, names)
    return found


def _failure(runs: Sequence[Tried]) -> str:
    """What went wrong in every trial of these runs, if it was one and the same."""
    answered = [each for one in runs for each in one.answered]
    reasons = {each.wrong for each in answered}
    return reasons.pop() if len(reasons) == 1 and not any(each.values for each in answered) else ""


def _broken(names: Sequence[str], *failures: str) -> str:
    told = zip(names, failures, strict=True)
    return "; ".join(f"{name}: {failure}" for name, failure in told if failure)


def _of_step(first: Tried, second: Tried, step: str, names: Sequence[str]) -> list[Divergence]:
    by_kind: dict[str, Divergence] = {}
    for one, other in zip(first.answered, second.answered, strict=True):
        if one.trial.kind not in KINDS:
            continue
        result = f"{first.run.name}: {step}"
        apart = _apart(result, one, other, step, names)
        known = by_kind.get(one.trial.kind)
        if known is None or apart.difference > known.difference:
            by_kind[one.trial.kind] = apart
    return list(by_kind.values())


def _apart(
    result: str, one: Answered, other: Answered, step: str, names: Sequence[str]
) -> Divergence:
    """The difference in units of what rounding may do to numbers of their kind."""
    numbers = KINDS[one.trial.kind]
    lacking = [
        f"{name}: {each.wrong}"
        for name, each in zip(names, (one, other), strict=True)
        if step not in each.values
    ]
    if lacking:
        both = len(lacking) == 2
        return Divergence(result, numbers, 0.0 if both else np.inf, "; ".join(lacking))
    a, b = one.values[step], other.values[step]
    if a.shape != b.shape:
        return Divergence(result, numbers, np.inf, f"shapes {a.shape} and {b.shape}")
    near = one.nearness(b)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        away = np.where(same, 0.0, np.abs(a - b))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(away, nan=np.inf))), away.shape)
    gap = float(np.nan_to_num(away[worst], nan=np.inf)) / near if away.size else 0.0
    entry = ", ".join(str(int(index) + 1) for index in worst)
    words = f"entry {entry}: {a[worst]:.6g} and {b[worst]:.6g}" if gap > 1 else ""
    return Divergence(result, numbers, gap, words)


def divergence_text(found: Sequence[Divergence], names: Sequence[str]) -> str:
    """A line for each result, and where the two part first."""
    lines = [f"{names[0]} and {names[1]}"]
    width = max(len(each.result) for each in found)
    for each in found:
        sign = "✓ same " if each.is_same else "✗ apart"
        numbers = f"{each.numbers:22}  " if each.numbers else ""
        lines.append(f"{sign}  {each.result:{width}}  {numbers}{each.words}".rstrip())
    first = next((each for each in found if not each.is_same), None)
    if first is None:
        lines.append("They give the same.")
    elif first.numbers:
        lines.append(f"They part at {first.result}, on {first.numbers}.")
    else:
        lines.append(f"Of {first.result} there is nothing to compare.")
    return "\n".join(lines) + "\n"
