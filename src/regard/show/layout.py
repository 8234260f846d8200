"""From a run to a Document: which steps, how deep, with their formulas and numbers put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from regard._axes import LEADING, written
from regard._options import one_of
from regard.graph.notation import Equation, Math, Matrix, Number, Symbol
from regard.graph.operation import Operation, Setting, Tensor
from regard.graph.operations import Mask
from regard.show.document import Block, Display, Document, Heading, Note, Paragraph

if TYPE_CHECKING:
    from regard.graph.graph import Step
    from regard.graph.run import Run

LEVELS = {
    "result": "the last step's values alone",
    "steps": "every step: symbol, formula, numbers put in, result, shape",
    "entries": "as steps, and every entry of every result written out",
}
MOST_ENTRIES = 400  # of one step; beyond it the entries are left out, and the document says so

Place = Mapping[str, int]  # which batch and which head


@dataclass(frozen=True)
class Layout:
    """What to show of a run; `names` are aliases: step name → the name to print."""

    level: str = "steps"
    only: tuple[str, ...] = ()
    names: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        one_of("level", self.level, LEVELS)


def trace_document(run: Run, layout: Layout, title: str | None = None) -> Document:
    """The worked solution of a run."""
    blocks: list[Block] = []
    if layout.level != "result":
        blocks += _opening(run)
        blocks += _givens(run, layout)
    for step in _chosen(run, layout):
        blocks += step_blocks(run, step, layout)
    return Document(title or heading_of(run), tuple(blocks))


def heading_of(run: Run) -> str:
    kind = run.graph.kind
    return kind[0].upper() + kind[1:]


def _chosen(run: Run, layout: Layout) -> Sequence[Step]:
    if layout.only:
        wanted = {run.graph.require(name) for name in layout.only}
        return [step for step in run.graph.steps if step.name in wanted]
    steps = run.graph.worked_steps
    return steps[-1:] if layout.level == "result" else steps


def _opening(run: Run) -> list[Block]:
    sizes = ", ".join(f"{name} = {size}" for name, size in run.graph.sizes.items())
    blocks: list[Block] = [Paragraph((f"Sizes: {sizes}.",))] if sizes else []
    if run.replaced:
        blocks.append(Note((f"Put in from outside: {', '.join(run.replaced)}.",)))
    return blocks


def _givens(run: Run, layout: Layout) -> list[Block]:
    names = [given.name for given in run.graph.givens]
    if layout.only:
        operands = {name for step in _chosen(run, layout) for name in step.operands}
        names = [name for name in names if name in operands]
    blocks: list[Block] = [Heading("Given", 2)] if names else []
    for name in names:
        for place in places(run, name):
            symbol = _symbol(run, name, layout, place)
            blocks.append(Display(Equation((symbol, _matrix(run, name, place)))))
    return blocks


def step_blocks(run: Run, step: Step, layout: Layout) -> list[Block]:
    """A heading with the shape, then the step for each batch entry and head."""
    if layout.level == "result":
        return [Display(equation) for equation in _results(run, step, layout)]
    blocks: list[Block] = [Heading(_step_heading(run, step, layout), 2)]
    step = _as_run(run, step)
    for place in places(run, step.name):
        if place:
            blocks.append(Heading(_place_words(place), 3))
        blocks.append(Display(_worked(run, step, layout, place)))
        if layout.level == "entries":
            blocks += _entries(run, step, layout, place)
    operands = [run.tensor(name) for name in step.operands]
    note = step.operation.note(Setting(run.numbers, run.graph.sizes), *operands)
    hidden = _hidden(run, step.name)
    if hidden is not None and hidden.array.any():
        note = "■ is hidden by the mask: −∞, whatever the score."
    if step.name in run.replaced:
        note = "This value was put in from outside; the formula did not compute it."
    return [*blocks, Note((note,))] if note else blocks


def _results(run: Run, step: Step, layout: Layout) -> Iterator[Math]:
    for place in places(run, step.name):
        symbol = _symbol(run, step.name, layout, place)
        yield Equation((symbol, _matrix(run, step.name, place)))


def _step_heading(run: Run, step: Step, layout: Layout) -> str:
    name = (layout.names or {}).get(step.name, step.name)
    tensor = run.tensor(step.name)
    axes = " × ".join(tensor.names)
    return f"{name}: {axes}, {written(tensor.array.shape)}" if axes else f"{name}: a single number"


def places(run: Run, name: str) -> list[Place]:
    """Every combination of batch entry and head that a step has; [{}] for none."""
    tensor = run.tensor(name)
    leading = [axis for axis in LEADING if axis in tensor.names]
    ranges = (range(tensor.array.shape[tensor.place(axis)]) for axis in leading)
    return [dict(zip(leading, indices, strict=True)) for indices in product(*ranges)]


def _place_words(place: Place) -> str:
    words = {"batch": "sequence", "head": "head"}
    return ", ".join(f"{words[axis]} {index + 1}" for axis, index in place.items())


def at(tensor: Tensor, place: Place) -> Tensor:
    """The slice of a tensor for one batch entry and head."""
    index = tuple(place.get(name, slice(None)) for name in tensor.names)
    kept = tuple(name for name in tensor.names if name not in place)
    return Tensor(np.asarray(tensor.array[index]), kept)


def _matrix(run: Run, name: str, place: Place) -> Math:
    tensor = at(run.tensor(name), place)
    rounding = run.roundings[name]
    if not tensor.array.ndim:
        return Number(tensor.array[()], rounding)
    hidden = _hidden(run, name)
    return Matrix(tensor.array, rounding, None if hidden is None else at(hidden, place).array)


def _hidden(run: Run, name: str) -> Tensor | None:
    """Which scores a mask hides, as opposed to scores that are −∞ by themselves."""
    graph = run.graph
    if name in graph.masks or name in run.replaced or graph.is_given(name):
        return None
    step, tensor = graph.step(name), run.tensor(name)
    if not isinstance(step.operation, Mask):
        return None
    mask = run.tensor(step.operands[1])
    barred = run.numbers.is_masked(mask.aligned(tensor.names))
    return Tensor(np.broadcast_to(barred, tensor.array.shape), tensor.names)


def _symbol(run: Run, name: str, layout: Layout, place: Place) -> Symbol:
    symbol = run.graph.symbol(name)
    if alias := (layout.names or {}).get(name):
        base, _, sub = alias.partition("_")
        symbol = Symbol(base, sub, hat=symbol.hat)
    has = {axis: index for axis, index in place.items() if axis in run.tensor(name).names}
    if not has:
        return symbol
    return symbol.at("(" + ",".join(str(index + 1) for index in has.values()) + ")")


def writes_entries(operation: Operation) -> bool:
    """Whether an operation computes each entry in a way that can be written out."""
    return type(operation).entry is not Operation.entry


def _as_run(run: Run, step: Step) -> Step:
    """The step as it was carried out on the values of this run."""
    operands = (run.tensor(name) for name in step.operands)
    operation = step.operation.as_run(Setting(run.numbers, run.graph.sizes), *operands)
    return replace(step, operation=operation)


def _worked(run: Run, step: Step, layout: Layout, place: Place) -> Math:
    """symbol = formula = the formula with numbers = result."""
    symbol = _symbol(run, step.name, layout, place)
    formula = step.operation.formula(*(_symbol(run, n, layout, place) for n in step.operands))
    sides: list[Math] = [symbol, formula]
    if writes_entries(step.operation) and _fits(run, step, place):
        numeric = step.operation.with_sizes(run.graph.sizes)
        sides.append(numeric.formula(*(_matrix(run, n, place) for n in step.operands)))
    return Equation((*sides, _matrix(run, step.name, place)))


def _fits(run: Run, step: Step, place: Place) -> bool:
    """Whether every operand is a vector or matrix once batch and head are chosen."""
    tensors = (at(run.tensor(name), place) for name in step.operands)
    return all(not set(tensor.names) & set(LEADING) for tensor in tensors)


def _entries(run: Run, step: Step, layout: Layout, place: Place) -> list[Block]:
    if not (writes_entries(step.operation) and _fits(run, step, place)):
        return []
    result = at(run.tensor(step.name), place).array
    if result.size > MOST_ENTRIES:
        return [Note((f"Its {result.size} entries are not written out one by one.",))]
    operands = [at(run.tensor(name), place) for name in step.operands]
    symbol = _symbol(run, step.name, layout, place)
    blocks: list[Block] = []
    operation = step.operation.with_sizes(run.graph.sizes)
    rounding = run.roundings[step.name]
    for index in np.ndindex(result.shape):
        written_out = operation.entry(index, *operands)
        if written_out is not None:
            sides = (_indexed(symbol, index), written_out, Number(result[index], rounding))
            blocks.append(Display(Equation(sides)))
    return blocks


def _indexed(symbol: Symbol, index: tuple[int, ...]) -> Symbol:
    places_ = ",".join(str(i + 1) for i in index)
    return replace(symbol, sub=",".join(filter(None, (symbol.sub, places_))))
