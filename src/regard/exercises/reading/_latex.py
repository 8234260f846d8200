"""Arrays in LaTeX: the matrix environments, ``array``, ``\\pmatrix{}`` and tuples."""

from __future__ import annotations

import re
from typing import Any

from regard.exercises.reading._numbers import read_number, read_rows, scaled, transposed
from regard.exercises.reading._records import Block, Cell, UnreadableError
from regard.exercises.reading._text import TRANSPOSE, blank, in_math, matching

_NESTED = r"\{(?:[^{}]|\{[^{}]*\})*\}"
BEGIN = re.compile(
    r"\\begin\{(?P<name>[pbBvV]?(?:small)?matrix|array)(?P<star>\*?)\}"
    rf"(?P<spec>(?<=\*\}})\s*\[[a-z]\]|(?<=array\}})\s*(?:\[[a-z]\])?\s*{_NESTED})?"
)
_TEX_BEGIN = re.compile(r"\\[pb]?matrix\s*(?=\{)")
# \left and \bigl, but neither \leftarrow nor \bigcup.
_SIZE = r"\\(?:left|right|[bB]igg?[lr]?)(?![a-z])\s*"
_FENCE = r"(?:\\[{}|]|\\[lr](?:brack|angle|paren)\b|[\[\]()|.])"
_OPENING = re.compile(rf"(?:{_SIZE})?{_FENCE}?\s*")
_CLOSING = re.compile(rf"\s*(?:{_SIZE}{_FENCE}|[\])])")
_FACTOR = re.compile(
    r"([+-]?[\d.]+(?:/\d+)?|[+-]?\\[dt]?frac\{\d+\}\{\d+\})\s*(?:\\cdot|\\times|\\,)?\s*"
)
# A length such as [2pt] belongs to the row end; any other bracket opens the next row.
_ROW_END = re.compile(
    r"\\\\\*?(?:[ \t]*\[-?[\d.]+\s*(?:[a-z]{2}|\\\w+)\])?|\\cr\b|\\tabularnewline\b"
)
_CELL_END = re.compile(r"(?<!\\)&")
_RULES = re.compile(r"\\hline\b|\\cline\{[^{}]*\}|\\[a-z]+rule\b|(?<!\\)%[^\n]*")
_TUPLE_START = re.compile(r"(?:\\(?:left|[bB]igg?l?)(?![a-z])\s*)?(\\langle\b|[(\[])")
_TUPLE_END = re.compile(r"(?:\\(?:right|[bB]igg?r?)(?![a-z])\s*)?(?:\\rangle\b|[)\]])")
_TUPLE_GAP = re.compile(r",|;|\\q?quad\b|\\[;,:](?=\s*[-+\d.\\])|&")


def read_environment(text: str, at: int) -> Block | None:
    """A matrix environment, with the brackets, the factor and the transpose around it."""
    factor = _FACTOR.match(text, at)
    start = factor.end() if factor else at
    opening = _OPENING.match(text, start)
    body = _body(text, opening.end() if opening else start)
    if body is None:
        return None
    first, last, end = body
    values: list[Any] = read_rows(_cells(text, first, last))
    if opening and opening[0].strip() and (closing := _CLOSING.match(text, end)):
        end = closing.end()
    if factor and (number := read_number(factor[1])) is not None:
        values = scaled(values, number)
    if transpose := TRANSPOSE.match(text, end):
        return Block(transposed(values), transpose.end(), "latex")
    return Block(values, end, "latex")


def _body(text: str, at: int) -> tuple[int, int, int] | None:
    """Where the entries start and end, and where the environment ends."""
    if begin := BEGIN.match(text, at):
        close = f"\\end{{{begin['name']}{begin['star']}}}"
        last = text.find(close, begin.end())
        if last < 0:
            raise UnreadableError(at, f"{begin[0]} is never closed", f"Write {close} after it")
        return begin.end(), last, last + len(close)
    if begin := _TEX_BEGIN.match(text, at):
        closing = matching(text, begin.end())
        return (begin.end() + 1, closing, closing + 1) if closing else None
    return None


def _cells(text: str, first: int, last: int) -> list[list[Cell]]:
    body = _RULES.sub(lambda rule: blank(rule[0]), text[first:last])
    rows = [
        [Cell(body[left:right], first + left) for left, right in _pieces(body, _CELL_END, *row)]
        for row in _pieces(body, _ROW_END, 0, len(body))
    ]
    return rows[:-1] if len(rows) > 1 and not any(cell.text.strip() for cell in rows[-1]) else rows


def _pieces(text: str, separator: re.Pattern[str], first: int, last: int) -> list[tuple[int, int]]:
    """The stretches between the separators."""
    pieces, start = [], first
    for found in separator.finditer(text, first, last):
        pieces.append((start, found.start()))
        start = found.end()
    return [*pieces, (start, last)]


def read_tuple(text: str, at: int) -> Block | None:
    """A flat vector such as (1, 2, 3)^T; None when something else than numbers stands inside."""
    opening = _TUPLE_START.match(text, at)
    if opening is None:
        return None
    closing = _TUPLE_END.search(text, opening.end())
    if closing is None or text[opening.end() : closing.start()].count("\n\n"):
        return None
    pieces = _TUPLE_GAP.split(text[opening.end() : closing.start()])
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()
    numbers = [value for piece in pieces if (value := read_number(piece)) is not None]
    # (5) is a number between parentheses, [5] a vector with one entry.
    alone = len(pieces) == 1 and not (opening[1] == "[" and text[closing.end() - 1] == "]")
    if len(numbers) < len(pieces) or alone:
        return None
    transpose = TRANSPOSE.match(text, closing.end())
    end = transpose.end() if transpose else closing.end()
    return Block(list(numbers), end, _layout(text, at, end), column=transpose is not None)


def _layout(text: str, at: int, end: int) -> str:
    written = text[at:end]
    if in_math(text, at) or any(sign in written for sign in "\\^⊤ᵀ"):
        return "latex"
    return "matlab" if written.endswith("'") or text[end : end + 1] == ";" else "numpy"
