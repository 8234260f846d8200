"""The catalogue as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator

from regard.mistakes._catalogue import CATALOGUE, GROUPS

OPENING = f"""# The catalogue of mistakes

`regard check` and `regard grade` know {len(CATALOGUE)} mistakes. Each is a change of the graph of \
the computation: what it makes of every step is computed, one at a time and in pairs, until the \
numbers are those of the answer. The hint is what a learner is told at first.

`regard check EXERCISE --mistakes` says which of them the numbers of an exercise can show."""


def reference() -> str:
    """Every mistake with its name, explanation, evidence and hint, as Markdown."""
    return "\n\n".join([OPENING, *_paragraphs()]) + "\n"


def _paragraphs() -> Iterator[str]:
    for group, mistakes in GROUPS.items():
        yield f"## {group}"
        for mistake in mistakes:
            yield f"### {mistake.title}"
            yield f"`{mistake.word}`: {mistake.explanation}"
            yield f"What shows it: {mistake.evidence}"
            yield f"Hint: {mistake.hint}"
