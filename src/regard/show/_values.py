"""The values of a step as plain data, for JSON and other programs."""

from __future__ import annotations

from math import isfinite
from typing import Any

from regard.graph.operation import Array


def plain_values(array: Array, digits: int = 15) -> Any:
    """Nested lists; finite floats and truth values as they are, everything else as text.

    `digits` is how many a certified value is written with.
    """
    return _plain(array.tolist(), digits)


def _plain(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_plain(entry, digits) for entry in value]
    finite = isinstance(value, float) and isfinite(value)
    if finite or isinstance(value, (bool, int)):
        return value
    if hasattr(value, "rad"):  # a certified ball
        return ball_text(value, digits)
    return str(value)


def ball_text(ball: Any, digits: int) -> str:
    """As many digits as were asked for, and how far the true value can be from them."""
    if ball.is_finite():
        return str(ball.str(digits, more=True))
    if ball.is_nan():
        return "nan"
    return "inf" if ball > 0 else "-inf"
