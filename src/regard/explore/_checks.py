"""What experiments ask of their options; each message names the option and what was passed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from numbers import Real
from typing import Any

from regard._errors import OptionError
from regard._options import is_integer
from regard.explore._sampling import NoisyKeys


def whole(option: str, given: Any, at_least: int = 1) -> int:
    if is_integer(given) and given >= at_least:
        return int(given)
    raise OptionError(
        f"`{option}` must be a whole number of at least {at_least}, but {given!r} was passed"
    )


def number(option: str, given: Any) -> float:
    if not isinstance(given, bool) and isinstance(given, Real) and isfinite(given):
        return float(given)
    raise OptionError(f"`{option}` must be a number, but {given!r} was passed")


def positive(option: str, given: Any) -> float:
    if (value := number(option, given)) > 0:
        return value
    raise OptionError(f"`{option}` must be a number above 0, but {given!r} was passed")


def variance(option: str, given: Any) -> float:
    """Part of a covariance, which would not be one if it were negative."""
    if (value := number(option, given)) >= 0:
        return value
    raise OptionError(
        f"`{option}` is a variance, and no covariance is negative, but {given!r} was passed"
    )


def keys(n: Any, d: Any) -> tuple[int, int]:
    """So many keys with orthogonal means in so many dimensions."""
    n, d = whole("n", n, at_least=2), whole("d", d)
    if n > d:
        raise OptionError(
            f"`n` = {n} keys cannot be orthogonal in `d` = {d} dimensions: "
            f"pass n of at most {d}, or d of at least {n}"
        )
    return n, d


def noisy_keys(n: int, d: int, alpha: Any, tau: Any) -> NoisyKeys:
    """Keys of which at least one varies, so that there is a law to be measured."""
    keys = NoisyKeys(n, d, variance("alpha", alpha), variance("tau", tau))
    if keys.alpha or keys.tau:
        return keys
    raise OptionError("`alpha` and `tau` are both 0: nothing varies; pass one of them above 0")


def several(option: str, given: Any) -> tuple[Any, ...]:
    """One value, or a sequence of different ones."""
    is_many = isinstance(given, Iterable) and not isinstance(given, str)
    values = tuple(given) if is_many else (given,)
    if not values or len(set(values)) < len(values):
        raise OptionError(f"`{option}` must be one or more different values, not {given!r}")
    return values


def precision(given: Any) -> float | None:
    return None if given is None else positive("precision", given)


def joined(words: Sequence[object]) -> str:
    """1, 2 and 3"""
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
