"""The pocket corpus: French and English sentences from a small grammar, as many as you like.

Some combinations of two words (an adjective with a noun, a verb with its object) are kept out of
the training sentences; every test sentence has one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from zlib import crc32

from regard.translation.pocket._sentences import Sentence, sentence

__all__ = ["Sentence", "pairs"]

HELD_OUT_IN = 16
SPLITS = {"train": 1, "val": 2, "test": 3}


def pairs(split: str, number: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """`number` different sentences of a split; the same ones for the same seed."""
    rng = Random(1000 * seed + SPLITS[split])
    seen: set[str] = set()
    while len(seen) < number:
        made = sentence(rng)
        if held_out(made) == (split != "train") and made.fr not in seen:
            seen.add(made.fr)
            yield made.fr, made.en


def held_out(made: Sentence) -> bool:
    """Whether it has a combination that the training sentences lack."""
    return any(crc32(" ".join(pair).encode()) % HELD_OUT_IN == 0 for pair in made.combined)
