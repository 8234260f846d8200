"""A program being written: the vocabulary in which every operation states its own code.

One operation, one template; what differs between languages (how an axis is summed, how an index
is written, what a page of a stack is) is answered by the words below. Operands are matched by
the names of their axes, as everywhere.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, NamedTuple

from regard.graph.operation import Array, Axes, Axis, Operand
from regard.graph.polynomial import Polynomial

WIDTH = 99
Formula = Polynomial | str | int


class Span(NamedTuple):
    """Places along an axis, counted from 0; no `stop` is its end."""

    start: Formula
    stop: Formula | None = None
    step: int = 1


# The axes read and the axes written instead, entries in row-major order.
Regrouping = tuple[Axes, Axes]


def polynomial(formula: Formula) -> Polynomial:
    return Polynomial.parse(formula) if isinstance(formula, str) else Polynomial.of(formula)


class Program(ABC):
    """The lines so far, and how the language says what operations need to say."""

    times: ClassVar[str]  # entry by entry
    over: ClassVar[str]
    minus_infinity: ClassVar[str]
    exact_division: ClassVar[str]  # between whole numbers that divide without a rest
    comment_sign: ClassVar[str]

    def __init__(self, sizes: Mapping[str, int], size_names: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self.imports: list[str] = []
        self.sizes = sizes
        self.size_names = size_names
        self.used_sizes: set[str] = set()
        self._helpers: dict[str, str] = {}

    # ---- lines -----------------------------------------------------------------------------

    def set(self, target: Operand, expression: str, comment: str = "") -> None:
        """Let the target's variable be the expression."""
        self.comment(comment)
        self.assign(target.text, expression)

    def let(self, name: str, expression: str, *axes: Axis) -> Operand:
        """A helper variable, written once as long as it stays the same."""
        if self._helpers.get(name) != expression:
            mentions = re.compile(rf"\b{name}\b")
            self._helpers = {n: e for n, e in self._helpers.items() if not mentions.search(e)}
            self._helpers[name] = expression
            self.assign(name, expression)
        return Operand(name, axes)

    def comment(self, text: str) -> None:
        self.lines += [f"{self.comment_sign} {line}" for line in text.splitlines()]

    @abstractmethod
    def assign(self, variable: str, expression: str) -> None:
        """The line (or lines, when it is long) that gives a variable its value."""

    @abstractmethod
    def zeros(self, target: Operand) -> None:
        """Let the target be all zeros, to be filled in part by part."""

    @abstractmethod
    def fill(self, target: Operand, axis: str, where: Span | int, value: Operand) -> None:
        """Put a value at these places of the target."""

    @abstractmethod
    def permit(self, target: Operand, condition: str) -> None:
        """Let the target be 0 where the condition holds and −∞ elsewhere."""

    @abstractmethod
    def choose(self, target: Operand, condition: str, chosen: str, otherwise: str) -> None:
        """Let the target be `chosen` where the condition holds; it may have fewer axes."""

    @abstractmethod
    def product(
        self, target: Operand, a: Operand, b: Operand, transpose_a: bool, transpose_b: bool
    ) -> None:
        """Let the target be the product of two matrices, of one for each batch entry and head."""

    # ---- expressions -----------------------------------------------------------------------

    def joined(self, sign: str, target: Operand, *operands: Operand) -> str:
        """The operands with a sign between them, fitted to the target's axes."""
        return f" {sign} ".join(self.aligned(operand, target.names) for operand in operands)

    def size(self, formula: Formula) -> str:
        """A size as a formula in size variables, which become lines at the top."""
        sum_of_terms = polynomial(formula)
        self.used_sizes.update(sum_of_terms.symbols)
        terms = sorted(sum_of_terms.terms, key=lambda term: term[1] < 0)
        text = "".join(
            (" - " if factor < 0 else " + ") + self._term(dict(powers), abs(factor))
            for powers, factor in terms
        )
        return ("-" if text.startswith(" - ") else "") + (text[3:] or "0")

    def _term(self, powers: Mapping[str, int], factor: Fraction) -> str:
        above = [str(factor.numerator)] if factor.numerator != 1 else []
        below = [str(factor.denominator)] if factor.denominator != 1 else []
        for symbol, power in powers.items():
            (above if power > 0 else below).extend([self.size_names[symbol]] * abs(power))
        return f" {self.exact_division} ".join([" * ".join(above) or "1", *below])

    def shift(self, offset: Formula) -> str:
        """+ offset, or nothing for an offset of 0."""
        text = self.size(offset)
        if text == "0":
            return ""
        return f" - {text[1:]}" if text.startswith("-") and " " not in text else f" + {text}"

    @staticmethod
    def enclosed(text: str) -> str:
        """A formula as a factor or divisor."""
        return f"({text})" if " " in text or text.startswith("-") else text

    @staticmethod
    def number(exact: Fraction | str) -> str:
        """The shortest way to write a number: 0.8, 1/3."""
        value = Fraction(exact)
        if value.denominator == 1 and abs(value) < 10**15:
            return str(value.numerator)
        decimal = repr(float(value))
        return decimal if Fraction(decimal) == value else str(value)

    def factor(self, exact: Fraction | str) -> str:
        """A number as a factor or divisor."""
        text = self.number(exact)
        return f"({text})" if "/" in text else self.enclosed(text)

    @abstractmethod
    def literal(self, array: Array, axes: Axes, column: int) -> str:
        """Numbers (or True and False) written out, for a line in which they begin at `column`."""

    @abstractmethod
    def aligned(self, operand: Operand, names: tuple[str, ...]) -> str:
        """The operand with its axes in the order of `names`, ready to be broadcast."""

    @abstractmethod
    def function(self, name: str, argument: str) -> str:
        """exp, sqrt, tanh, erf, sin, cos or abs of each entry."""

    @abstractmethod
    def root(self, number: str) -> str:
        """The square root of a single number."""

    @property
    @abstractmethod
    def pi(self) -> str: ...

    @abstractmethod
    def power(self, base: str, exponents: str) -> str: ...

    @abstractmethod
    def at_least(self, expression: str, least: str) -> str: ...

    @abstractmethod
    def counted(self, stop: Formula, step: int = 1) -> str:
        """0, 1, 2, … below `stop`, along an axis of their own."""

    @abstractmethod
    def reduced(self, word: str, operand: Operand, over: tuple[str, ...], keep: bool) -> str:
        """The sum, mean, max or all over axes, which are gone or (`keep`) of size 1."""

    @abstractmethod
    def part(self, operand: Operand, axis: str, where: Span | int) -> str:
        """The entries at these places of one axis; a single place takes the axis away."""

    @abstractmethod
    def spread(self, operand: Operand, like: Operand) -> str:
        """The operand repeated along the axes that only the other one has."""

    @abstractmethod
    def repeated(self, operand: Operand, axis: str, times: str) -> str:
        """Every entry along an axis so many times, neighbours first."""

    @abstractmethod
    def regrouped(self, operand: Operand, groups: tuple[Regrouping, ...], target: Operand) -> str:
        """The same numbers with other axes; those in no group stay."""

    @abstractmethod
    def barred_after(self, rows: Formula, columns: Formula, diagonal: Formula) -> str:
        """A matrix of −∞ from this diagonal on (0 is the main one), 0 below it."""

    @abstractmethod
    def softmax(self, operand: Operand, axis: str) -> str | None:
        """A whole softmax in one call, if the language has it."""
