"""Grades as text: points first, then what earned them, what probes found, and broken rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.grading._grade import GRADED, Grade

SIGNS = {"right": "✓", "wrong": "✗"}


def to_text(grade: Grade) -> str:
    return "\n".join(_lines(grade)) + "\n"


def to_table(grades: Sequence[Grade]) -> str:
    """One line a submission: points, and the first thing to say about it."""
    width = max((len(grade.submission) for grade in grades), default=0)
    lines = []
    for grade in grades:
        said = [grade.reason, *grade.mistakes, *(f.message for f in grade.findings), *grade.rules]
        first = next(filter(None, said), "")
        earned = f"{number(grade.points):>5} of {number(grade.of)}"
        lines.append(f"{grade.submission:{width}}  {earned}  {_short(first)}".rstrip())
    mean = sum(grade.points for grade in grades) / len(grades) if grades else 0.0
    lines.append(f"{len(grades)} submissions, mean {number(mean)}")
    return "\n".join(lines) + "\n"


def _short(text: str, most: int = 70) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def number(value: float) -> str:
    return f"{round(value, 2):g}"


def _lines(grade: Grade) -> Iterator[str]:
    head = f"{grade.submission}: {number(grade.points)} of {number(grade.of)} points"
    yield head
    yield "─" * len(head)
    if grade.status != GRADED:
        yield f"{grade.status.capitalize()}: {grade.reason}"
        if grade.printed.strip():
            yield "It printed:"
            yield from (f"  {line[:200]}" for line in grade.printed.strip().splitlines()[-5:])
    else:
        width = max(len(item.name) for item in grade.items)
        for item in grade.items:
            earned = f"{number(item.points)} of {number(item.of)}"
            yield f"{SIGNS.get(item.verdict, '~')} {item.name:{width}}  {earned}"
            if item.message:
                yield f"    {item.message}"
    for finding in grade.findings:
        cost = f"  (−{number(finding.cost)})" if finding.cost else ""
        yield f"! {finding.message}{cost}"
    for rule in grade.rules:
        yield f"§ {rule}"
