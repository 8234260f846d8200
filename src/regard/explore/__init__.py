"""Experiments that make attention understood: each is run, seen and changed.

`regard.explore.NAME(...)` returns a Result; every experiment is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.explore._average import average
    from regard.explore._copy import copy
    from regard.explore._noise import noise
    from regard.explore._result import Result
    from regard.explore._table import Table

EXPERIMENTS = {
    "copy": "when is the context nearly one value?",
    "average": "how does one query average two values?",
    "noise": "does that survive noisy keys?",
}
_OTHERS = {"Result": "_result", "Table": "_table"}

__all__ = [
    "EXPERIMENTS",
    "Result",
    "Table",
    "average",
    "copy",
    "noise",
]


def __getattr__(name: str) -> Any:
    word = name.replace("_", "-")
    if name not in _OTHERS and word not in EXPERIMENTS:
        raise AttributeError(f"module 'regard.explore' has no attribute {name!r}")
    return getattr(import_module(f"regard.explore.{_OTHERS.get(name, '_' + name)}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
