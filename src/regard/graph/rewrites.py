"""Rewrites: a graph made into another graph, on purpose. Known mistakes are built from these.

A rewrite names a step, or a kind of operation (then it applies to every step of that kind).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from regard._errors import RegardError, RewriteError
from regard.graph.graph import Graph, Step
from regard.graph.operation import Operation
from regard.graph.operations import Affine, Exp, Split

Where = str | type[Operation]


def _matches(step: Step, where: Where) -> bool:
    return step.name == where if isinstance(where, str) else isinstance(step.operation, where)


def _describe(where: Where) -> str:
    return f"step {where!r}" if isinstance(where, str) else f"{where.word} step"


@dataclass(frozen=True)
class Rewrite(ABC):
    """From graph to graph; raises RewriteError where it does not apply."""

    def __call__(self, graph: Graph) -> Graph:
        """The rewritten graph; every step of it has a shape."""
        try:
            return graph.with_steps(self.steps(graph)).with_shapes()
        except RewriteError:
            raise
        except (RegardError, ValueError) as error:
            raise RewriteError(f"{self} does not apply to this {graph.kind}: {error}") from error

    @abstractmethod
    def steps(self, graph: Graph) -> tuple[Step, ...]:
        """The steps that take the place of the graph's."""

    def __or__(self, after: Rewrite) -> Rewrite:
        """This one, then `after`."""
        return InTurn((self, after))


@dataclass(frozen=True)
class InTurn(Rewrite):
    """One rewrite after another; only the last graph needs to have shapes."""

    rewrites: tuple[Rewrite, ...]

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        for rewrite in self.rewrites:
            graph = graph.with_steps(rewrite.steps(graph))
        return graph.steps


@dataclass(frozen=True)
class _AtSteps(Rewrite):
    where: Where

    def _found(self, graph: Graph) -> list[Step]:
        found = [step for step in graph.steps if _matches(step, self.where)]
        if not found:
            raise RewriteError(f"this {graph.kind} has no {_describe(self.where)} to rewrite")
        return found

    def _mapped(self, graph: Graph, change: Callable[[Step], Step]) -> tuple[Step, ...]:
        chosen = {step.name for step in self._found(graph)}
        return tuple(change(s) if s.name in chosen else s for s in graph.steps)


@dataclass(frozen=True)
class Drop(_AtSteps):
    """Leave a step out: whatever used it uses its first operand."""

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        stand_in: dict[str, str] = {}
        for step in self._found(graph):
            if not step.operands:
                raise RewriteError(f"{step.name!r} has no operand that could stand in for it")
            stand_in[step.name] = stand_in.get(step.operands[0], step.operands[0])
        last = graph.steps[-1].name
        if graph.is_given(stand_in.get(last, "")):
            raise RewriteError(f"without {last!r} nothing is left to compute")
        return tuple(_renamed(s, stand_in) for s in graph.steps if s.name not in stand_in)


@dataclass(frozen=True)
class Skip(_AtSteps):
    """Leave out what a step does, but not its name: it passes one of its operands on."""

    operand: int = 0

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        return self._mapped(graph, self._skipped)

    def _skipped(self, step: Step) -> Step:
        if self.operand >= len(step.operands):
            raise RewriteError(f"{step.name!r} has no operand {self.operand + 1} to pass on")
        return replace(step, operation=Affine(), operands=(step.operands[self.operand],))


def _renamed(step: Step, names: dict[str, str]) -> Step:
    return replace(step, operands=tuple(names.get(name, name) for name in step.operands))


@dataclass(frozen=True, init=False)
class Change(_AtSteps):
    """Give an operation other options: an axis, a layout, a transpose, a size."""

    options: tuple[tuple[str, Any], ...]

    def __init__(self, where: Where, **options: Any) -> None:
        object.__setattr__(self, "where", where)
        object.__setattr__(self, "options", tuple(sorted(options.items())))

    def __repr__(self) -> str:
        where = repr(self.where) if isinstance(self.where, str) else self.where.__name__
        words = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"Change({where}{words})"

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        return self._mapped(graph, self._changed)

    def _changed(self, step: Step) -> Step:
        known = {option.name for option in fields(step.operation)}
        if unknown := [name for name, _ in self.options if name not in known]:
            raise RewriteError(
                f"the operation {step.operation.word} of {step.name!r} has no option "
                f"{unknown[0]!r}; it has {', '.join(sorted(known)) or 'none'}"
            )
        return replace(step, operation=replace(step.operation, **dict(self.options)))


@dataclass(frozen=True)
class Operands(_AtSteps):
    """Let a step use other operands."""

    where: str
    operands: tuple[str, ...]

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        return self._mapped(graph, lambda step: replace(step, operands=self.operands))


@dataclass(frozen=True)
class Swap(Rewrite):
    """Exchange two operands wherever they are used."""

    one: str
    other: str

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        exchange = {graph.require(self.one): self.other, graph.require(self.other): self.one}
        return tuple(_renamed(step, exchange) for step in graph.steps)


@dataclass(frozen=True)
class Substitute(_AtSteps):
    """Put another operation in a step's place, with the same operands."""

    operation: Operation

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        return self._mapped(graph, lambda step: replace(step, operation=self.operation))


@dataclass(frozen=True)
class MoveAfter(Rewrite):
    """Apply a step later: to the result of `anchor` instead of where it was."""

    name: str
    anchor: str

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        moved, anchor = graph.step(self.name), graph.step(self.anchor)
        if graph.steps.index(anchor) <= graph.steps.index(moved):
            raise RewriteError(f"{self.name!r} does not come before {self.anchor!r}")
        steps = list(Drop(self.name).steps(graph))
        place = next(i for i, step in enumerate(steps) if step.name == self.anchor) + 1
        later = [_renamed(step, {self.anchor: self.name}) for step in steps[place:]]
        moved = replace(moved, operands=(self.anchor, *moved.operands[1:]))
        return (*steps[:place], moved, *later)


@dataclass(frozen=True)
class Expand(_AtSteps):
    """Compute a step otherwise: by these steps, the last of which bears its name."""

    where: str
    instead: tuple[Step, ...]

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        if not self.instead or self.instead[-1].name != self.where:
            raise RewriteError(f"the last of the steps for {self.where!r} must bear its name")
        place = graph.steps.index(self._found(graph)[0])
        return (*graph.steps[:place], *self.instead, *graph.steps[place + 1 :])


@dataclass(frozen=True)
class Insert(Rewrite):
    """One more step after `anchor`: whatever used the anchor uses the step."""

    anchor: str
    step: Step

    def steps(self, graph: Graph) -> tuple[Step, ...]:
        place = graph.steps.index(graph.step(self.anchor)) + 1
        later = (_renamed(step, {self.anchor: self.step.name}) for step in graph.steps[place:])
        return (*graph.steps[:place], self.step, *later)


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
    "Expand",
    "InTurn",
    "Insert",
    "MoveAfter",
    "Operands",
    "Rewrite",
    "Skip",
    "Substitute",
    "Swap",
    "softmax_over",
]
