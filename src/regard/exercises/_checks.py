"""Whether the words of an exercise make sense: its computations, names, steps and expressions.

All of it is checked when an exercise is read, so that no solution fails half-way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf, prod
from typing import Any

from regard._errors import ExerciseError, NumberError, OptionError, RegardError, did_you_mean
from regard._options import one_of, positive_integer
from regard.exercises._compute import constant, given, graph_for, stand_ins
from regard.exercises._evidence import AGREEMENTS, COUNTS, FACTS
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
    CodeRun,
    Exercise,
    LinearDraw,
    Question,
    Variant,
)
from regard.exercises._expressions import FUNCTIONS, parse, written
from regard.exercises._lines import Source
from regard.graph.graph import Graph
from regard.graph.numbers import NUMBERS, read_given
from regard.graph.operation import Array

LIBRARIES = ("numpy", "torch")  # whose arrays a program may be called with
MOST_DRAWN = 1_000_000  # numbers of one computation: 8 megabytes
NAME = re.compile(r"[^\W\d]\w*")
Place = tuple[str | int, ...]


def check(exercise: Exercise, source: Source) -> None:
    """Raise an ExerciseError that names the line of the first thing that makes no sense."""
    checker = Checker(exercise, source)
    for name, variant in exercise.variants.items():
        checker.check_variant(name, variant)
    checker.check_names()
    if exercise.numpy_precision is not None and exercise.numpy_precision < 1:
        raise source.fail("`numpy_precision` must be at least 1", "numpy_precision")
    checker.check_prose(exercise.text, MAIN, "text")
    for remark in exercise.remarks:
        checker.check_prose(remark, MAIN, "remarks")
    for place, asked in enumerate(exercise.asked):
        checker.check_asked(asked, "asked", place)
    if exercise.code:
        with checker.blaming("code", "library"):
            one_of("library", exercise.code.library, LIBRARIES)
        if not 0 <= exercise.code.probe_cost <= 1:
            raise source.fail("`probe_cost` must be between 0 and 1", "code", "probe_cost")
        for place, run in enumerate(exercise.code.run):
            checker.check_run(run, "code", "run", place)


class Checker:
    """An exercise with the graph of each of its variants."""

    def __init__(self, exercise: Exercise, source: Source) -> None:
        self.exercise = exercise
        self.source = source
        self.graphs: dict[str, Graph] = {}

    @contextmanager
    def blaming(self, *path: str | int) -> Iterator[None]:
        """Every error inside names the line of this word."""
        try:
            yield
        except ExerciseError:
            raise
        except RegardError as error:
            raise self.source.fail(str(error), *path) from error

    # ---- computations

    def check_variant(self, name: str, variant: Variant) -> None:
        path: Place = () if name == MAIN else ("variants", name)
        before: dict[str, Any] = {}
        for word, value in variant.constants.items():
            with self.blaming(*path, "constants", word):
                _check_name(word)
                before[word] = constant(_numbers(word, value), before)
        drawn = 0
        for place, draw in enumerate(variant.draws.tensors if variant.draws else ()):
            with self.blaming(*path, "draws", "tensors", place, "shape"):
                _check_shape(draw.shape, 2 if isinstance(draw, LinearDraw) else None)
                drawn += prod(draw.shape)
                if drawn > MOST_DRAWN:
                    raise OptionError(
                        f"with `shape` {list(draw.shape)} {drawn:,} numbers are drawn; "
                        f"{MOST_DRAWN:,} is the most"
                    )
        givens = stand_ins(variant)
        for word, value in variant.givens.items():
            with self.blaming(*path, "givens", word):
                givens[word] = _read_numbers(word, given(value, before, givens))
        try:
            self.graphs[name] = graph_for(variant, givens)
        except RegardError as error:
            raise self.source.fail(str(error), *path, *_blamed(variant, str(error))) from error

    def check_names(self) -> None:
        """Aliases are names of their own, for steps or givens that some variant has."""
        known = {name for graph in self.graphs.values() for name in graph.names}
        taken = set(known) | {n for v in self.exercise.variants.values() for n in v.constants}
        for real, alias in self.exercise.names.items():
            with self.blaming("names", real):
                if real not in known:
                    raise OptionError(f"no step or given {real!r}: {did_you_mean(real, known)}")
                _check_name(alias)
                if alias in taken and alias != real:
                    raise OptionError(f"{alias!r} is already the name of something else")
                taken.add(alias)

    # ---- what is asked

    def check_asked(self, asked: Asked, *path: str | int) -> None:
        self._variant(asked.variant, *path, "variant")
        if not 0 <= asked.points < inf:
            message = "`points` must be at least 0, and a number that ends"
            raise self.source.fail(message, *path, "points")
        with self.blaming(*path, asked.question.word):
            CHECKS[type(asked.question)](self, asked.question, asked.variant, path)
        for word in ("text", "answer", "remark"):
            self.check_prose(getattr(asked, word), asked.variant, *path, word)
        if asked.table:
            self._table(asked.table, asked.variant, *path, "table")

    def check_run(self, run: CodeRun, *path: str | int) -> None:
        """Something to call, with what is known, for steps that are computed."""
        if bool(run.function) == bool(run.module):
            found = "both were found" if run.function else "none was found"
            raise self.source.fail(f"one of function, module is wanted, but {found}", *path)
        if run.function and run.made_with:
            message = "`made_with` goes with `module`, but this is a `function`"
            raise self.source.fail(message, *path, "made_with")
        if not 0 <= run.points < inf:
            message = "`points` must be at least 0, and a number that ends"
            raise self.source.fail(message, *path, "points")
        self._variant(run.variant, *path, "variant")
        graph, variant = self.graphs[run.variant], self.exercise.variants[run.variant]
        real = {alias: name for name, alias in self.exercise.names.items()}
        sizes = {*variant.options, *variant.constants, *graph.sizes}
        givens = {given.name for given in graph.givens}
        for word, names, known in (
            ("arguments", run.arguments, sizes | givens),
            ("made_with", run.made_with, sizes),
        ):
            for name in names:
                if real.get(name, name) not in known:
                    message = f"{name!r} cannot be passed: {did_you_mean(name, sorted(known))}"
                    raise self.source.fail(message, *path, word)
        with self.blaming(*path, "results"):
            self.steps(run.variant, run.results)

    def _variant(self, name: str, *path: str | int) -> None:
        if name not in self.graphs:
            raise self.source.fail(f"no variant {name!r}: {did_you_mean(name, self.graphs)}", *path)

    def known(self, variant: str) -> set[str]:
        """Every name that an expression may use."""
        graph = self.graphs[variant]
        aliases = {alias for real, alias in self.exercise.names.items() if real in graph}
        constants = self.exercise.variants[variant].constants
        return {*constants, *graph.names, *graph.sizes, *aliases}

    def steps(self, variant: str, names: Iterable[str]) -> list[str]:
        """The real names of computed steps, which may be called by their aliases."""
        graph = self.graphs[variant]
        real = {alias: name for name, alias in self.exercise.names.items()}
        known = [step.name for step in graph.steps]
        for name in names:
            if real.get(name, name) not in known:
                wanted = [*known, *(a for a, n in real.items() if n in known)]
                given = " (it is given, not computed)" if real.get(name, name) in graph else ""
                raise OptionError(f"no step {name!r}{given}: {did_you_mean(name, wanted)}")
        return [real.get(name, name) for name in names]

    def _table(self, table: AnswerTable, variant: str, *path: str | int) -> None:
        constants = self.exercise.variants[variant].constants
        numbers = [name for name, value in constants.items() if not isinstance(value, (str, list))]
        if table.vary not in numbers:
            message = f"no constant {table.vary!r} to vary: {did_you_mean(table.vary, numbers)}"
            raise self.source.fail(message, *path, "vary")
        for place, column in enumerate(table.columns):
            here = (*path, "columns", place)
            of = column.variant or variant
            self._variant(of, *here)
            with self.blaming(*here):
                parse(column.show).require(self.known(of))
            self.check_prose(column.header, of, *here)
        self.check_prose(table.caption, variant, *path, "caption")

    def check_prose(self, prose: str, variant: str, *path: str | int) -> None:
        """Formulas stand between $ and must be readable."""
        with self.blaming(*path):
            if prose.count("$") % 2:
                raise OptionError("a formula that $ opens is never closed by another $")
            for formula in prose.split("$")[1::2]:
                written(formula)


def _check_name(name: str) -> None:
    if name in FUNCTIONS:
        raise OptionError(f"{name!r} is the name of a function: choose another")
    if not NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name: letters, digits and _ make one")


def _numbers(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, list)):
        raise NumberError(f"{name} must be a number, a list of numbers or a formula, not {value!r}")
    return value if isinstance(value, str) else _read_numbers(name, value).tolist()


def _read_numbers(name: str, value: Any) -> Array:
    """What is given; only a mask may be of True and False."""
    array = read_given(name, value)
    if array.dtype == bool and name != "mask":
        raise NumberError(f"{name}: numbers are wanted, but true and false were found")
    return array


def _check_shape(shape: tuple[int, ...], axes: int | None) -> None:
    for size in shape:
        positive_integer("shape", size)
    if axes and len(shape) != axes:
        raise OptionError(f"`shape` must hold {axes} sizes, but {list(shape)} was found")


def _blamed(variant: Variant, message: str) -> tuple[str, ...]:
    """The word of the file that an error about a whole computation names."""
    words = {
        word: (part, word) for part in ("givens", "options") for word in getattr(variant, part)
    }
    mentioned = (word for word in re.findall(r"(?<![\w-])\w+(?![\w-])", message) if word in words)
    word = next(mentioned, "")
    return words.get(word, ("givens",) if variant.givens else ("draws",))


# ---- one function for each thing that may be asked -----------------------------------------


def _steps(at: Checker, asked: AskedSteps, variant: str, path: Place) -> None:
    at.steps(variant, asked.step)
    if asked.numbers:
        with at.blaming(*path, "numbers"):
            one_of("numbers", asked.numbers, NUMBERS)


def _shape(at: Checker, asked: AskedShape, variant: str, path: Place) -> None:
    at.steps(variant, asked.shape)


def _choice(at: Checker, asked: AskedChoice, variant: str, path: Place) -> None:
    for choice in asked.choice:
        at.check_prose(choice, variant, *path, "choice")
    with at.blaming(*path, "fact"):
        one_of("fact", asked.fact, FACTS)
        at.steps(variant, FACTS[asked.fact].steps)


def _formula(at: Checker, asked: AskedFormula, variant: str, path: Place) -> None:
    for words, steps in asked.formula.items():
        at.check_prose(words, variant, *path, "formula", words)
        at.steps(variant, steps)
    with at.blaming(*path, "count"):
        for count in asked.count:
            one_of("count", count, COUNTS)
    from regard.graph.cost import CONVENTIONS  # few exercises ask for counts

    with at.blaming(*path, "convention"):
        one_of("convention", asked.convention, CONVENTIONS)


def _mask(at: Checker, asked: AskedMask, variant: str, path: Place) -> None:
    (step,) = at.steps(variant, (asked.mask,))
    axes = {axis.name for axis in at.graphs[variant].axes[step]}
    if not step.startswith("mask_"):
        masks = [s.name for s in at.graphs[variant].steps if s.name.startswith("mask_")]
        raise OptionError(
            f"{asked.mask!r} is no mask ({' × '.join(sorted(axes))}); "
            f"the masks here: {', '.join(masks) or 'none'}"
        )


def _design(at: Checker, asked: AskedDesign, variant: str, path: Place) -> None:
    chosen = at.exercise.variants[variant]
    formulas = {**chosen.constants, **chosen.givens}
    designed = [name for name, value in formulas.items() if isinstance(value, str)]
    for name in asked.design:
        if name not in designed:
            raise OptionError(
                f"no constant or given {name!r} that is a formula: {did_you_mean(name, designed)}"
            )
    for word in ("property", "target"):
        with at.blaming(*path, word):
            parse(getattr(asked, word)).require(at.known(variant))


def _compare(at: Checker, asked: AskedCompare, variant: str, path: Place) -> None:
    for name in asked.compare.values():
        at._variant(name, *path, "compare")
    if len(asked.compare) < 2:
        raise OptionError("`compare` takes two variants or more")
    for name in asked.compare.values():
        at.steps(name, ("weights",))


def _permute(at: Checker, asked: AskedPermute, variant: str, path: Place) -> None:
    graph = at.graphs[variant]
    if "X" not in graph or graph.kind == "cross-attention":
        raise OptionError(f"`permute` takes a self-attention with X, not {graph.kind}")
    tokens = graph.sizes["n"]
    if sorted(asked.permute) != list(range(1, tokens + 1)):
        raise OptionError(
            f"`permute` must hold 1 to {tokens} in some order, not {list(asked.permute)}"
        )
    at.steps(variant, ("weights",))


def _agree(at: Checker, asked: AskedAgree, variant: str, path: Place) -> None:
    one_of("agree", asked.agree, AGREEMENTS)
    at.steps(variant, ("context",))
    if at.graphs[variant].kind != "attention":
        raise OptionError(f"{asked.agree} takes Q, K and V: `agree` goes with the kind 'attention'")


def _explain(at: Checker, asked: AskedExplain, variant: str, path: Place) -> None:
    at.check_prose(asked.explain, variant, *path, "explain")


def _program(at: Checker, asked: AskedProgram, variant: str, path: Place) -> None:
    """That the file is there was seen when it was read."""


CHECKS: Mapping[type[Question], Callable[[Checker, Any, str, Place], None]] = {
    AskedSteps: _steps,
    AskedShape: _shape,
    AskedChoice: _choice,
    AskedFormula: _formula,
    AskedMask: _mask,
    AskedDesign: _design,
    AskedCompare: _compare,
    AskedPermute: _permute,
    AskedAgree: _agree,
    AskedExplain: _explain,
    AskedProgram: _program,
}
