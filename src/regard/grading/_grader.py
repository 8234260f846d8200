"""One exercise, ready to grade any number of submissions: what is worked out serves them all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.checking import Checker, Key, checker_for, read_sheet, sheet_from
from regard.exercises import Exercise, Solution
from regard.grading._grade import GRADED, NOT_GRADABLE, Grade, Item
from regard.grading._judging import judged, status_of
from regard.grading._program import rules_of, tried
from regard.grading._rules import broken_rules
from regard.grading._sandbox import Isolation, Limits
from regard.grading._submission import Submission, refuse_bomb
from regard.grading._trials import Caller, Trial

VERDICTS = {
    "right": "right", "rounded": "right from rounded values", "carried": "error carried forward",
    "slip": "a slip", "mistake": "wrong", "wrong": "wrong", "ungradable": "not gradable",
    "by_hand": "for a person to read",
}  # fmt: skip


@dataclass(eq=False)
class Grader:
    """Grades submissions to an exercise; `seed` decides the fresh numbers, the same for all."""

    exercise: Exercise
    seed: int = 0

    def grade(
        self, submission: Submission, shut_in: Isolation | None, limits: Limits | None = None
    ) -> Grade:
        """A program where the exercise runs programs, else answers."""
        if submission.problem:
            return self.not_gradable(submission, submission.problem)
        if shut_in is not None and self.takes(submission):
            return self.program(submission, shut_in, limits or Limits())
        return self.answers(submission)

    def takes(self, submission: Submission) -> bool:
        """Whether it is run as a program; a notebook may hold answers instead."""
        runs = self.exercise.code is not None and bool(self.exercise.code.run)
        return submission.is_program and (runs or submission.file.endswith(".py"))

    def not_gradable(self, submission: Submission, reason: str) -> Grade:
        """Everybody is marked out of the same: who gave nothing gets nothing of each item."""
        program = self.takes(submission) or not submission.file
        code = self.exercise.code
        runs = code.run if code and program else ()
        names = [
            (f"{one.name}: {x}", one.points / len(one.results)) for one in runs for x in one.results
        ]
        items = [Item(name, 0.0, of, "missing") for name, of in names]
        if not items:
            found = self.checker.check(sheet_from({})).to_data()["findings"]
            items = [_item(each, found) for each in found if each["out_of"]]
        return Grade(submission.name, NOT_GRADABLE, tuple(items), reason)

    # ---- programs

    @cached_property
    def trials(self) -> list[list[Trial]]:
        """By run: everything that a program is tried on."""
        rules = rules_of(self.exercise)
        return [list(Caller(self.exercise, rules, one, self.seed).trials()) for one in rules.run]

    @cached_property
    def keys(self) -> list[Key]:
        """By run: what recognises known mistakes, on fresh numbers, which tell them apart."""
        fresh = [next(t for t in those if t.kind == "fresh") for those in self.trials]
        return [Key(trial.trace.run) for trial in fresh]

    def program(self, submission: Submission, shut_in: Isolation, limits: Limits) -> Grade:
        """Run it on the exercise's numbers, on fresh ones and on probes."""
        rules = rules_of(self.exercise)
        program = submission.program
        outcome, results = tried(self.exercise, self.trials, program, shut_in, limits)
        pairs = [
            judged(one, self.keys[place], rules.probe_cost) for place, one in enumerate(results)
        ]
        status, reason = status_of(outcome, results)
        return Grade(
            submission.name,
            status,
            tuple(item for items, _ in pairs for item in items),
            reason,
            tuple(finding for _, findings in pairs for finding in findings),
            tuple(broken_rules(program, rules)),
            outcome.printed,
        )

    # ---- answers

    @cached_property
    def checker(self) -> Checker:
        return checker_for(Solution(self.exercise.title, self.exercise))

    def answers(self, submission: Submission) -> Grade:
        """Judged as `regard.check` judges them."""
        refuse_bomb(submission)
        with tempfile.TemporaryDirectory(prefix="regard-") as folder:
            path = Path(folder, Path(submission.file).name)
            path.write_bytes(submission.content)
            sheet = read_sheet(path, self.checker.wanted)
        found = self.checker.check(sheet).to_data()["findings"]
        items = tuple(_item(each, found) for each in found if each["out_of"])
        gradable = any(each["verdict"] not in ("ungradable", "by_hand") for each in found)
        reason = "" if gradable else next((e["words"] for e in found if e["words"]), "")
        return Grade(submission.name, GRADED if gradable else NOT_GRADABLE, items, reason)


def _item(finding: dict[str, Any], found: list[dict[str, Any]]) -> Item:
    titles = [" and ".join(_title(cause) for cause in causes) for causes in finding["mistakes"]]
    alike = [each for each in found if _name(each) == _name(finding)]
    return Item(
        name=_name(finding) + (f" [{finding['variant']}]" if len(alike) > 1 else ""),
        points=finding["points"],
        of=0.0 if finding["verdict"] == "by_hand" else finding["out_of"],
        verdict=VERDICTS[finding["verdict"]],
        message=" ".join(filter(None, (" or ".join(titles), finding["words"]))),
        mistakes=tuple(titles) if len(titles) == 1 else (),
    )


def _name(finding: dict[str, Any]) -> str:
    return f"{finding['label']} {finding['asked']}".strip()


def _title(cause: dict[str, Any]) -> str:
    return f"{cause['title']} ({cause['detail']})" if cause["detail"] else str(cause["title"])
