"""Running a graph: every step's value, by name, in one kind of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._axes import written
from regard._errors import ShapeError
from regard.graph.numbers import Float64, Numbers, read_given
from regard.graph.operation import Array, Setting, Tensor

if TYPE_CHECKING:
    from regard.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Run:
    """Data only: the graph, the numbers it was run in, and the value of every given and step.

    `replaced` names the steps whose values were put in from outside.
    """

    graph: Graph
    numbers: Numbers
    givens: Mapping[str, Array]
    values: Mapping[str, Array]
    replaced: tuple[str, ...] = ()

    def tensor(self, name: str) -> Tensor:
        axes = self.graph.axes[self.graph.require(name)]
        return Tensor(self.values[name], tuple(axis.name for axis in axes))

    def replace(self, **values: Any) -> Run:
        """The same computation with these values put in and everything after them redone."""
        put_in = {name: read_given(name, value) for name, value in values.items()}
        for name, value in put_in.items():
            self.graph.require(name)
            if value.shape != self.values[name].shape:
                raise ShapeError(
                    f"replace: {name} is {written(self.values[name].shape)}, "
                    f"but {written(value.shape)} was passed"
                )
        givens = {name: put_in.get(name, value) for name, value in self.givens.items()}
        kept = {n: self.values[n] for n in self.replaced if n not in put_in}
        steps = {n: in_numbers(self.numbers, v) for n, v in put_in.items() if n not in givens}
        return run(self.graph, givens, self.numbers, kept | steps)


def in_numbers(numbers: Numbers, given: Array) -> Array:
    """A given in these numbers: a mask of True (may be attended) becomes 0 and −∞."""
    return numbers.permissions(given) if given.dtype == bool else numbers.array(given)


def run(
    graph: Graph,
    givens: Mapping[str, Array],
    numbers: Numbers | None = None,
    replaced: Mapping[str, Array] | None = None,
) -> Run:
    """Compute every step; `replaced` steps keep the values that are passed for them."""
    numbers = numbers or Float64()
    replaced = dict(replaced or {})
    setting = Setting(numbers, graph.sizes)
    values: dict[str, Array] = {
        given.name: in_numbers(numbers, givens[given.name]) for given in graph.givens
    }
    names = {name: tuple(axis.name for axis in axes) for name, axes in graph.axes.items()}
    with np.errstate(all="ignore"):  # NaN and ∞ are results to show, not accidents to warn of
        for step in graph.steps:
            if step.name in replaced:
                values[step.name] = replaced[step.name]
                continue
            operands = [Tensor(values[name], names[name]) for name in step.operands]
            step.operation.check(step.name, *zip(step.operands, operands, strict=True))
            values[step.name] = numbers.tidy(step.operation.forward(setting, *operands))
    return Run(graph, numbers, dict(givens), values, tuple(replaced))
