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

    def on(
        self,
        graph: Graph,
        numbers: Numbers | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> Run:
        """Another graph, or other numbers, with the same givens and the same values put in.

        `values` stand for those of the same name, or are given besides them.
        """
        known = {**self.givens, **self.replaced, **(values or {})}
        givens = {given.name: known[given.name] for given in graph.givens if given.name in known}
        put_in = {name: known[name] for name in self.replaced if name in graph.step_names}
        return run(graph, givens, numbers or self.numbers, put_in)

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


def _read(numbers: Numbers, name: str, given: Array, is_mask: bool) -> Array:
    """A given in these numbers: a mask of True (may be attended) becomes 0 and −∞."""
    try:
        if given.dtype == bool:
            return numbers.permissions(_truths(given, is_mask))
        return numbers.array(_summands(given) if is_mask else given)
    except NumberError as error:
        raise NumberError(f"{name}: {error}") from error


def _truths(given: Array, is_mask: bool) -> Array:
    if not is_mask:
        raise NumberError("numbers are wanted, but True and False were passed")
    return given


def _summands(mask: Array) -> Array:
    """The numbers of a mask; 0 and 1 alone would most likely be meant as False and True."""
    if np.isin(mask, (0, 1)).all() and (mask == 1).any():
        raise NumberError(
            "a mask of the numbers 0 and 1 is unclear: numbers in a mask are added to the scores, "
            "so that 1 would hide nothing; pass True (may be attended) and False, or 0 and −∞, "
            "or pass them as `bias` to add them on purpose"
        )
    return mask


def run(
    graph: Graph,
    givens: Mapping[str, Array],
    numbers: Numbers | None = None,
    replaced: Mapping[str, Array] | None = None,
    known: Mapping[str, Array] | None = None,
) -> Run:
    """Compute every step that is neither `replaced` from outside nor `known` from before."""
    _check_givens(graph, givens)
    _check_replaced(graph, replaced or {})
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


def _check_replaced(graph: Graph, replaced: Mapping[str, Array]) -> None:
    for name, value in replaced.items():
        wanted = tuple(axis.size.evaluate(graph.sizes) for axis in graph.axes[graph.require(name)])
        if value.shape != wanted:
            raise ShapeError(
                f"{graph.kind}: the value put in for {name} is {written(value.shape)}, "
                f"but {name} is {written(wanted)} here"
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
            values[name] = _read(numbers, name, given, name in graph.masks)
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
