"""What is asked, answered: each thing that an exercise asks becomes blocks of a solution.

Every answer is computed from the traces; the exercise file holds the questions and the prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from regard._axes import written as shape_text
from regard._errors import ExerciseError, MissingExtraError
from regard.exercises._compute import constants_of, symbols_of, trace_of
from regard.exercises._evidence import AGREEMENTS, FACTS, distance, floats
from regard.exercises._exercise import (
    MAIN,
    AnswerTable,
    Asked,
    AskedAgree,
    AskedChoice,
    AskedCompare,
    AskedDesign,
    AskedExplain,
    AskedFormula,
    AskedMask,
    AskedPermute,
    AskedProgram,
    AskedShape,
    AskedSteps,
    Exercise,
    Question,
)
from regard.exercises._expressions import evaluate, symbol_of, written
from regard.graph.notation import Equation, Math, Matrix, Number, Symbol
from regard.graph.operation import Cost
from regard.graph.polynomial import Polynomial
from regard.show import layout
from regard.show._values import plain_values
from regard.show.document import Block, Code, Display, Heading, Note, Paragraph, Prose, Table
from regard.show.trace import Trace

SAME = 1e-9  # results that differ by less are the same computation, rounded in another order


@dataclass
class Answering:
    """The traces of an exercise, made when they are first needed, and what was shown so far.

    Steps that are wanted `alone` are shown without those that lead to them.
    """

    exercise: Exercise
    how: Mapping[str, Any] = field(default_factory=dict)
    level: str = "steps"
    traces: dict[str, Trace] = field(default_factory=dict)
    shown: dict[str, set[str]] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()

    def at_level(self, level: str) -> Answering:
        """The same traces for another solution, of which nothing was shown yet."""
        return replace(self, level=level, shown={})

    @property
    def is_short(self) -> bool:
        return self.level == "result"

    def trace(self, variant: str) -> Trace:
        if variant not in self.traces:
            chosen = self.exercise.variants[variant]
            self.traces[variant] = trace_of(chosen, self.exercise.names, **self.how)
        return self.traces[variant]

    def names(self, variant: str, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Every name that an expression may use, in float64, with some constants changed."""
        chosen = self.exercise.variants[variant]
        trace = trace_of(chosen, self.exercise.names, changed)
        values = {**trace.run.graph.sizes, **trace.run.values}
        aliases = {alias: values[name] for name, alias in trace.names.items()}
        return {**values, **aliases, **constants_of(chosen, changed)}

    def symbols(self, variant: str) -> dict[str, Symbol]:
        return symbols_of(self.trace(variant).run.graph, self.exercise.names)

    def prose(self, text: str, variant: str = MAIN) -> Prose:
        """Words with the formulas between $ as mathematics."""
        symbols = self.symbols(variant) if "$" in text else {}
        parts = enumerate(text.split("$"))
        return tuple(written(part, symbols) if i % 2 else part for i, part in parts if part)

    def paragraphs(self, text: str, variant: str = MAIN) -> list[Block]:
        parts = (part.strip() for part in text.split("\n\n"))
        return [Paragraph(self.prose(part, variant)) for part in parts if part]

    def called(self, step: str) -> str:
        """A step as the exercise calls it."""
        return self.exercise.names.get(step, step)


class Answer(NamedTuple):
    """What is shown, and the answer itself as plain data for other programs.

    `evidence` is shown too unless results alone are wanted.
    """

    blocks: tuple[Block, ...]
    value: Any
    evidence: tuple[Block, ...] = ()


def answer(asked: Asked, at: Answering) -> Answer:
    """The answer to one thing asked, with its words, its numbers and its table."""
    body = ANSWERS[type(asked.question)](asked.question, asked.variant, at)
    words = at.paragraphs(asked.answer, asked.variant)
    is_choice = isinstance(asked.question, AskedChoice)
    blocks = [*body.blocks, *words] if is_choice else [*words, *body.blocks]
    if not at.is_short:
        blocks += body.evidence
        if asked.table:
            blocks += at.paragraphs(asked.table.caption, asked.variant)
            blocks.append(_table(asked.table, asked.variant, at))
        if asked.remark:
            blocks.append(Note(at.prose(asked.remark, asked.variant)))
    return Answer(tuple(blocks), body.value)


# ---- what is given -------------------------------------------------------------------------


def given_blocks(variant: str, at: Answering) -> list[Block]:
    """The constants and givens of a variant that were not shown yet, with their formulas."""
    chosen, trace = at.exercise.variants[variant], at.trace(variant)
    constants = constants_of(chosen, {})
    givens = {given.name: trace.run.values[given.name] for given in trace.run.graph.givens}
    values = constants | givens
    symbols = {name: symbol_of(name) for name in constants} | at.symbols(variant)
    formulas = {**chosen.constants, **chosen.givens}
    blocks: list[Block] = []
    for name, value in values.items():
        known = f"{name} = {plain_values(np.asarray(value))}"
        if known not in at.shown.setdefault("given", set()):
            at.shown["given"].add(known)
            formula = formulas.get(name)
            sides = (written(formula, symbols),) if isinstance(formula, str) else ()
            blocks += _displays(symbols[name], sides, np.asarray(value))
    return [Heading("Given", 2), *blocks] if blocks else []


def _displays(symbol: Symbol, sides: tuple[Math, ...], value: Any) -> Iterator[Block]:
    """A number, vector or matrix; one after another where there are more axes."""
    for index in np.ndindex(value.shape[:-2]):
        part = value[index]
        shown = Matrix(part) if part.ndim else Number(part[()])
        place = "(" + ",".join(str(i + 1) for i in index) + ")" if index else ""
        yield Display(Equation((replace(symbol, sup=place), *sides, shown)))


# ---- one function for each thing that may be asked -----------------------------------------


def _steps(asked: AskedSteps, variant: str, at: Answering) -> Answer:
    """The steps that lead to what is asked, without those that were shown before."""
    trace = at.trace(variant)
    if asked.numbers:
        return _in_other_numbers(asked, trace, at)
    wanted = [trace[name].name for name in asked.step]
    values = {name: plain_values(trace[name].value) for name in wanted}
    needed, seen = trace.run.graph.upstream(*wanted), at.shown.setdefault(variant, set())
    if at.alone:
        needed = {name for name in needed - seen if {name, at.called(name)} & at.alone}
    if at.is_short:
        short = [name for name in trace.steps if name in needed] if at.alone else wanted
        seen.update(short)
        return Answer(tuple(_results(trace, short, at)), values)
    how = layout.Layout(at.level, (), trace.names)
    blocks: list[Block] = []
    for step in trace.run.graph.worked_steps:
        if step.name in needed and (step.name not in seen or step.name in wanted):
            blocks += layout.step_blocks(trace.run, step, how)
            seen.add(step.name)
    return Answer((*blocks, *_as_numpy_prints(trace, wanted, at)), values)


def _results(trace: Trace, names: Iterable[str], at: Answering) -> Iterator[Block]:
    """The values of steps without their working, in one form when results alone are wanted."""
    names = tuple(names)
    if not (at.is_short and at.exercise.numpy_precision):
        how = layout.Layout("result", (), trace.names)
        for name in names:
            yield from layout.step_blocks(trace.run, trace.run.graph.step(name), how)
    yield from _as_numpy_prints(trace, names, at)


def _in_other_numbers(asked: AskedSteps, trace: Trace, at: Answering) -> Answer:
    """The results again in exact or certified numbers, when what they need is installed."""
    try:
        other = trace.in_numbers(asked.numbers, at.how.get("digits", 15))
    except MissingExtraError as error:
        return Answer((Note((f"Not shown in {asked.numbers} numbers: {error}.",)),), None)
    wanted = [trace[name].name for name in asked.step]
    values = {name: plain_values(other[name].value) for name in wanted}
    return Answer(tuple(_results(other, wanted, at)), values)


def _as_numpy_prints(trace: Trace, names: Iterable[str], at: Answering) -> Iterator[Block]:
    """The same values as print() shows them, for exercises that print their results."""
    precision = at.exercise.numpy_precision
    if precision is None:
        return
    yield Paragraph((f"As NumPy prints it with precision={precision}:",))
    for name in names:
        step = trace[name]
        heads = floats(step.value) if "head" in step.axes else [floats(step.value)]
        with np.printoptions(precision=precision, sign="-", suppress=False, linewidth=75):
            texts = [str(values) for values in heads]
        if "head" in step.axes:
            texts = [f"head {number}\n{text}" for number, text in enumerate(texts, 1)]
        yield Code("text", "\n".join([f"{at.called(name)}:", *texts]))


def _shape(asked: AskedShape, variant: str, at: Answering) -> Answer:
    trace = at.trace(variant)
    blocks, values = [], {}
    for name in (trace[name].name for name in asked.shape):
        axes, shape = trace.run.graph.axes[name], trace[name].shape
        values[name] = {"sizes": [str(axis.size) for axis in axes], "shape": list(shape)}
        blocks.append(
            Paragraph((
                at.symbols(variant)[name], " is ", *_sizes(trace, name),
                f" ({' × '.join(axis.name for axis in axes)}), here {shape_text(shape)}.",
            ))
        )  # fmt: skip
    return Answer(tuple(blocks), values)


def _sizes(trace: Trace, name: str) -> Iterator[str | Math]:
    """n_q × n_k, as mathematics."""
    for place, axis in enumerate(trace.run.graph.axes[name]):
        yield from (" × ",) if place else ()
        yield count_notation(axis.size)


def _choice(asked: AskedChoice, variant: str, at: Answering) -> Answer:
    chosen, evidence = FACTS[asked.fact].decide(at.trace(variant))
    printed = [choice for choice in asked.choice if choice.strip("$") == chosen]
    if not printed:
        raise ExerciseError(
            f"the computation says {chosen!r}, which is not among the choices "
            f"{', '.join(asked.choice)}"
        )
    head = Paragraph(("Answer: ", *at.prose(printed[0], variant), "."))
    return Answer((head,), chosen, (Paragraph(evidence),))


def _formula(asked: AskedFormula, variant: str, at: Answering) -> Answer:
    """Counts of the steps in groups, and all together: formula and number."""
    table = at.trace(variant).cost(asked.convention)
    costs = {
        words: sum((table.row(at.trace(variant)[step].name).counts for step in steps), Cost())
        for words, steps in asked.formula.items()
    }
    if len(costs) > 1:
        costs["together"] = sum(costs.values(), Cost())
    rows: list[tuple[Prose, ...]] = []
    answers: dict[str, dict[str, str]] = {}
    for words, cost in costs.items():
        found = {name: cost.items()[name] for name in asked.count if cost.items()[name].terms}
        answers[words] = {name: str(formula) for name, formula in found.items()}
        rows += [
            (at.prose(words, variant), (name,), (count_notation(f),), (Number(table.number(f)),))
            for name, f in found.items()
        ]
    header: tuple[Prose, ...] = (("step",), ("operation",), ("count",), ("here",))
    return Answer((Table(header, tuple(rows)),), answers)


def count_notation(formula: Polynomial) -> Math:
    """A count or a size as mathematics: n_q n_k (d_k − 1)."""
    return written(str(formula).replace("·", "*").replace("^", "**"))


def _mask(asked: AskedMask, variant: str, at: Answering) -> Answer:
    trace = at.trace(variant)
    step = trace[asked.mask]
    symbol = at.symbols(variant)[step.name]
    words = f", here {shape_text(step.shape)}: 0 where the query may look, −∞ where it may not."
    blocks = (
        Paragraph(("It is ", *_sizes(trace, step.name), words)),
        *_displays(symbol, (), step.value),
    )
    return Answer(blocks, {"shape": list(step.shape), "values": plain_values(step.value)})


def _design(asked: AskedDesign, variant: str, at: Answering) -> Answer:
    """The designed inputs, and how nearly their property holds on the exercise's numbers."""
    chosen, symbols = at.exercise.variants[variant], at.symbols(variant)
    names = at.names(variant, {})
    formulas = {**chosen.constants, **chosen.givens}
    reached, target = (evaluate(side, names) for side in (asked.property, asked.target))
    if np.shape(reached) != np.shape(target):
        raise ExerciseError(
            f"{asked.property} is {shape_text(np.shape(reached))}, but its target {asked.target} "
            f"is {shape_text(np.shape(target))}"
        )
    gap = distance(reached, target)
    if not gap <= asked.within:
        raise ExerciseError(
            f"the design of {', '.join(asked.design)} misses its property: {asked.property} and "
            f"{asked.target} differ by {gap:.3g}, more than {asked.within:.3g}"
        )
    designs = [
        Display(Equation((symbols.get(name, symbol_of(name)), written(formulas[name], symbols))))
        for name in asked.design
    ]
    shown = [
        Display(Equation((written(side, symbols), _math(value))))
        for side, value in ((asked.property, reached), (asked.target, target))
    ]
    words = Paragraph(("With the numbers given, these differ by at most ", Number(gap), ":"))
    value = {name: formulas[name] for name in asked.design}
    return Answer(tuple(designs), {**value, "differs by": gap}, (words, *shown))


def _compare(asked: AskedCompare, variant: str, at: Answering) -> Answer:
    """Variants side by side: maps, sizes and costs, and whether the weights alone differ."""
    traces = {words: at.trace(name) for words, name in asked.compare.items()}
    header: tuple[Prose, ...] = ((), *((words,) for words in traces))
    rows = tuple(
        ((words,), *((measure(trace),) for trace in traces.values()))
        for words, measure in MEASURES.items()
    )
    (first_words, first), *others = traces.items()
    blocks: list[Block] = [Table(header, rows)]
    gaps = {}
    for words, other in others:
        gaps[words] = distance(_last(first), _last(other))
        prose: list[str | Math] = ["The results differ by up to ", Number(gaps[words]), "."]
        if (same := _with_weights_of(first, other)) is not None:
            prose += [
                f" With the attention weights of {first_words} put into {words}, they would differ "
                "by at most ", Number(distance(_last(first), _last(same))),
                ": the weights alone make the difference.",
            ]  # fmt: skip
        blocks.append(Paragraph(tuple(prose)))
    return Answer(tuple(blocks), {"largest difference": _plain(gaps)})


def _with_weights_of(first: Trace, other: Trace) -> Trace | None:
    """The second computation with the weights of the first, if that gives the first's result."""
    weights, shape = first["weights"].value, other["weights"].shape
    if weights.shape[-2:] != shape[-2:] or _last(first).shape != _last(other).shape:
        return None
    try:
        spread = np.broadcast_to(floats(weights), shape)
    except ValueError:  # of NumPy: heads that do not fit
        return None
    same = other.replace(weights=spread)
    return same if distance(_last(first), _last(same)) < SAME else None


def _plain(gaps: Mapping[str, float]) -> dict[str, Any]:
    """JSON has no NaN and no infinity."""
    return {words: plain_values(np.asarray(gap)) for words, gap in gaps.items()}


def _last(trace: Trace) -> Any:
    return trace[trace.steps[-1]].value


def _maps(trace: Trace) -> str:
    *heads, rows, columns = trace["weights"].shape
    return f"{int(np.prod(heads))} of {rows}×{columns}"


def _parameters(trace: Trace) -> str:
    weights = (value for name, value in trace.run.givens.items() if name.startswith("W"))
    return str(sum(int(value.size) for value in weights))


def _total(count: str) -> Callable[[Trace], str]:
    def measure(trace: Trace) -> str:
        table = trace.cost()
        return str(table.number(table.total.items()[count]))

    return measure


MEASURES: dict[str, Callable[[Trace], str]] = {
    "attention maps": _maps,
    "shape of the result": lambda trace: shape_text(_last(trace).shape),
    "numbers in the weight matrices": _parameters,
    "multiplications": _total("multiplications"),
    "additions": _total("additions"),
    "exponentials": _total("exponentials"),
}


def _permute(asked: AskedPermute, variant: str, at: Answering) -> Answer:
    """The tokens in another order, run again and compared with the result put in that order."""
    trace = at.trace(variant)
    order = np.array(asked.permute) - 1
    permuted = trace.replace(X=trace.run.givens["X"][..., order, :])
    result = trace.steps[-1]
    weights = trace["weights"].value
    gaps = {
        "result": distance(permuted[result].value, trace[result].value[..., order, :]),
        "weights": distance(permuted["weights"].value, weights[..., order, :][..., order]),
    }
    unmoved = distance(permuted["weights"].value, weights)
    blocks: list[Block] = []
    if not at.is_short:
        words = f"The tokens in the order {', '.join(map(str, asked.permute))}, and what follows:"
        blocks = [
            Paragraph((words,)),
            *_displays(at.symbols(variant)["X"], (), permuted["X"].value),
        ]
    blocks += _results(permuted, ("weights", result), at)
    symbols = at.symbols(variant)
    symbol = symbols[result]
    kind = "equivariant" if max(gaps.values()) < SAME else "not equivariant"
    verdict = (
        f"The computation is {kind}: ", symbol, " is the former one with its rows in that order "
        "(the largest difference is ", Number(gaps["result"]), "), and ", symbols["weights"],
        " the former one with its rows and columns in that order (", Number(gaps["weights"]),
        "). Left as they were, the weights would be off by up to ", Number(unmoved), ".",
    )  # fmt: skip
    return Answer((*blocks, Paragraph(verdict)), {"verdict": kind, "differs by": _plain(gaps)})


def _agree(asked: AskedAgree, variant: str, at: Answering) -> Answer:
    """The context against another implementation, when it is there."""
    trace = at.trace(variant)
    try:
        context = AGREEMENTS[asked.agree](trace)
    except ImportError:
        words = (
            f"{asked.agree} was not asked: torch is not installed (pip install 'regard[torch]')."
        )
        return Answer((Paragraph((words,)),), None)
    gap = distance(context, trace["context"].value)
    words = "the same context, up to " if gap < SAME else "another context: it differs by up to "
    value = plain_values(np.asarray(gap))
    return Answer((Paragraph((f"{asked.agree} gives {words}", Number(gap), ".")),), value)


def _program(asked: AskedProgram, variant: str, at: Answering) -> Answer:
    text = at.exercise.files[asked.program]
    return Answer((Code("python", text),), text)


def _explain(asked: AskedExplain, variant: str, at: Answering) -> Answer:
    return Answer(tuple(at.paragraphs(asked.explain, variant)), asked.explain)


ANSWERS: Mapping[type[Question], Callable[[Any, str, Answering], Answer]] = {
    AskedSteps: _steps,
    AskedShape: _shape,
    AskedChoice: _choice,
    AskedFormula: _formula,
    AskedMask: _mask,
    AskedDesign: _design,
    AskedCompare: _compare,
    AskedPermute: _permute,
    AskedAgree: _agree,
    AskedProgram: _program,
    AskedExplain: _explain,
}


# ---- tables --------------------------------------------------------------------------------


def _table(table: AnswerTable, variant: str, at: Answering) -> Block:
    """One row for each value of what is varied; the columns are expressions."""
    columns = [(column.variant or variant, column) for column in table.columns]
    header = ((symbol_of(table.vary),), *(at.prose(c.header, of) for of, c in columns))
    rows = []
    for value in table.values:
        names = {of: at.names(of, {table.vary: value}) for of in {of for of, _ in columns}}
        cells = (_math(evaluate(column.show, names[of])) for of, column in columns)
        rows.append(((Number(_whole(value)),), *((cell,) for cell in cells)))
    return Table(header, tuple(rows))


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _math(value: Any) -> Math:
    array = np.asarray(value)
    if array.ndim > 2:
        raise ExerciseError(
            f"an array of {shape_text(array.shape)} cannot be shown here: choose a part of it, "
            "such as weights[1] for the first head"
        )
    return Matrix(array) if array.ndim else Number(array[()])
