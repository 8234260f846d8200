"""Mistakes committed: the values that every step then has, as far as it can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from regard._errors import RegardError, RewriteError
from regard.graph.graph import Graph
from regard.graph.operation import Array, Axes, Setting, Tensor
from regard.graph.rewrites import Rewrite
from regard.graph.run import Run
from regard.mistakes._mistake import Cause, Mistake


@dataclass(frozen=True, eq=False)
class Committed:
    """What comes out when these mistakes are made.

    `values` holds the steps that can still be computed, `changed` those of them that are computed
    otherwise than in the right graph or from something that is.
    """

    causes: tuple[Cause, ...]
    graph: Graph
    values: Mapping[str, Array]
    changed: frozenset[str]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(cause.mistake.word for cause in self.causes)


def replay(run: Run, graph: Graph, until: str = "") -> tuple[dict[str, Array], frozenset[str]]:
    """The values of another graph on the givens of a run, and which steps had to be computed.

    Values of a run that were put in stay; steps that cannot be computed are left out, with those
    that use them, and those that come after `until`.
    """
    setting = Setting(run.numbers, run.graph.sizes)
    values = {given.name: run.values[given.name] for given in graph.givens}
    axes: dict[str, Axes] = {given.name: given.axes for given in graph.givens}
    changed: set[str] = set()
    for step in graph.steps:
        if until in values:
            break
        known = step.name in run.graph.step_names
        mine = run.graph.step(step.name) if known else None
        same = (mine is step or mine == step) and changed.isdisjoint(step.operands)
        if (known and step.name in run.replaced) or (same and axes.keys() >= set(step.operands)):
            values[step.name], axes[step.name] = run.values[step.name], run.graph.axes[step.name]
            continue
        changed.add(step.name)
        if not axes.keys() >= set(step.operands):
            continue
        operands = [
            Tensor(values[name], tuple(axis.name for axis in axes[name])) for name in step.operands
        ]
        try:
            found = step.operation.axes(*(axes[name] for name in step.operands))
            step.operation.check(step.name, *zip(step.operands, operands, strict=True))
            result = step.operation.forward(setting, *operands)
            values[step.name] = run.numbers.tidy(result, step.name)
        except (RegardError, ValueError):
            continue
        axes[step.name] = found
    return values, frozenset(changed)


def commit(
    run: Run, rewrite: Rewrite, causes: tuple[Cause, ...] = (), until: str = ""
) -> Committed | None:
    """The run with a rewrite made; None where it does not apply or changes no step's value.

    Nothing after the step `until` is computed.
    """
    try:
        graph = run.graph.with_steps(rewrite.steps(run.graph))
    except (RewriteError, ValueError):
        return None
    with np.errstate(all="ignore"):
        values, changed = replay(run, graph, until)
    if not changed & values.keys() & set(run.graph.step_names):
        return None
    return Committed(causes, graph, values, changed)


def commit_all(run: Run, mistakes: Iterable[Mistake]) -> Iterator[tuple[Rewrite, Committed]]:
    """Every way of committing each of the mistakes that can be made here."""
    for mistake in mistakes:
        for way in mistake.ways(run.graph):
            committed = commit(run, way.rewrite, (Cause(mistake, way.detail),))
            if committed is not None:
                yield way.rewrite, committed
