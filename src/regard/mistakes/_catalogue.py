"""All known mistakes, in the order in which they are tried and listed."""

from __future__ import annotations

from regard._options import look_up
from regard.mistakes import _heads, _masking, _positions, _products, _scaling, _softmax
from regard.mistakes._mistake import Mistake

CATALOGUE: tuple[Mistake, ...] = (
    *_scaling.MISTAKES,
    *_softmax.MISTAKES,
    *_products.MISTAKES,
    *_masking.MISTAKES,
    *_heads.MISTAKES,
    *_positions.MISTAKES,
)


def mistake_named(word: str) -> Mistake:
    """The mistake of this name."""
    return look_up("mistake", word, {mistake.word: mistake for mistake in CATALOGUE})
