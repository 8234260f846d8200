"""Blocks of text set beside each other: two-dimensional layout in a terminal."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

BRACKETS = {"[": ("[", "⎡⎢⎣"), "]": ("]", "⎤⎥⎦"), "(": ("(", "⎛⎜⎝"), ")": (")", "⎞⎟⎠")}


class Box(NamedTuple):
    """Lines of equal width; line `base` stands on the baseline."""

    lines: tuple[str, ...]
    base: int = 0

    @property
    def width(self) -> int:
        return columns_of(self.lines[0])


def columns_of(text: str) -> int:
    """How many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


@cache
def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """Words on lines of so many columns, later lines indented; a longer word is cut."""
    lines, current = [], ""
    for word in text.split():
        if current.strip() and columns_of(current) + 1 + columns_of(word) > width:
            lines.append(current)
            current = hanging
        current += (" " if current.strip() else "") + word
        while columns_of(current) > width:
            head = _fitting(current, width)
            lines.append(head)
            current = hanging + current[len(head) :]
    return [*lines, current]


def _fitting(text: str, width: int) -> str:
    """As much of the beginning as fits, but always something."""
    stop = len(text)
    while stop > 1 and columns_of(text[:stop]) > width:
        stop -= 1
    return text[:stop]


def line(text: str) -> Box:
    return Box((text,))


def stacked(rows: list[str], base: int = 0) -> Box:
    width = max(map(columns_of, rows))
    return Box(tuple(padded(row, width) for row in rows), base)


def beside(*boxes: Box) -> Box:
    """Boxes from left to right, their baselines level."""
    if not boxes:
        return line("")
    above = max(box.base for box in boxes)
    below = max(len(box.lines) - box.base for box in boxes)
    lines = [""] * (above + below)
    for box in boxes:
        empty = " " * box.width
        top = above - box.base
        for place in range(len(lines)):
            inside = 0 <= place - top < len(box.lines)
            lines[place] += box.lines[place - top] if inside else empty
    return Box(tuple(lines), above)


def bracket(shape: str, height: int) -> Box:
    """A bracket that reaches over so many lines."""
    short, tall = BRACKETS[shape]
    return line(short) if height == 1 else Box((tall[0], *[tall[1]] * (height - 2), tall[2]))


def enclosed(box: Box, left: str = "(", right: str = ")") -> Box:
    """A box between brackets of its height."""
    sides = [Box(bracket(side, len(box.lines)).lines, box.base) for side in (left, right)]
    return beside(sides[0], box, sides[1])


def raised(box: Box, text: str) -> Box:
    """A box with a text at its upper right."""
    mark = [text] + [" " * columns_of(text)] * (len(box.lines) - 1)
    return beside(box, Box(tuple(mark), box.base))
