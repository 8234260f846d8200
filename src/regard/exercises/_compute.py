"""From a variant of an exercise to its trace: constants, expressions, draws, then the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard._errors import MissingExtraError
from regard.exercises._exercise import Draws, Variant
from regard.exercises._expressions import evaluate
from regard.show.trace import Trace, work

Numbers = Mapping[str, Any]


def trace_of(
    variant: Variant, names: Mapping[str, str], changed: Numbers | None = None, **how: Any
) -> Trace:
    """The trace of a variant, with some constants or givens changed."""
    constants = constants_of(variant, changed or {})
    givens: dict[str, Any] = dict(drawn(variant.draws)) if variant.draws else {}
    for name, value in variant.givens.items():
        known = {**constants, **givens}
        givens[name] = evaluate(value, known) if isinstance(value, str) else value
    givens |= {name: value for name, value in (changed or {}).items() if name in givens}
    trace = work(variant.kind, **how, **givens, **variant.options)
    return Trace(trace.run, {k: v for k, v in names.items() if k in trace.run.graph})


def constants_of(variant: Variant, changed: Numbers) -> dict[str, Any]:
    """The constants in order; one may be an expression in those before it."""
    constants: dict[str, Any] = {}
    for name, value in variant.constants.items():
        value = changed.get(name, value)
        constants[name] = evaluate(value, constants) if isinstance(value, str) else _array(value)
    return constants


def _array(value: Any) -> Any:
    return np.array(value, dtype=float) if isinstance(value, list) else float(value)


def drawn(draws: Draws) -> dict[str, Any]:
    """What torch draws after the seed: linear layers in their order, then normal tensors.

    A linear layer multiplies by the transpose of its weight, so that transpose is the given.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("numbers that torch draws", "torch", "torch") from error
    state = torch.random.get_rng_state()
    try:
        torch.manual_seed(draws.seed)
        return dict(_drawn_tensors(draws, torch))
    finally:
        torch.random.set_rng_state(state)


def _drawn_tensors(draws: Draws, torch: Any) -> Any:
    for tensor in draws.tensors:
        shape = tensor["shape"]
        if tensor["draw"] == "normal":
            yield tensor["name"], torch.randn(*shape)
            continue
        layer = torch.nn.Linear(*shape, bias="bias" in tensor)
        yield tensor["weight"], layer.weight.T
        if "bias" in tensor:
            yield tensor["bias"], layer.bias
