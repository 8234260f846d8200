"""Reading an assignment: pasted text in, the arrays and choices that it states out.

Every number is read exactly: ``0.8`` is the fraction 4/5 and ``-\\infty`` is minus infinity.
Nothing in the text is ever executed.
"""

from __future__ import annotations

from regard.exercises.reading._assignment import read_assignment, read_matrices
from regard.exercises.reading._headings import split_exercises
from regard.exercises.reading._names import DESCRIPTIONS
from regard.exercises.reading._records import (
    Block,
    Found,
    Reading,
    ReadingError,
    UnreadableError,
)
from regard.exercises.reading._scan import read_block
from regard.exercises.reading._text import plain as plain_text

__all__ = [
    "DESCRIPTIONS",
    "Block",
    "Found",
    "Reading",
    "ReadingError",
    "UnreadableError",
    "plain_text",
    "read_assignment",
    "read_block",
    "read_matrices",
    "split_exercises",
]
