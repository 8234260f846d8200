"""Mathematics in MathML Core: every browser draws it without a script."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
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
from regard.show._format import Cell, Grid, NumberFormat, format_matrix, format_number
from regard.show._symbols import tokens
from regard.show._tree import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES = "<mo>&#x2062;</mo>"  # the invisible sign of multiplication
APPLY = "<mo>&#x2061;</mo>"  # the invisible sign of a function applied
EQUALS = "<mo>=</mo>"
GAP = '<mspace width="0.35em"/>'
MINUS = '<mo form="prefix">−</mo>'
TAGS = {"letter": "mi", "word": "mi", "digits": "mn"}


@dataclass(frozen=True)
class MathML:
    """Writes mathematics as MathML; `flat` in exponents, where fraction bars grow too small."""

    numbers: NumberFormat
    flat: bool = False

    def write(self, math: Math) -> str:
        match math:
            case Symbol() | Words():
                return symbol_element(math) if isinstance(math, Symbol) else _words(math.text)
            case Number(value, rounding):
                return self.cell(format_number(value, self.numbers, rounding))
            case Matrix(values, rounding, hidden):
                return self.grid(format_matrix(values, self.numbers, rounding, hidden))
            case Product(factors):
                return _row(*self.factors(math, factors))
            case Sum() | Negative():
                return _row(*self.terms(math))
            case Fraction():
                return _row(*self.quotient(math))
            case Root(body):
                return f"<msqrt>{self.write(body)}</msqrt>"
            case Power(base, exponent):
                power = replace(self, flat=True).write(exponent)
                return f"<msup>{self._tight(base)}{power}</msup>"
            case Transposed(body):
                return self._transposed(body)
            case Call():
                return self._call(math)
            case Equation(sides):
                return _row(EQUALS.join(self.write(side) for side in sides))

    def level(self, math: Math) -> Level:
        return _tree.level(math, self.numbers, flat=self.flat)

    def _tight(self, math: Math, needed: Level = Level.ATOM) -> str:
        element = self.write(math)
        return _parenthesised(element) if self.level(math) < needed else element

    def factors(self, whole: Product, factors: Sequence[Math]) -> list[str]:
        """Each factor, every one but the first with the sign before it."""
        pieces: list[str] = []
        for place, factor in enumerate(factors):
            element = self.write(factor)
            if _tree.factor_in_parentheses(factor, whole, self.numbers, flat=self.flat):
                element = _parenthesised(element)
            if place:
                element = self._joint(factors[place - 1], factor, whole.sign) + element
            pieces.append(element)
        return pieces

    def _joint(self, left: Math, right: Math, sign: str) -> str:
        if isinstance(left, Words) or isinstance(right, Words):
            return GAP
        sign = _tree.joint(left, right, sign, self.numbers, flat=self.flat)
        return f"<mo>{escape(sign)}</mo>" if sign else TIMES

    def terms(self, math: Sum | Negative) -> list[str]:
        """Each term with its sign before it."""
        pieces: list[str] = []
        for is_negative, term in _tree.signed_terms(math):
            is_first = not pieces
            element = self.write(term)
            if _tree.term_in_parentheses(
                term, is_first and not is_negative, self.numbers, flat=self.flat
            ):
                element = _parenthesised(element)
            later = '<mo form="infix">−</mo>' if is_negative else '<mo form="infix">+</mo>'
            first = MINUS if is_negative else ""
            pieces.append((first if is_first else later) + element)
        return pieces

    def quotient(self, whole: Fraction) -> list[str]:
        """The top and, with the sign before it, the bottom; one piece where a bar is drawn."""
        if not (self.flat or _tree.is_slashed(whole)):
            return [f"<mfrac>{self.write(whole.top)}{self.write(whole.bottom)}</mfrac>"]
        above, below = _tree.needs_around(whole)
        return [self._tight(whole.top, above), "<mo>/</mo>" + self._tight(whole.bottom, below)]

    def _transposed(self, body: Math) -> str:
        if isinstance(body, Symbol):
            return symbol_element(body, '<mo lspace="0" rspace="0">⊤</mo>')
        return f'<msup>{self._tight(body)}<mo lspace="0" rspace="0">⊤</mo></msup>'

    def _call(self, call: Call) -> str:
        name = _index(call.function)
        if call.sub:
            name = f"<msub>{name}{_index(call.sub)}</msub>"
        arguments = "<mo>,</mo>".join(self.write(argument) for argument in call.arguments)
        return _row(name, APPLY, _parenthesised(arguments))

    def cell(self, cell: Cell) -> str:
        """A written number; what is no ordinary number carries its kind as a class."""
        if cell.expression is not None:
            return self.write(cell.expression)
        if cell.kind == "ellipsis":
            return f'<mi class="ellipsis">{cell.digits}</mi>'
        if cell.verbatim and cell.kind in ("number", "truth"):
            return f'<mn class="verbatim">{cell.digits}</mn>'
        if cell.kind in ("nan", "infinity", "masked", "truth", "unproven"):
            return f'<mi class="{cell.kind}" mathvariant="normal">{cell.digits}</mi>'
        if cell.kind == "minus-infinity":
            digits = "∞" if not cell.verbatim else cell.digits
            return f'<mrow class="minus-infinity">{MINUS}<mi>{digits}</mi></mrow>'
        return _number(cell)

    def grid(self, grid: Grid) -> str:
        rows = [[self.cell(cell) for cell in row] for row in grid.rows]
        if grid.is_vector:
            return _parenthesised("<mo>,</mo>".join(cell for row in rows for cell in row))
        body = "".join(
            f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows
        )
        table = f'<mtable class="matrix">{body}</mtable>'
        return _row(_fence("[", "prefix"), table, _fence("]", "postfix"))


def _row(*elements: str) -> str:
    return f"<mrow>{''.join(elements)}</mrow>"


def _fence(bracket: str, form: str, is_tall: bool = True) -> str:
    return f'<mo form="{form}" stretchy="{str(is_tall).lower()}">{bracket}</mo>'


def _parenthesised(element: str) -> str:
    # A bracket that may stretch takes more room at its sides even where it need not.
    is_tall = any(tag in element for tag in ("<mtable", "<mfrac", "<msqrt"))
    return _row(_fence("(", "prefix", is_tall), element, _fence(")", "postfix", is_tall))


def _number(cell: Cell) -> str:
    number = f"<mn>{cell.unsigned}</mn>"
    if cell.exponent is not None:
        power = f"<mn>{abs(cell.exponent)}</mn>"
        power = _row(MINUS, power) if cell.exponent < 0 else power
        times = "" if cell.unsigned == "1" else f"{number}<mo>·</mo>"
        number = f"{times}<msup><mn>10</mn>{power}</msup>"
    if cell.negative:
        number = MINUS + number
    if not cell.proven:
        number += '<mi class="unproven" mathvariant="normal">?</mi>'
    if cell.kind == "bound":
        number = f"<mo>|</mo><mi>x</mi><mo>|</mo><mo>&lt;</mo>{number}"
        return f'<mrow class="bound">{number}</mrow>'
    is_single = number.count("<m") == 1
    return number if is_single else _row(number)


def symbol_element(symbol: Symbol, beside: str = "") -> str:
    """A symbol with its index and its superscript; `beside` joins the superscript."""
    base = _index(symbol.base)
    if symbol.hat:
        base = _row(f'<mi mathvariant="normal">{escape(symbol.hat)}</mi>', base)
    sup = _row(_index(symbol.sup), beside) if symbol.sup and beside else beside
    sup = sup or (_index(symbol.sup) if symbol.sup else "")
    if symbol.sub and sup:
        return f"<msubsup>{base}{_index(symbol.sub)}{sup}</msubsup>"
    if symbol.sub:
        return f"<msub>{base}{_index(symbol.sub)}</msub>"
    return f"<msup>{base}{sup}</msup>" if sup else base


def _words(text: str) -> str:
    return f"<mtext>{escape(text)}</mtext>"


def _index(name: str) -> str:
    if " " in name:
        return _words(name)
    elements = [
        f'<mo stretchy="false">{escape(text)}</mo>'
        if kind == "sign"
        else f"<{TAGS[kind]}>{escape(text)}</{TAGS[kind]}>"
        for kind, text in tokens(name)
    ]
    return elements[0] if len(elements) == 1 else _row(*elements)
