"""Plots drawn in text: points as signs on a grid of characters, heat maps as shades."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from math import floor, isfinite, log10

from regard.show._boxes import columns_of
from regard.show.plots import Chart, HeatMap, Plot, Series, shared_scale

HEIGHT = 14
MARKS = "○△□◇×+"
PREDICTED, BOUND, BAR = "·", "-", "▒"
SHADES = " ░▒▓█"
WIDEST = 76
HIDDEN = "╱"


def plot_lines(plot: Plot, width: int) -> list[str]:
    lines: list[str] = [plot.key] if plot.key else []
    scale = None
    if any(isinstance(panel, HeatMap) for panel in plot.panels):
        scale = shared_scale(plot)
    for panel in plot.panels:
        lines += [""] if lines else []
        if isinstance(panel, Chart):
            lines += _chart(panel, min(width, WIDEST))
        else:
            lines += _map(panel, panel.scale or scale or (0.0, 1.0))
    return lines


class _Axis:
    """From numbers to places on a grid, in even steps or in even factors."""

    def __init__(self, values: list[float], steps: int, is_log: bool) -> None:
        self._is_log = is_log
        self._steps = steps
        places = [self._scaled(value) for value in values if self._shows(value)] or [0.0, 1.0]
        self._low, high = min(places), max(places)
        self._span = (high - self._low) or 1.0

    def _shows(self, value: float) -> bool:
        return isfinite(value) and (value > 0 or not self._is_log)

    def _scaled(self, value: float) -> float:
        return log10(value) if self._is_log else value

    def place(self, value: float) -> float | None:
        """A place from 0 to steps − 1; None when it cannot be shown."""
        if not self._shows(value):
            return None
        place = (self._scaled(value) - self._low) / self._span * (self._steps - 1)
        return place if -0.5 <= place <= self._steps - 0.5 else None

    def between(self, start: float, end: float, share: float) -> float:
        if self._is_log and start > 0:
            return float(start * (end / start) ** share)
        return start + (end - start) * share

    def label(self, share: float) -> str:
        value = self._low + share * self._span
        return f"{10**value if self._is_log else value:.3g}"


def _chart(chart: Chart, width: int) -> list[str]:
    gutter = 9
    columns = width - gutter - 1
    horizontal = _Axis([x for each in chart.series for x in each.x], columns, chart.log_x)
    heights = list(chart.y_limits or [y for each in chart.series for y in each.y])
    if any(each.kind == "bars" for each in chart.series):
        heights.append(0.0)
    vertical = _Axis(heights, HEIGHT, chart.log_y)
    grid = [[" "] * columns for _ in range(HEIGHT)]
    order = {"bars": 0, "bound": 1, "predicted": 2, "measured": 3}
    for each in sorted(chart.series, key=lambda each: order[each.kind]):
        _draw(grid, each, horizontal, vertical)
    lines = [chart.title] if chart.title else []
    lines.append(f"{chart.y}")
    for row in range(HEIGHT - 1, -1, -1):
        marked = row in (0, HEIGHT // 2, HEIGHT - 1)
        label = vertical.label(row / (HEIGHT - 1)) if marked else ""
        lines.append(f"{label:>{gutter - 1}} {'┤' if marked else '│'}{''.join(grid[row])}".rstrip())
    lines.append(" " * gutter + "└" + "─" * columns)
    left, middle, right = (horizontal.label(share) for share in (0, 0.5, 1))
    space = columns - len(left) - len(middle) - len(right)
    between = " " * (space // 2)
    lines.append(" " * (gutter + 1) + left + between + middle + between + right)
    lines.append(chart.x.rjust(gutter + 1 + columns) if len(chart.x) < width else chart.x)
    return lines + _legend(chart.series, width)


def _draw(grid: list[list[str]], drawn: Series, horizontal: _Axis, vertical: _Axis) -> None:
    if drawn.kind == "bars":
        _bars(grid, drawn, horizontal, vertical)
        return
    sign = _sign(drawn)
    xs = [(a + b) / 2 for a, b in pairwise(drawn.x)] if drawn.is_histogram else drawn.x
    points = list(zip(xs, drawn.y, strict=True))
    if drawn.kind != "measured":
        points = _filled(points, horizontal, len(grid[0]))
    for x, y in points:
        column, row = horizontal.place(x), vertical.place(y)
        if column is not None and row is not None:
            grid[round(row)][min(round(column), len(grid[0]) - 1)] = sign


def _sign(drawn: Series) -> str:
    if drawn.kind == "measured":
        return MARKS[drawn.group % len(MARKS)]
    return {"predicted": PREDICTED, "bound": BOUND, "bars": BAR}[drawn.kind]


def _filled(
    points: list[tuple[float, float]], horizontal: _Axis, columns: int
) -> list[tuple[float, float]]:
    """One point for each column that a line passes."""
    filled = points[:1]
    for (x, y), (next_x, next_y) in pairwise(points):
        start, end = horizontal.place(x), horizontal.place(next_x)
        steps = 1 if start is None or end is None else max(1, abs(round(end - start)))
        shares = [step / steps for step in range(1, steps + 1)]
        filled += [(horizontal.between(x, next_x, s), y + (next_y - y) * s) for s in shares]
    return filled


def _bars(grid: list[list[str]], drawn: Series, horizontal: _Axis, vertical: _Axis) -> None:
    for left, right, height in zip(drawn.x, drawn.x[1:], drawn.y, strict=False):
        start, end, top = horizontal.place(left), horizontal.place(right), vertical.place(height)
        if start is None or end is None or top is None or height <= 0:
            continue
        for column in range(round(start), max(round(end), round(start) + 1)):
            for row in range(floor(top + 0.5) + 1):
                grid[row][min(column, len(grid[0]) - 1)] = BAR


def _legend(drawn: tuple[Series, ...], width: int) -> list[str]:
    entries: list[str] = []
    for each in drawn:
        if each.label and (entry := f"{_sign(each)} {each.label}") not in entries:
            entries.append(entry)
    lines, line = [], ""
    for entry in entries:
        if line and columns_of(line) + 3 + columns_of(entry) > width - 10:
            lines.append(line)
            line = ""
        line += ("   " if line else "") + entry
    return [" " * 10 + each for each in [*lines, line] if each]


def _map(drawn: HeatMap, scale: tuple[float, float]) -> list[str]:
    """Each cell as its number and a shade of it; hidden cells are hatched."""
    gutter = max(columns_of(name) for name in drawn.rows)
    shown = len(drawn.columns) <= 8
    names = [name.split("\n") for name in drawn.columns]
    cell = max(6 if shown else 2, *(columns_of(part) + 1 for parts in names for part in parts))
    lines = [f"{drawn.title} ({drawn.y} ↓, {drawn.x} →)"]
    for parts in zip_longest(*names, fillvalue=""):
        lines.append(" " * (gutter + 1) + "".join(part.rjust(cell) for part in parts))
    for row, (name, values) in enumerate(zip(drawn.rows, drawn.values, strict=True)):
        cells = [
            HIDDEN * (cell - 1)
            if drawn.is_hidden(row, place)
            else _cell(value, drawn.text(row, place) if shown else "", scale, cell)
            for place, value in enumerate(values)
        ]
        lines.append(f"{name:>{gutter}} " + "".join(f" {each}" for each in cells))
    return lines


def _cell(value: float, number: str, scale: tuple[float, float], width: int) -> str:
    low, high = scale
    share = (value - low) / (high - low) if high > low else 0.0
    shade = SHADES[min(max(int(share * len(SHADES)), 0), len(SHADES) - 1)]
    return shade * (width - 1 - len(number)) + number
