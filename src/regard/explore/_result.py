"""What every experiment returns: its numbers, its prediction, its figure and what was found."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from regard._errors import OptionError, SizeLimitError, did_you_mean
from regard._options import one_of
from regard.explore._table import Table
from regard.graph.notation import Words
from regard.show import document as shown
from regard.show.document import Block, Document, Heading, Paragraph, Picture
from regard.show.layout import LEVELS
from regard.show.plots import Plot
from regard.show.shown import Shown
from regard.show.trace import Trace

P = ParamSpec("P")
ERROR = "_se"
SHOWN_ROWS = 24  # of a table; the file that it is saved as has them all


class Drawn(Shown):
    """What has a figure."""

    @abstractmethod
    def figure(self) -> Any:
        """The figure, by matplotlib."""

    def save_figure(self, path: str) -> None:
        """Save the figure as SVG, PNG or PDF, after the file's ending."""
        from regard.show import figures

        figures.check_ending(path)
        figures.save_figure(self.figure(), path)


@dataclass(frozen=True, eq=False)
class Result(Drawn):
    """An experiment that was run.

    `table` holds the measurements beside their predictions, `facts` the numbers that `finding`
    states, `trace` the graph that was run (or one draw of it), `plot` the figure as data.
    """

    title: str
    finding: str
    prediction: tuple[str, ...]
    table: Table
    facts: Mapping[str, float]
    plot: Plot
    trace: Trace
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"<Result of {self.name}: {options}>"

    def figure(self) -> Any:
        """The figure, by matplotlib; `save_figure` writes it."""
        from regard.show.figures import draw

        return draw(self.plot)

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        if only:
            raise OptionError(f"{self.name}: `only` names steps; an experiment is shown whole")
        one_of("level", level, LEVELS)
        blocks: list[Block] = [Paragraph((self.finding,)), Picture(self.plot)]
        if level != "result":
            blocks += [Heading("Predicted", 2), *map(_formula, self.prediction)]
            blocks += [Heading("Measured", 2), *table_blocks(self.table), *self._how()]
        if level == "entries":
            blocks += [Heading("The graph, worked", 1), *self.trace.document().blocks]
        return Document(self.title, tuple(blocks))

    def _how(self) -> list[Block]:
        graph = self.trace.run.graph
        sizes = ", ".join(f"{name} = {size}" for name, size in graph.sizes.items())
        options = ", ".join(f"{name} = {value}" for name, value in self.options.items())
        return [
            Heading("How", 2),
            Paragraph((f"Options: {options}.",)) if options else Paragraph(("No options.",)),
            Paragraph((f"The graph: {graph.kind} ({sizes}); {' → '.join(self.trace.steps)}.",)),
        ]

    def to_json(self) -> str:
        """Everything but the figure and the trace, as data."""
        data = {
            "schema": "regard-experiment",
            "version": 1,
            "experiment": self.name,
            "options": dict(self.options),
            "finding": self.finding,
            "facts": dict(self.facts),
            "table": list(self.table),
        }
        return json.dumps(data, ensure_ascii=False, indent=1)


def experiment(function: Callable[P, Result]) -> Callable[P, Result]:
    """An experiment knows its name and its options, and refuses others with the nearest word."""
    name = function.__name__.replace("_", "-")
    defaults = {each.name: each.default for each in signature(function).parameters.values()}

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> Result:
        if args:
            raise OptionError(f"{name}: options are passed by name: {', '.join(defaults)}")
        for option in options:
            if option not in defaults:
                raise OptionError(f"{name}: no option {option!r}: {did_you_mean(option, defaults)}")
        try:
            result = function(*args, **options)
        except (MemoryError, OverflowError) as error:
            passed = ", ".join(f"{option}={value!r}" for option, value in options.items())
            raise SizeLimitError(
                f"{name}: {passed or 'the defaults'}: too large to be computed here ({error}); "
                "pass smaller numbers"
            ) from error
        chosen = {**defaults, **options}
        plain = {option: value for option, value in chosen.items() if value is not None}
        return replace(result, name=name, options=_described(plain))

    return run


def _described(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON can hold them; an array is told by its shape."""
    return {
        name: f"array {value.shape}" if getattr(value, "shape", ()) else value
        for name, value in options.items()
        if not callable(value)
    }


def _formula(text: str) -> Block:
    return shown.Display(Words(text))


def table_blocks(table: Table) -> list[Block]:
    """The first rows; a number and its standard error share a cell."""
    names = [name for name in table.names if not name.endswith(ERROR)]
    rows = list(table)
    cells = tuple(tuple((_cell(row, name),) for name in names) for row in rows[:SHOWN_ROWS])
    header = tuple((name.replace("_", " "),) for name in names)
    blocks: list[Block] = [shown.Table(header, cells)]
    if len(rows) > SHOWN_ROWS:
        blocks.append(shown.Note((f"{len(rows) - SHOWN_ROWS} more rows are in the saved table.",)))
    return blocks


def _cell(row: Mapping[str, Any], name: str) -> str:
    error = row.get(name + ERROR)
    return written(row[name]) + (f" ± {error:.1g}" if error is not None else "")


def written(value: Any) -> str:
    """A number as a person reads it: four significant digits."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "–"}[value]
    return str(value) if isinstance(value, int) else f"{value:.4g}"
