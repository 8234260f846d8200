"""Exact rounding: the digits of a number that lies between two rational bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

LARGE = 10**6  # from here on, decimals give way to a power of ten
MAGNITUDE = 2  # significant digits of a number too small for the decimals asked
TYPED = ".14g"  # a float64 that differs from a short number by rounding alone was typed so
UNTYPED = 10**9  # decimals of a number that no one typed


class Digits(NamedTuple):
    """A decimal mantissa and the power of ten beside it, if any."""

    mantissa: str
    exponent: int | None = None


Writing = Callable[[Fraction], Digits]


class Between(NamedTuple):
    """A number known to lie in [low, high]; `decimals` is what it takes to write it as typed."""

    low: Fraction
    high: Fraction
    decimals: int
    is_counted: bool = False  # a count, written in full however large

    @staticmethod
    def counted(value: int) -> Between:
        return Between(Fraction(value), Fraction(value), 0, is_counted=True)

    @staticmethod
    def of_float(value: float | np.floating[Any]) -> Between:
        exact = Fraction(float(value))
        shortest = format(value, TYPED) if isinstance(value, float) else str(value)
        power = Decimal(shortest).normalize().as_tuple().exponent
        return Between(exact, exact, max(0, -int(power)))

    @staticmethod
    def of_ball(ball: Any) -> Between:
        middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
        is_whole = radius == 0 and middle.denominator == 1
        return Between(middle - radius, middle + radius, 0 if is_whole else UNTYPED)

    @property
    def is_exact(self) -> bool:
        return self.low is self.high or self.low == self.high

    @property
    def is_whole(self) -> bool:
        return self.is_counted or (self.decimals == 0 and abs(self.low) < LARGE)


def _dyadic(exact_ball: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in exact_ball.man_exp())
    return mantissa * Fraction(2) ** exponent


def fixed(value: Fraction, places: int) -> Digits:
    """Rounded to that many decimals, ties to even."""
    scaled, rest = divmod(value.numerator * 10**places, value.denominator)
    above = 2 * rest - value.denominator
    scaled += above > 0 or (above == 0 and scaled % 2)
    digits = str(abs(scaled)).rjust(places + 1, "0")
    point = len(digits) - places
    text = digits[:point] + ("." + digits[point:] if places else "")
    return Digits(("-" if scaled < 0 else "") + text)


def scientific(value: Fraction, count: int) -> Digits:
    """Rounded to `count` significant digits, the first of them before the point."""
    if value == 0:
        return fixed(value, count - 1)
    scaled, exponent = _leading(value, count)
    digits = str(abs(scaled))
    mantissa = digits[0] + ("." + digits[1:] if count > 1 else "")
    return Digits(("-" if scaled < 0 else "") + mantissa, exponent)


def significant(value: Fraction, count: int) -> Digits:
    """`count` significant digits, with a power of ten only where zeros would stand for digits."""
    if value == 0:
        return fixed(value, count - 1)
    _, exponent = _leading(value, count)
    if -4 <= exponent < count:
        return fixed(value, count - 1 - exponent)
    return scientific(value, count)


def _leading(value: Fraction, count: int) -> tuple[int, int]:
    exponent = power_above(abs(value)) - 1
    scaled = round(value / Fraction(10) ** (exponent - count + 1))
    if abs(scaled) == 10**count:  # 9.99… rounds up to the next power of ten
        return scaled // 10, exponent + 1
    return scaled, exponent


def power_above(value: Fraction) -> int:
    """The least k with value < 10^k."""
    power = len(str(value.numerator)) - len(str(value.denominator))
    while value >= Fraction(10) ** power:
        power += 1
    while value < Fraction(10) ** (power - 1):
        power -= 1
    return power


def in_decimals(item: Between, places: int, digits: int) -> Iterable[Writing]:
    """Writings to try in turn: fixed decimals where these say something, else a power of ten."""
    low, high = (fixed(end, places).mantissa for end in (item.low, item.high))
    if is_nothing(low) and is_nothing(high) and (item.low or item.high):
        return _fewer(scientific, MAGNITUDE, 1)
    if abs(int(low.partition(".")[0])) >= LARGE:
        return _fewer(scientific, digits + 1, 1)
    # Fewer decimals, then (for a wide interval of large numbers) fewer leading digits.
    return chain(_fewer(fixed, places, 0), _fewer(scientific, digits, 1))


def in_significant(digits: int) -> Iterable[Writing]:
    return _fewer(significant, digits, 1)


def is_nothing(mantissa: str) -> bool:
    """Whether no digit but 0 is left."""
    return not mantissa.strip("-0.")


def _fewer(write: Callable[[Fraction, int], Digits], most: int, least: int) -> Iterable[Writing]:
    return (partial(_flipped, write, count) for count in range(most, least - 1, -1))


def _flipped(write: Callable[[Fraction, int], Digits], count: int, value: Fraction) -> Digits:
    return write(value, count)
