"""Grading: submitted programs run shut in, on numbers that discriminate, and are compared here."""

from __future__ import annotations

from regard.grading._grade import Finding, Grade, Item
from regard.grading._program import grade_program
from regard.grading._sandbox import KINDS, Limits, isolation
from regard.grading._submission import Submission, read_submission
from regard.grading._text import to_text

__all__ = [
    "KINDS",
    "Finding",
    "Grade",
    "Item",
    "Limits",
    "Submission",
    "grade_program",
    "isolation",
    "read_submission",
    "to_text",
]
