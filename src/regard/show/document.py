"""What is shown, before any output format: a Document is a title and blocks.

The layouts (of a trace, of an exercise's solution) make Documents; each format module writes one.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.graph.notation import Math

# Running words: strings are plain prose, Math is set inline.
Prose = tuple[str | Math, ...]


@dataclass(frozen=True)
class Heading:
    """`level` 1 opens an answer (a new page on request), 2 a step, 3 a head within a step."""

    text: str
    level: int


@dataclass(frozen=True)
class Paragraph:
    prose: Prose


@dataclass(frozen=True)
class Note:
    """Something that a reader must be told: a shift, a correction to the course document."""

    prose: Prose


@dataclass(frozen=True)
class Display:
    """A formula on its own lines; a long Equation breaks before its = signs."""

    math: Math


@dataclass(frozen=True)
class Table:
    header: tuple[Prose, ...]
    rows: tuple[tuple[Prose, ...], ...]


@dataclass(frozen=True)
class Code:
    language: str
    text: str


Block = Heading | Paragraph | Note | Display | Table | Code


@dataclass(frozen=True)
class Document:
    title: str
    blocks: tuple[Block, ...]
