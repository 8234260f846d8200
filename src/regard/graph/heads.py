"""One head of a computation as a computation of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regard.graph.graph import Given, Graph, Step
from regard.graph.operation import Array, Axes
from regard.graph.operations import Affine, GroupSum, PickHead, Repeat
from regard.graph.run import Run


def _headed(axes: Axes) -> bool:
    return any(axis.name == "head" for axis in axes)


def _without_head(axes: Axes) -> Axes:
    return tuple(axis for axis in axes if axis.name != "head")


def one_head(whole: Run, index: int) -> Run:
    """The steps that belong to one head (counted from 0), without the head axis.

    Values with one matrix a head, given or put in, are sliced; where a step makes heads out of
    something shared, the head is picked from its result; what merges the heads again is left out.
    """
    graph = whole.graph
    givens: list[Given] = []
    for given in graph.givens:
        symbol = given.symbol.at(f"({index + 1})") if _headed(given.axes) else given.symbol
        givens.append(replace(given, symbol=symbol, axes=_without_head(given.axes)))
    steps = _steps_of_head(graph, index)
    kept = {step.name for step in steps}
    shown = tuple(step.name for step in graph.worked_steps if step.name in kept)
    results = [name for name in shown if _headed(graph.axes[name])] or [*shown[-1:]]
    title = f"head {index + 1} of {graph.kind}"
    alone = Graph(title, tuple(givens), tuple(steps), graph.sizes, shown).pruned(*results)
    outside = {**whole.givens, **whole.replaced}
    picked = {
        name: _of_head(value, graph.axes[name], index, graph.sizes["h"])
        for name, value in outside.items()
    }
    return whole.on(alone, values=picked)


def _of_head(value: Array, axes: Axes, index: int, heads: int) -> Array:
    """The part of a value that one head uses; neighbouring heads may share one."""
    if not _headed(axes):
        return value
    place = [axis.name for axis in axes].index("head")
    return np.asarray(value.take(index // (heads // value.shape[place]), axis=place))


def _steps_of_head(graph: Graph, index: int) -> list[Step]:
    steps: list[Step] = []
    dropped: set[str] = set()
    own = f"({index + 1})"
    for step in graph.steps:
        headed_in = any(_headed(graph.axes[name]) for name in step.operands)
        headed_out = _headed(graph.axes[step.name])
        if (
            dropped.intersection(step.operands)
            or (headed_in and not headed_out)
            or isinstance(step.operation, GroupSum)  # of several heads together
        ):
            dropped.add(step.name)
        elif headed_out and not headed_in:
            heads = next(axis.size for axis in graph.axes[step.name] if axis.name == "head")
            shared = graph.sizes["h"] // heads.evaluate(graph.sizes)
            whole = f"{step.name}_all"
            steps.append(replace(step, name=whole))
            pick = PickHead(index // shared)
            steps.append(Step(step.name, step.symbol.at(own), pick, (whole,)))
        elif headed_out:
            operation = Affine() if isinstance(step.operation, Repeat) else step.operation
            steps.append(replace(step, symbol=step.symbol.at(own), operation=operation))
        else:
            steps.append(step)
    return steps
