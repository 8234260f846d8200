"""An exercise as what course platforms take in: one function a platform."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from regard.exercises import Exercise
from regard.grading._gradescope import autograder
from regard.grading._moodle import moodle
from regard.grading._notebooks import nbgrader, otter
from regard.grading._qti import qti

# By platform: what writes the file, and the ending of its name.
EXPORTS: Mapping[str, tuple[Callable[[Exercise], bytes], str]] = {
    "gradescope": (autograder, ".zip"),
    "otter": (otter, ".zip"),
    "nbgrader": (nbgrader, ".ipynb"),
    "moodle": (moodle, ".xml"),
    "qti": (qti, ".zip"),
}
