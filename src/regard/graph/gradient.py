"""The backward pass: a graph of the same kind, made by walking the steps from last to first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operations import Add, Affine, Exp, Multiply, Normalise, Spread, Subtract, Sum

if TYPE_CHECKING:
    from regard.graph.operation import Axes, Operation


def gradient_symbol(symbol: Symbol) -> Symbol:
    return replace(symbol, hat="d")


@dataclass
class Tape:
    """A graph under construction, to which operations add the steps of their adjoints."""

    forward: Graph
    steps: list[Step] = field(default_factory=list)
    known: dict[str, Axes] = field(default_factory=dict)
    target: str = ""

    def __post_init__(self) -> None:
        self.known.update(self.forward.axes)

    def operands(self, step: str) -> tuple[str, ...]:
        return self.forward.step(step).operands

    def axes(self, name: str) -> Axes:
        return self.known[name]

    def add(self, operation: Operation, *operands: str) -> str:
        """Add a step under a name of its own; it is renamed when it turns out to be a result."""
        place = sum(step.name.startswith(f"d_{self.target}_via_") for step in self.steps) + 1
        name = f"d_{self.target}_via_{place}"
        self.put(Step(name, Symbol(f"G_{place}", self.target), operation, operands))
        return name

    def put(self, step: Step) -> None:
        self.known[step.name] = step.operation.axes(*(self.known[name] for name in step.operands))
        self.steps.append(step)

    def fitted(self, gradient: str, like: str) -> str:
        """A contribution with the axes of what it belongs to: broadcast axes are summed."""
        wanted = [axis.name for axis in self.axes(like)]
        extra = tuple(axis.name for axis in self.axes(gradient) if axis.name not in wanted)
        if extra:
            gradient = self.add(Sum(extra), gradient)
        if len(self.axes(gradient)) < len(wanted):
            gradient = self.add(Spread(), gradient, like)
        return gradient

    def rename(self, old: str, new: str, symbol: Symbol) -> None:
        self.known[new] = self.known.pop(old)
        for place, step in enumerate(self.steps):
            operands = tuple(new if name == old else name for name in step.operands)
            changed = replace(step, operands=operands)
            if step.name == old:
                changed = replace(changed, name=new, symbol=symbol)
            self.steps[place] = changed


def backward(graph: Graph, output: str, wrt: tuple[str, ...]) -> Graph:
    """The graph that also computes d_NAME for each name in `wrt` and all between, from d_output.

    The gradient of the `output` step is a given called d_<output>.
    """
    seed = f"d_{output}"
    shape = Given(seed, gradient_symbol(graph.symbol(output)), graph.axes[output])
    graph = graph.pruned(output)
    tape = Tape(graph, known={seed: shape.axes})
    needed = graph.downstream(*wrt) | set(wrt)
    contributions: dict[str, list[str]] = {output: [seed]}
    for step in reversed(graph.steps):
        if step.name not in needed or step.name not in contributions:
            continue
        gradient = _settle(tape, step.name, contributions[step.name])
        for operand, contribution in _adjoints(tape, step, gradient, needed):
            contributions.setdefault(operand, []).append(contribution)
    for name in wrt:
        if name in contributions:
            _settle(tape, name, contributions[name])
    return Graph(
        f"gradient of {graph.kind}",
        (*graph.givens, shape),
        (*graph.steps, *tape.steps),
        graph.sizes,
        tuple(step.name for step in tape.steps),
    )


def _adjoints(
    tape: Tape, step: Step, gradient: str, needed: set[str]
) -> list[tuple[str, str]]:
    """(operand, contribution) for each operand that needs one."""
    softmax = _softmax_input(tape.forward, step)
    if softmax is not None:
        tape.target = softmax
        return [(softmax, _softmax_adjoint(tape, step, gradient))]
    found: list[tuple[str, str]] = []
    tape.target = next((name for name in step.operands if name in needed), step.name)
    results = step.operation.adjoint(tape, step.name, gradient)
    for operand, contribution in zip(step.operands, results, strict=True):
        if contribution is not None and operand in needed:
            tape.target = operand
            found.append((operand, tape.fitted(contribution, operand)))
    return found


def _settle(tape: Tape, name: str, contributions: list[str]) -> str:
    """The sum of all contributions, under the name d_<name>."""
    wanted = f"d_{name}"
    if wanted in tape.known:
        return wanted
    tape.target = name
    result = contributions[0]
    for other in contributions[1:]:
        result = tape.add(Add(), result, other)
    if not result.startswith(f"d_{name}_via_") or len(contributions) == 1:
        result = _own(tape, result)
    tape.rename(result, wanted, gradient_symbol(tape.forward.symbol(name)))
    return wanted


def _own(tape: Tape, contribution: str) -> str:
    """A step that may be renamed: not the gradient of something else passed through unchanged."""
    others = {f"d_{known}" for known in tape.forward.names}
    return tape.add(Affine(), contribution) if contribution in others else contribution


def _softmax_input(graph: Graph, step: Step) -> str | None:
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
