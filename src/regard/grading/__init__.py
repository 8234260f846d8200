"""Grading: answers and programs, one submission or a whole class, for every platform."""

from __future__ import annotations

from regard.grading._against import divergence, divergence_text
from regard.grading._class import found_submissions, grade_class, variants_in
from regard.grading._exports import EXPORTS
from regard.grading._grade import NOT_GRADABLE, Finding, Grade, Item
from regard.grading._grader import Grader
from regard.grading._report import to_csv, to_html
from regard.grading._results import FORMATS
from regard.grading._sandbox import KINDS, Limits, isolation
from regard.grading._submission import Submission, read_submission
from regard.grading._text import to_table, to_text

__all__ = [
    "EXPORTS",
    "FORMATS",
    "KINDS",
    "NOT_GRADABLE",
    "Finding",
    "Grade",
    "Grader",
    "Item",
    "Limits",
    "Submission",
    "divergence",
    "divergence_text",
    "found_submissions",
    "grade_class",
    "isolation",
    "read_submission",
    "to_csv",
    "to_html",
    "to_table",
    "to_text",
    "variants_in",
]
