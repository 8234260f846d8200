"""What can be asked about the weights, and the answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from regard._errors import OptionError
from regard._options import is_integer


@dataclass(frozen=True)
class Inspect:
    """What to tell about the weights beside the output; the n×n matrix is never held.

    top: how many keys to name for each query, those with the largest weights.
    entropy: how spread the weights of each query are, in nats.
    received: how much weight each key got from all queries together.
    rows: the queries whose weights are wanted in full; −1 is the last one.
    """

    top: int = 0
    entropy: bool = False
    received: bool = False
    rows: Iterable[int] = ()

    def __post_init__(self) -> None:
        if not is_integer(self.top) or self.top < 0:
            raise OptionError(
                "Inspect: `top` must be how many keys to name for each query, but "
                f"{self.top!r} was passed"
            )
        for option in ("entropy", "received"):
            if not isinstance(getattr(self, option), bool):
                raise OptionError(
                    f"Inspect: `{option}` must be True or False, but "
                    f"{getattr(self, option)!r} was passed"
                )
        try:
            rows: tuple[Any, ...] = tuple(self.rows)
        except TypeError:
            rows = (None,)
        if not all(map(is_integer, rows)):
            raise OptionError(
                "Inspect: `rows` must be a list of query numbers (−1 is the last), but "
                f"{self.rows!r} was passed"
            )
        object.__setattr__(self, "rows", tuple(map(int, rows)))

    def row_places(self, queries: int) -> list[int]:
        """The wanted rows, counted from the first query."""
        for row in self.rows:
            if not -queries <= row < queries:
                raise OptionError(
                    f"Inspect: row {row} was asked for, but there are {queries} queries"
                )
        return [row % queries for row in self.rows]


@dataclass(frozen=True)
class Inspection:
    """What the weights were; `None` for what was not asked.

    Arrays are of the kind that was passed (NumPy or torch) and begin with the axes of the scores:
    batch axes, then heads where there are any.

    log_sum_exp: of the scores of each query, its sink included: (…, queries); −∞ when all is
        hidden.
    top_keys, top_weights: (…, queries, top); the largest weight first, of equal ones the earlier
        key; −1 and 0 where fewer keys may be seen.
    entropy: (…, queries), in nats; 0 when all is hidden.
    received: (…, keys): the sums of the weights over the queries.
    rows: (…, rows, keys): the weights of the queries that were asked for.
    """

    log_sum_exp: Any
    top_keys: Any = None
    top_weights: Any = None
    entropy: Any = None
    received: Any = None
    rows: Any = None


ANSWERS = ("top_keys", "top_weights", "entropy", "received", "rows")
