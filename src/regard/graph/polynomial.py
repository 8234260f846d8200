"""Counts as exact formulas: polynomials in the sizes n_q, n_k, d_k, … of a computation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from collections.abc import Mapping

# In print: how many at a time, then tokens, then widths.
SYMBOLS = (
    "batch h h_kv n n_q n_k d_model d d_k d_v d_ff d_out".split()
)  # other names follow in alphabetical order

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
        ((monomial, factor),) = Polynomial.of(divisor).terms
        inverse = tuple((symbol, -power) for symbol, power in monomial)
        return self * Polynomial(((inverse, 1 / factor),))

    @property
    def symbols(self) -> tuple[str, ...]:
        found = {symbol for monomial, _ in self.terms for symbol, _ in monomial}
        return tuple(sorted(found, key=_rank))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number at these sizes; it is whole for every count and every axis."""
        total = Fraction(0)
        for monomial, factor in self.terms:
            product = factor
            for symbol, power in monomial:
                product *= Fraction(sizes[symbol]) ** power
            total += product
        if total.denominator != 1:
            raise ValueError(f"{self} is {total} at {dict(sizes)}: not a whole number")
        return int(total)

    def content(self) -> tuple[Fraction, Monomial, Polynomial]:
        """The common factor of all terms, its monomial, and what is left of the sum."""
        if not self.terms:
            return Fraction(0), (), Polynomial.of(1)
        divisor = gcd(*(f.numerator for _, f in self.terms))
        common = Fraction(divisor, max(f.denominator for _, f in self.terms))
        shared = dict(self.terms[0][0])
        for monomial, _ in self.terms[1:]:
            powers = dict(monomial)
            shared = {s: min(p, powers.get(s, 0)) for s, p in shared.items() if powers.get(s, 0) > 0}
        monomial = tuple((s, p) for s, p in shared.items() if p)
        inverse = tuple((s, -p) for s, p in monomial)
        return common, monomial, self * Polynomial(((inverse, 1 / common),))

    def __str__(self) -> str:
        common, monomial, rest = self.content()
        factors = [] if common == 1 and (monomial or rest != Polynomial.of(1)) else [str(common)]
        factors += [symbol if power == 1 else f"{symbol}^{power}" for symbol, power in monomial]
        if rest != Polynomial.of(1):
            inside = " + ".join(_plain_term(m, f) for m, f in rest.terms).replace("+ -", "− ")
            factors.append(f"({inside})" if factors else inside)
        return "·".join(factors)

    @staticmethod
    def parse(text: str) -> Polynomial:
        """Read `n_q n_k (d_k - 1)`: sums, differences, products and whole powers of sizes."""
        return _Parser(text).whole()


def _plain_term(monomial: Monomial, factor: Fraction) -> str:
    factors = [symbol if power == 1 else f"{symbol}^{power}" for symbol, power in monomial]
    if abs(factor) != 1 or not factors:
        factors.insert(0, str(abs(factor)))
    return ("-" if factor < 0 else "") + "·".join(factors)


class _Parser:
    """Recursive descent over sums of products; juxtaposition multiplies."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"[A-Za-z]+(?:_\{?\w+\}?)?|\d+|\S", text.replace("−", "-"))
        self.tokens = [token.replace("{", "").replace("}", "") for token in self.tokens]

    def whole(self) -> Polynomial:
        result = self.sum()
        if self.tokens:
            raise ValueError(f"{self.text!r} is no formula in sizes: {self.tokens[0]!r} is unexpected")
        return result

    def sum(self) -> Polynomial:
        result = Polynomial()
        sign = self.sign() or 1
        while sign:
            result = result + self.product() * sign
            sign = self.sign()
        return result

    def sign(self) -> int:
        if self.tokens and self.tokens[0] in "+-":
            return 1 if self.tokens.pop(0) == "+" else -1
        return 0

    def product(self) -> Polynomial:
        result = self.power()
        while self.tokens and self.tokens[0] not in "+-)":
            if self.tokens[0] in "·*×":
                self.tokens.pop(0)
            if self.tokens[:1] == ["/"]:
                self.tokens.pop(0)
                result = result.over(self.power())
            else:
                result = result * self.power()
        return result

    def power(self) -> Polynomial:
        base = self.atom()
        if self.tokens[:1] != ["^"]:
            return base
        self.tokens.pop(0)
        negative = self.tokens[:1] == ["-"] and bool(self.tokens.pop(0))
        exponent = self.tokens.pop(0) if self.tokens else ""
        if not exponent.isdigit():
            raise ValueError(f"{self.text!r} is no formula in sizes: a power must be a whole number")
        result = Polynomial.of(1)
        for _ in range(int(exponent)):
            result = result.over(base) if negative else result * base
        return result

    def atom(self) -> Polynomial:
        token = self.tokens.pop(0) if self.tokens else ""
        if token == "(":
            inside = self.sum()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise ValueError(f"{self.text!r} is no formula in sizes: a bracket stays open")
            return inside
        if token.isdigit():
            return Polynomial.of(int(token))
        if token and token[0].isalpha():
            return Polynomial.of(token)
        raise ValueError(f"{self.text!r} is no formula in sizes: {token or 'its end'!r} is unexpected")
