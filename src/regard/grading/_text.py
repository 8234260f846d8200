"""A grade as text: points first, then what earned them, what probes found, and broken rules."""

from __future__ import annotations

from collections.abc import Iterator

from regard.grading._grade import GRADED, Grade

SIGNS = {"right": "✓", "wrong": "✗"}


def to_text(grade: Grade) -> str:
    return "\n".join(_lines(grade)) + "\n"


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
            yield from (f"  {line}" for line in grade.printed.strip().splitlines()[-5:])
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
