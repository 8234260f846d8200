"""Plots as data, before any output format draws them: charts of series, and heat maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["measured", "predicted", "bound", "bars"]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """Points of a chart; those of one `group` look alike, measured and predicted.

    kind: "measured" are points (with their standard errors), "predicted" a line over them, "bound"
        a thin dotted line, "bars" a histogram whose n bars stand between n + 1 edges in x. A
        "predicted" series with one more x than y is the outline of such a histogram.
    label: in the legend; without one it is not there.
    """

    kind: Kind
    x: Numbers
    y: Numbers
    label: str = ""
    group: int = 0
    errors: Numbers = ()

    @property
    def is_histogram(self) -> bool:
        return len(self.x) == len(self.y) + 1


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    y_limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class HeatMap:
    """One number for each query (row) and key (column); what is hidden has none."""

    title: str
    values: tuple[Numbers, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    hidden: tuple[tuple[bool, ...], ...] = ()
    x: str = "key"
    y: str = "query"
    scale: tuple[float, float] | None = None  # otherwise what all maps of the plot share
    measure: str = "weight"  # beside the bar of shades, which is not drawn without it
    texts: tuple[tuple[str, ...], ...] = ()  # printed instead of the values

    def text(self, row: int, column: int) -> str:
        """What is printed in a cell."""
        if self.texts:
            return self.texts[row][column]
        value = self.values[row][column]
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"

    def is_hidden(self, row: int, column: int) -> bool:
        return bool(self.hidden) and self.hidden[row][column]


@dataclass(frozen=True)
class Plot:
    """Panels side by side, `across` of them in a row."""

    panels: tuple[Chart | HeatMap, ...]
    caption: str
    across: int = 3

    @property
    def key(self) -> str:
        """What points and lines are, where a plot has both."""
        kinds = {
            drawn.kind
            for panel in self.panels
            if isinstance(panel, Chart)
            for drawn in panel.series
        }
        measured = {"measured": "points: measured", "bars": "bars: measured"}
        words = [word for kind, word in measured.items() if kind in kinds]
        return "; ".join([*words, "lines: predicted"]) if words and "predicted" in kinds else ""


def series(kind: Kind, x: Any, y: Any, label: str = "", group: int = 0, errors: Any = ()) -> Series:
    """A series of anything that can be iterated over."""
    return Series(kind, numbers(x), numbers(y), label, group, numbers(errors))


def points_and_line(
    x: Any, y: Any, along: Any, line: Any, label: str = "", group: int = 0, errors: Any = ()
) -> tuple[Series, Series]:
    """What was measured, and over it the line that was predicted."""
    points = series("measured", x, y, label, group, errors)
    return points, series("predicted", along, line, "", group)


def numbers(values: Any) -> Numbers:
    return tuple(float(value) for value in values)


def heat_map(title: str, values: Any, tokens: tuple[str, ...] = (), **more: Any) -> HeatMap:
    """The map of a matrix; tokens are numbered when they have no names."""
    rows = tuple(numbers(row) for row in values)
    names = tokens or tuple(str(place + 1) for place in range(max(len(rows), len(rows[0]))))
    return HeatMap(title, rows, names[: len(rows)], names[: len(rows[0])], **more)


def shared_scale(plot: Plot) -> tuple[float, float]:
    """The least and the greatest value of all heat maps of a plot; weights begin at 0."""
    shown = [
        value
        for panel in plot.panels
        if isinstance(panel, HeatMap)
        for row, values in enumerate(panel.values)
        for column, value in enumerate(values)
        if not panel.is_hidden(row, column)
    ]
    return min(0.0, *shown), max(shown)
