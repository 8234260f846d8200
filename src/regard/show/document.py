"""What is shown, before any output format: a Document is a title and blocks.

The layouts (of a trace, of an exercise's solution) make Documents; each format module writes one.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from regard.graph.notation import Math, Matrix, Number

if TYPE_CHECKING:
    from regard.show.plots import Plot

# Running words: strings are plain prose, Math is set inline.
Prose = tuple[str | Math, ...]


def formulas_of(prose: Prose) -> tuple[Math, ...]:
    return tuple(part for part in prose if not isinstance(part, str))


def is_formula(cell: Prose) -> bool:
    """Whether a cell of a table holds one formula and no words."""
    return len(cell) == 1 and not isinstance(cell[0], str)


@dataclass(frozen=True)
class Heading:
    """`level` 1 opens an answer (a new page on request), 2 a step, 3 a head within a step."""

    text: str
    level: int


@dataclass(frozen=True)
class Paragraph:
    """Running words with formulas among them."""

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
    """Rows of cells under a header of as many."""

    header: tuple[Prose, ...]
    rows: tuple[tuple[Prose, ...], ...]


@dataclass(frozen=True)
class Code:
    """Lines of a program, or text that is set as one."""

    language: str
    text: str


@dataclass(frozen=True)
class Picture:
    """A plot, drawn as each format can."""

    plot: Plot


Block = Heading | Paragraph | Note | Display | Table | Code | Picture


@dataclass(frozen=True)
class Document:
    """No word of it holds a control character: a terminal would obey it, a page might hide it."""

    title: str
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", _legible(self.title))
        object.__setattr__(self, "blocks", _legible(self.blocks))


# Tabs and line ends lay out; all other controls, and the signs that turn the direction of
# writing, become a picture of themselves or a sign for what cannot be shown.
CONTROLS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: "␡",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�"),
}


def _legible(part: Any) -> Any:
    """The same words, blocks or mathematics, with what cannot be read made visible."""
    if isinstance(part, str):
        return part.translate(CONTROLS)
    if isinstance(part, tuple):
        return tuple(map(_legible, part))
    if isinstance(part, (Number, Matrix)) or not is_dataclass(part) or isinstance(part, type):
        return part
    words = {name: _legible(value) for name, value in vars(part).items()}
    return part if words == vars(part) else replace(part, **words)
