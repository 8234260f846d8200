"""Tables under a name: Markdown, and lines of separated values."""

from __future__ import annotations

import re
from typing import Any

from regard.exercises.reading._numbers import read_number, read_rows
from regard.exercises.reading._records import Block, Cell

_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BAR = re.compile(r"(?<!\\)\|")
_SEPARATORS = (re.compile("\t"), re.compile(";"), re.compile(","), re.compile(r"(?<=\S)[ ]+(?=\S)"))
_INDEX_WORDS = frozenset(
    ("", "#", "i", "id", "no", "no.", "row", "index", "idx", "token", "word", "position", "pos")
)


def read_table(text: str, at: int) -> Block | None:
    """The Markdown table, or the lines of separated values, that starts on the line of ``at``."""
    start = text.rfind("\n", 0, at) + 1
    if text[start:at].strip():
        return None
    return _read_markdown(text, start) or _read_separated(text, start)


def _lines(text: str, at: int) -> list[Cell]:
    """The lines up to the next blank one."""
    lines = []
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if not text[at:end].strip():
            break
        lines.append(Cell(text[at:end], at))
        at = end + 1
    return lines


def _read_markdown(text: str, at: int) -> Block | None:
    lines = []
    for line in _lines(text, at):
        if "|" not in line.text:
            break
        lines.append(line)
    has_rule = len(lines) > 1 and _RULE.fullmatch(lines[1].text) is not None
    if not has_rule and not (lines and lines[0].text.lstrip().startswith("|")):
        return None
    rows = [_bar_cells(line) for line in lines if not _RULE.fullmatch(line.text)]
    return _block(rows, lines[-1], "markdown")


def _bar_cells(line: Cell) -> list[Cell]:
    cells = _split(line, _BAR)
    first = 1 if line.text.lstrip().startswith("|") else 0
    last = len(cells) - 1 if re.search(r"(?<!\\)\|\s*$", line.text) else len(cells)
    return cells[first:last]


def _read_separated(text: str, at: int) -> Block | None:
    lines: list[Cell] = []
    for line in _lines(text, at):
        separator = _separator(line.text)
        numeric = [read_number(cell.text) is not None for cell in _split(line, separator)]
        if lines and not any(numeric):
            break
        # Spaces also separate words, so that here a line needs more evidence to count as data.
        if lines and separator is _SEPARATORS[-1] and sum(numeric) * 2 < len(numeric):
            break
        lines.append(line)
    rows = [_value_cells(line) for line in lines]
    if not rows or not any(_mostly_numbers(row) for row in rows[:2]):
        return None
    if len(rows) == 1 and len(rows[0]) == 1:
        return None
    return _block(rows, lines[-1], "csv")


def _value_cells(line: Cell) -> list[Cell]:
    cells = [
        Cell(cell.text.strip().strip("\"'"), cell.at)
        for cell in _split(line, _separator(line.text))
    ]
    return cells[:-1] if len(cells) > 1 and not cells[-1].text.strip() else cells


def _mostly_numbers(row: list[Cell]) -> bool:
    return sum(read_number(cell.text) is not None for cell in row) * 2 >= len(row)


def _separator(line: str) -> re.Pattern[str]:
    return next((mark for mark in _SEPARATORS if mark.search(line.strip())), _SEPARATORS[-1])


def _split(line: Cell, separator: re.Pattern[str]) -> list[Cell]:
    cells, start = [], 0
    for found in [*separator.finditer(line.text.rstrip())]:
        cells.append(Cell(line.text[start : found.start()], line.at + start))
        start = found.end()
    return [*cells, Cell(line.text[start:], line.at + start)]


def _block(rows: list[list[Cell]], last: Cell, layout: str) -> Block | None:
    numbers = _without_labels(rows)
    if not numbers or not numbers[0]:
        return None
    values: list[Any] = read_rows(numbers)
    return Block(values, last.at + len(last.text), layout)


def _without_labels(rows: list[list[Cell]]) -> list[list[Cell]]:
    """The rows without a header of words or column numbers, and without a column of labels."""
    header = rows[0] if len(rows) > 1 and _is_header(rows[0]) else None
    body = rows[1:] if header else rows
    wide = all(len(row) > 1 for row in body)
    labels = [row[0].text for row in body if row]
    words = wide and all(read_number(label) is None for label in labels)
    titled = header is not None and _plain_label(header[0]) in _INDEX_WORDS and len(header) > 1
    counted = wide and titled and _counts_up(labels) and len(header or ()) == len(body[0])
    return [row[1:] for row in body] if words or counted else body


def _is_header(row: list[Cell]) -> bool:
    numbers = [read_number(cell.text) is not None for cell in row]
    if not any(numbers):
        return True
    # Column numbers beside a corner label; numbers alone are taken as data.
    beside = [cell.text for cell in row[1:]]
    return not numbers[0] and all(numbers[1:]) and _counts_up(beside)


def _plain_label(cell: Cell) -> str:
    return cell.text.strip(" *_`$").lower()


def _counts_up(texts: list[str]) -> bool:
    numbers = [read_number(text) for text in texts]
    return any(numbers == [*range(first, first + len(texts))] for first in (0, 1))
