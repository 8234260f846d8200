"""What a question beyond the values of steps is made of, and what judges each part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from regard.checking._asking import Asking
from regard.checking._questions import judge_choice, judge_formula, judge_mask, judge_shape
from regard.checking._text import Item
from regard.checking._verdict import Judgement
from regard.exercises._evidence import FACTS
from regard.exercises._exercise import Asked, AskedChoice, AskedFormula, AskedMask, AskedShape
from regard.graph.cost import count
from regard.graph.graph import Graph
from regard.graph.operation import Cost
from regard.graph.polynomial import Polynomial
from regard.show._values import plain_values


@dataclass(frozen=True)
class Part:
    """One thing to judge: how it is called, where its answer may stand, what judges it."""

    called: str
    paths: tuple[tuple[str, ...], ...]
    judge: Callable[[Item], Judgement]
    wanted: str


def parts_of(asking: Asking, asked: Asked) -> Iterator[Part]:
    """What a question beyond the values of steps is made of."""
    trace = asking.trace(asked.variant)
    graph = trace.run.graph
    match asked.question:
        case AskedShape(steps):
            for name in (trace[step].name for step in steps):
                yield Part(
                    f"shape of {asking.called(name)}",
                    tuple(("shape", each) for each in asking.calls(name)),
                    partial(_judge_shape, graph, name),
                    " × ".join(str(axis.size) for axis in graph.axes[name]),
                )
        case AskedChoice(choices, fact):
            yield Part(
                "choice",
                (("choice",), ("answer",)),
                lambda item: judge_choice(item.value, choices, fact, trace),
                FACTS[fact].decide(trace)[0],
            )
        case AskedFormula():
            yield from _formulas(asking, asked, asked.question)
        case AskedMask(mask):
            name = trace[mask].name
            yield Part(
                asking.called(name),
                tuple((each,) for each in (*asking.calls(name), "mask")),
                lambda item: judge_mask(item.value, trace.run.values[name], item.where),
                f"{plain_values(trace.run.values[name])}".replace("'", ""),
            )


def _formulas(asking: Asking, asked: Asked, kind: AskedFormula) -> Iterator[Part]:
    """The counts of all groups together."""
    trace = asking.trace(asked.variant)
    table = count(trace.run.graph, kind.convention)
    steps = [trace[step].name for group in kind.formula.values() for step in group]
    total = sum((table.row(step).counts for step in steps), Cost())
    for name in kind.count:
        wanted = total.items()[name]
        if wanted.terms:
            yield Part(
                name, ((name,),), partial(_judge_formula, wanted, trace.run.graph),
                str(wanted),
            )  # fmt: skip


def _judge_shape(graph: Graph, name: str, item: Item) -> Judgement:
    return judge_shape(item.value, graph.axes[name], graph.sizes)


def _judge_formula(wanted: Polynomial, graph: Graph, item: Item) -> Judgement:
    return judge_formula(item.value, wanted, graph.sizes)
