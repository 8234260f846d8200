"""Mathematics in plain Unicode text, laid out in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.graph.notation import (
    Call,
    Equation,
    Fraction,
    Math,
    Matrix,
    Negative,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Symbol,
    Transposed,
    Words,
)
from regard.show import _tree
from regard.show._boxes import Box, beside, columns_of, enclosed, line, raised, stacked
from regard.show._format import Cell, Grid, NumberFormat, format_matrix, format_number
from regard.show._tree import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RAISED = dict(zip("0123456789()+-−=in,", "⁰¹²³⁴⁵⁶⁷⁸⁹⁽⁾⁺⁻⁻⁼ⁱⁿ˒", strict=True)) | {"T": "ᵀ"}
LOWERED = dict(zip("0123456789+-−", "₀₁₂₃₄₅₆₇₈₉₊₋₋", strict=True))


@dataclass(frozen=True)
class Plain:
    """Writes mathematics as boxes; `inline` keeps every matrix on one line."""

    numbers: NumberFormat
    inline: bool = False

    def box(self, math: Math) -> Box:
        match math:
            case Symbol() | Words():
                return line(symbol_text(math) if isinstance(math, Symbol) else math.text)
            case Number(value, rounding):
                return self._cell(format_number(value, self.numbers, rounding))
            case Matrix(values, rounding, hidden):
                return self.grid(format_matrix(values, self.numbers, rounding, hidden))
            case Product(factors):
                return beside(*self.factors(math, factors))
            case Sum() | Negative():
                return beside(*self.terms(math))
            case Fraction():
                return beside(*self.quotient(math))
            case Root(body):
                return beside(line("√"), self._tight(body, Level.ATOM))
            case Power(base, exponent):
                return self._power(base, exponent)
            case Transposed(body):
                return self._transposed(body)
            case Call():
                return self._call(math)
            case Equation(sides):
                boxes = [self.box(side) for side in sides]
                return beside(*_between(boxes, line(" = ")))

    def text(self, math: Math) -> str:
        """The formula on one line; `inline` makes sure that it fits there."""
        return "\n".join(row.rstrip() for row in self.box(math).lines)

    def level(self, math: Math) -> Level:
        return _tree.level(math, self.numbers, flat=True)

    def _tight(self, math: Math, needed: Level) -> Box:
        box = self.box(math)
        return enclosed(box) if self.level(math) < needed else box

    def factors(self, whole: Product, factors: Sequence[Math]) -> list[Box]:
        """Each factor, every one but the first with the sign before it."""
        boxes: list[Box] = []
        for place, factor in enumerate(factors):
            box = self.box(factor)
            is_enclosed = _tree.factor_in_parentheses(factor, whole, self.numbers, flat=True)
            if is_enclosed:
                box = enclosed(box)
            if place:
                joint = self._joint(factors[place - 1], factor, whole.sign, is_enclosed)
                box = beside(line(joint), box)
            boxes.append(box)
        return boxes

    def _joint(self, left: Math, right: Math, sign: str, is_enclosed: bool) -> str:
        sign = _tree.joint(left, right, sign, self.numbers, flat=True)
        if not sign:
            is_close = is_enclosed or isinstance(right, (Symbol, Power, Root))
            return "" if isinstance(left, Number) and is_close else " "
        is_plain = sign == "·" and isinstance(left, (Number, Symbol)) and not _tree.is_tall(right)
        return sign if is_plain else f" {sign} "

    def terms(self, math: Sum | Negative) -> list[Box]:
        """Each term with its sign before it."""
        boxes: list[Box] = []
        for is_negative, term in _tree.signed_terms(math):
            is_first = not boxes
            plain_first = is_first and not is_negative
            box = self.box(term)
            if _tree.term_in_parentheses(term, plain_first, self.numbers, flat=True):
                box = enclosed(box)
            sign = ("−" if is_negative else "") if is_first else (" − " if is_negative else " + ")
            boxes.append(beside(line(sign), box) if sign else box)
        return boxes

    def quotient(self, whole: Fraction) -> list[Box]:
        """The top, and the bottom with the sign before it."""
        above, below = _tree.needs_around(whole)
        slash = line(" / " if _tree.is_tall(whole) else "/")
        return [self._tight(whole.top, above), beside(slash, self._tight(whole.bottom, below))]

    def _power(self, base: Math, exponent: Math) -> Box:
        power = self._tight(exponent, Level.ATOM)
        under = self._tight(base, Level.ATOM)
        if len(power.lines) > 1:
            return beside(under, line("^"), power)
        return raised(under, "^" + power.lines[0])

    def _transposed(self, body: Math) -> Box:
        if isinstance(body, Symbol):
            return line(symbol_text(body) + "ᵀ")
        return raised(self._tight(body, Level.ATOM), "ᵀ")

    def _call(self, call: Call) -> Box:
        arguments = [self.box(argument) for argument in call.arguments]
        name = line(call.function + _sub_text(call.sub))
        return beside(name, enclosed(beside(*_between(arguments, line(", ")))))

    def _cell(self, cell: Cell) -> Box:
        if cell.expression is not None:
            return self.box(cell.expression)
        return line(cell_text(cell))

    def cell(self, cell: Cell) -> str:
        """One entry of a matrix, always on one line."""
        return self._cell(cell).lines[0]

    def grid(self, grid: Grid) -> Box:
        rows = [[self.cell(cell) for cell in row] for row in grid.rows]
        if grid.is_vector:
            return line("(" + ", ".join(cell for row in rows for cell in row) + ")")
        if self.inline or not rows or not rows[0]:
            return line("[" + "; ".join(" ".join(row) for row in rows) + "]")
        lines = ["  ".join(row) for row in _aligned(rows, grid)]
        box = stacked(lines, (len(lines) - 1) // 2)
        return enclosed(beside(line(" "), box, line(" ")) if len(lines) == 1 else box, "[", "]")


def _between(boxes: Iterable[Box], separator: Box) -> list[Box]:
    return [part for box in boxes for part in (separator, box)][1:]


def _aligned(rows: list[list[str]], grid: Grid) -> list[list[str]]:
    """Entries padded so that the decimal points of a column stand below each other."""
    columns = [
        _aligned_column([row[place] for row in rows], [row[place].kind for row in grid.rows])
        for place in range(len(rows[0]))
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _aligned_column(texts: list[str], kinds: Sequence[str]) -> list[str]:
    halves = [
        (text.partition(".")[0], "".join(text.partition(".")[1:])) if kind == "number" else None
        for text, kind in zip(texts, kinds, strict=True)
    ]
    before = max((columns_of(half[0]) for half in halves if half), default=0)
    after = max((columns_of(half[1]) for half in halves if half), default=0)
    points = [
        half[0].rjust(before) + half[1].ljust(after) if half else text
        for half, text in zip(halves, texts, strict=True)
    ]
    width = max(map(columns_of, points))
    return [" " * (width - columns_of(text)) + text for text in points]


def align_numbers(texts: list[str], are_numbers: list[bool]) -> list[str]:
    """The same for a column of a table."""
    return _aligned_column(texts, ["number" if is_number else "words" for is_number in are_numbers])


def cell_text(cell: Cell) -> str:
    """A written number in plain text: −0.4000, 1.7e-62, 0.333?, NaN, −∞."""
    if cell.verbatim:
        return "-inf" if cell.kind == "minus-infinity" else cell.digits
    if cell.kind == "minus-infinity":
        return "−∞"
    text = ("−" if cell.negative else "") + cell.unsigned
    text += "" if cell.exponent is None else f"e{cell.exponent}"
    text += "" if cell.proven else "?"
    return f"|x| < {text}" if cell.kind == "bound" else text


def symbol_text(symbol: Symbol) -> str:
    text = symbol.hat + symbol.base + _sub_text(symbol.sub)
    if not symbol.sup:
        return text
    if all(character in RAISED for character in symbol.sup):
        return text + "".join(RAISED[character] for character in symbol.sup)
    return f"{text}^{symbol.sup}" if symbol.sup.isalnum() else f"{text}^{{{symbol.sup}}}"


def _sub_text(sub: str) -> str:
    if not sub:
        return ""
    if all(character in LOWERED for character in sub):
        return "".join(LOWERED[character] for character in sub)
    return f"_{sub}" if sub.isalnum() else f"_{{{sub}}}"
