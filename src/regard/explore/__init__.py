"""Experiments that make attention understood: each is run, seen and changed.

`regard.explore.NAME(...)` returns a Result; every experiment is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.explore._experiments import EXPERIMENTS, named

if TYPE_CHECKING:
    from regard.explore._average import average
    from regard.explore._copy import copy
    from regard.explore._cost import cost
    from regard.explore._heads import heads
    from regard.explore._mask import mask
    from regard.explore._noise import noise
    from regard.explore._norm_noise import norm_noise
    from regard.explore._permutation import permutation
    from regard.explore._result import Result
    from regard.explore._scale import scale
    from regard.explore._softmax_bottleneck import softmax_bottleneck
    from regard.explore._sweep import Sweep, sweep
    from regard.explore._table import Table
    from regard.explore._temperature import temperature
    from regard.explore._two_heads import two_heads

_OTHERS = {"Result": "_result", "Sweep": "_sweep", "Table": "_table", "sweep": "_sweep"}

__all__ = [
    "EXPERIMENTS",
    "Result",
    "Sweep",
    "Table",
    "average",
    "copy",
    "cost",
    "heads",
    "mask",
    "noise",
    "norm_noise",
    "permutation",
    "scale",
    "softmax_bottleneck",
    "sweep",
    "temperature",
    "two_heads",
]


def __getattr__(name: str) -> Any:
    if name in _OTHERS:
        return getattr(import_module(f"regard.explore.{_OTHERS[name]}"), name)
    if name in __all__:
        return named(name)
    raise AttributeError(f"module 'regard.explore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
