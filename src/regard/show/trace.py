"""A Trace: a run that can show itself, be counted, differentiated, rewritten and replayed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard._errors import NoSuchStepError, OptionError, ShapeError
from regard.graph.aliases import check_aliases
from regard.graph.builders import build
from regard.graph.construction import OPTION_NAMES
from regard.graph.numbers import numbers_named, read_given
from regard.graph.operation import Array
from regard.graph.run import Run, run
from regard.show.document import Document
from regard.show.layout import Layout, trace_document
from regard.show.shown import Shown

if TYPE_CHECKING:
    from regard.graph.rewrites import Rewrite
    from regard.show.costs import Costs


class ShownStep(NamedTuple):
    """One step of a trace: its name, value and the names of its axes."""

    name: str
    value: Array
    axes: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


@dataclass(frozen=True, eq=False)
class Trace(Shown):
    """An attention computation with all its steps.

    `trace["weights"].value` is a step's value, `trace["head 2"]` the trace of one head.
    `names` are aliases under which steps are printed and may be addressed.
    """

    run: Run
    names: Mapping[str, str]
    title: str | None = None

    # ---- its steps

    def __getitem__(self, name: str) -> Any:
        word, _, number = name.partition(" ")
        if word == "head" and number:
            return self._head(number)
        name = self._real(name)
        tensor = self.run.tensor(name)
        return ShownStep(name, tensor.array, tensor.names)

    def _real(self, name: str) -> str:
        aliases = {alias: real for real, alias in self.names.items()}
        return self.run.graph.require(aliases.get(name, name))

    def _head(self, number: str) -> Trace:
        heads = self.run.graph.sizes.get("h", 0)
        if not number.isdigit() or not 1 <= int(number) <= heads:
            raise NoSuchStepError(
                f"no head {number}: this {self.run.graph.kind} has heads 1 to {heads}"
            )
        from regard.graph.heads import one_head

        return replace(self, run=one_head(self.run, int(number) - 1), title=f"Head {number}")

    def __iter__(self) -> Iterator[ShownStep]:
        """The worked steps, in order."""
        return (self[step.name] for step in self.run.graph.worked_steps)

    def __contains__(self, name: object) -> bool:
        return name in self.run.graph or name in self.names.values()

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.run.graph.worked_steps)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.run.graph.sizes.items())
        return f"<Trace of {self.run.graph.kind}: {sizes}; steps {', '.join(self.steps)}>"

    # ---- other readings of the same graph

    def replace(self, **values: Any) -> Trace:
        """Put values in; everything computed from them is computed again."""
        real = {self._real(name): value for name, value in values.items()}
        return replace(self, run=self.run.replace(**real))

    def rewrite(self, rewrite: Rewrite) -> Trace:
        """The same givens through a graph that was changed on purpose."""
        graph = rewrite(self.run.graph)
        return replace(self, run=self.run.on(graph))

    def in_numbers(self, numbers: str, digits: int = 15) -> Trace:
        """The same computation in "float64", "exact" or "certified" numbers."""
        kind = numbers_named(numbers, digits)
        return replace(self, run=self.run.on(self.run.graph, kind))

    def cost(self, convention: str = "schoolbook", itemsize: int = 8) -> Costs:
        """What every step takes, as formulas and as numbers."""
        from regard.graph.cost import count
        from regard.show.costs import Costs

        table = count(self.run.graph, convention, itemsize)
        return Costs(table.graph, table.convention, table.rows)

    def gradient(self, d_output: Any = None, wrt: str | Iterable[str] | None = None) -> Trace:
        """The backward pass from the gradient of the last step; ones when none is passed.

        With respect to all givens and all values put in, or to the names in `wrt`.
        """
        from regard.graph.gradient import backward

        graph, held = self.run.graph, self.run.replaced
        output = graph.steps[-1].name
        reached = graph.upstream(output, held=held)
        wanted = self._differentiable(reached) if wrt is None else self._reals(wrt)
        for name in wanted:
            if name not in reached:
                cut = f" (values were put in for {', '.join(held)})" if held else ""
                raise OptionError(f"gradient: {output} does not depend on {name!r}{cut}")
        shape = self.run.values[output].shape
        seed = np.ones(shape) if d_output is None else read_given(f"d_{output}", d_output)
        if seed.shape != shape:
            raise ShapeError(f"gradient: {output} has shape {shape}, but d_output has {seed.shape}")
        whole = backward(graph, output, wanted, held)
        return replace(self, run=self.run.on(whole, values={f"d_{output}": seed}))

    def _differentiable(self, reached: Collection[str]) -> tuple[str, ...]:
        """The givens and the values put in that the result depends on."""
        graph = self.run.graph
        fixed = ("mask", "lengths", "prefix")
        outside = (*(given.name for given in graph.givens), *self.run.replaced)
        wanted = tuple(name for name in outside if name in reached and name not in fixed)
        output = graph.steps[-1].name
        if wanted in ((), (output,)):
            raise OptionError(f"gradient: {output} does not depend on anything that was given")
        return wanted

    def _reals(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """The steps' own names for one name or several."""
        return tuple(self._real(name) for name in ((names,) if isinstance(names, str) else names))

    # ---- shown

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        return trace_document(self.run, Layout(level, self._reals(only), self.names), self.title)

    def to_code(self, language: str = "numpy") -> str:
        """A short program that computes exactly this."""
        from regard.show.code import to_code

        return to_code(self.run, language, self.names)

    def to_json(self) -> str:
        """Everything about this trace, in the documented format that `read_trace` reads."""
        from regard.show.data import to_json

        return to_json(self)


def work(
    kind: str,
    *,
    numbers: str = "float64",
    digits: int = 15,
    names: Mapping[str, str] | None = None,
    **givens_and_options: Any,
) -> Trace:
    """Work an attention computation through, step by step.

    >>> trace = work("dot-product", s=[1, 2, 1], h=[[1, 2, 3], [1, 2, 1], [0, 1, -1]])
    >>> trace["context"].value.round(2).tolist()
    [1.0, 2.0, 2.76]

    `kind` is "dot-product", "attention", "self-attention", "cross-attention", "multi-head" or
    "decoder-block". Arrays are given by name (X, WQ, Q, …), options by theirs (scale, causal, …).
    """
    options = {k: v for k, v in givens_and_options.items() if k in OPTION_NAMES}
    givens = {
        name: read_given(name, value)
        for name, value in givens_and_options.items()
        if name not in OPTION_NAMES and value is not None
    }
    graph = build(kind, {name: value.shape for name, value in givens.items()}, **options)
    result = run(graph, givens, numbers_named(numbers, digits))
    return Trace(result, check_aliases(names or {}, graph.names))
