"""The experiments by name; each stands in a module of its own and is loaded when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.explore._result import Result

EXPERIMENTS = {
    "copy": "when is the context nearly one value?",
    "average": "how does one query average two values?",
    "noise": "does that survive noisy keys?",
    "norm-noise": "what if one key is sometimes longer, sometimes shorter?",
    "two-heads": "how much steadier are two heads than one?",
    "heads": "why do one head and several differ on the same weights?",
    "permutation": "what if the tokens change places?",
    "scale": "why are scores divided by √d?",
    "mask": "what do masks remove, and does anything leak?",
    "cost": "how do time and memory grow on this machine?",
    "temperature": "how does the temperature set the entropy of the weights?",
    "softmax-bottleneck": "how sharp can weights be, and why do long contexts dilute?",
}


def named(experiment: str) -> Callable[..., Result]:
    name = experiment.replace("-", "_")
    found: Callable[..., Result] = getattr(import_module(f"regard.explore._{name}"), name)
    return found
