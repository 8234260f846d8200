"""What a class's grades say about the class and about the exercise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.grading._grade import GRADED, Grade

ENOUGH = 5  # submissions, below which a correlation says nothing


@dataclass(frozen=True)
class ItemStatistics:
    """One item over the class.

    share: the mean of what was earned of its points; the easier, the nearer to 1.
    discrimination: the correlation of its points with the points for everything else, None where
        that says nothing (few submissions, or all earned the same).
    """

    name: str
    of: float
    share: float
    discrimination: float | None

    @property
    def words(self) -> str:
        if self.discrimination is None:
            return "cannot be told"
        if self.discrimination >= 0.3:
            return "discriminates"
        return "discriminates little" if self.discrimination >= 0.1 else "does not discriminate"


@dataclass(frozen=True)
class ClassStatistics:
    """The class: points, items, and how often each mistake, finding and broken rule occurs."""

    points: tuple[float, ...]
    of: float
    items: tuple[ItemStatistics, ...]
    mistakes: tuple[tuple[str, tuple[str, ...]], ...]
    findings: tuple[tuple[str, tuple[str, ...]], ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    statuses: tuple[tuple[str, int], ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.points)) if self.points else 0.0

    @property
    def median(self) -> float:
        return float(np.median(self.points)) if self.points else 0.0


def class_statistics(grades: Sequence[Grade]) -> ClassStatistics:
    counts = Counter(grade.status for grade in grades)
    return ClassStatistics(
        points=tuple(grade.points for grade in grades),
        of=max((grade.of for grade in grades), default=0.0),
        items=tuple(_items(grades)),
        mistakes=_who([(g.submission, list(map(_without_detail, g.mistakes))) for g in grades]),
        findings=_who([(g.submission, [f.message for f in g.findings]) for g in grades]),
        rules=_who([(g.submission, [_without_line(rule) for rule in g.rules]) for g in grades]),
        statuses=tuple((status, counts[status]) for status in (GRADED, "failed", "not gradable")),
    )


def _without_detail(mistake: str) -> str:
    """K from W_V or K from W_Q, it is the same mistake."""
    return re.sub(r" \([^()]*\)", "", mistake)


def _without_line(rule: str) -> str:
    """Line 3 or line 5, it is the same rule."""
    head, _, rest = rule.partition(" ")
    number, _, words = rest.partition(" ")
    return words if head == "line" and number.isdigit() else rule


def _who(said: Sequence[tuple[str, Sequence[str]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each sentence with those of whom it is said, the most frequent first."""
    names: dict[str, list[str]] = {}
    for name, sentences in said:
        for sentence in dict.fromkeys(sentences):
            names.setdefault(sentence, []).append(name)
    ordered = sorted(names.items(), key=lambda pair: -len(pair[1]))
    return tuple((sentence, tuple(who)) for sentence, who in ordered)


def _items(submitted: Sequence[Grade]) -> list[ItemStatistics]:
    """What could not be graded says nothing about the items."""
    grades = [grade for grade in submitted if grade.status == GRADED]
    known = dict.fromkeys(item.name for grade in grades for item in grade.items)
    table = {
        name: [sum(i.points for i in grade.items if i.name == name) for grade in grades]
        for name in known
    }
    full = {item.name: item.of for grade in grades for item in grade.items}
    found = []
    for name, points in table.items():
        own = np.array(points)
        rest = np.array([sum(i.points for i in grade.items) for grade in grades]) - own
        share = float(own.mean() / full[name]) if full[name] else 0.0
        found.append(ItemStatistics(name, full[name], share, _correlation(own, rest)))
    return found


def _correlation(own: np.ndarray, rest: np.ndarray) -> float | None:
    if len(own) < ENOUGH or np.ptp(own) == 0 or np.ptp(rest) == 0:
        return None
    return float(np.corrcoef(own, rest)[0, 1])
