"""Checking answers: what is right, where it goes wrong, and which known mistake explains it."""

from __future__ import annotations

from regard.checking._answer import Answer, read_answer
from regard.checking._check import Checker, check, checker_for
from regard.checking._key import Key
from regard.checking._sheet import Sheet, parse_sheet, read_sheet, sheet_from
from regard.checking._verdict import SHARES, Difference, Finding, Judgement, Verdict
from regard.checking.report import HINTS, Report

__all__ = [
    "HINTS",
    "SHARES",
    "Answer",
    "Checker",
    "Difference",
    "Finding",
    "Judgement",
    "Key",
    "Report",
    "Sheet",
    "Verdict",
    "check",
    "checker_for",
    "parse_sheet",
    "read_answer",
    "read_sheet",
    "sheet_from",
]
