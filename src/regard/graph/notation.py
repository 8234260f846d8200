"""Mathematics as data: what an operation's formula says, before any output format writes it.

Each rendering (text, LaTeX, MathML) is one function over these few classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Symbol:
    """A letter or a short name with what hangs on it: W_Q^(2)."""

    base: str
    sub: str = ""
    sup: str = ""
    hat: str = ""  # "d" for the gradient of a loss with respect to it

    def at(self, sup: str) -> Symbol:
        return replace(self, sup=sup)


@dataclass(frozen=True)
class Number:
    """One entry of an array, in whatever numbers the run was made.

    What is not larger than `rounding` is what float64 left of a 0, and is written as one.
    """

    value: Any
    rounding: float = 0.0


@dataclass(frozen=True, eq=False)
class Matrix:
    """The values of a vector or matrix, written out; `rounding` as in Number.

    Entries that are `hidden` are what a mask hides, which is written instead of their value.
    """

    values: NDArray[Any]
    rounding: float = 0.0
    hidden: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Words:
    """Plain words within a formula."""

    text: str


@dataclass(frozen=True)
class Product:
    """Factors side by side (`sign` ""), or with "·", "⊙" between them."""

    factors: tuple[Math, ...]
    sign: str = ""


@dataclass(frozen=True)
class Sum:
    """Terms with + between them; a `Negative` term is subtracted."""

    terms: tuple[Math, ...]


@dataclass(frozen=True)
class Negative:
    """−body: the opposite, or a term that is taken away."""

    body: Math


@dataclass(frozen=True)
class Fraction:
    """A quotient: `top` over `bottom`."""

    top: Math
    bottom: Math


@dataclass(frozen=True)
class Root:
    """The square root."""

    body: Math


@dataclass(frozen=True)
class Power:
    """`base` with `exponent` raised beside it."""

    base: Math
    exponent: Math


@dataclass(frozen=True)
class Transposed:
    """A matrix with rows and columns exchanged."""

    body: Math


@dataclass(frozen=True)
class Call:
    """A named function of its arguments: exp(S), tanh(x), max(a, b)."""

    function: str
    arguments: tuple[Math, ...]
    sub: str = ""


@dataclass(frozen=True)
class Equation:
    """Sides of equal value, in the order in which they are shown: C = A V = … = …."""

    sides: tuple[Math, ...]


Math = (
    Symbol | Number | Matrix | Words | Product | Sum | Negative | Fraction | Root | Power
    | Transposed | Call | Equation
)  # fmt: skip


def product(*factors: Math, sign: str = "") -> Math:
    return factors[0] if len(factors) == 1 else Product(factors, sign)


def total(*terms: Math) -> Math:
    return terms[0] if len(terms) == 1 else Sum(terms)


def call(function: str, *arguments: Math, sub: str = "") -> Call:
    return Call(function, arguments, sub)


def dot(left: NDArray[Any], right: NDArray[Any]) -> Math:
    """One entry of a matrix product, written out: a₁·b₁ + a₂·b₂ + …."""
    pairs = zip(np.ravel(left), np.ravel(right), strict=True)
    return total(*(product(Number(a), Number(b), sign="·") for a, b in pairs))
