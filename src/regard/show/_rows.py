"""Where a displayed formula breaks into rows: before = and, in a long side, before + and ·."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from regard.graph.notation import Equation, Fraction, Math, Negative, Product, Sum
from regard.show import _tree
from regard.show._plain import Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.show._boxes import Box
    from regard.show._format import NumberFormat


class Writer(Protocol):
    """What a markup's writer offers: whole formulas, and the pieces of long ones."""

    @property
    def numbers(self) -> NumberFormat: ...
    def write(self, math: Math) -> str: ...
    def terms(self, math: Sum | Negative) -> list[str]: ...
    def quotient(self, whole: Fraction) -> list[str]: ...
    def factors(self, whole: Product, factors: Sequence[Math]) -> list[str]: ...


class Row(NamedTuple):
    """A row of a display: what stands left of "=", whether there is one, what follows."""

    lead: str
    has_equals: bool
    body: str


def rows_of(math: Math, writer: Writer, equals: str, columns: int) -> list[Row]:
    """Rows of about so many characters; `equals` joins sides that share a row."""
    sides = math.sides if isinstance(math, Equation) else (math,)
    plain = Plain(writer.numbers)
    if len(sides) == 1:
        return [Row("", False, piece) for piece in _pieces(sides[0], writer, plain, columns)]
    lead_width = plain.box(sides[0]).width
    rows = [Row(writer.write(sides[0]), False, "")]
    is_long = lead_width > columns / 2
    used = columns if is_long else 0
    room = columns - (0 if is_long else lead_width + 3)
    for side in sides[1:]:
        width = plain.box(side).width
        first, *rest = _pieces(side, writer, plain, room)
        if not is_long and rows == [Row(rows[0].lead, False, "")]:
            rows[0] = Row(rows[0].lead, True, first)
            used = width
        elif used + 3 + width <= room:
            rows[-1] = rows[-1]._replace(body=rows[-1].body + equals + first)
            used += 3 + width
        else:
            rows.append(Row("", True, first))
            used = width
        rows += [Row("", False, piece) for piece in rest]
        used = columns if rest else used
    return rows


def _pieces(math: Math, writer: Writer, plain: Plain, room: int) -> list[str]:
    """A side, or its terms or factors packed into rows where it is too long for one."""
    if plain.box(math).width <= room:
        return [writer.write(math)]
    match math:
        case Sum() | Negative():
            return _packed(writer.terms(math), plain.terms(math), room)
        case Fraction() if _tree.is_slashed(math):
            return _packed(writer.quotient(math), plain.quotient(math), room)
        case Product(factors):
            return _packed(writer.factors(math, factors), plain.factors(math, factors), room)
        case _:
            return [writer.write(math)]


def _packed(texts: Sequence[str], boxes: Sequence[Box], room: int) -> list[str]:
    packed, used = [texts[0]], boxes[0].width
    for text, box in zip(texts[1:], boxes[1:], strict=True):
        if used + box.width <= room:
            packed[-1] += text
            used += box.width
        else:
            packed.append(text)
            used = box.width
    return packed
