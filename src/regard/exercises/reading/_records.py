"""What reading gives back, and what the readers of the single layouts hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from regard._errors import AssignmentError

Number = Fraction | float


class ReadingError(AssignmentError):
    """Something that ought to be an array of numbers is not: where, why, and what to do."""

    def __init__(self, line: int, problem: str, advice: str) -> None:
        super().__init__(line, problem, advice)
        self.line = line
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}. {self.advice}."


@dataclass(frozen=True)
class Found:
    """One array that the text gives."""

    name: str
    """X, Q, K, V, WQ, WK, WV, WO, bQ, bK, bV, bO, s, h, q, k, v, Y, M, or an unknown name."""
    written: str
    """The name as it stands in the text."""
    head: int | None
    """Which head it belongs to, counted from 0; None when it belongs to no single head."""
    values: list[Any]
    """Nested lists of fractions; infinities and NaN are floats."""
    line: int
    """The line, counted from 1, where it starts."""
    layout: str
    """latex, numpy, torch, matlab, csv or markdown."""


@dataclass(frozen=True)
class Reading:
    """What a text gives and asks for."""

    found: tuple[Found, ...]
    kind: str | None
    """dot-product, attention, self-attention, cross-attention or multi-head."""
    scale: bool | None
    """True: by the square root of d_k. False: not at all. None: the text does not say."""
    heads: tuple[int, ...]
    causal: bool | None
    notes: tuple[str, ...]
    joined: bool = False
    """Whether it speaks of multi-head attention and gives weights that join the heads."""


@dataclass(frozen=True)
class Cell:
    """The text of one entry and its offset."""

    text: str
    at: int


@dataclass(frozen=True)
class Block:
    """An array as written: its numbers, where its text ends, and how it was laid out."""

    values: list[Any]
    end: int
    layout: str
    column: bool = False
    """A flat list of numbers that the text stands upright: (1, 2, 3)^T."""
    printed: bool = False
    """As NumPy prints it, without commas: more often an output than a given."""


class UnreadableError(Exception):
    """A block that looks like an array but cannot be read as numbers."""

    def __init__(self, at: int, problem: str, advice: str, symbolic: bool = False) -> None:
        super().__init__(at, problem, advice, symbolic)
        self.at = at
        self.problem = problem
        self.advice = advice
        self.symbolic = symbolic
