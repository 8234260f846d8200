"""All known mistakes, in the order in which they are tried and listed."""

from __future__ import annotations

from regard._options import look_up
from regard.mistakes import _heads, _masking, _positions, _products, _scaling, _softmax
from regard.mistakes._mistake import Mistake

GROUPS: dict[str, tuple[Mistake, ...]] = {
    "The scale": _scaling.MISTAKES,
    "The softmax": _softmax.MISTAKES,
    "The products": _products.MISTAKES,
    "Masks": _masking.MISTAKES,
    "Heads": _heads.MISTAKES,
    "Positions, and the parts of a block": _positions.MISTAKES,
}
CATALOGUE: tuple[Mistake, ...] = tuple(m for group in GROUPS.values() for m in group)


def mistake_named(word: str) -> Mistake:
    """The mistake of this name."""
    return look_up("mistake", word, {mistake.word: mistake for mistake in CATALOGUE})
