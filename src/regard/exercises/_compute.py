"""From a variant of an exercise to its trace: constants, expressions, draws, then the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import MissingExtraError, SizeLimitError
from regard.exercises._exercise import Draw, Draws, LinearDraw, Variant
from regard.exercises._expressions import evaluate, symbol_of
from regard.graph.builders import build
from regard.graph.graph import Graph
from regard.graph.notation import Symbol
from regard.graph.numbers import read_given
from regard.show.trace import Trace, work

Numbers = Mapping[str, Any]
LARGEST_STEP = 10_000_000  # numbers of one step: 80 megabytes


def trace_of(
    variant: Variant, names: Mapping[str, str], changed: Numbers | None = None, **how: Any
) -> Trace:
    """The trace of a variant, with some constants changed."""
    draws = drawn(variant.draws) if variant.draws else {}
    givens = givens_of(variant, constants_of(variant, changed or {}), draws)
    trace = work(variant.kind, **how, **givens, **variant.options)
    return Trace(trace.run, {name: a for name, a in names.items() if name in trace.run.graph})


def graph_of(variant: Variant) -> Graph:
    """The graph of a variant, without running it or drawing its numbers."""
    givens = givens_of(variant, constants_of(variant, {}), stand_ins(variant))
    return graph_for(variant, givens)


def graph_for(variant: Variant, givens: Numbers) -> Graph:
    shapes = {name: _shape_of(name, value) for name, value in givens.items()}
    graph = build(variant.kind, shapes, **variant.options)
    for step in graph.steps:
        shape = tuple(axis.size.evaluate(graph.sizes) for axis in graph.axes[step.name])
        if prod(shape) > LARGEST_STEP:
            raise SizeLimitError(
                f"{variant.kind}: {step.name} would be {written(shape)}, and {LARGEST_STEP:,} "
                f"numbers are the most: make {', '.join(givens)} smaller"
            )
    return graph


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else read_given(name, value).shape


def constants_of(variant: Variant, changed: Numbers) -> dict[str, Any]:
    """The constants in order; one may be an expression in those before it."""
    constants: dict[str, Any] = {}
    for name, value in variant.constants.items():
        constants[name] = constant(changed.get(name, value), constants)
    return constants


def constant(value: Any, before: Numbers) -> Any:
    if isinstance(value, str):
        return evaluate(value, before)
    return np.array(value, dtype=float) if isinstance(value, list) else float(value)


def givens_of(variant: Variant, constants: Numbers, drawn: Numbers) -> dict[str, Any]:
    """The givens in order; one may be an expression in the constants and the givens before it."""
    givens = dict(drawn)
    for name, value in variant.givens.items():
        givens[name] = given(value, constants, givens)
    return givens


def given(value: Any, constants: Numbers, before: Numbers) -> Any:
    if not isinstance(value, str):
        return value
    known = {name: np.asarray(read_given(name, v), dtype=float) for name, v in before.items()}
    return evaluate(value, {**constants, **known})


def symbols_of(graph: Graph, names: Mapping[str, str]) -> dict[str, Symbol]:
    """How the names in a formula are printed: the symbols of the steps, and aliases as they are."""
    symbols = {name: graph.symbol(name) for name in graph.names}
    aliases = {real: symbol_of(alias) for real, alias in names.items() if real in symbols}
    return symbols | aliases | {names[real]: symbol for real, symbol in aliases.items()}


# ---- numbers that torch draws --------------------------------------------------------------


def stand_ins(variant: Variant) -> dict[str, Any]:
    """Arrays in the shapes of what torch draws, all of whose entries are one and the same 0."""
    shapes = _drawn_shapes(variant.draws) if variant.draws else ()
    return {name: np.broadcast_to(0.0, shape) for name, shape in shapes}


def _drawn_shapes(draws: Draws) -> Iterator[tuple[str, tuple[int, ...]]]:
    for draw in draws.tensors:
        yield (draw.linear if isinstance(draw, LinearDraw) else draw.normal), draw.shape
        if isinstance(draw, LinearDraw) and draw.bias:
            yield draw.bias, draw.shape[-1:]


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
        tensors = [pair for draw in draws.tensors for pair in _tensors(draw, torch)]
        # In float64, where they are exactly what was drawn.
        return {name: tensor.detach().double().numpy() for name, tensor in tensors}
    finally:
        torch.random.set_rng_state(state)


def _tensors(draw: Draw, torch: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(draw, LinearDraw):
        yield draw.normal, torch.randn(*draw.shape)
        return
    layer = torch.nn.Linear(*draw.shape, bias=bool(draw.bias))
    yield draw.linear, layer.weight.T
    if draw.bias:
        yield draw.bias, layer.bias
