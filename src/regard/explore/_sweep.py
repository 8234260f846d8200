"""Sweeps: one experiment over a grid of its options, as many pieces of work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from regard._errors import OptionError, did_you_mean
from regard._options import one_of
from regard.explore._experiments import EXPERIMENTS, named
from regard.explore._result import ERROR, Drawn, table_blocks
from regard.explore._table import Table
from regard.jobs import Outcome, run_jobs
from regard.show.document import Block, Document, Heading, Note, Paragraph, Picture
from regard.show.plots import Chart, Plot, Series, points_and_line

LARGEST = 100_000  # runs; more is a slip of the pen
PREDICTED = "predicted_"
SHOWN_FACTS = 3


@dataclass(frozen=True, eq=False)
class Sweep(Drawn):
    """A table with a row for each point of the grid: its options, its seed, and what was found."""

    name: str
    grid: Mapping[str, Sequence[Any]]
    table: Table
    failures: tuple[Outcome, ...] = ()

    @property
    def failed(self) -> list[str]:
        """A sentence for each point that failed: where, and why."""
        return [f"{_point(self.grid, each.piece)} failed: {each.failure}" for each in self.failures]

    @property
    def _predicted(self) -> list[str]:
        """The first facts that were predicted as well as measured."""
        names = self.table.names
        return [name for name in names if PREDICTED + name in names][:SHOWN_FACTS]

    @property
    def plot(self) -> Plot | None:
        """What was predicted and measured against the option of which there are most values."""
        varied = max(self.grid, key=lambda option: len(self.grid[option]))
        is_number = all(isinstance(value, int | float) for value in self.grid[varied])
        if not self._predicted or not is_number or len(self.table) < 2:
            return None
        panels = tuple(self._chart(varied, name) for name in self._predicted)
        return Plot(panels, f"{self.name} over a grid: {_words(self.grid)}.")

    def _chart(self, varied: str, name: str) -> Chart:
        others = [option for option in self.grid if option != varied]
        lines: list[Series] = []
        for group, chosen in enumerate(product(*(self.grid[option] for option in others))):
            point = dict(zip(others, chosen, strict=True))
            rows = sorted(self.table.where(**point), key=lambda row: float(row[varied] or 0))
            x = [row[varied] for row in rows]
            label = ", ".join(f"{option} = {value}" for option, value in point.items())
            errors = [row[name + ERROR] for row in rows] if name + ERROR in self.table.names else ()
            measured, predicted = ([row[each] for row in rows] for each in (name, PREDICTED + name))
            lines += points_and_line(x, measured, x, predicted, label, group, errors)
        values = self.grid[varied]
        is_log = min(values) > 0 and max(values) / min(values) > 20
        return Chart("", varied, name.replace("_", " "), tuple(lines), log_x=is_log)

    def figure(self) -> Any:
        """The figure, by matplotlib."""
        from regard.show.figures import draw

        if self.plot is None:
            raise OptionError(f"sweep: {self.name} has nothing to draw against {list(self.grid)}")
        return draw(self.plot)

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        if only:
            raise OptionError("sweep: `only` names steps; a sweep is shown whole")
        blocks: list[Block] = [Paragraph((f"The grid: {_words(self.grid)}.",))]
        blocks += [Note((line,)) for line in self.failed]
        if self.plot is not None:
            blocks.append(Picture(self.plot))
        if level != "result" and len(self.table):
            blocks += [Heading("Measured", 2), *table_blocks(self._short_table())]
        return Document(f"Sweep of {self.name}", tuple(blocks))

    def _short_table(self) -> Table:
        """The grid and the facts that are drawn; the table that is saved has all of them."""
        names = [*self.grid, "seed"]
        for fact in self._predicted:
            names += [fact, fact + ERROR, PREDICTED + fact]
        chosen = names if self._predicted else self.table.names
        return Table({name: row[name] for name in chosen if name in row} for row in self.table)

    def to_json(self) -> str:
        data = {
            "schema": "regard-sweep",
            "version": 1,
            "experiment": self.name,
            "grid": {name: list(values) for name, values in self.grid.items()},
            "table": list(self.table),
            "failures": [
                {"options": each.piece["options"], "failure": str(each.failure)}
                for each in self.failures
            ],
        }
        return json.dumps(data, ensure_ascii=False, indent=1)


def sweep(
    experiment: str,
    grid: Mapping[str, Sequence[Any]],
    *,
    seed: int = 0,
    workers: int | str = 1,
    cluster: str | None = None,
    folder: str | Path | None = None,
    keep_going: bool = False,
    **options: Any,
) -> Sweep:
    """Run an experiment at every point of a grid of its options.

    Each point has a seed of its own, which is in its row: the experiment with that seed gives the
    same numbers again. The table is the same on one core, on several and on a cluster.

    experiment: its name, such as "norm-noise".
    grid: the values of each option that is varied.
    seed: the seeds of all points are made from it.
    workers: how many processes, or "all" for one on each core.
    cluster: the address of a Dask scheduler, tcp://….
    folder: keeps what is finished, so that a sweep that was stopped is taken up again.
    keep_going: a point that fails is reported and the others are run.
    options: the same at every point.
    """
    known = _known(experiment)
    for option in (*grid, *options):
        if option == "seed":
            raise OptionError(
                "sweep: each point gets a seed of its own, made from `seed`, which is not varied"
            )
        if option not in known:
            raise OptionError(f"{experiment}: no option {option!r}: {did_you_mean(option, known)}")
    if not grid or any(len(values) == 0 for values in grid.values()):
        raise OptionError("sweep: name at least one option with at least one value")
    for option, values in grid.items():
        if len({repr(value) for value in values}) < len(values):
            raise OptionError(f"sweep: {option!r} has a value twice: {', '.join(map(str, values))}")
    if twice := [option for option in grid if option in options]:
        raise OptionError(f"sweep: {twice[0]!r} is given once for all points and varied as well")
    if (runs := prod(len(values) for values in grid.values())) > LARGEST:
        raise OptionError(f"sweep: {runs:,} runs are more than the {LARGEST:,} that are allowed")
    points = [dict(zip(grid, chosen, strict=True)) for chosen in product(*grid.values())]
    pieces = [{"experiment": experiment, "options": {**options, **point}} for point in points]
    outcomes = run_jobs(
        run_point, pieces, seed=seed, workers=workers, cluster=cluster, folder=folder,
        keep_going=keep_going, title=f"sweep of {experiment}", called=partial(_point, grid),
    )  # fmt: skip
    done = [
        {**point, "seed": outcome.seed, **outcome.record}
        for point, outcome in zip(points, outcomes, strict=True)
        if outcome.failure is None
    ]
    failures = tuple(outcome for outcome in outcomes if outcome.failure)
    return Sweep(experiment, dict(grid), Table(done), failures)


def run_point(piece: dict[str, Any], seed: int) -> dict[str, Any]:
    """One run of an experiment; only its facts travel."""
    name = piece["experiment"]
    seeded = {"seed": seed} if "seed" in _known(name) else {}
    return dict(named(name)(**piece["options"], **seeded).facts)


def _known(experiment: str) -> list[str]:
    one_of("experiment", experiment, EXPERIMENTS)
    return list(signature(named(experiment)).parameters)


def _point(grid: Mapping[str, Sequence[Any]], piece: Mapping[str, Any]) -> str:
    """Where in the grid a piece of work stands."""
    return ", ".join(f"{option} = {piece['options'][option]}" for option in grid)


def _words(grid: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(f"{name} = {', '.join(map(str, values))}" for name, values in grid.items())
