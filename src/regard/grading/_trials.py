"""What a program is tried on: the exercise's numbers, fresh ones that discriminate, and probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard._errors import RegardError
from regard.exercises._compute import trace_of
from regard.exercises._exercise import CodeRules, CodeRun, Exercise, LinearDraw, Variant
from regard.grading._sandbox import sent
from regard.graph.builders import build
from regard.graph.graph import Graph
from regard.graph.operation import Array
from regard.show.trace import Trace, work

PRIMES = (3, 5, 7, 2, 11, 13)
FRESH = 3  # trials on fresh numbers of the exercise's own sizes
# A little above the logarithm of the largest number that each kind can hold.
OVERFLOW = {"numpy": (709, 1200.0), "torch": (88, 150.0)}
WORDS = {
    "batch": "the batch", "n": "the number of tokens", "n_q": "the number of queries",
    "n_k": "the number of keys", "d_model": "d_model", "d_k": "d_k", "d_v": "d_v",
}  # fmt: skip
KEPT = ("mask", "lengths", "prefix")  # what fresh numbers would make senseless
BY_SCORES = ("WQ", "Q", "s", "WK", "K")  # the scores grow in proportion to each of these


@dataclass(frozen=True)
class Trial:
    """One call: its computation by the exercise, and what the program is called with.

    `kind` is what the trial is for: exercise, fresh, again, size, causal or overflow. `about` is
    the size that was changed, the token that was, or the scores that overflow.
    """

    kind: str
    trace: Trace
    call: Mapping[str, Any]
    about: str = ""
    values: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """Makes the calls of one run of a program."""

    exercise: Exercise
    rules: CodeRules
    run: CodeRun
    seed: int

    @property
    def variant(self) -> Variant:
        return self.exercise.variants[self.run.variant]

    def trials(self) -> Iterator[Trial]:
        base = trace_of(self.variant, self.exercise.names)
        rng = np.random.default_rng(self.seed)
        yield self._trial("exercise", base, "", drawn=bool(self.run.module and self.variant.draws))
        fresh = [self._fresh(base.run.graph, base, rng) for _ in range(FRESH)]
        for trace in fresh:
            yield self._trial("fresh", trace)
        yield self._trial("again", fresh[0])
        for symbol, graph in self._other_sizes(base.run.graph):
            yield self._trial("size", self._fresh(graph, base, rng), symbol)
        yield from self._future(fresh[0], rng)
        yield self._large(fresh[0])

    def _trial(self, kind: str, trace: Trace, about: str = "", drawn: bool = False) -> Trial:
        return Trial(kind, trace, self.call(trace, drawn), about)

    def call(self, trace: Trace, drawn: bool = False) -> dict[str, Any]:
        """As the runner reads it; `drawn` leaves the weights and inputs to torch and its seed."""
        call: dict[str, Any] = {
            "name": self.run.name, "library": self.rules.library, "seed": self.rules.seed,
            "results": len(self.run.results), "makes": None, "weights": None,
        }  # fmt: skip
        call["arguments"] = [self._argument(name, trace, drawn) for name in self.run.arguments]
        if self.run.module:
            givens = trace.run.givens
            weights = [name for name in givens if name not in self.run.arguments]
            call["makes"] = [self._argument(name, trace) for name in self.run.made_with]
            values = {} if drawn else {name: sent(givens[name]) for name in weights}
            call["weights"] = {"names": weights, "values": values}
        return call

    def _argument(self, name: str, trace: Trace, drawn: bool = False) -> Any:
        real = {alias: name for name, alias in self.exercise.names.items()}.get(name, name)
        givens = trace.run.givens
        if real in givens:
            return {"normal": list(givens[real].shape)} if drawn else sent(givens[real])
        for table in (trace.run.graph.sizes, self.variant.options, self.variant.constants):
            if real in table:
                return table[real]
        return None

    # ---- other numbers

    def _fresh(self, graph: Graph, base: Trace, rng: np.random.Generator) -> Trace:
        """The same computation on numbers that make no two entries or mistakes look alike."""
        givens: dict[str, Any] = {}
        for given in graph.givens:
            shape = tuple(axis.size.evaluate(graph.sizes) for axis in given.axes)
            if given.name in KEPT or given.is_mask:
                givens[given.name] = base.run.givens[given.name]
                continue
            spread = 1.5 / np.sqrt(shape[0]) if given.name.startswith("W") else 1.0
            givens[given.name] = np.round(rng.normal(size=shape) * spread, 3)
        trace = work(self.variant.kind, **givens, **self.variant.options)
        return Trace(trace.run, base.names)

    def _other_sizes(self, graph: Graph) -> Iterator[tuple[str, Graph]]:
        """Graphs with one size changed; a batch of one, and of more, where there is a batch."""
        if any(given.name in KEPT or given.is_mask for given in graph.givens):
            return
        for symbol in WORDS:
            if symbol not in graph.sizes:
                continue
            sizes = dict(graph.sizes)
            if self.run.module and symbol in ("d_k", "d_v"):
                continue  # a module decides them itself
            unlike = [prime for prime in PRIMES if prime not in sizes.values()]
            for size in (1, unlike[0]) if symbol == "batch" else unlike[:1]:
                changed = dict.fromkeys(self._tied(symbol, sizes), size)
                if other := self._resized(graph, {**sizes, **changed}):
                    yield symbol, other

    def _tied(self, symbol: str, sizes: Mapping[str, int]) -> list[str]:
        """The sizes that change with this one: a module's weights stay square."""
        if not self.run.module or symbol != "d_model":
            return [symbol]
        return [name for name in ("d_model", "d_k", "d_v") if sizes.get(name) == sizes[symbol]]

    def _resized(self, graph: Graph, sizes: Mapping[str, int]) -> Graph | None:
        shapes = {
            given.name: tuple(axis.size.evaluate(sizes) for axis in given.axes)
            for given in graph.givens
        }
        try:
            return build(self.variant.kind, shapes, **self.variant.options)
        except RegardError:
            return None

    def _future(self, trace: Trace, rng: np.random.Generator) -> Iterator[Trial]:
        """Where the future is masked: a later token changed, which no earlier result may show."""
        graph = trace.run.graph
        if not graph.masks and not any(step.name.startswith("mask_") for step in graph.steps):
            return
        if not self.variant.options.get("causal") or "X" not in self.run.arguments:
            return
        tokens = trace.run.givens["X"].shape[-2]
        for token in range(1, tokens):
            changed = trace.run.givens["X"].copy()
            changed[..., token, :] = rng.normal(size=changed[..., token, :].shape)
            yield self._trial("causal", trace.replace(X=changed), str(token + 1))

    def _large(self, trace: Trace) -> Trial:
        """Scores whose exponentials no number of this kind can hold."""
        limit, target = OVERFLOW[self.rules.library]
        passed = [*self.run.arguments, *(n for n in trace.run.givens if self.run.module)]
        name = next((name for name in BY_SCORES if name in passed), None)
        if name is None:
            return self._trial("again", trace)
        step = "scaled" if "scaled" in trace else "scores"
        factor = target / float(np.abs(trace[step].value).max())
        grown = trace.replace(**{name: trace.run.givens[name] * factor})
        return self._trial("overflow", grown, str(limit))


def variants_drawn(exercise: Exercise, run: CodeRun, told: Sequence[str]) -> Variant:
    """The variant whose drawn weights and biases a module has: its own, or one with biases."""
    for variant in (exercise.variants[run.variant], *exercise.variants.values()):
        tensors = variant.draws.tensors if variant.draws else ()
        names = {draw.linear for draw in tensors if isinstance(draw, LinearDraw)}
        names |= {draw.bias for draw in tensors if isinstance(draw, LinearDraw) and draw.bias}
        if names == set(told):
            return variant
    return exercise.variants[run.variant]
