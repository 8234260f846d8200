"""Rewrites: a graph made into another graph, on purpose. Known mistakes are built from these.

A rewrite names a step, or a kind of operation (then it applies to every step of that kind).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from regard._errors import RewriteError
from regard.graph.graph import Graph, Step
from regard.graph.operation import Operation
from regard.graph.operations import Exp, Split

Where = str | type[Operation]


def _matches(step: Step, where: Where) -> bool:
    return step.name == where if isinstance(where, str) else isinstance(step.operation, where)


def _describe(where: Where) -> str:
    return repr(where) if isinstance(where, str) else f"any {where.word} step"


@dataclass(frozen=True)
class Rewrite(ABC):
    """From graph to graph; raises RewriteError where it does not apply."""

    @abstractmethod
    def __call__(self, graph: Graph) -> Graph: ...

    def __or__(self, after: Rewrite) -> Rewrite:
        """This one, then `after`."""
        return InTurn((self, after))


@dataclass(frozen=True)
class InTurn(Rewrite):
    rewrites: tuple[Rewrite, ...]

    def __call__(self, graph: Graph) -> Graph:
        for rewrite in self.rewrites:
            graph = rewrite(graph)
        return graph


@dataclass(frozen=True)
class _AtSteps(Rewrite):
    where: Where

    def _found(self, graph: Graph) -> list[Step]:
        found = [step for step in graph.steps if _matches(step, self.where)]
        if not found:
            raise RewriteError(f"this {graph.kind} has no {_describe(self.where)} to rewrite")
        return found

    def _mapped(self, graph: Graph, change: Callable[[Step], Step]) -> Graph:
        chosen = {step.name for step in self._found(graph)}
        return graph.with_steps(tuple(change(s) if s.name in chosen else s for s in graph.steps))


@dataclass(frozen=True)
class Drop(_AtSteps):
    """Leave a step out: whatever used it uses its first operand."""

    def __call__(self, graph: Graph) -> Graph:
        stand_in: dict[str, str] = {}
        for step in self._found(graph):
            if not step.operands:
                raise RewriteError(f"{step.name!r} has no operand that could stand in for it")
            stand_in[step.name] = stand_in.get(step.operands[0], step.operands[0])
        last = graph.steps[-1].name
        if last in stand_in and graph.is_given(stand_in[last]):
            raise RewriteError(f"without {last!r} nothing is left to compute")
        steps = tuple(
            replace(s, operands=tuple(stand_in.get(name, name) for name in s.operands))
            for s in graph.steps
            if s.name not in stand_in
        )
        return graph.with_steps(steps)


class Change(_AtSteps):
    """Give an operation other options: an axis, a layout, a transpose, a size."""

    def __init__(self, where: Where, **options: Any) -> None:
        object.__setattr__(self, "where", where)
        object.__setattr__(self, "options", tuple(options.items()))

    options: tuple[tuple[str, Any], ...]

    def __repr__(self) -> str:
        words = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"Change({_describe(self.where)}{words})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Change) and (self.where, self.options) == (
            other.where,
            other.options,
        )

    def __hash__(self) -> int:
        return hash((self.where, self.options))

    def __call__(self, graph: Graph) -> Graph:
        return self._mapped(graph, self._changed)

    def _changed(self, step: Step) -> Step:
        known = {option.name for option in fields(step.operation)}
        if unknown := [name for name, _ in self.options if name not in known]:
            raise RewriteError(
                f"{step.name!r} is a {step.operation.word} step without option {unknown[0]!r}; "
                f"it has {', '.join(sorted(known)) or 'none'}"
            )
        return replace(step, operation=replace(step.operation, **dict(self.options)))


@dataclass(frozen=True)
class Operands(_AtSteps):
    """Let a step use other operands."""

    operands: tuple[str, ...]

    def __call__(self, graph: Graph) -> Graph:
        (step,) = self._found(graph)
        position = graph.steps.index(step)
        earlier = {given.name for given in graph.givens} | {s.name for s in graph.steps[:position]}
        if missing := [name for name in self.operands if name not in earlier]:
            raise RewriteError(f"{missing[0]!r} is not known before {step.name!r}")
        return self._mapped(graph, lambda s: replace(s, operands=self.operands))


@dataclass(frozen=True)
class Swap(Rewrite):
    """Exchange two operands wherever they are used."""

    one: str
    other: str

    def __call__(self, graph: Graph) -> Graph:
        exchange = {graph.require(self.one): self.other, graph.require(self.other): self.one}
        steps = tuple(
            replace(s, operands=tuple(exchange.get(name, name) for name in s.operands))
            for s in graph.steps
        )
        try:
            return graph.with_steps(steps)
        except ValueError as error:
            raise RewriteError(f"{self.one!r} and {self.other!r} cannot be exchanged: {error}") from error


@dataclass(frozen=True)
class Substitute(_AtSteps):
    """Put another operation in a step's place, with the same operands."""

    operation: Operation

    def __call__(self, graph: Graph) -> Graph:
        return self._mapped(graph, lambda s: replace(s, operation=self.operation))


@dataclass(frozen=True)
class MoveAfter(Rewrite):
    """Apply a step later: to the result of `anchor` instead of where it was."""

    name: str
    anchor: str

    def __call__(self, graph: Graph) -> Graph:
        moved = graph.step(self.name)
        anchor = graph.step(self.anchor)
        if graph.steps.index(anchor) < graph.steps.index(moved):
            raise RewriteError(f"{self.name!r} already comes after {self.anchor!r}")
        steps: list[Step] = []
        for step in Drop(self.name)(graph).steps:
            after = bool(steps) and any(s.name == moved.name for s in steps)
            names = (self.name if after and n == self.anchor else n for n in step.operands)
            steps.append(replace(step, operands=tuple(names)))
            if step.name == self.anchor:
                steps.append(replace(moved, operands=(self.anchor, *moved.operands[1:])))
        return graph.with_steps(tuple(steps))


def softmax_over(*axes: str) -> Rewrite:
    """Normalise over these axes instead of the keys."""
    return Change(Exp, over=axes) | Change("sums", over=axes)


NO_SCALE = Drop("scaled")
SCALE_BY_SIZE = Change("scaled", root=False)
SOFTMAX_OVER_QUERIES = softmax_over("query")
SOFTMAX_OVER_HEADS = softmax_over("head")
HEADS_BY_VIEW = Change(Split, layout="view")

__all__ = [
    "HEADS_BY_VIEW",
    "NO_SCALE",
    "SCALE_BY_SIZE",
    "SOFTMAX_OVER_HEADS",
    "SOFTMAX_OVER_QUERIES",
    "Change",
    "Drop",
    "InTurn",
    "MoveAfter",
    "Operands",
    "Rewrite",
    "Substitute",
    "Swap",
    "softmax_over",
]

