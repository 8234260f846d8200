"""Exercises: their file format, the library, pasted assignments, and solutions."""

from __future__ import annotations

from regard.exercises._draft import Said, to_toml
from regard.exercises._exercise import Exercise
from regard.exercises._format import read_exercise
from regard.exercises._library import library_names, load_exercise, parse_exercise, solve
from regard.exercises._lines import Source
from regard.exercises._solution import Solution

__all__ = [
    "Exercise",
    "Said",
    "Solution",
    "Source",
    "library_names",
    "load_exercise",
    "parse_exercise",
    "read_exercise",
    "solve",
    "to_toml",
]
