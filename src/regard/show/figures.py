"""Plots by matplotlib (the `figures` extra), all in one style.

Readable in grey and by the colour-blind: groups differ by their marks and dashes as well as by
colours that differ in lightness. Nothing stands there for decoration.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard._errors import MissingExtraError, OptionError
from regard._files import write_atomically
from regard.show.plots import Chart, HeatMap, Plot, Series, series, shared_scale

if TYPE_CHECKING:
    from regard.show.costs import Costs

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.formatter.limits": (-3, 4),
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "font.size": 9,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "svg.hashsalt": "regard",
}
# Colours that the colour-blind tell apart, from dark to light; each with its dashes and its mark.
GROUPS = (
    ("#000000", "-", "o"), ("#0072b2", "--", "^"), ("#d55e00", "-.", "s"),
    ("#009e73", (0, (1, 1)), "D"), ("#cc79a7", (0, (5, 1, 1, 1)), "v"),
    ("#7f7f7f", (0, (3, 1, 1, 1, 1, 1)), "P"),
)  # fmt: skip
BAR_FILL, BAR_EDGE = "#d9d9d9", "#a6a6a6"
MAPS = "Greys"
PRINTED_UP_TO = 12  # rows and columns of a heat map whose values are printed
MOST_TICKS = 6
PANEL = (4.3, 3.3)  # inches
ENDINGS = (".svg", ".png", ".pdf")


def matplotlib_figure() -> tuple[Any, Any]:
    """matplotlib and its Figure, or what to install."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("a figure", "figures", "matplotlib") from error
    return matplotlib, Figure


def draw(plot: Plot) -> Any:
    """A matplotlib Figure of the plot."""
    matplotlib, Figure = matplotlib_figure()
    across = min(plot.across, len(plot.panels))
    down = -(-len(plot.panels) // across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        places = list(grid.flat)
        maps: list[tuple[Any, Any]] = []
        scale = None
        if any(isinstance(panel, HeatMap) for panel in plot.panels):
            scale = shared_scale(plot)
        for axes, panel in zip(places, plot.panels, strict=False):
            if isinstance(panel, Chart):
                _draw_chart(axes, panel)
            else:
                maps.append((axes, _draw_map(axes, panel, panel.scale or scale)))
        for axes in places[len(plot.panels) :]:
            axes.set_visible(False)
        _draw_bar_of_shades(figure, maps, plot)
        if plot.key:
            figure.suptitle(plot.key, x=0.99, ha="right", fontsize=8, color="#595959")
    return figure


def _draw_chart(axes: Any, chart: Chart) -> None:
    axes.set(xlabel=_typeset(chart.x), ylabel=_typeset(chart.y))
    axes.set_title(_typeset(chart.title))
    if chart.log_x:
        axes.set_xscale("log")
        _place_ticks(axes, chart)
    if chart.log_y:
        axes.set_yscale("log")
    for drawn in chart.series:
        _draw_series(axes, drawn)
    if not chart.log_x and all(x.is_integer() for drawn in chart.series for x in drawn.x):
        axes.xaxis.get_major_locator().set_params(integer=True)
    if chart.y_limits:
        axes.set_ylim(*chart.y_limits)
    if any(drawn.label for drawn in chart.series):
        axes.legend(fontsize=8)


def _place_ticks(axes: Any, chart: Chart) -> None:
    """At the sizes that were measured when they are few whole numbers and all, else at decades."""
    from matplotlib.ticker import NullFormatter, NullLocator

    places = {x for drawn in chart.series if drawn.kind == "measured" for x in drawn.x}
    is_all = all(max(drawn.x) <= max(places) for drawn in chart.series if places)
    axes.xaxis.set_minor_formatter(NullFormatter())
    if is_all and 2 <= len(places) <= MOST_TICKS and all(x.is_integer() for x in places):
        axes.set_xticks(sorted(places), [f"{int(x)}" for x in sorted(places)])
        axes.xaxis.set_minor_locator(NullLocator())


def _typeset(text: str) -> str:
    """Letters with subscripts and powers as matplotlib sets them: v_a, e^(−β)."""
    text = re.sub(r"\b(\w)_(\w)\b", r"$\1_\2$", text)
    return re.sub(r"\b(\w)\^\(([^()]*)\)", r"$\1^{\2}$", text)


def _draw_series(axes: Any, drawn: Series) -> None:
    colour, dashes, mark = GROUPS[drawn.group % len(GROUPS)]
    label = _typeset(drawn.label) or "_"
    if drawn.kind == "bars":
        axes.stairs(
            drawn.y, drawn.x, fill=True, facecolor=BAR_FILL, edgecolor=BAR_EDGE, label=label
        )
    elif drawn.kind == "measured":
        axes.errorbar(
            drawn.x, drawn.y, yerr=drawn.errors or None, fmt=mark, color=colour, label=label,
            markersize=5, markerfacecolor="white", elinewidth=1, capsize=2, zorder=2,
        )  # fmt: skip
    elif drawn.kind == "predicted" and drawn.is_histogram:
        axes.stairs(
            drawn.y, drawn.x, linestyle=dashes, color=colour, label=label, linewidth=1.5, zorder=3
        )
    elif drawn.kind == "predicted":
        axes.plot(
            drawn.x, drawn.y, linestyle=dashes, color=colour, label=label, linewidth=1.5, zorder=3
        )
    else:
        axes.plot(
            drawn.x, drawn.y, linestyle=":", color="#7f7f7f", label=label, linewidth=1.1, zorder=1
        )


def _draw_map(axes: Any, drawn: HeatMap, scale: tuple[float, float] | None) -> Any:
    """Dark is much; hidden cells are hatched; the numbers are printed while they fit."""
    low, high = scale or (0.0, 1.0)
    image = axes.imshow(
        drawn.values, cmap=MAPS, vmin=low, vmax=high, aspect="auto" if drawn.texts else "equal"
    )
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=drawn.x, ylabel=drawn.y)
    axes.set_title(drawn.title)
    axes.tick_params(length=0)
    axes.set_xticks(range(len(drawn.columns)), drawn.columns)
    axes.set_yticks(range(len(drawn.rows)), drawn.rows)
    printed = max(len(drawn.rows), len(drawn.columns)) <= PRINTED_UP_TO
    for row, values in enumerate(drawn.values):
        for column, value in enumerate(values):
            if drawn.is_hidden(row, column):
                _hatch(axes, row, column)
            elif printed:
                dark = (value - low) > 0.55 * (high - low)
                axes.text(
                    column, row, _without_zero(drawn.text(row, column)),
                    ha="center", va="center", fontsize=7, color="white" if dark else "black",
                )  # fmt: skip
    return image


def _hatch(axes: Any, row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5), 1, 1, facecolor="white", edgecolor="#8c8c8c", hatch="////",
            linewidth=0,
        )
    )  # fmt: skip


def _without_zero(text: str) -> str:
    """0.25 as .25: the 0 is what all weights begin with."""
    return text[1:] if text.startswith("0.") else text


def _draw_bar_of_shades(figure: Any, maps: Sequence[tuple[Any, Any]], plot: Plot) -> None:
    panel = next((panel for panel in plot.panels if isinstance(panel, HeatMap)), None)
    if panel is None or not panel.measure:
        return
    bar = figure.colorbar(maps[0][1], ax=[axes for axes, _ in maps], shrink=0.75, aspect=30)
    bar.set_label(panel.measure)
    bar.outline.set_visible(False)


def growth_figure(costs: Costs, sizes: Sequence[int]) -> Any:
    """Operations (left) and bytes of results (right) against the number of tokens."""
    if len(sizes) < 2:
        raise OptionError(
            f"a plot of growth needs at least two sizes, but {list(sizes)} was passed"
        )
    table = costs.growth(sizes)
    varied = ("n", "n_q", "n_k")
    fixed = ", ".join(f"{k} = {v}" for k, v in costs.graph.sizes.items() if k not in varied)
    counted = ("multiplications", "additions", "divisions", "exponentials")
    return draw(
        Plot(
            (
                _growth(table, f"Cost of {costs.graph.kind}, {fixed}", "operations", counted),
                _growth(table, "", "bytes of results (float64)", ("unfused bytes", "fused bytes")),
            ),
            "growth",
        )
    )


def _growth(table: list[dict[str, int]], title: str, label: str, names: Sequence[str]) -> Chart:
    tokens = [row["n"] for row in table]
    drawn = [name for name in names if any(row[name] for row in table)]
    lines = (
        series("predicted", tokens, [row[name] for row in table], name, group)
        for group, name in enumerate(drawn)
    )
    return Chart(title, "tokens n", label, tuple(lines), log_x=True, log_y=True)


def check_ending(path: str) -> str:
    """The ending of a file that a figure can be saved as."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"a figure is saved as {', '.join(ENDINGS)}, but {path!r} was passed")
    return ending


def save_figure(figure: Any, path: str) -> None:
    """Save as SVG, PNG or PDF, after the file's ending."""
    write_atomically(path, _saved(figure, check_ending(path)[1:]))


def _saved(figure: Any, ending: str) -> bytes:
    """The file; nothing in it tells when it was made, so that the same plot is the same file."""
    import matplotlib

    buffer = io.BytesIO()
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=ending, dpi=150, metadata=undated)
    return buffer.getvalue()


def to_svg(plot: Plot) -> str:
    """The plot as an SVG element that a page can hold, without the head of a file."""
    svg = _saved(draw(plot), "svg").decode()
    return svg[svg.index("<svg") :]
