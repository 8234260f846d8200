"""What a mistake is: the rewrites that commit it, and the words that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from regard.graph.graph import Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operation import Operation
from regard.graph.rewrites import Rewrite


class Way(NamedTuple):
    """One way to commit a mistake; `detail` tells it from the others, in a few words."""

    rewrite: Rewrite
    detail: str = ""


@dataclass(frozen=True)
class Mistake:
    """A known mistake: how it is committed and what a learner is told about it.

    `explanation` says why it is wrong, `evidence` what in the numbers shows it, and `hint` asks a
    question that leads there without giving the answer away. `ways` are the rewrites that commit
    it in a graph; none where it cannot happen.
    """

    word: str
    title: str
    explanation: str
    evidence: str
    hint: str
    ways: Callable[[Graph], Iterable[Way]] = field(repr=False, compare=False)


class Cause(NamedTuple):
    """A mistake that was made, and in which way."""

    mistake: Mistake
    detail: str = ""


def step_named(graph: Graph, name: str) -> Step | None:
    """The computed step of this name, if there is one."""
    return graph.step(name) if name in graph.step_names else None


def has_axis(graph: Graph, name: str, axis: str) -> bool:
    return name in graph and any(each.name == axis for each in graph.axes[name])


def logits(graph: Graph) -> str:
    """What the exponentials are taken of; "" where there are none."""
    step = step_named(graph, "exp")
    return step.operands[0] if step and step.operands else ""


def product_of(graph: Graph, name: str) -> str:
    """The step in which a projection (Q, K, V, output) multiplies: without its bias."""
    return f"{name}_unbiased" if f"{name}_unbiased" in graph.step_names else name


def projections(graph: Graph) -> dict[str, Step]:
    """The steps that make Q, K and V out of a sequence, where they are computed."""
    found = {letter: step_named(graph, product_of(graph, letter)) for letter in "QKV"}
    return {letter: step for letter, step in found.items() if step is not None}


def helper(name: str, base: str, operation: Operation, *operands: str) -> Step:
    """A step that only a mistake has."""
    return Step(name, Symbol(base, name.rpartition("_")[2]), operation, operands)
