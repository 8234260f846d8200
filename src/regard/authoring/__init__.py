"""Making exercises: pleasant numbers that tell mistakes apart, sheets, variants."""

from __future__ import annotations

from regard.authoring._make import KINDS, NUMBERS, Wish, make_exercise
from regard.authoring._roster import Student, read_roster, seed_of
from regard.authoring._sheets import SHEETS, write_sheets

__all__ = [
    "KINDS",
    "NUMBERS",
    "SHEETS",
    "Student",
    "Wish",
    "make_exercise",
    "read_roster",
    "seed_of",
    "write_sheets",
]
