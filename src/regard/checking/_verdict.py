"""What is found about one thing that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from regard.mistakes import Cause


class Verdict(StrEnum):
    """From best to worst; the last two say nothing about right or wrong."""

    RIGHT = "right"
    ROUNDED = "right from rounded values"
    CARRIED = "right from your own values"
    SLIP = "a slip"
    MISTAKE = "a known mistake"
    WRONG = "wrong"
    UNGRADABLE = "not gradable"
    BY_HAND = "to be read by a person"


# The share of the points; what is neither right nor wrong has none to give.
SHARES = {
    Verdict.RIGHT: 1.0,
    Verdict.ROUNDED: 1.0,
    Verdict.CARRIED: 1.0,
    Verdict.SLIP: 0.5,
    Verdict.MISTAKE: 0.0,
    Verdict.WRONG: 0.0,
    Verdict.UNGRADABLE: 0.0,
    Verdict.BY_HAND: 0.0,
}
ACCEPTED = (Verdict.RIGHT, Verdict.ROUNDED, Verdict.CARRIED)


class Difference(NamedTuple):
    """An entry that is not what it should be; `place` is counted from 1."""

    place: tuple[int, ...]
    given: float
    wanted: float


@dataclass(frozen=True)
class Judgement:
    """What is found about one answer.

    `causes` are explanations that fit equally well, each of one mistake or of a pair. `words` say
    what no list can: why it cannot be graded, what kind of slip it is, from what it was carried.
    `where` says from where on it is wrong, without saying why.
    `first` names the earlier step from which on the numbers differ, where one is known. What
    `is_missing` was not answered at all.
    """

    verdict: Verdict
    words: str = ""
    where: str = ""
    causes: tuple[tuple[Cause, ...], ...] = ()
    differences: tuple[Difference, ...] = ()
    first: str = ""
    decimals: int | None = None
    is_missing: bool = False

    @property
    def is_accepted(self) -> bool:
        return self.verdict in ACCEPTED


@dataclass(frozen=True)
class Finding:
    """A judgement with what it is about: `asked` is what the exercise calls it.

    `step` is the step's own name, "" for what is not a step; `read` says what was read and where.
    """

    asked: str
    judgement: Judgement
    step: str = ""
    label: str = ""
    variant: str = "main"
    points: float = 1.0
    read: str = ""
    wanted: Any = None

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def earned(self) -> float:
        return self.points * SHARES[self.verdict]

    @property
    def mistakes(self) -> tuple[tuple[str, ...], ...]:
        """The words of the mistakes, for each explanation that fits."""
        return tuple(
            tuple(cause.mistake.word for cause in causes) for causes in self.judgement.causes
        )
