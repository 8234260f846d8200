"""Numbers and rows of numbers, read exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from regard.exercises.reading._records import Cell, Number, UnreadableError
from regard.graph.numbers import number_hint

_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"[+-]?{_DECIMAL}")
_QUOTIENT = re.compile(rf"([+-]?{_DECIMAL})/([+-]?{_DECIMAL})")
_FRACTION = re.compile(r"([+-]?)\\[dtc]?frac(?:\{([^{}]*)\}|(\d))(?:\{([^{}]*)\}|(\d))")
_TIMES_POWER = re.compile(
    rf"([+-]?)({_DECIMAL})?(?:\\cdot|\\times|\*|×)?10(?:\^|\*\*)\{{?([+-]?\d+)\}}?"
)
_INFINITE = re.compile(
    r"([+-]?)(?:(?:np|numpy|math|torch|jnp)\.)?(?:\\infty|∞|infinity|infty|inf)", re.IGNORECASE
)
_NAN = re.compile(r"[+-]?(?:(?:np|numpy|math|torch)\.)?nan", re.IGNORECASE)
_FLOAT_CALL = re.compile(r"([+-]?)float\(['\"]([^'\"()]*)['\"]\)")
_INVISIBLE = re.compile(
    r"\\h?phantom\{[^{}]*\}|\\[,;:! ]|~|\\q?quad\b|\\displaystyle\b|\\textcolor\{[^{}]*\}"
    r"|\\color\{[^{}]*\}|\\(?:mathbf|mathrm|boldsymbol|bm|text|textbf|mathit)\b|\$|\*\*(?!-?\d)|`"
)
_ELLIPSIS = re.compile(r"\\[cvdl]?dots\b|\\ddots\b|\.\.\.|…")
# Beyond this the exact fraction would fill the memory, and no float could hold it.
_LARGEST_EXPONENT = 400
_EXPONENT = re.compile(r"(?:[eE]|\^\{?|\*\*)([+-]?\d+)")


def read_number(text: str) -> Number | None:
    """The number that a cell holds, or None when it holds none."""
    cell = re.sub(r"\s+", "", _INVISIBLE.sub("", text))
    cell = re.sub(r"^([+-]?)\{([^{}]*)\}$", r"\1\2", re.sub(r"\{([+-])\}", r"\1", cell))
    exponents = [int(found) for found in _EXPONENT.findall(cell)]
    if any(abs(exponent) > _LARGEST_EXPONENT for exponent in exponents):
        return None
    return _exact(cell) if (special := _special(cell)) is None else special


def _special(cell: str) -> float | None:
    if call := _FLOAT_CALL.fullmatch(cell):
        inner = _special(call[2])
        return inner if inner is None or call[1] != "-" else -inner
    if infinite := _INFINITE.fullmatch(cell):
        return -math.inf if infinite[1] == "-" else math.inf
    return math.nan if _NAN.fullmatch(cell) else None


def _exact(cell: str) -> Fraction | None:
    if _PLAIN.fullmatch(cell):
        return Fraction(cell)
    if quotient := _QUOTIENT.fullmatch(cell):
        return _ratio("", quotient[1], quotient[2])
    if fraction := _FRACTION.fullmatch(cell):
        return _ratio(fraction[1], fraction[2] or fraction[3], fraction[4] or fraction[5])
    if power := _TIMES_POWER.fullmatch(cell):
        value = Fraction(power[2] or 1) * Fraction(10) ** int(power[3])
        return -value if power[1] == "-" else value
    return None


def _ratio(sign: str, above: str | None, below: str | None) -> Fraction | None:
    top, bottom = read_number(above or ""), read_number(below or "")
    if not isinstance(top, Fraction) or not isinstance(bottom, Fraction) or bottom == 0:
        return None
    return -top / bottom if sign == "-" else top / bottom


def read_rows(rows: Sequence[Sequence[Cell]]) -> list[list[Number]]:
    """Rows of cells as numbers, all rows of one length."""
    cells = [cell for row in rows for cell in row]
    refuse_words(cells, [read_number(cell.text) is not None for cell in cells])
    for place, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise UnreadableError(
                row[0].at,
                f"row {place} has {count(len(row))}, row 1 has {len(rows[0])}",
                "Give every row the same count",
            )
    return [
        [value for cell in row if (value := read_number(cell.text)) is not None] for row in rows
    ]


def refuse_words(cells: Sequence[Cell], are_numbers: Sequence[bool]) -> None:
    """Raise when a cell holds no number; mostly symbols, or dots, make the block symbolic."""
    if all(are_numbers):
        return
    first = cells[list(are_numbers).index(False)]
    symbolic = sum(are_numbers) * 2 < len(cells) or any(
        _ELLIPSIS.search(cell.text) for cell in cells
    )
    shown = f'"{first.text.strip()}"' if first.text.strip() else "an empty entry"
    raise UnreadableError(
        first.at,
        f"{shown} is not a number that can be read exactly",
        number_hint(first.text) or "Write a decimal, a fraction such as 1/2, or an infinity",
        symbolic,
    )


def count(numbers: int) -> str:
    """Say how many numbers."""
    return "1 number" if numbers == 1 else f"{numbers} numbers"


def transposed(values: list[Any]) -> list[Any]:
    """A matrix with rows and columns exchanged."""
    return [list(column) for column in zip(*values, strict=True)]


def shape(values: list[Any]) -> tuple[int, ...]:
    """The extent of nested lists along each axis."""
    if values and isinstance(values[0], list):
        return (len(values), *shape(values[0]))
    return (len(values),)


def scaled(values: list[Any], factor: Number) -> list[Any]:
    """Every number of nested lists times one factor."""
    return [
        scaled(value, factor) if isinstance(value, list) else value * factor for value in values
    ]
