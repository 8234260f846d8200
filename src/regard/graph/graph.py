"""A graph: givens and named steps in the order in which they are computed. It holds no values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from regard._axes import GLOSSARY
from regard._errors import NoSuchStepError, ShapeError, did_you_mean
from regard.graph.notation import Symbol
from regard.graph.operation import Axes, Operation, entries
from regard.graph.operations import Mask


@dataclass(frozen=True)
class Given:
    """What comes from outside: its name, its symbol and its axes."""

    name: str
    symbol: Symbol
    axes: Axes
    is_mask: bool = False  # says who may attend: True and False, or what is added to the scores


@dataclass(frozen=True)
class Step:
    """One operation applied to earlier steps or givens."""

    name: str
    symbol: Symbol
    operation: Operation
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """An attention computation: every reading of it starts here.

    `shown` names the steps that are the worked solution, when that is not all of them.
    """

    kind: str
    givens: tuple[Given, ...]
    steps: tuple[Step, ...]
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    shown: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))
        known = {given.name for given in self.givens}
        for step in self.steps:
            if step.name in known:
                raise ValueError(f"two steps are called {step.name!r}")
            if missing := set(step.operands) - known:
                raise ValueError(f"{step.name!r} uses {sorted(missing)} before they are computed")
            if len(step.operands) != step.operation.arity:
                raise ValueError(
                    f"{step.name!r} has {len(step.operands)} operands, "
                    f"but the operation {step.operation.word} takes {step.operation.arity}"
                )
            known.add(step.name)

    def __reduce__(self) -> tuple[type[Graph], tuple[object, ...]]:
        """For pickle and copy, which know no mapping proxy."""
        return Graph, (self.kind, self.givens, self.steps, dict(self.sizes), self.shown)

    @cached_property
    def _by_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    @cached_property
    def _given_by_name(self) -> dict[str, Given]:
        return {given.name: given for given in self.givens}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*self._given_by_name, *self._by_name)

    @property
    def step_names(self) -> Collection[str]:
        return self._by_name.keys()

    @cached_property
    def axes(self) -> Mapping[str, Axes]:
        """The axes of every given and step."""
        found: dict[str, Axes] = {given.name: _known(given.axes) for given in self.givens}
        for step in self.steps:
            operands = (found[name] for name in step.operands)
            try:
                found[step.name] = _known(step.operation.axes(*operands))
            except ShapeError as error:
                raise ShapeError(f"step {step.name!r}: {error}") from error
        return found

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many numbers every given and step holds."""
        return {name: entries(axes).evaluate(self.sizes) for name, axes in self.axes.items()}

    def with_shapes(self) -> Graph:
        """The graph itself, once it is sure that every step has a shape."""
        self.axes  # noqa: B018 — computed here so that it fails here
        return self

    @cached_property
    def masks(self) -> Collection[str]:
        """The givens and steps that say who may attend: what mask steps add to the scores."""
        found = {given.name for given in self.givens if given.is_mask}
        for step in reversed(self.steps):
            if isinstance(step.operation, Mask):
                scores, mask = step.operands
                found |= {mask, scores} if step.name in found else {mask}
        return found

    @property
    def worked_steps(self) -> tuple[Step, ...]:
        """The steps of the worked solution, in order."""
        if self.shown is None:
            return self.steps
        return tuple(step for step in self.steps if step.name in self.shown)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or name in self._given_by_name

    def step(self, name: str) -> Step:
        self.require(name)
        if name not in self._by_name:
            raise NoSuchStepError(f"{name!r} is given, not computed")
        return self._by_name[name]

    def require(self, name: str) -> str:
        """Return `name` if the graph has it."""
        if name not in self:
            raise NoSuchStepError(
                f"no step {name!r} in this {self.kind}: {did_you_mean(name, self.names)}"
            )
        return name

    def is_given(self, name: str) -> bool:
        return name in self._given_by_name

    def symbol(self, name: str) -> Symbol:
        self.require(name)
        return (self._by_name.get(name) or self._given_by_name[name]).symbol

    def users(self, name: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if name in step.operands)

    def upstream(self, *names: str, held: Collection[str] = ()) -> set[str]:
        """Everything that these names are computed from, themselves included.

        A `held` step is computed from nothing: its value is put in.
        """
        needed = set(names)
        for step in reversed(self.steps):
            if step.name in needed and step.name not in held:
                needed.update(step.operands)
        return needed

    def downstream(self, *names: str, held: Collection[str] = ()) -> set[str]:
        """Every step that uses these names, directly or not; nothing passes a `held` step."""
        reached = set(names)
        for step in self.steps:
            if step.name not in held and reached.intersection(step.operands):
                reached.add(step.name)
        return reached - set(names)

    def pruned(self, *wanted: str) -> Graph:
        """Only what the wanted steps need."""
        needed = self.upstream(*wanted)
        return replace(
            self,
            givens=tuple(given for given in self.givens if given.name in needed),
            steps=tuple(step for step in self.steps if step.name in needed),
        )

    def with_steps(self, steps: tuple[Step, ...]) -> Graph:
        return replace(self, steps=steps)


def _known(axes: Axes) -> Axes:
    names = [axis.name for axis in axes]
    for name in names:
        if name not in GLOSSARY:
            raise ShapeError(f"there is no {name!r} axis: {did_you_mean(name, GLOSSARY)}")
    if len(set(names)) < len(names):
        raise ShapeError(f"two of its axes have the same name: {', '.join(names)}")
    return axes
