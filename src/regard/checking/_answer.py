"""A value that somebody gave as an answer, and how exactly it was given."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log2
from typing import Any

import numpy as np

from regard.graph.numbers import as_fraction, read_given
from regard.graph.operation import Array

# With this many significant digits a number was computed by a program, not written by hand.
COMPUTED = 10
FLOAT64, FLOAT32 = 1e-9, 2.0**-20  # what programs differ by, relative to the largest entry
# Beyond this many decimals a matrix was printed with powers of ten, each entry with its own.
MOST_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers as they were read; `where` says from what, `decimals` with how many they were given.

    `decimals` is None for numbers that a program computed, and for whole numbers and fractions.
    `radius` is how far each entry may be from the number that it stands for.
    """

    values: Array
    radius: Array
    where: str = ""
    decimals: int | None = None
    noise: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @cached_property
    def bits(self) -> float:
        """How much these numbers say: the smaller, the easier they come out by chance."""
        finite = self.values[np.isfinite(self.values)]
        spread = float(np.abs(finite).max(initial=0.0))
        steps = spread / np.maximum(2 * self.radius[np.isfinite(self.values)], 1e-12)
        return sum(log2(1 + step) for step in steps)

    def is_near(self, wanted: Array, slack: float = 0.0) -> bool:
        """Whether every entry is the wanted one, to the digits given."""
        return self.shape == np.shape(wanted) and not self.differs(wanted, slack).any()

    def differs(self, wanted: Array, slack: float = 0.0) -> Array:
        """Where an entry is another one than wanted."""
        wanted = np.asarray(wanted, dtype=np.float64)
        finite = np.isfinite(wanted) & np.isfinite(self.values)
        largest = float(np.abs(wanted[finite]).max(initial=0.0))
        within = self.radius * (1 + 1e-9) + max(self.noise, FLOAT64) * largest + slack
        with np.errstate(invalid="ignore"):
            far = np.abs(self.values - wanted) > within
        return np.where(finite, far, ~_equal(self.values, wanted))


def _equal(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)))


def read_answer(name: str, value: Any, where: str = "") -> Answer:
    """Numbers, however they were passed; a NumberError when some are none."""
    array = read_given(name, value)
    if array.dtype == bool:
        array = np.where(array, 0.0, -inf)
    floats = np.asarray(array, dtype=np.float64)
    if array.dtype == np.float32 or _is_float32(floats):
        return Answer(floats, np.zeros(floats.shape), where, None, FLOAT32)
    written = [_written(entry) for entry in array.flat if np.isfinite(float(entry))]
    digits = [each for each in written if each is not None]
    if not digits or max(significant for _, significant in digits) >= COMPUTED:
        return Answer(floats, np.zeros(floats.shape), where)
    decimals = max(places for places, _ in digits)
    if decimals <= MOST_DECIMALS:
        exact = decimals == 0
        radius = np.full(floats.shape, 0.0 if exact else 0.5 * 10.0**-decimals)
        return Answer(floats, radius, where, None if exact else decimals)
    count = max(significant for _, significant in digits)
    return Answer(floats, _by_significant(floats, count), where, decimals)


def _is_float32(floats: Array) -> bool:
    """Numbers of float32 that were made longer: exact in it, and too long to be written."""
    finite = floats[np.isfinite(floats)]
    long = any((_written(entry) or (0, 0))[1] >= COMPUTED for entry in finite)
    with np.errstate(over="ignore"):  # what is too large for float32 is none
        return long and bool((finite.astype(np.float32) == finite).all())


def _written(entry: Any) -> tuple[int, int] | None:
    """Decimals and significant digits of a number as it is written; None for a fraction."""
    exact = as_fraction(entry)
    decimals, rest = 0, exact.denominator
    while rest > 1 and decimals < 40:
        rest = (exact * Fraction(10) ** (decimals + 1)).denominator
        decimals += 1
    if rest > 1:
        return None
    whole = str(abs(int(exact * 10**decimals)))
    return decimals, 0 if whole == "0" else len(whole)


def _by_significant(floats: Array, count: int) -> Array:
    """Half a unit of the last of so many significant digits of each entry."""
    with np.errstate(divide="ignore"):
        power = np.floor(np.log10(np.abs(floats)))
    return np.asarray(np.where(np.isfinite(power), 0.5 * 10.0 ** (power - count + 1), 0.0))
