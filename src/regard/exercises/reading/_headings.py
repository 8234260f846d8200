"""Where exercises start, and which stretches of a text are solutions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.exercises.reading._text import blank, plain

_MARKUP = (
    r"[ \t]*+(?:[#>]++[ \t]*+|[-*][ \t]++)?+"
    r"(?:\*\*|__|\\(?:sub)*(?:section|paragraph|textbf)\*?\{)?+[ \t]*+"
)
# After the number: punctuation, a title in capitals, or nothing; "Exercise 1 showed" is prose.
_NAMED = re.compile(
    rf"^{_MARKUP}(?:Exercise|Problem|Question|Task|Assignment(?=[ \t]*\d+[ \t]*[:.-]))"
    r"[ \t]*(?P<number>\d+)\b(?=[ \t]*(?:$|[:.)(\[*_}-]|(?-i:[A-Z])))[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
# A bare number starts an exercise only before a verb that asks for something.
_NUMBERED = re.compile(
    rf"^{_MARKUP}(?P<number>\d+)[.)]\**[ \t]+\**(?:Compute|Calculate|Consider|Given|Let|Find"
    r"|Implement|Write|Show|Derive|Suppose|Assume|Determine|Work|Evaluate|Complete|Explain|For the"
    r"|You (?:will|are)|In this)\b[^\n]*$",
    re.MULTILINE,
)
# A heading, not a sentence that speaks of solutions.
_SOLUTION = re.compile(
    rf"^{_MARKUP}(?:(?:sample|model|worked|full|proposed|my|suggested)[ \t]+)?"
    r"(?:solutions?|answer key|answers)\b(?:[ \t]+(?:to|for|of|key)\b[^\n:]{0,40}|[ \t]+[\d.]+)?"
    r"[ \t]*(?:[:*_}.][^\n]*)?$|\\begin\{solution\}",
    re.MULTILINE | re.IGNORECASE,
)
_LATEX_SOLUTION_END = re.compile(r"\\end\{solution\}")
_MARKDOWN_HEADING = re.compile(r"^(#+)[ \t]", re.MULTILINE)
_TITLE_LENGTH = 80


@dataclass(frozen=True)
class Heading:
    """The start of an exercise."""

    at: int
    number: int
    title: str


def split_exercises(text: str) -> list[tuple[str, str]]:
    """Cut a text at its exercise headings into (title, body).

    Every body keeps the line numbers of the whole text: what belongs to another exercise is left
    as blank lines. What stands before the first heading belongs to every exercise when it holds
    matrices. A text without such headings is one exercise, with an empty title.
    """
    starts = headings(plain(text))
    if not starts:
        return [("", text)]
    preamble = text[: starts[0].at]
    if not _holds_matrices(preamble):
        preamble = blank(preamble)
    ends = [start.at for start in starts[1:]] + [len(text)]
    return [
        (start.title, preamble + blank(text[len(preamble) : start.at]) + text[start.at : end])
        for start, end in zip(starts, ends, strict=True)
    ]


def headings(text: str) -> list[Heading]:
    """The exercise headings of a text; bare numbers count only where nothing better is found."""
    named = [_heading(found) for found in _NAMED.finditer(text)]
    starts = _without_solutions(text, named)
    if starts:
        return starts
    numbered = [_heading(found) for found in _NUMBERED.finditer(text)]
    in_order = [heading.number for heading in numbered] == [*range(1, len(numbered) + 1)]
    # Numbered items below shared matrices are the questions of one exercise.
    if len(numbered) < 2 or not in_order or _holds_matrices(text[: numbered[0].at]):
        return []
    return numbered


def _heading(found: re.Match[str]) -> Heading:
    written = found[0]
    if "\\begin{" in written:  # a matrix on the same line is no part of the title
        written = re.split(r"\$|\\\(|\\\[|\\begin\{", written)[0].rstrip() + " …"
    line = re.sub(r"^[\s#>*_-]+|\\\w+\*?\{|[\s*_}]+$", "", written).replace("**", "")
    if len(line) > _TITLE_LENGTH:
        sentence = re.match(r".{20,78}?[.:!?](?=\s)", line)
        line = sentence[0] if sentence else line[:_TITLE_LENGTH].rsplit(" ", 1)[0] + " …"
    return Heading(found.start(), int(found["number"]), line)


def _without_solutions(text: str, starts: list[Heading]) -> list[Heading]:
    """Drop headings that repeat a number below a heading that announces solutions."""
    solutions = [found.start() for found in _SOLUTION.finditer(text)]
    kept: list[Heading] = []
    for start in starts:
        seen = any(earlier.number == start.number for earlier in kept)
        last = kept[-1].at if kept else 0
        if not (seen and any(last < solution < start.at for solution in solutions)):
            kept.append(start)
    return kept


def solutions(text: str) -> list[tuple[int, int]]:
    """The stretches that are solutions: from their heading to the next exercise or section."""
    starts = [heading.at for heading in headings(text)]
    stretches: list[tuple[int, int]] = []
    for found in _SOLUTION.finditer(text):
        if not stretches or found.start() >= stretches[-1][1]:
            stretches.append((found.start(), _end_of_solution(text, found, starts)))
    return stretches


def _end_of_solution(text: str, found: re.Match[str], starts: list[int]) -> int:
    if found[0].startswith("\\begin"):
        close = _LATEX_SOLUTION_END.search(text, found.end())
        return close.end() if close else len(text)
    ends = [start for start in starts if start > found.start()]
    level = len(found[0].lstrip()) - len(found[0].lstrip().lstrip("#"))
    if level:
        ends += [
            heading.start()
            for heading in _MARKDOWN_HEADING.finditer(text, found.end())
            if len(heading[1]) <= level
        ]
    return min(ends, default=len(text))


def _holds_matrices(text: str) -> bool:
    """Whether anything in a text looks like an array of numbers."""
    return (
        re.search(
            r"\\begin\{\w*(?:matrix|array)|\[\[|=\s*\[[-\d.\s]|^\s*\|.*\d.*\|", text, re.MULTILINE
        )
        is not None
    )
