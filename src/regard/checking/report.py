"""A report: what was found about a set of answers, in every format that a trace has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from regard.checking._slips import place_words
from regard.checking._verdict import ACCEPTED, Finding, Judgement, Verdict
from regard.mistakes import Cause
from regard.show.document import Block, Document, Heading, Note, Paragraph, Prose, Table
from regard.show.layout import Layout, step_blocks
from regard.show.shown import Shown
from regard.show.trace import Trace

HINTS = ("where", "why", "full")
SCHEMA, VERSION = "regard-report", 1
MOST_LISTED = 8
PLACES = 6  # of points: thirds add up to whole ones again

MARKS = {
    Verdict.RIGHT: "✓", Verdict.ROUNDED: "✓", Verdict.CARRIED: "✓", Verdict.SLIP: "✗",
    Verdict.MISTAKE: "✗", Verdict.WRONG: "✗", Verdict.UNGRADABLE: "?", Verdict.BY_HAND: "–",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Report(Shown):
    """What was found, one finding for each thing asked; it shows itself as a Trace does.

    `hint` is how much it gives away: "where" it goes wrong, "why", or the "full" solution.
    """

    title: str
    exercise: str
    findings: tuple[Finding, ...]
    hint: str = "why"
    answers: str = "answers"
    notes: tuple[str, ...] = ()
    traces: Mapping[str, Trace] = field(default_factory=dict, repr=False)

    @property
    def is_right(self) -> bool:
        """Whether everything that a program can judge is right."""
        return all(f.verdict in (*ACCEPTED, Verdict.BY_HAND) for f in self._counting)

    @property
    def is_gradable(self) -> bool:
        """Whether there was something to judge for everything asked."""
        return not any(f.verdict == Verdict.UNGRADABLE for f in self._counting)

    @property
    def points(self) -> float:
        return round(sum(finding.earned for finding in self.findings), PLACES)

    @property
    def out_of(self) -> float:
        """The points that a program can give; what a person must read is not among them."""
        counted = (f.points for f in self.findings if f.verdict != Verdict.BY_HAND)
        return round(sum(counted), PLACES)

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The words of all mistakes that were named without doubt."""
        sure = (f.mistakes[0] for f in self.findings if len(f.mistakes) == 1)
        return tuple(dict.fromkeys(word for words in sure for word in words))

    @property
    def _counting(self) -> list[Finding]:
        return [f for f in self.findings if f.points]

    # ---- shown

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        blocks: list[Block] = [*self._opening(), Heading("What was found", 2), self._table()]
        blocks += [
            Paragraph((f"{self._named(f)}: {self._with_names(f.judgement.words)}",))
            for f in self.findings
            if f.verdict in (Verdict.ROUNDED, Verdict.CARRIED) and f.judgement.words
        ]
        for finding in self.findings:
            if not only or finding.asked in only or finding.step in only:
                blocks += self._blocks(finding)
        if missing := [self._named(f) for f in self.findings if f.judgement.is_missing]:
            answered = (f for f in self.findings if not f.judgement.is_missing)
            judged = (f for f in answered if f.verdict != Verdict.BY_HAND)
            read = ", ".join(self._named(f) for f in judged) or "nothing"
            words = (
                f"No answer was found to: {', '.join(missing)}. Read from {self.answers}: {read}."
            )
            if read == "nothing":
                words += f" Write each answer after its name, as in {missing[0].split()[0]} = …"
            blocks.append(Note((words,)))
        blocks += [Note((note,)) for note in self.notes]
        return Document(self.title, tuple(blocks))

    def _opening(self) -> Iterator[Block]:
        hand = sum(f.points for f in self.findings if f.verdict == Verdict.BY_HAND)
        words = f"{_number(self.points)} of {_number(self.out_of)} points"
        if hand:
            words += f"; {_number(hand)} more are for what a person must read"
        yield Paragraph((f"{words}.",))
        if len(self.findings) > 1 and (first := self._first_wrong()):
            where = f" ({first.label})" if first.label and "(" not in first.label else first.label
            yield Paragraph((
                f"The first thing to look at: {where + ' ' if where else ''}"
                f"{self._named(first)}.",
            ))  # fmt: skip

    def _first_wrong(self) -> Finding | None:
        bad = (Verdict.SLIP, Verdict.MISTAKE, Verdict.WRONG)
        return next((f for f in self.findings if f.verdict in bad), None)

    def _table(self) -> Table:
        header: tuple[Prose, ...] = (("",), ("asked",), ("verdict",), ("points",))
        rows = tuple(
            (
                (MARKS[f.verdict],),
                (f"{f.label} {self._named(f)}".strip(),),
                (_verdict(f.judgement, self.hint),),
                (_points(f),),
            )
            for f in self.findings
        )
        return Table(header, rows)

    def _named(self, finding: Finding) -> str:
        shared = [f for f in self.findings if (f.asked, f.label) == (finding.asked, finding.label)]
        return f"{finding.asked} [{finding.variant}]" if len(shared) > 1 else finding.asked

    def _blocks(self, finding: Finding) -> Iterator[Block]:
        """What there is to say about a finding beyond its verdict."""
        judgement = finding.judgement
        if finding.verdict in (*ACCEPTED, Verdict.BY_HAND) or judgement.is_missing:
            return
        yield Heading(f"{finding.label} {self._named(finding)}".strip(), 2)
        if finding.read:
            yield Paragraph((f"Read from {finding.read}.",))
        words = self._with_names(judgement.words)
        if finding.verdict == Verdict.UNGRADABLE:
            yield Paragraph((f"Not gradable: {words}",))
        if judgement.where:
            yield Paragraph((_opened(self._with_names(judgement.where)),))
        if self.hint != "where":
            if words and finding.verdict != Verdict.UNGRADABLE:
                yield Paragraph((words,))
            yield from self._causes(judgement)
        yield from self._entries(finding)
        if self.hint == "full" and finding.verdict != Verdict.UNGRADABLE:
            yield from self._solution(finding)

    def _with_names(self, words: str) -> str:
        """Steps in braces as the exercise calls them."""
        trace = next(iter(self.traces.values()), None)
        names = dict(trace.names) if trace else {}
        for finding in self.findings:
            words = words.replace(f"{{{finding.step}}}", f"your {finding.asked}")
        for name, alias in names.items():
            words = words.replace(f"{{{name}}}", alias)
        return words.replace("{", "").replace("}", "")

    def _causes(self, judgement: Judgement) -> Iterator[Block]:
        """The mistakes: all about one, the titles of several that fit equally well."""
        if len(judgement.causes) > 1:
            yield Paragraph(("Each of these gives exactly your numbers:",))
            for causes in judgement.causes[:MOST_LISTED]:
                yield Paragraph((f"– {' And: '.join(_title(cause) for cause in causes)}",))
            if self.hint != "full":
                return
        for causes in judgement.causes[:MOST_LISTED]:
            if len(causes) > 1:
                yield Paragraph(("Two mistakes together give exactly your numbers.",))
            for cause in causes:
                yield Paragraph((f"{_title(cause)} {cause.mistake.explanation}",))
                if self.hint == "full":
                    yield Paragraph((f"What shows it: {cause.mistake.evidence}",))
                else:
                    yield Note((cause.mistake.hint,))

    def _entries(self, finding: Finding) -> Iterator[Block]:
        """The entries that differ; the right ones beside them only in full."""
        found = finding.judgement.differences
        if not found:
            return
        total = self.traces[finding.variant].run.values[finding.step].size
        if self.hint != "full":
            places = "; ".join(place_words(tuple(i - 1 for i in d.place)) for d in found)
            listed = f": {places}" if len(found) <= MOST_LISTED and len(found) < total else ""
            count = f"All {total}" if len(found) == total else f"{len(found)} of {total}"
            verb = "differs" if len(found) == 1 else "differ"
            words = f"{count} entries {verb} from the right ones{listed}."
            yield Paragraph((words if total > 1 else "The number is not the right one.",))
            return
        shown = found[:MOST_LISTED]
        header: tuple[Prose, ...] = (("entry",), ("yours",), ("right",))
        rows = tuple(
            ((place_words(tuple(i - 1 for i in d.place)),), (_value(d.given),), (_value(d.wanted),))
            for d in shown
        )
        yield Table(header, rows)

    def _solution(self, finding: Finding) -> Iterator[Block]:
        if finding.wanted:
            yield Paragraph((f"Right is: {finding.wanted}",))
        if finding.step:
            trace = self.traces[finding.variant]
            step = trace.run.graph.step(finding.step)
            yield Paragraph(("The right way:",))
            yield from step_blocks(trace.run, step, Layout("steps", (), trace.names))[1:]

    # ---- for other programs

    def to_data(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "exercise": self.exercise,
            "title": self.title,
            "answers": self.answers,
            "points": self.points,
            "out_of": self.out_of,
            "right": self.is_right,
            "mistakes": list(self.mistakes),
            "findings": [self._finding_data(finding) for finding in self.findings],
            "notes": list(self.notes),
        }

    def _finding_data(self, finding: Finding) -> dict[str, Any]:
        judgement = finding.judgement
        return {
            "label": finding.label,
            "asked": finding.asked,
            "step": finding.step,
            "variant": finding.variant,
            "verdict": finding.verdict.name.lower(),
            "points": finding.earned,
            "out_of": finding.points,
            "read": finding.read,
            "words": self._with_names(judgement.words),
            "where": self._with_names(judgement.where),
            "first": judgement.first,
            "decimals": judgement.decimals,
            "mistakes": [
                [
                    {"mistake": c.mistake.word, "title": c.mistake.title, "detail": c.detail}
                    for c in causes
                ]
                for causes in judgement.causes
            ],
            "differences": [
                {"place": list(d.place), "given": _plain(d.given), "wanted": _plain(d.wanted)}
                for d in judgement.differences
            ],
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.to_data(), ensure_ascii=False, indent=1, allow_nan=False)


def _verdict(judgement: Judgement, hint: str) -> str:
    if judgement.is_missing:
        return "not gradable: no answer was found"
    if judgement.verdict == Verdict.RIGHT and judgement.decimals is not None:
        plural = "" if judgement.decimals == 1 else "s"
        return f"right to the {judgement.decimals} decimal{plural} given"
    if hint == "where" and judgement.verdict in (Verdict.SLIP, Verdict.MISTAKE):
        return str(Verdict.WRONG)
    return str(judgement.verdict)


def _title(cause: Cause) -> str:
    title, detail = cause.mistake.title, cause.detail
    return f"{title} ({detail})." if detail else f"{title}."


def _opened(words: str) -> str:
    """A sentence with its first letter as a capital."""
    return words[:1].upper() + words[1:]


def _points(finding: Finding) -> str:
    if finding.verdict == Verdict.BY_HAND:
        return f"? of {_number(finding.points)}"
    return (
        f"{_number(finding.earned)} of {_number(finding.points)}" if finding.points else "not asked"
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _value(value: float) -> str:
    return f"{value:.4f}".replace("-", "−") if isfinite(value) else str(value).replace("-inf", "−∞")


def _plain(value: float) -> float | str:
    """JSON has no NaN and no infinity."""
    return value if isfinite(value) else str(value)
