"""The backward pass: a graph of the same kind, made by walking the steps from last to first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regard._errors import OptionError
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operation import core_of
from regard.graph.operations import (
    Add,
    Affine,
    Attend,
    Entrywise,
    Exp,
    Mask,
    MatMul,
    Multiply,
    Normalise,
    Pairwise,
    Subtract,
    Sum,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from regard.graph.operation import Axes, Operation


def gradient_symbol(symbol: Symbol) -> Symbol:
    return replace(symbol, hat="d")


@dataclass
class Tape:
    """The steps of the backward pass so far, to which operations add those of their adjoints.

    A step has a number for a name until it is known to which gradient it belongs; `owned` tells
    which steps are gradients themselves.
    """

    forward: Graph
    steps: list[Step] = field(default_factory=list)
    known: dict[str, Axes] = field(default_factory=dict)
    owned: dict[str, str] = field(default_factory=dict)  # the step that is the gradient of a name

    def __post_init__(self) -> None:
        self.known.update(self.forward.axes)

    def operands(self, step: str) -> tuple[str, ...]:
        return self.forward.step(step).operands

    def axes(self, name: str) -> Axes:
        return self.known[name]

    def add(self, operation: Operation, *operands: str) -> str:
        """Add a step, unless it is there already; its name is to be used as an operand."""
        for step in self.steps:
            if (step.operation, step.operands) == (operation, operands):
                return step.name
        return self._append(operation, *operands)

    def _append(self, operation: Operation, *operands: str) -> str:
        name = f"#{len(self.steps)}"
        self.known[name] = operation.axes(*(self.known[operand] for operand in operands))
        self.steps.append(Step(name, Symbol(name), operation, operands))
        return name

    def hiding(self, name: str) -> str | None:
        """The masked scores that every entry of a step ends in, when nothing else uses it."""
        users = self.forward.users(name)
        if len(users) != 1 or not isinstance(users[0].operation, (Pairwise, Entrywise)):
            return None
        (user,) = users
        if {axis.name for axis in self.axes(user.name)} != {a.name for a in self.axes(name)}:
            return None
        if isinstance(user.operation, Mask) and user.operands[0] == name:
            return user.name
        return self.hiding(user.name)

    def product(self, step: str, operation: MatMul, gradient: str, other: str) -> str:
        """The gradient of a step times another matrix.

        Where the step's entries are masked, their terms are left out: the gradient is 0 there,
        but 0 times a masked key that is no number would be no number either.
        """
        masked = self.hiding(step)
        is_matrix = all(len(core_of(self.axes(name))) == 2 for name in (gradient, other))
        if masked is None or not is_matrix:
            return self.add(operation, gradient, other)
        sides = operation.rows, operation.columns, operation.transpose_a, operation.transpose_b
        return self.add(Attend(*sides), gradient, other, masked)

    def fitted(self, gradient: str, like: str) -> str:
        """A contribution with the axes of what it belongs to: broadcast axes are summed."""
        wanted = [axis.name for axis in self.axes(like)]
        found = [axis.name for axis in self.axes(gradient)]
        assert set(wanted) <= set(found), f"d_{like} over {found}"
        extra = tuple(name for name in found if name not in wanted)
        return self.add(Sum(extra), gradient) if extra else gradient

    def settle(self, name: str, contributions: list[str]) -> str:
        """Let the sum of all contributions be the gradient of `name`."""
        result, *others = contributions
        for other in others:
            result = self.add(Add(), result, other)
        if not result.startswith("#") or result in self.owned.values():
            result = self._append(Affine(), result)  # another gradient, passed through unchanged
        self.owned[name] = result
        return result

    def named(self, wanted: Iterable[str]) -> tuple[Step, ...]:
        """The steps that the gradients of the wanted names need, under names of their own.

        What is no gradient itself is named after the gradient that it goes into.
        """
        owners = {step: name for name, step in self.owned.items()}
        needed = {self.owned[name] for name in wanted}
        for step in reversed(self.steps):
            if step.name in needed:
                needed.update(step.operands)
                for operand in step.operands:
                    owners.setdefault(operand, owners[step.name])
        names: dict[str, str] = {}
        kept: list[Step] = []
        for step in self.steps:
            if step.name in needed:
                kept.append(self._named(step, owners[step.name], names))
        return tuple(kept)

    def _named(self, step: Step, owner: str, names: dict[str, str]) -> Step:
        """One step with its final name, which is added to `names`."""
        name, symbol = f"d_{owner}", gradient_symbol(self.forward.symbol(owner))
        if self.owned.get(owner) != step.name:
            part = sum(other.startswith(f"{name}_via_") for other in names.values()) + 1
            via = f"via {part}"
            symbol = replace(symbol, sub=f"{symbol.sub}, {via}" if symbol.sub else via)
            name = f"{name}_via_{part}"
        names[step.name] = name
        operands = tuple(names.get(operand, operand) for operand in step.operands)
        return Step(name, symbol, step.operation, operands)


def backward(graph: Graph, output: str, wrt: tuple[str, ...], held: Collection[str] = ()) -> Graph:
    """The graph that also computes d_NAME for each name in `wrt` and all between, from d_output.

    The gradient of the `output` step is a given called d_<output>. The values of `held` steps
    are put in from outside: like givens, they do not depend on anything.
    """
    seed = Given(f"d_{output}", gradient_symbol(graph.symbol(output)), graph.axes[output])
    for name in wrt:
        if graph.require(name) not in graph.upstream(output, held=held):
            raise OptionError(f"gradient: {output} does not depend on {name!r}")
    graph = graph.pruned(output)
    tape = Tape(graph, known={seed.name: seed.axes}, owned={output: seed.name})
    needed = graph.downstream(*wrt, held=held) | set(wrt)
    contributions: dict[str, list[str]] = {}
    for step in reversed(graph.steps):
        if step.name not in needed or step.name not in {output, *contributions}:
            continue
        if step.name != output:
            tape.settle(step.name, contributions[step.name])
        if step.name in held:
            continue
        for operand, contribution in _adjoints(tape, step, needed, {*wrt, *held}):
            contributions.setdefault(operand, []).append(contribution)
    for given in graph.givens:
        if given.name in needed and given.name in contributions:
            tape.settle(given.name, contributions[given.name])
    if missing := [name for name in wrt if name not in tape.owned]:
        raise OptionError(f"gradient: {output} does not change smoothly with {missing[0]!r}")
    steps = tape.named(wrt)
    if clash := [name for name in (seed.name, *(s.name for s in steps)) if name in graph]:
        raise OptionError(
            f"gradient: this {graph.kind} has a step {clash[0]!r} already: "
            "gradients of gradients are not worked out"
        )
    return Graph(
        f"gradient of {graph.kind}",
        (*graph.givens, seed),
        (*graph.steps, *steps),
        graph.sizes,
        tuple(step.name for step in steps),
    )


def _adjoints(tape: Tape, step: Step, needed: set[str], apart: set[str]) -> list[tuple[str, str]]:
    """(operand, contribution) for each operand that needs one.

    Where a part of a softmax is wanted (or held) `apart`, its steps are walked one by one.
    """
    gradient = tape.owned[step.name]
    softmax = softmax_input(tape.forward, step)
    if softmax is not None and not apart.intersection(step.operands):
        return [(softmax, _softmax_adjoint(tape, step, gradient))]
    results = step.operation.adjoint(tape, step.name, gradient)
    return [
        (operand, tape.fitted(contribution, operand))
        for operand, contribution in zip(step.operands, results, strict=True)
        if contribution is not None and operand in needed
    ]


def softmax_input(graph: Graph, step: Step) -> str | None:
    """What was exponentiated, when this step ends a whole softmax over one set of axes."""
    if not isinstance(step.operation, Normalise):
        return None
    exponentials, sums = (
        None if graph.is_given(name) else graph.step(name) for name in step.operands
    )
    if exponentials is None or sums is None:
        return None
    whole = (
        isinstance(exponentials.operation, Exp)
        and isinstance(sums.operation, Sum)
        and sums.operands == (exponentials.name,)
        and len(graph.users(exponentials.name)) == 2
        and len(graph.users(sums.name)) == 1
    )
    return exponentials.operands[0] if whole else None


def _softmax_adjoint(tape: Tape, step: Step, gradient: str) -> str:
    """dS = A ⊙ (dA − the sum of A ⊙ dA over each group)."""
    sums = tape.forward.step(step.operands[1]).operation
    weighted = tape.add(Multiply(), step.name, gradient)
    totals = tape.add(sums, weighted)
    return tape.add(Multiply(), step.name, tape.add(Subtract(), gradient, totals))
