"""Arrays in MATLAB's brackets, and arrays as NumPy prints them."""

from __future__ import annotations

import re
from typing import Any

from regard.exercises.reading._numbers import read_rows, transposed
from regard.exercises.reading._records import Block, Cell
from regard.exercises.reading._text import TRANSPOSE, blank, matching

_UNSEEN = re.compile(r"\.\.\.[^\n]*\n|%[^\n]*")
_COMMENT = re.compile(r"%[^\n]*")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_ROW_END = re.compile(r"[;\n]")
_CELL = re.compile(r"[^\s,;]+")
# Python would take "1 -2" for a difference and "] [" for an index.
_NO_COMMA = re.compile(r"(?:[\d.]|inf|nan)\s+[-+]?(?:[\d.]|inf|nan)|\]\s*\[", re.IGNORECASE)
_INNER_ROW = re.compile(r"\[([^\[\]]*)\]")


def read_matlab(text: str, at: int) -> Block | None:
    """Rows between one pair of brackets, ended by semicolons or lines."""
    inner = _inside(text, at)
    if inner is None or "[" in inner or not (";" in inner or _separated_by_space(inner)):
        return None
    seen = _UNSEEN.sub(lambda unseen: " " * len(unseen[0]), inner)
    rows, start = [], 0
    for end in [*(found.start() for found in _ROW_END.finditer(seen)), len(seen)]:
        rows.append(_cells(seen[start:end], at + 1 + start))
        start = end + 1
    values: list[Any] = read_rows([row for row in rows if row])
    end = at + len(inner) + 2
    if transpose := TRANSPOSE.match(text, end):
        return Block(transposed(values), transpose.end(), "matlab")
    return Block(values, end, "matlab")


def read_printed(text: str, at: int) -> Block | None:
    """Rows in brackets of their own, their numbers parted by spaces alone."""
    inner = _inside(text, at)
    if inner is None or "[" not in inner or not _separated_by_space(inner):
        return None
    if _INNER_ROW.sub("", inner).strip(" \n\t,"):
        return None
    rows = [_cells(row[1], at + 1 + row.start(1)) for row in _INNER_ROW.finditer(inner)]
    return Block(read_rows(rows), at + len(inner) + 2, "numpy", printed=True)


def _inside(text: str, at: int) -> str | None:
    if text[at : at + 1] != "[":
        return None
    paragraph = _PARAGRAPH_END.search(text, at)
    written = text[at : paragraph.start() if paragraph else len(text)]
    close = matching(_COMMENT.sub(lambda comment: blank(comment[0]), written), 0)
    return None if close is None or not written[1:close].strip() else written[1:close]


def _separated_by_space(inner: str) -> bool:
    return _NO_COMMA.search(inner) is not None


def _cells(row: str, at: int) -> list[Cell]:
    return [Cell(found[0], at + found.start()) for found in _CELL.finditer(row)]
