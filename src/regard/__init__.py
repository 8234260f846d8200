"""regard: attention computations shown, checked and put to work.

Every name is loaded when it is first used; importing regard loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard._errors import (
        AssignmentError,
        ExerciseError,
        FileError,
        JobError,
        MissingExtraError,
        NoSuchExerciseError,
        NoSuchStepError,
        NumberError,
        OptionError,
        RegardError,
        RewriteError,
        ShapeError,
        SizeLimitError,
    )
    from regard.exercises import Solution, library_names, solve
    from regard.graph import rewrites
    from regard.ops import (
        Inspect,
        Inspection,
        attention,
        multi_head_attention,
        self_attention,
    )
    from regard.show.costs import count
    from regard.show.data import read_trace
    from regard.show.trace import Trace, work

_HOMES = {
    "regard._errors": (
        "AssignmentError", "ExerciseError", "FileError", "JobError", "MissingExtraError",
        "NoSuchExerciseError", "NoSuchStepError", "NumberError", "OptionError", "RegardError",
        "RewriteError", "ShapeError", "SizeLimitError",
    ),
    "regard.exercises": ("Solution", "library_names", "solve"),
    "regard.ops": (
        "Inspect", "Inspection", "attention", "multi_head_attention", "self_attention",
    ),
    "regard.show.costs": ("count",),
    "regard.show.data": ("read_trace",),
    "regard.show.trace": ("Trace", "work"),
    "regard.graph.rewrites": ("rewrites",),
}  # fmt: skip

__version__ = "0.1.0"
__all__ = [
    "AssignmentError",
    "ExerciseError",
    "FileError",
    "Inspect",
    "Inspection",
    "JobError",
    "MissingExtraError",
    "NoSuchExerciseError",
    "NoSuchStepError",
    "NumberError",
    "OptionError",
    "RegardError",
    "RewriteError",
    "ShapeError",
    "SizeLimitError",
    "Solution",
    "Trace",
    "attention",
    "count",
    "library_names",
    "multi_head_attention",
    "read_trace",
    "rewrites",
    "self_attention",
    "solve",
    "work",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            module = import_module(home)
            return module if name == home.rpartition(".")[2] else getattr(module, name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
