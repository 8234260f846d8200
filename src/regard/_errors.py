"""Every error that regard raises on purpose.

RegardError
├── ShapeError          (ValueError)   sizes or axes that do not fit together
├── OptionError         (ValueError)   a word or a value that an option does not take
├── NumberError         (ValueError)   a value that is no number, or not one for this reading
├── SizeLimitError      (ValueError)   too large for the reading that was asked for
├── NoSuchStepError     (KeyError)     a step name that the graph does not have
├── RewriteError        (ValueError)   a rewrite that does not apply to this graph
├── FileError           (ValueError)   a file that cannot be read, with its place and line
│   ├── NoSuchExerciseError            neither a file nor an exercise of the library
│   ├── ExerciseError                  an exercise file that breaks the format
│   ├── AssignmentError                a pasted assignment that cannot be understood
│   └── CheckpointError                a model's folder that is damaged or of another kind
├── JobError            (RuntimeError) a piece of work that failed, or a cluster that is not there
├── SandboxError        (RuntimeError) nothing here shuts strangers' programs in
└── MissingExtraError   (ImportError)  an optional part that is not installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RegardError(Exception):
    """The base: catch it to catch every mistake in what was passed to regard."""


class ShapeError(RegardError, ValueError):
    """Sizes or axes that do not fit together."""


class OptionError(RegardError, ValueError):
    """A word or a value that an option does not take."""


class NumberError(RegardError, ValueError):
    """A value that is no number, or not one for this reading."""


class SizeLimitError(RegardError, ValueError):
    """Too large for the reading that was asked for."""


class NoSuchStepError(RegardError, KeyError):
    """A step name that the graph does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would print the message in quotes


class RewriteError(RegardError, ValueError):
    """A rewrite that does not apply to this graph."""


class FileError(RegardError, ValueError):
    """A file that cannot be read, with its place and line."""


class NoSuchExerciseError(FileError):
    """Neither a file nor an exercise of the library."""


class ExerciseError(FileError):
    """An exercise file that breaks the format."""


class AssignmentError(FileError):
    """A pasted assignment that cannot be understood."""


class JobError(RegardError, RuntimeError):
    """A piece of work that failed, or a cluster that is not there."""


class CheckpointError(FileError):
    """A model's folder that is damaged or of another kind."""


class SandboxError(RegardError, RuntimeError):
    """Nothing here shuts strangers' programs in."""


class MissingExtraError(RegardError, ImportError):
    """An optional part that is not installed."""

    def __init__(self, what: str, extra: str, missing: str) -> None:
        super().__init__(
            f"{what} needs {missing}, which is not installed: pip install 'regard[{extra}]'"
        )


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest known one, or all of them."""
    from difflib import get_close_matches

    known = list(known)
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]!r}?"
    return "known: " + ", ".join(known)
