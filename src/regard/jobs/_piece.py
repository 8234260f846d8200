"""A piece of work: a function by name and JSON; doing it is the same wherever it is done."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any

from regard import _errors
from regard._errors import OptionError

Function = Callable[[dict[str, Any], int], Any]
Answer = dict[str, Any]  # {"record": …}, or {"failure": …}
SEED_BYTES = 6  # such a seed is an exact number in JSON, in Parquet and in every language


@dataclass(frozen=True)
class Failure:
    """What stopped a piece of work: the kind of error, its message, and where it happened."""

    kind: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        """The message; the kind of error too where it is not one of ours, which say enough."""
        return self.message if hasattr(_errors, self.kind) else f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Task:
    """One piece for one function; `text` is the piece as JSON with sorted names."""

    function: str
    text: str
    root_seed: int

    @property
    def key(self) -> str:
        """The name of its result: another version, function, piece or seed has another one."""
        from regard import __version__

        return _digest(__version__, self.function, self.text, self.root_seed).hex()[:32]

    @property
    def seed(self) -> int:
        """Its own seed, which depends on nothing but the run's seed and the piece."""
        return int.from_bytes(_digest(self.root_seed, self.text)[:SEED_BYTES], "big")

    @property
    def work(self) -> tuple[str, str, int]:
        return self.function, self.text, self.seed


def _digest(*facts: object) -> bytes:
    return sha256(json.dumps(facts).encode()).digest()


def task(function: Function, piece: Mapping[str, Any], root_seed: int) -> Task:
    try:
        text = json.dumps(piece, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise OptionError(f"jobs: a piece of work must be JSON, but {piece!r}: {error}") from error
    return Task(_name(function), text, root_seed)


def _name(function: Function) -> str:
    """module:name, by which any process finds the function."""
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or not name.isidentifier():
        raise OptionError(
            f"jobs: {name!r} of {module} cannot be found by other processes; "
            "pass a function that stands on its own in a module"
        )
    return f"{module}:{name}"


def perform(function: str, text: str, seed: int) -> Answer:
    """Do it; whatever goes wrong is an answer too, because one piece must not stop another."""
    try:
        module, _, name = function.partition(":")
        record = getattr(import_module(module), name)(json.loads(text), seed)
        return {"record": json.loads(json.dumps(record))}  # as it would come from another machine
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        return failed(type(error).__name__, str(error), trace)


def failed(kind: str, message: str, trace: str = "") -> Answer:
    return {"failure": asdict(Failure(kind, message, trace))}
