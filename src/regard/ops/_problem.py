"""One attention problem, everything said: four axes everywhere, every option a number or an array.

This is what the paths (NumPy, the kernel, torch) are given. They may rely on it: shapes fit, the
types are right, and what is broadcast is broadcast already, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

import numpy as np

from regard._errors import OptionError
from regard.ops._dtypes import COMPUTING, widened

UNBOUNDED = -1
FARTHEST = 1 << 30  # a position that no sequence reaches
# A window that reaches from there to any key: as good as unbounded.
WIDEST = 2 * FARTHEST - 1


@dataclass(frozen=True)
class Problem:
    """Arrays of NumPy or tensors of torch; `None` where a part is absent.

    Key j is hidden from query i unless every part that is present lets it be seen. Keys of the
    past come first. Query i stands at key p = i + offset of its batch entry:

    - `causal`: j ≤ p, or j < prefix of the batch entry
    - `left`, `right`: p − left ≤ j ≤ p + right, −1 for no bound
    - `lengths`: j < length of the batch entry
    - `q_segments`, `k_segments`: equal numbers
    - `mask`: True;  `bias`: not −∞
    """

    dtype: str
    q: Any  # batch, heads, queries, d_k
    k: Any  # batch, kv_heads, new keys, d_k
    v: Any  # batch, kv_heads, new keys, d_v
    past_k: Any = None  # batch, kv_heads, past keys, d_k
    past_v: Any = None  # batch, kv_heads, past keys, d_v
    mask: Any = None  # boolean: batch, heads, queries, keys
    bias: Any = None  # in the computing type: batch, heads, queries, keys
    q_segments: Any = None  # int64: batch, queries
    k_segments: Any = None  # int64: batch, keys
    lengths: Any = None  # int64: batch
    prefix: Any = None  # int64: batch
    offsets: Any = None  # int64: batch; present where causal, left or right ask for it
    sinks: Any = None  # in the computing type: heads
    causal: bool = False
    left: int = UNBOUNDED
    right: int = UNBOUNDED
    scale: float = 1.0
    softcap: float = 0.0  # 0 for none

    @property
    def keys(self) -> int:
        past = 0 if self.past_k is None else self.past_k.shape[2]
        keys: int = past + self.k.shape[2]  # not int(…): a compiler would take it for a constant
        return keys

    @property
    def scores_shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, _ = self.q.shape
        return batch, heads, queries, self.keys

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return (*self.scores_shape[:3], self.v.shape[3])

    def with_past_joined(self, concatenate: Callable[[Any, int], Any]) -> Problem:
        """The same problem with the keys and values of the past among the others."""
        if self.past_k is None:
            return self
        k = concatenate([self.past_k, self.k], 2)
        v = concatenate([self.past_v, self.v], 2)
        return replace(self, k=k, v=v, past_k=None, past_v=None)

    def in_float64(self) -> Problem:
        """The same numbers, to be computed in float64."""
        changes: dict[str, Any] = {"dtype": "float64"}
        for name in ("q", "k", "v", "past_k", "past_v"):
            array = getattr(self, name)
            changes[name] = None if array is None else widened(array, self.dtype).astype(float)
        for name in ("bias", "sinks"):
            array = getattr(self, name)
            changes[name] = None if array is None else array.astype(float)
        return replace(self, **changes)

    @property
    def real(self) -> type[np.floating[Any]]:
        """The type that this problem is computed in."""
        return COMPUTING[self.dtype]

    def check_counts(self) -> None:
        """Refuse lengths and prefixes that no sequence of so many keys has, and wild offsets."""
        for name, given, least, most in (
            ("lengths", self.lengths, 0, self.keys),
            ("prefix", self.prefix, 0, self.keys),
            ("causal", self.offsets, -FARTHEST, FARTHEST),
        ):
            for entry, number in enumerate([] if given is None else given.tolist()):
                if not least <= number <= most:
                    raise OptionError(
                        f"attention: `{name}` must be between {least} and {most} (there are "
                        f"{self.keys} keys), but {number} was passed for batch entry {entry}"
                    )

    @property
    def hides(self) -> bool:
        """Whether any part may hide a key."""
        parts = (self.offsets, self.lengths, self.q_segments, self.mask, self.bias)
        return any(part is not None for part in parts)

    def live(self, rows: Any, key: Any) -> Any:
        """Which keys the queries in these rows may see; axes of size 1 stand for all alike.

        `rows` and `key` count the wanted rows and all keys, in the kind of the other arrays.
        """
        live = (key >= 0)[None, None, None, :]
        if self.offsets is not None:
            live = live & self._near(rows[:, None] + _per_entry(self.offsets), key)
        if self.lengths is not None:
            live = live & (key < _per_entry(self.lengths))
        if self.q_segments is not None:
            of_query, of_key = self.q_segments[:, rows], self.k_segments
            live = live & (of_query[:, None, :, None] == of_key[:, None, None, :])
        if self.mask is not None:
            live = live & self.mask[:, :, rows]
        if self.bias is not None:
            live = live & (self.bias[:, :, rows] != -inf)
        return live

    def _near(self, place: Any, key: Any) -> Any:
        """Whether a key is where a query at this place among the keys looks."""
        near = key >= 0
        if self.causal:
            near = near & (key <= place)
        if self.prefix is not None:
            near = near | (key < _per_entry(self.prefix))
        if self.left >= 0:
            near = near & (key >= place - self.left)
        if self.right >= 0:
            near = near & (key <= place + self.right)
        return near


def _per_entry(numbers: Any) -> Any:
    """One number for each batch entry, with the axes of the scores."""
    return numbers[:, None, None, None]


# In the order in which the kernel and torch's operator take them.
PARTS = tuple(field.name for field in fields(Problem))
