"""Exercises by name (the library that comes with regard), by file, and from assignments."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from regard._errors import NoSuchExerciseError, OptionError, did_you_mean
from regard._files import read_text
from regard.exercises._draft import Said, exercise_from
from regard.exercises._exercise import Exercise
from regard.exercises._format import read_exercise
from regard.exercises._solution import Solution

# A plain path: importlib.resources would load a zip reader at every start.
LIBRARY = Path(__file__).with_name("library")


def library_names() -> list[str]:
    """The names of all exercises that come with regard."""
    names = (entry.name for entry in LIBRARY.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def library_text(name: str) -> str:
    """The file of an exercise that comes with regard."""
    return (LIBRARY / f"{name}.toml").read_text(encoding="utf-8")


def load_exercise(source: str | PathLike[str], said: Said | None = None) -> Exercise:
    """An exercise from the library, from a TOML file, or from a pasted assignment in a file."""
    source = fspath(source)
    if source in library_names():
        _refuse(said, source)
        return read_exercise(library_text(source), source, partial(_beside, LIBRARY))
    return parse_exercise(_read_file(source), source, said, partial(_beside, Path(source).parent))


def parse_exercise(
    text: str, name: str, said: Said | None = None, read_file: Callable[[str], str] | None = None
) -> Exercise:
    """An exercise from text: TOML when the name or the first words say so, else an assignment."""
    if name.endswith(".toml") or re.match(r"\s*(#.*\n\s*)*format\s*=", text):
        _refuse(said, name)
        return read_exercise(text, name, read_file)
    return exercise_from(text, name, said or Said())


def _refuse(said: Said | None, name: str) -> None:
    """An exercise file says everything itself."""
    if words := [word for word, value in (said or Said())._asdict().items() if value is not None]:
        raise OptionError(
            f"solve: {name!r} is an exercise, and {', '.join(words)} can only be said of a pasted "
            "assignment: change the file's [options] (--draft prints the file)"
        )


def _beside(folder: Path, name: str) -> str:
    """The text of a file in the same folder as an exercise."""
    return read_text(folder / name, repr(name))


def _read_file(source: str) -> str:
    if not Path(source).exists():
        known = library_names()
        raise NoSuchExerciseError(
            f"solve: {source!r} is no file and no exercise of the library: "
            f"{did_you_mean(source, known)}"
        )
    return read_text(source, f"solve: {source!r}")


def solve(
    source: str | PathLike[str],
    *,
    scale: Any = None,
    heads: int | None = None,
    causal: Any = None,
    numbers: str = "float64",
    digits: int = 15,
) -> Solution:
    """Solve an exercise: the name of one in the library, a TOML file, or a pasted assignment.

    `scale`, `heads` and `causal` say what an assignment's text does not.
    """
    exercise = load_exercise(source, Said(scale, heads, causal))
    return Solution(fspath(source), exercise, {"numbers": numbers, "digits": digits})
