"""Plots (matplotlib, the `figures` extra): readable in grey, labelled, nothing for decoration."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard._errors import MissingExtraError, OptionError
from regard._files import write_atomically

if TYPE_CHECKING:
    from regard.show.costs import Costs

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "font.size": 10,
    "svg.hashsalt": "regard",
}
# Told apart without colour by their dashes.
LINES = (("#000000", "-"), ("#0072b2", "--"), ("#d55e00", "-."), ("#009e73", ":"))


def growth_figure(costs: Costs, sizes: Sequence[int]) -> Any:
    """Operations (left) and bytes of results (right) against the number of tokens."""
    if len(sizes) < 2:
        raise OptionError(
            f"a plot of growth needs at least two sizes, but {list(sizes)} was passed"
        )
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("a figure", "figures", "matplotlib") from error
    table = costs.growth(sizes)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        counted = ("multiplications", "additions", "divisions", "exponentials")
        _lines(left, table, counted, "operations")
        _lines(right, table, ("unfused bytes", "fused bytes"), "bytes of results (float64)")
        varied = ("n", "n_q", "n_k")
        fixed = ", ".join(f"{k} = {v}" for k, v in costs.graph.sizes.items() if k not in varied)
        figure.suptitle(f"Cost of {costs.graph.kind}, {fixed}")
    return figure


def _lines(axes: Any, table: list[dict[str, int]], names: Sequence[str], label: str) -> None:
    tokens = [row["n"] for row in table]
    drawn = [name for name in names if any(row[name] for row in table)]
    for name, (colour, dash) in zip(drawn, LINES, strict=False):
        values = [row[name] for row in table]
        axes.plot(tokens, values, dash, color=colour, label=name, marker="o", markersize=3)
    axes.set(xscale="log", yscale="log", xlabel="tokens n", ylabel=label)
    axes.legend(frameon=False)


ENDINGS = (".svg", ".png", ".pdf")


def check_ending(path: str) -> str:
    """The ending of a file that a figure can be saved as."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"a figure is saved as {', '.join(ENDINGS)}, but {path!r} was passed")
    return ending


def save_figure(figure: Any, path: str) -> None:
    """Save as SVG, PNG or PDF, after the file's ending."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=check_ending(path)[1:], dpi=150)
    write_atomically(path, buffer.getvalue())
