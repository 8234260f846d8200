"""What is asked, answered: each word of an exercise's [[asked]] becomes blocks of a solution.

Every answer is computed from the trace; the exercise file holds the questions and the prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import ExerciseError, did_you_mean
from regard.exercises._compute import constants_of, trace_of
from regard.exercises._exercise import Asked, Exercise, Table
from regard.exercises._expressions import evaluate
from regard.graph.notation import Equation, Math, Matrix, Number, Symbol, Words
from regard.graph.operation import Cost
from regard.graph.operations import Scale
from regard.graph.polynomial import Polynomial
from regard.show import layout
from regard.show.document import Block, Display, Note, Paragraph, Prose
from regard.show.document import Table as ShownTable
from regard.show.trace import Trace

MASK_NOTE = "0 where the key may be attended to, −∞ where it may not."


@dataclass
class Answering:
    """The traces of an exercise, made when they are first needed, and what was shown so far."""

    exercise: Exercise
    how: dict[str, Any] = field(default_factory=dict)
    level: str = "steps"
    traces: dict[str, Trace] = field(default_factory=dict)
    shown: dict[str, set[str]] = field(default_factory=dict)

    def trace(self, variant: str) -> Trace:
        if variant not in self.traces:
            chosen = self.exercise.variants[variant]
            self.traces[variant] = trace_of(chosen, self.exercise.names, **self.how)
        return self.traces[variant]

    def varied(self, variant: str, changed: dict[str, Any]) -> tuple[Trace, dict[str, Any]]:
        """The trace with some constants changed, and all names that an expression may use."""
        chosen = self.exercise.variants[variant]
        trace = trace_of(chosen, self.exercise.names, changed)
        return trace, {**constants_of(chosen, changed), **_step_values(trace)}


def _step_values(trace: Trace) -> dict[str, Any]:
    values = dict(trace.run.values)
    return values | {alias: values[name] for name, alias in trace.names.items()}


@dataclass(frozen=True)
class Answer:
    """What is shown, and the answer itself as plain data for other programs."""

    blocks: tuple[Block, ...]
    value: Any


def answer(asked: Asked, at: Answering) -> Answer:
    """The answer to one thing asked, with its words, its numbers and its table."""
    word = next(word for word in ANSWERS if getattr(asked, word))
    body = ANSWERS[word](asked, at)
    blocks: list[Block] = [Paragraph((asked.answer,))] if asked.answer else []
    blocks += body.blocks
    if asked.table:
        blocks.append(_table(asked.table, asked.variant, at))
    if asked.remark:
        blocks.append(Note((asked.remark,)))
    return Answer(tuple(blocks), body.value)


# ---- one function a word -------------------------------------------------------------------


def _steps(asked: Asked, at: Answering) -> Answer:
    """The steps that lead to what is asked, without those that were shown before."""
    trace = at.trace(asked.variant)
    wanted = [trace[name].name for name in asked.step]
    seen = at.shown.setdefault(asked.variant, set())
    how = layout.Layout(at.level, (), trace.names)
    needed = set(wanted) if at.level == "result" else trace.run.graph.upstream(*wanted)
    blocks: list[Block] = []
    for step in trace.run.graph.worked_steps:
        if step.name in needed and (step.name not in seen or step.name in wanted):
            blocks += layout.step_blocks(trace.run, step, how)
            seen.add(step.name)
    return Answer(tuple(blocks), {name: _plain(trace[name].value) for name in wanted})


def _shape(asked: Asked, at: Answering) -> Answer:
    trace = at.trace(asked.variant)
    name = trace[asked.shape].name
    axes = trace.run.graph.axes[name]
    sizes = " × ".join(str(axis.size) for axis in axes)
    shape = trace[name].shape
    roles = " by ".join(axis.name for axis in axes)
    sentence = f"{_called(trace, name)} is {sizes} ({roles}); with these numbers {written(shape)}."
    return Answer((Paragraph((sentence,)),), {"shape": list(shape), "sizes": sizes})


def _called(trace: Trace, name: str) -> str:
    return trace.names.get(name, name)


def _choice(asked: Asked, at: Answering) -> Answer:
    if asked.fact not in FACTS:
        raise ExerciseError(f"no fact {asked.fact!r}: {did_you_mean(asked.fact, FACTS)}")
    chosen, evidence = FACTS[asked.fact](at.trace(asked.variant))
    if chosen not in asked.choice:
        raise ExerciseError(
            f"the fact {asked.fact!r} is {chosen!r}, which is not among the choices "
            f"{', '.join(asked.choice)}"
        )
    head = Paragraph((f"Of {', '.join(asked.choice)}: {chosen}.",))
    return Answer((head, *evidence), chosen)


def _formula(asked: Asked, at: Answering) -> Answer:
    """Counts of the steps in groups: formula and number."""
    assert asked.formula is not None
    table = at.trace(asked.variant).cost(asked.formula.get("convention", "schoolbook"))
    counted = tuple(asked.formula.get("count", ("multiplications", "additions", "divisions")))
    rows: list[tuple[Prose, ...]] = []
    answers: dict[str, dict[str, str]] = {}
    for words, steps in asked.formula["of"].items():
        cost = sum((table.row(step).counts for step in steps), Cost())
        found = {name: cost.items()[name] for name in counted if cost.items()[name].terms}
        answers[words] = {name: str(formula) for name, formula in found.items()}
        rows += [(_prose(words), name, *_counted(table, f)) for name, f in found.items()]
    header: tuple[Prose, ...] = tuple((word,) for word in ("step", "operation", "count", "here"))
    return Answer((ShownTable(header, tuple(map(_row, rows))),), answers)


def _row(cells: Iterable[Any]) -> tuple[Prose, ...]:
    return tuple(cell if isinstance(cell, tuple) else (str(cell),) for cell in cells)


def _prose(words: str) -> Prose:
    return (words,)


def _counted(table: Any, formula: Polynomial) -> tuple[Any, ...]:
    return (polynomial_notation(formula),), str(table.number(formula))


def polynomial_notation(formula: Polynomial) -> Math:
    """A count as mathematics: n_q n_k (d_k − 1)."""
    return Words(str(formula))


def _mask(asked: Asked, at: Answering) -> Answer:
    trace = at.trace(asked.variant)
    step = trace[asked.mask]
    sizes = " × ".join(str(axis.size) for axis in trace.run.graph.axes[step.name])
    symbol = trace.run.graph.symbol(step.name)
    shown: Math = Matrix(step.value) if step.value.ndim else Number(step.value[()])
    blocks = (
        Paragraph((f"The mask is {sizes}, here {written(step.shape)}: {MASK_NOTE}",)),
        Display(Equation((symbol, shown))),
    )
    return Answer(blocks, {"shape": list(step.shape), "values": _plain(step.value)})


def _design(asked: Asked, at: Answering) -> Answer:
    """The designed input, and how nearly its property holds on the exercise's numbers."""
    assert asked.design is not None
    name, expression = asked.design["name"], asked.design["expression"]
    trace, names = at.varied(asked.variant, {})
    value, target = (evaluate(asked.design[part], names) for part in ("property", "target"))
    distance = float(np.max(np.abs(np.asarray(value) - np.asarray(target))))
    within = float(asked.design["within"])
    if not distance <= within:
        raise ExerciseError(
            f"the design {name} = {expression} misses its property: {distance:.3g} > {within:.3g}"
        )
    designed = np.asarray(evaluate(expression, names))
    symbol = Symbol(*name.split("_", 1))
    blocks: list[Block] = [
        Display(Equation((symbol, Words(_readable(expression)), Matrix(designed)))),
        Paragraph(
            (
                f"With it {asked.design['property']} = ", Matrix(np.asarray(value)),
                f" and {asked.design['target']} = ", Matrix(np.asarray(target)),
                ": they differ by at most ", Number(distance), ".",
            )
        ),
    ]  # fmt: skip
    return Answer(tuple(blocks), {name: expression, "differs by": distance})


def _readable(expression: str) -> str:
    return expression.replace("*", "·")


def _compare(asked: Asked, at: Answering) -> Answer:
    """Two or more variants side by side: shapes, parameters, costs, and how results differ."""
    traces = {name: at.trace(name) for name in asked.compare}
    header: tuple[Prose, ...] = tuple((word,) for word in ("", *asked.compare))
    measures: dict[str, Callable[[Trace], str]] = {
        "attention maps": _maps,
        "entries of the result": lambda t: written(_last(t).shape),
        "numbers in the weight matrices": _parameters,
        "multiplications": lambda t: _total(t, "multiplications"),
        "additions": lambda t: _total(t, "additions"),
        "exponentials": lambda t: _total(t, "exponentials"),
    }
    rows = tuple(
        _row((words, *(measure(trace) for trace in traces.values())))
        for words, measure in measures.items()
    )
    first, *others = (_last(trace) for trace in traces.values())
    gap = max(float(np.max(np.abs(first - other))) for other in others)
    blocks = (
        ShownTable(header, rows),
        Paragraph(("The results differ by up to ", Number(gap), " in one entry.")),
    )
    return Answer(blocks, {"largest difference": gap})


def _last(trace: Trace) -> Any:
    return trace[trace.steps[-1]].value


def _maps(trace: Trace) -> str:
    *heads, rows, columns = trace["weights"].shape
    return f"{int(np.prod(heads))} of {rows}×{columns}"


def _parameters(trace: Trace) -> str:
    weights = (v for name, v in trace.run.givens.items() if name.startswith("W"))
    return str(sum(int(value.size) for value in weights))


def _total(trace: Trace, count: str) -> str:
    table = trace.cost()
    return str(table.number(table.total.items()[count]))


def _permute(asked: Asked, at: Answering) -> Answer:
    """The tokens in another order, run again and compared with the result put in that order."""
    trace = at.trace(asked.variant)
    tokens = trace["X"].value.shape[-2]
    if sorted(asked.permute) != list(range(1, tokens + 1)):
        raise ExerciseError(f"permute must hold 1 to {tokens} in some order: {asked.permute}")
    order = np.array(asked.permute) - 1
    permuted = trace.replace(X=trace.run.givens["X"][..., order, :])
    result = trace.steps[-1]
    moved_rows = _gap(permuted[result].value, trace[result].value[..., order, :])
    weights = trace["weights"].value
    moved_both = _gap(permuted["weights"].value, weights[..., order, :][..., order])
    unmoved = _gap(permuted["weights"].value, weights)
    how = layout.Layout(at.level, ("weights", result), trace.names)
    steps = [step for step in permuted.run.graph.steps if step.name in ("weights", result)]
    blocks: list[Block] = [Paragraph((f"The tokens in the order {_listed(asked.permute)}:",))]
    for step in steps:
        blocks += layout.step_blocks(permuted.run, step, how)
    verdict = (
        f"{_called(trace, result)} in that order differs from this by at most ", Number(moved_rows),
        "; the weights with rows and columns in that order by at most ", Number(moved_both),
        "; the weights left as they were by up to ", Number(unmoved), ".",
    )  # fmt: skip
    return Answer((*blocks, Paragraph(verdict)), {"output": moved_rows, "weights": moved_both})


def _gap(one: Any, other: Any) -> float:
    return float(np.max(np.abs(one - other)))


def _listed(order: tuple[int, ...]) -> str:
    return ", ".join(map(str, order))


def _agree(asked: Asked, at: Answering) -> Answer:
    """The context against torch's own fused function, when torch is there."""
    try:
        from torch import from_numpy
        from torch.nn.functional import scaled_dot_product_attention
    except ImportError:
        note = f"{asked.agree} was not asked: torch is not installed (pip install 'regard[torch]')."
        return Answer((Note((note,)),), None)
    trace = at.trace(asked.variant)
    q, k, v = (from_numpy(np.array(trace[name].value, dtype=float)) for name in "QKV")
    context = np.asarray(trace["context"].value, dtype=float)
    gap = _gap(scaled_dot_product_attention(q, k, v).numpy(), context)
    sentence = (f"{asked.agree} gives the same context: it differs by at most ", Number(gap), ".")
    return Answer((Paragraph(sentence),), gap)


def _explain(asked: Asked, at: Answering) -> Answer:
    return Answer((), asked.answer)


ANSWERS: dict[str, Callable[[Asked, Answering], Answer]] = {
    "step": _steps,
    "shape": _shape,
    "choice": _choice,
    "formula": _formula,
    "mask": _mask,
    "design": _design,
    "compare": _compare,
    "permute": _permute,
    "agree": _agree,
    "explain": _explain,
}


# ---- facts that decide a choice ------------------------------------------------------------


def _softmax_axis(trace: Trace) -> tuple[str, tuple[Block, ...]]:
    weights = np.asarray(trace["weights"].value, dtype=float)
    rows, columns = weights.sum(axis=-1), weights.sum(axis=-2)
    chosen = "row-wise" if np.allclose(rows, 1) else "column-wise"
    evidence = Paragraph(
        ("The rows of the weights sum to ", Matrix(rows), ", the columns to ", Matrix(columns), ".")
    )
    return chosen, (evidence,)


def _scale_size(trace: Trace) -> tuple[str, tuple[Block, ...]]:
    operation = trace.run.graph.step("scaled").operation
    assert isinstance(operation, Scale)
    size = Polynomial.parse(operation.size).evaluate(trace.run.graph.sizes)
    words = f"The scores are divided by √{operation.size}, here √{size}: K has {size} columns."
    return operation.size, (Paragraph((words,)),)


FACTS: dict[str, Callable[[Trace], tuple[str, tuple[Block, ...]]]] = {
    "softmax-axis": _softmax_axis,
    "scale-size": _scale_size,
}


# ---- tables --------------------------------------------------------------------------------


def _table(table: Table, variant: str, at: Answering) -> Block:
    """One row for each value of what is varied; the columns are expressions."""
    header = (table.vary, *(table.header or table.columns))
    rows = []
    for value in table.values:
        _, names = at.varied(variant, {table.vary: value})
        cells = (evaluate(column, names) for column in table.columns)
        rows.append(((Number(value),), *((_cell(cell),) for cell in cells)))
    return ShownTable(tuple((word,) for word in header), tuple(rows))


def _cell(value: Any) -> Math:
    array = np.asarray(value)
    return Matrix(array) if array.ndim else Number(array[()])


def _plain(array: Any) -> Any:
    """Nested lists, with text where a value is no finite float."""
    from regard.show.data import plain_values

    return plain_values(array)
