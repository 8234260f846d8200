"""The report on a class: one HTML page that needs nothing else, and a table as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from regard.grading._grade import GRADED, Grade, Item
from regard.grading._statistics import ClassStatistics, class_statistics
from regard.grading._text import number

BINS = 10
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a cell would be one for a spreadsheet


def to_csv(grades: Sequence[Grade]) -> str:
    """One row a submission: points, each item, mistakes, findings, rules."""
    names = list(dict.fromkeys(item.name for grade in grades for item in grade.items))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = [
        "submission",
        "status",
        "points",
        "of",
        *names,
        "mistakes",
        "findings",
        "rules",
        "reason",
    ]
    writer.writerow([_cell(word) for word in head])
    for grade in grades:
        earned = {item.name: number(item.points) for item in grade.items}
        row = [
            grade.submission, grade.status, number(grade.points), number(grade.of),
            *(earned.get(name, "") for name in names), "; ".join(grade.mistakes),
            "; ".join(finding.message for finding in grade.findings), "; ".join(grade.rules),
            grade.reason,
        ]  # fmt: skip
        writer.writerow([_cell(word) for word in row])
    return out.getvalue()


def _cell(word: str) -> str:
    """A name from a stranger must not become a formula."""
    return f"'{word}" if word.startswith(FORMULA) else word


def to_html(title: str, grades: Sequence[Grade]) -> str:
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    facts = class_statistics(grades)
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}: the class</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(title)}</h1>",
        *_facts(facts),
        *_histogram(facts),
        *_items(facts),
        *_frequencies("Mistakes", "mistake", facts.mistakes, len(grades)),
        *_frequencies("What probes found", "finding", facts.findings, len(grades)),
        *_frequencies("Rules broken", "rule", facts.rules, len(grades)),
        *_submissions(grades),
        "</main>",
        "</body>",
        "</html>",
        "",
    ])  # fmt: skip


def _facts(facts: ClassStatistics) -> Iterator[str]:
    yield '<dl class="facts">'
    rows = [
        ("submissions", str(len(facts.points))),
        ("mean", f"{number(facts.mean)} of {number(facts.of)}"),
        ("median", f"{number(facts.median)} of {number(facts.of)}"),
        *((status, str(count)) for status, count in facts.statuses if count and status != GRADED),
    ]
    yield from (f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in rows)
    yield "</dl>"


def _histogram(facts: ClassStatistics) -> Iterator[str]:
    """How many earned how much, in tenths of all points."""
    if not facts.of:
        return
    counts = [0] * BINS
    for points in facts.points:
        counts[min(BINS - 1, int(BINS * points / facts.of))] += 1
    tallest, width, height = max(counts), 44, 110
    yield "<h2>Points</h2>"
    yield f'<svg viewBox="0 0 {BINS * width + 10} {height + 40}" role="img" aria-label="Points">'
    for place, count in enumerate(counts):
        tall = height * count / tallest
        x, y = place * width + 5, height + 16 - tall
        low, high = (number(facts.of * edge / BINS) for edge in (place, place + 1))
        if count:
            yield f'<rect x="{x + 2}" y="{y:.1f}" width="{width - 4}" height="{tall:.1f}" rx="2"/>'
            yield f'<text x="{x + width / 2}" y="{y - 4:.1f}" text-anchor="middle">{count}</text>'
        label = f"{low}–{high}"
        yield f'<text x="{x + width / 2}" y="{height + 32}" text-anchor="middle">{label}</text>'
    yield f'<line x1="5" x2="{BINS * width + 5}" y1="{height + 16}" y2="{height + 16}"/>'
    yield "</svg>"


def _items(facts: ClassStatistics) -> Iterator[str]:
    yield "<h2>Items</h2>"
    yield (
        '<p class="soft">An item discriminates when those who do well elsewhere do well on it. '
        "The correlation is that of its points with the points for everything else.</p>"
    )
    yield '<div class="wide"><table><tr><th>item</th><th class="number">points</th>'
    yield '<th>earned</th><th class="number">correlation</th><th></th></tr>'
    for item in facts.items:
        shown = "" if item.discrimination is None else f"{item.discrimination:.2f}"
        yield (
            f"<tr><td>{escape(item.name)}</td>"
            f'<td class="number">{number(item.of)}</td>'
            f'<td><span class="bar" style="width:{6 * item.share:.2f}rem"></span> '
            f"{item.share:.0%}</td>"
            f'<td class="number">{shown}</td><td class="soft">{item.words}</td></tr>'
        )
    yield "</table></div>"


def _frequencies(
    heading: str, what: str, rows: Sequence[tuple[str, Sequence[str]]], total: int
) -> Iterator[str]:
    if not rows:
        return
    yield f"<h2>{heading}</h2>"
    head = f'<th class="number">times</th><th>{what}</th><th>who</th>'
    yield f'<div class="wide"><table><tr>{head}</tr>'
    for sentence, names in rows:
        who = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        yield (
            f'<tr><td class="number">{len(names)} of {total}</td><td>{escape(sentence)}</td>'
            f'<td class="soft">{escape(who)}</td></tr>'
        )
    yield "</table></div>"


def _submissions(grades: Sequence[Grade]) -> Iterator[str]:
    yield "<h2>Submissions</h2>"
    for grade in grades:
        points = f"{number(grade.points)} of {number(grade.of)}"
        said = [*_said(grade)]
        mark = "" if grade.status == GRADED else f' <span class="failed">{grade.status}</span>'
        yield (
            f"<details><summary>{escape(grade.submission)}{mark}"
            f'<span class="points">{points}</span></summary><ul>'
        )
        yield from (f"<li>{line}</li>" for line in said)
        yield "</ul></details>"


def _said(grade: Grade) -> Iterator[str]:
    if grade.reason:
        yield f'<span class="failed">{escape(grade.reason)}</span>'
    for item in grade.items if grade.status == GRADED else ():
        yield _item(item)
    for finding in grade.findings:
        cost = f" (−{number(finding.cost)})" if finding.cost else ""
        yield escape(finding.message) + cost
    yield from (f"rule: {escape(rule)}" for rule in grade.rules)


def _item(item: Item) -> str:
    kind = "right" if item.points == item.of else "wrong"
    words = f": {escape(item.message)}" if item.message else ""
    return (
        f'{escape(item.name)} <span class="{kind}">{escape(item.verdict)}</span>, '
        f"{number(item.points)} of {number(item.of)}{words}"
    )
