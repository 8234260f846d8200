"""What grading finds out: data only, as it is kept, sent between machines and written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

GRADED, FAILED, NOT_GRADABLE = "graded", "failed", "not gradable"
STATUSES = (GRADED, FAILED, NOT_GRADABLE)


@dataclass(frozen=True)
class Item:
    """One thing that earns points: a step of an answer, or a result of a program.

    `mistakes` are the titles of the known mistakes that reproduce what was given.
    """

    name: str
    points: float
    of: float
    verdict: str
    message: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """Something that a probe of a program found out; `cost` is what it takes from the points."""

    kind: str
    message: str
    cost: float = 0


@dataclass(frozen=True)
class Grade:
    """A graded submission.

    status: "graded"; "failed", when a program gave no results; "not gradable", when nothing could
        be read. `reason` says why for the latter two.
    rules: the demands on a program's text that it breaks, which cost nothing by themselves.
    """

    submission: str
    status: str
    items: tuple[Item, ...]
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    rules: tuple[str, ...] = ()
    printed: str = ""

    @property
    def of(self) -> float:
        return round(sum(item.of for item in self.items), 6)

    @property
    def points(self) -> float:
        earned = sum(item.points for item in self.items)
        return round(max(0.0, earned - sum(finding.cost for finding in self.findings)), 6)

    @property
    def is_right(self) -> bool:
        """Whether nothing at all is to be said against it."""
        return self.status == GRADED and self.points == self.of and not self.rules

    @property
    def mistakes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(title for item in self.items for title in item.mistakes))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"points": self.points, "of": self.of}


def grade_from(data: Mapping[str, Any]) -> Grade:
    """A grade as `to_dict` wrote it, whatever JSON made of its tuples."""
    return Grade(
        submission=data["submission"],
        status=data["status"],
        items=tuple(Item(**{**i, "mistakes": tuple(i["mistakes"])}) for i in data["items"]),
        reason=data["reason"],
        findings=tuple(Finding(**each) for each in data["findings"]),
        rules=tuple(data["rules"]),
        printed=data["printed"],
    )
