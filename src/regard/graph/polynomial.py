"""Counts as exact formulas: polynomials in the sizes n_q, n_k, d_k, … of a computation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import TYPE_CHECKING, Union

from regard._errors import NumberError
from regard.graph import notation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regard.graph.notation import Math

# In print: how many at a time, then tokens, then widths; other names follow by alphabet.
SYMBOLS = (
    "batch", "h", "h_kv", "n", "n_q", "n_k", "d_model", "d", "d_k", "d_v", "d_ff", "d_out",
)  # fmt: skip

Monomial = tuple[tuple[str, int], ...]
Countable = Union["Polynomial", int]


def _rank(symbol: str) -> tuple[int, str]:
    return (SYMBOLS.index(symbol) if symbol in SYMBOLS else len(SYMBOLS), symbol)


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for symbol, power in right:
        powers[symbol] = powers.get(symbol, 0) + power
    return tuple(sorted(((s, p) for s, p in powers.items() if p), key=lambda item: _rank(item[0])))


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials with rational coefficients, in normal form: equal means equal."""

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def of(value: Countable | str) -> Polynomial:
        """A size symbol, an integer, or a polynomial itself."""
        if isinstance(value, Polynomial):
            return value
        if isinstance(value, str):
            return Polynomial(((((value, 1),), Fraction(1)),))
        return Polynomial._collect({(): Fraction(value)})

    @staticmethod
    def _collect(terms: Mapping[Monomial, Fraction]) -> Polynomial:
        def order(item: tuple[Monomial, Fraction]) -> tuple[int, list[tuple[tuple[int, str], int]]]:
            monomial = item[0]
            return (-sum(p for _, p in monomial), [(_rank(s), -p) for s, p in monomial])

        kept = ((monomial, factor) for monomial, factor in terms.items() if factor)
        return Polynomial(tuple(sorted(kept, key=order)))

    def __add__(self, other: Countable) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in Polynomial.of(other).terms:
            terms[monomial] = terms.get(monomial, Fraction(0)) + factor
        return Polynomial._collect(terms)

    def __mul__(self, other: Countable) -> Polynomial:
        terms: dict[Monomial, Fraction] = {}
        for left, left_factor in self.terms:
            for right, right_factor in Polynomial.of(other).terms:
                monomial = _multiply(left, right)
                terms[monomial] = terms.get(monomial, Fraction(0)) + left_factor * right_factor
        return Polynomial._collect(terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: Countable) -> Polynomial:
        return self + -Polynomial.of(other)

    __radd__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Countable) -> Polynomial:
        """Divide by a polynomial of one term: heads of size d / h."""
        divisor = Polynomial.of(divisor)
        if len(divisor.terms) != 1:
            raise NumberError(f"a divisor must be a product of sizes, but {divisor} was passed")
        ((monomial, factor),) = divisor.terms
        return self * _inverse(monomial, factor)

    @property
    def symbols(self) -> tuple[str, ...]:
        found = {symbol for monomial, _ in self.terms for symbol, _ in monomial}
        return tuple(sorted(found, key=_rank))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number at these sizes; it is whole for every count and every axis."""
        if missing := [symbol for symbol in self.symbols if symbol not in sizes]:
            raise NumberError(f"{self} holds {missing[0]}; the sizes are {', '.join(sizes)}")
        total = Fraction(0)
        for monomial, factor in self.terms:
            product = factor
            for symbol, power in monomial:
                product *= Fraction(sizes[symbol]) ** power
            total += product
        if total.denominator != 1:
            raise NumberError(f"{self} is {total} at {dict(sizes)}: not a whole number")
        return int(total)

    def _common(self) -> tuple[Fraction, Monomial]:
        """The number and the monomial that all terms share; negative when all terms are."""
        factors = [factor for _, factor in self.terms]
        divisor = Fraction(
            gcd(*(f.numerator for f in factors)), lcm(*(f.denominator for f in factors))
        )
        powers = [dict(monomial) for monomial, _ in self.terms]
        shared = {symbol: min(p.get(symbol, 0) for p in powers) for symbol in powers[0]}
        monomial = tuple((symbol, power) for symbol, power in shared.items() if power > 0)
        return (-divisor if max(factors) < 0 else divisor), monomial

    def __str__(self) -> str:
        if len(self.terms) < 2:
            return "".join(_written(monomial, factor) for monomial, factor in self.terms) or "0"
        factor, monomial = self._common()
        first, *others = (self * _inverse(monomial, factor)).terms
        inside = _written(*first)
        for other, number in others:
            inside += (" - " if number < 0 else " + ") + _written(other, abs(number))
        if factor == 1 and not monomial:
            return inside
        common = _written(monomial, factor)
        return f"-({inside})" if common == "-1" else f"{common}·({inside})"

    def notation(self) -> Math:
        """The same as mathematics, common factors first: n_q n_k (d_k − 1)."""
        if len(self.terms) < 2:
            return _notation(*(self.terms or (((), Fraction(0)),))[0])
        factor, monomial = self._common()
        rest = (self * _inverse(monomial, factor)).terms
        inside = notation.total(
            *(_notation(m, f) if f > 0 else notation.Negative(_notation(m, -f)) for m, f in rest)
        )
        common = _notation(monomial, factor)
        return inside if common == notation.Number(1) else notation.product(common, inside)

    @staticmethod
    @lru_cache(maxsize=1000)
    def parse(text: str) -> Polynomial:
        """Read `n_q n_k (d_k - 1)`: sums, differences, products and whole powers of sizes."""
        return _Parser(text).whole()


def _inverse(monomial: Monomial, factor: Fraction) -> Polynomial:
    return Polynomial(((tuple((symbol, -power) for symbol, power in monomial), 1 / factor),))


def _written(monomial: Monomial, factor: Fraction) -> str:
    factors = [symbol if power == 1 else f"{symbol}^{power}" for symbol, power in monomial]
    if abs(factor) != 1 or not factors:
        factors.insert(0, str(abs(factor)))
    return ("-" if factor < 0 else "") + "·".join(factors)


def _notation(monomial: Monomial, factor: Fraction) -> Math:
    symbols = [(notation.Symbol(*symbol.split("_", 1)), power) for symbol, power in monomial]
    factors: list[Math] = [
        symbol if power == 1 else notation.Power(symbol, notation.Number(power))
        for symbol, power in symbols
    ]
    if factor != 1 or not factors:
        factors.insert(0, notation.Number(int(factor) if factor.denominator == 1 else factor))
    return notation.product(*factors)


OTHER_SPELLINGS = {"−": "-", "**": "^", "²": "^2", "³": "^3"}
# Far beyond every count, and small enough that no text keeps the parser busy.
MOST_BRACKETS = 50
LARGEST_POWER = 50
MOST_TERMS = 1000


class _Parser:
    """Recursive descent over sums of products; juxtaposition multiplies."""

    def __init__(self, text: str) -> None:
        self.text = text
        for spelling, plain in OTHER_SPELLINGS.items():
            text = text.replace(spelling, plain)
        tokens = re.findall(r"[A-Za-z]+(?:_\w+|_\{\w+\})?|[0-9]+|\S", text)
        self.tokens = [token.replace("{", "").replace("}", "") for token in tokens]
        if self.tokens.count("(") > MOST_BRACKETS:
            raise self.error(f"it opens more than {MOST_BRACKETS} brackets")

    def error(self, reason: str) -> NumberError:
        shown = self.text if len(self.text) <= 60 else self.text[:60] + "…"
        return NumberError(f"{shown!r} is no formula in sizes: {reason}")

    def next(self) -> str:
        """The next token, taken; "" at the end."""
        return self.tokens.pop(0) if self.tokens else ""

    def takes(self, *wanted: str) -> bool:
        """Whether the next token is one of these; then it is taken."""
        return bool(self.tokens) and self.tokens[0] in wanted and bool(self.next())

    def whole(self) -> Polynomial:
        result = self.sum()
        if self.tokens:
            raise self.error(f"{self.tokens[0]!r} is unexpected")
        return result

    def sum(self) -> Polynomial:
        result = Polynomial()
        sign = self.sign() or 1
        while sign:
            result = result + self.product() * sign
            sign = self.sign()
        return result

    def sign(self) -> int:
        if self.takes("+"):
            return 1
        return -1 if self.takes("-") else 0

    def product(self) -> Polynomial:
        result = self.power()
        while self.tokens and self.tokens[0] not in ("+", "-", ")"):
            if self.takes("/"):
                result = self.quotient(result, self.power())
            else:
                self.takes("·", "*", "×")
                result = self.times(result, self.power())
        return result

    def times(self, left: Polynomial, right: Polynomial) -> Polynomial:
        if len(left.terms) * len(right.terms) > MOST_TERMS:
            raise self.error(f"it has more than {MOST_TERMS} terms")
        return left * right

    def quotient(self, top: Polynomial, bottom: Polynomial) -> Polynomial:
        try:
            return top.over(bottom)
        except NumberError as error:
            raise self.error(str(error)) from error

    def power(self) -> Polynomial:
        base = self.atom()
        if not self.takes("^"):
            return base
        negative = self.takes("-")
        exponent = self.next()
        if not exponent.isdecimal() or int(exponent) > LARGEST_POWER:
            raise self.error(f"a power must be a whole number up to {LARGEST_POWER}")
        result = Polynomial.of(1)
        for _ in range(int(exponent)):
            result = self.quotient(result, base) if negative else self.times(result, base)
        return result

    def atom(self) -> Polynomial:
        token = self.next()
        if token == "(":
            inside = self.sum()
            if not self.takes(")"):
                raise self.error("a bracket stays open")
            return inside
        if token.isdecimal():
            return Polynomial.of(int(token))
        if token[:1].isalpha():
            return Polynomial.of(token)
        raise self.error(f"{token!r} is unexpected" if token else "it ends too early")
