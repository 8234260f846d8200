"""Running a graph: every step's value, by name, in one kind of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._axes import written
from regard._errors import NumberError, OptionError, ShapeError
from regard.graph.numbers import Float64, Numbers, read_given
from regard.graph.operation import ROUNDING, Array, Magnitude, Setting, Tensor

if TYPE_CHECKING:
    from regard.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Run:
    """Data only: the graph, the numbers it was run in, and the value of every given and step.

    `replaced` holds the steps whose values were put in from outside, as they were given.
    """

    graph: Graph
    numbers: Numbers
    givens: Mapping[str, Array]
    values: Mapping[str, Array]
    replaced: Mapping[str, Array] = field(default_factory=dict)

    def tensor(self, name: str) -> Tensor:
        axes = self.graph.axes[self.graph.require(name)]
        return Tensor(self.values[name], tuple(axis.name for axis in axes))

    @cached_property
    def roundings(self) -> Mapping[str, float]:
        """By name: entries that are not larger are what float64 left of 0; 0 where none can be."""
        sizes: dict[str, Magnitude] = {}
        for name in self.graph.names:
            rounding = 0.0
            if not self.graph.is_given(name) and name not in self.replaced:
                step = self.graph.step(name)
                rounding = step.operation.rounding(*(sizes[operand] for operand in step.operands))
            sizes[name] = Magnitude(_largest(self.values[name], rounding), rounding)
        return {name: size.rounding for name, size in sizes.items()}

    def replace(self, **values: Any) -> Run:
        """The same computation with these values put in and everything after them redone."""
        put_in = {name: self._fitting(name, value) for name, value in values.items()}
        givens = {name: put_in.pop(name, value) for name, value in self.givens.items()}
        held = self.replaced.keys() - values.keys()
        changed = set(values) | self.graph.downstream(*values, held=held)
        kept = {name: value for name, value in self.values.items() if name not in changed}
        return run(self.graph, givens, self.numbers, {**self.replaced, **put_in}, kept)

    def _fitting(self, name: str, value: Any) -> Array:
        given = read_given(name, value)
        wanted = self.values[self.graph.require(name)].shape
        if given.shape != wanted:
            raise ShapeError(
                f"replace: {name} is {written(wanted)}, but {written(given.shape)} was passed"
            )
        return given


def _largest(value: Array, rounding: float) -> float:
    """The largest finite entry, or that of the terms when every entry is rounding."""
    if value.dtype != np.float64:
        return 0.0  # exact and certified numbers leave nothing
    largest = float(np.abs(value[np.isfinite(value)]).max(initial=0.0))
    return largest if largest > rounding else rounding / ROUNDING


def in_numbers(numbers: Numbers, given: Array) -> Array:
    """A given in these numbers: a mask of True (may be attended) becomes 0 and −∞."""
    return numbers.permissions(given) if given.dtype == bool else numbers.array(given)


def _read(numbers: Numbers, name: str, given: Array) -> Array:
    try:
        return in_numbers(numbers, given)
    except NumberError as error:
        raise NumberError(f"{name}: {error}") from error


def run(
    graph: Graph,
    givens: Mapping[str, Array],
    numbers: Numbers | None = None,
    replaced: Mapping[str, Array] | None = None,
    known: Mapping[str, Array] | None = None,
) -> Run:
    """Compute every step that is neither `replaced` from outside nor `known` from before."""
    _check_givens(graph, givens)
    numbers = numbers or Float64()
    numbers.admit(graph)
    attempt = partial(_computed, graph, givens, numbers, replaced or {})
    return numbers.settled(attempt, known or {})


def _check_givens(graph: Graph, givens: Mapping[str, Array]) -> None:
    for given in graph.givens:
        if given.name not in givens:
            raise OptionError(f"{graph.kind} needs {given.name}, which was not given")
        wanted = tuple(axis.size.evaluate(graph.sizes) for axis in given.axes)
        found = np.shape(givens[given.name])
        if found != wanted:
            raise ShapeError(
                f"{graph.kind}: {given.name} must be {written(wanted)}, as the graph was built, "
                f"but {written(found)} was passed"
            )


def _computed(
    graph: Graph,
    givens: Mapping[str, Array],
    numbers: Numbers,
    replaced: Mapping[str, Array],
    known: Mapping[str, Array],
) -> Run:
    setting = Setting(numbers, graph.sizes)
    values = dict(known)
    for name, given in {**givens, **replaced}.items():
        if name not in values:
            values[name] = _read(numbers, name, given)
    names = {name: tuple(axis.name for axis in axes) for name, axes in graph.axes.items()}
    with np.errstate(all="ignore"):  # NaN and ∞ are results to show, not accidents to warn of
        for step in graph.steps:
            if step.name in values:
                continue
            operands = [Tensor(values[name], names[name]) for name in step.operands]
            step.operation.check(step.name, *zip(step.operands, operands, strict=True))
            result = step.operation.forward(setting, *operands)
            values[step.name] = numbers.tidy(result, step.name)
    return Run(graph, numbers, dict(givens), {n: values[n] for n in graph.names}, dict(replaced))
