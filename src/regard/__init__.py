"""regard: attention computations shown, checked and put to work.

Every name is loaded when it is first used; importing regard loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard import explore, hf
    from regard._errors import (
        AssignmentError,
        CheckpointError,
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
        SandboxError,
        ShapeError,
        SizeLimitError,
    )
    from regard.checking import Report, check
    from regard.exercises import Solution, library_names, solve
    from regard.graph import rewrites
    from regard.hf import open_head
    from regard.kernel import set_threads
    from regard.ops import (
        Inspect,
        Inspection,
        attention,
        conventions,
        multi_head_attention,
        self_attention,
    )
    from regard.show.costs import count
    from regard.show.data import read_trace
    from regard.show.trace import Trace, work

_HOMES = {
    "regard._errors": (
        "AssignmentError", "CheckpointError", "ExerciseError", "FileError", "JobError",
        "MissingExtraError", "NoSuchExerciseError", "NoSuchStepError", "NumberError",
        "OptionError", "RegardError", "RewriteError", "SandboxError", "ShapeError",
        "SizeLimitError",
    ),
    "regard.checking": ("Report", "check"),
    "regard.exercises": ("Solution", "library_names", "solve"),
    "regard.explore": ("explore",),
    "regard.hf": ("hf", "open_head"),
    "regard.kernel": ("set_threads",),
    "regard.ops": (
        "Inspect", "Inspection", "attention", "multi_head_attention", "self_attention",
    ),
    "regard.ops.conventions": ("conventions",),
    "regard.show.costs": ("count",),
    "regard.show.data": ("read_trace",),
    "regard.show.trace": ("Trace", "work"),
    "regard.graph.rewrites": ("rewrites",),
}  # fmt: skip

__version__ = "0.1.0"
__all__ = [
    "AssignmentError",
    "CheckpointError",
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
    "Report",
    "RewriteError",
    "SandboxError",
    "ShapeError",
    "SizeLimitError",
    "Solution",
    "Trace",
    "attention",
    "check",
    "conventions",
    "count",
    "explore",
    "hf",
    "library_names",
    "multi_head_attention",
    "open_head",
    "read_trace",
    "rewrites",
    "self_attention",
    "set_threads",
    "solve",
    "work",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            module = import_module(home)
            found = module if name == home.rpartition(".")[2] else getattr(module, name)
            globals()[name] = found  # so that only the first use asks
            return found
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
