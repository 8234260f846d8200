"""A displayed formula in a given width: broken before "=", split or named apart where too wide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from regard.graph.notation import Equation, Fraction, Math, Matrix, Negative, Product, Sum, Words
from regard.show import _tree
from regard.show._boxes import Box, beside, line, stacked, wrapped
from regard.show._format import Grid, NumberFormat, format_matrix
from regard.show._plain import Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

EQUALS = line(" = ")
DEEPEST = 16  # columns that continued lines are indented at most


def broken(math: Math, numbers: NumberFormat, width: int) -> list[str]:
    """The lines of a displayed formula."""
    writer = Plain(numbers)
    sides = math.sides if isinstance(math, Equation) else (math,)
    boxes = _Breaker(writer).equation(sides, width)
    lines = list(boxes[0].lines)
    for above, box in pairwise(boxes):
        if len(above.lines) > 1 or len(box.lines) > 1:
            lines.append("")
        lines += box.lines
    return [row.rstrip() for row in lines]


@dataclass
class _Breaker:
    """Breaks one display; `named` counts the matrices that follow under a number."""

    writer: Plain
    named: int = 0

    def equation(self, sides: Sequence[Math], width: int) -> list[Box]:
        first = self.writer.box(sides[0])
        if first.width > width:
            return [*self.narrow(sides[0], width), *self.continued(sides[1:], None, 2, width)]
        return self.continued(sides[1:], first, min(first.width, DEEPEST), width)

    def continued(
        self, sides: Sequence[Math], current: Box | None, indent: int, width: int
    ) -> list[Box]:
        """Boxes with as many sides as fit, each further one beginning with an equals sign."""
        done: list[Box] = []
        for side in sides:
            box = self.writer.box(side)
            if current is not None and current.width + EQUALS.width + box.width <= width:
                current = beside(current, EQUALS, box)
                continue
            lead = line(" " * indent)
            if current is not None and current.width <= indent:
                lead = current  # a short left-hand side leaves room beside it
            elif current is not None:
                done.append(current)
            opened = _opened(self.narrow(side, width - indent - EQUALS.width), lead, indent)
            *finished, current = opened
            done += finished
        return [*done, current] if current is not None else done

    def narrow(self, math: Math, width: int) -> list[Box]:
        """A formula as boxes below each other, none wider than `width` if that can be."""
        box = self.writer.box(math)
        if box.width <= width:
            return [box]
        if isinstance(math, Matrix):
            grid = format_matrix(math.values, self.writer.numbers, math.rounding, math.hidden)
            return _column_blocks(grid, self.writer, width)
        pieces = _pieces(math, self.writer)
        if pieces and max(piece.width for piece in pieces) <= width:
            return _packed(pieces, width)
        if any(True for _ in _tree.matrices(math)):
            return self.named_apart(math, width)
        return [line(row) for row in _cut("".join(box.lines), width)]

    def named_apart(self, math: Math, width: int) -> list[Box]:
        """The formula with numbered places for its matrices, which follow below it."""
        found: dict[str, Matrix] = {}

        def place(part: Math) -> Math:
            if not isinstance(part, Matrix):
                return _tree.with_parts(part, place)
            self.named += 1
            found[f"⟨{self.named}⟩"] = part
            return Words(f"⟨{self.named}⟩")

        boxes = self.narrow(place(math), width)
        for name, matrix in found.items():
            lead = line(f"{name} = ")
            blank = line(" " * lead.width)
            for first, box in enumerate(self.narrow(matrix, width - lead.width)):
                boxes.append(beside(blank if first else lead, box))
        return boxes


def _opened(pieces: Sequence[Box], lead: Box, indent: int) -> list[Box]:
    """The pieces of a side, the first behind an equals sign."""
    margin = line(" " * (max(lead.width, indent) + EQUALS.width))
    return [beside(margin, box) if place else beside(lead, EQUALS, box)
            for place, box in enumerate(pieces)]  # fmt: skip


def _pieces(math: Math, writer: Plain) -> list[Box]:
    match math:
        case Sum() | Negative():
            return writer.terms(math)
        case Product(factors):
            return writer.factors(math, factors)
        case Fraction():
            return writer.quotient(math)
        case _:
            return []


def _packed(pieces: Sequence[Box], width: int) -> list[Box]:
    packed = [pieces[0]]
    for piece in pieces[1:]:
        if packed[-1].width + piece.width <= width:
            packed[-1] = beside(packed[-1], piece)
        else:
            packed.append(piece)
    return packed


def _cut(text: str, width: int) -> list[str]:
    return wrapped(text, max(width, 1), "  " if width > 20 else "")


def _column_blocks(grid: Grid, writer: Plain, width: int) -> list[Box]:
    """A matrix cut into blocks of columns, each under the numbers of its columns."""
    if grid.is_vector or not grid.rows:
        text = writer.grid(grid).lines[0]
        return [line(row) for row in _cut(text, width)]
    blocks: list[Box] = []
    start = 0
    while start < len(grid.columns):
        stop = start + 1
        block = _block(grid, start, stop, writer)
        while stop < len(grid.columns):
            wider = _block(grid, start, stop + 1, writer)
            if wider.width > width:
                break
            block, stop = wider, stop + 1
        if block.width > width:
            return _entries(grid, writer, width)
        blocks.append(block)
        start = stop
    return blocks


def _block(grid: Grid, start: int, stop: int, writer: Plain) -> Box:
    part = Grid(tuple(row[start:stop] for row in grid.rows), grid.columns[start:stop], False)
    return stacked([column_label(part.columns), *writer.grid(part).lines])


def column_label(columns: Sequence[int | None]) -> str:
    """Which columns a block shows: "columns 1 to 3 and 62 to 64"."""
    runs: list[list[int]] = [[]]
    for column in columns:
        if column is None:
            runs.append([])
        else:
            runs[-1].append(column)
    seen = [run for run in runs if run]
    phrases = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in seen]
    word = "column" if sum(map(len, seen)) == 1 else "columns"
    return " ".join([word, " and ".join(phrases)]) if seen else "columns left out"


def _entries(grid: Grid, writer: Plain, width: int) -> list[Box]:
    """A matrix whose single entries are too wide: one entry after the other."""
    lines: list[str] = []
    for row_number, row in enumerate(grid.rows, 1):
        for column, cell in zip(grid.columns, row, strict=True):
            lines += _cut(f"[{row_number}, {column or '…'}] {writer.cell(cell)}", width)
    return [line(text) for text in lines]
