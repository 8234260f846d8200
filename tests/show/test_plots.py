"""Plots as text and by matplotlib: what is drawn is what the data say."""

import sys

import numpy as np
import pytest

from regard import MissingExtraError
from regard.show._format import NumberFormat
from regard.show._text_plots import HIDDEN, plot_lines
from regard.show.document import Document, Picture
from regard.show.html import to_html
from regard.show.plots import Chart, Plot, heat_map, series, shared_scale

CURVE = Chart(
    "Curve", "x", "y",
    (
        series("measured", [0, 5, 10], [0, 1, 0], "seen", 0, [0.1, 0.1, 0.1]),
        series("predicted", [0, 5, 10], [0, 1, 0], "expected"),
        series("bars", [0, 5, 10], [0.25, 0.75], "counted"),
    ),
)  # fmt: skip
HIDDEN_ONE = ((False, True), (False, False))
MAPS = Plot(
    (
        heat_map("Head 1", [[1.0, 0.0], [0.25, 0.75]], ("le", "chat"), hidden=HIDDEN_ONE),
        heat_map("Head 2", [[0.5, 0.5], [0.5, 0.5]], ("le", "chat")),
    ),
    "Two heads.",
)


def test_a_chart_in_text_has_its_extremes_where_they_belong() -> None:
    lines = plot_lines(Plot((CURVE,), "A curve."), 60)
    assert lines[0] == "points: measured; bars: measured; lines: predicted"
    assert lines[1:4] == ["", "Curve", "y"]
    top, *_, bottom = [line for line in lines if "│" in line or "┤" in line]
    body = top.partition("┤")[2]
    assert body.index("○") == pytest.approx(25, abs=1)
    assert "○" in bottom.partition("┤")[2][:1]
    assert top.strip().startswith("1 ┤")
    assert "○ seen" in "".join(lines)
    assert "▒ counted" in "".join(lines)
    assert all(len(line) <= 60 for line in lines)


def test_bars_reach_their_height() -> None:
    rows = [line.partition("│")[2] or line.partition("┤")[2] for line in
            plot_lines(Plot((CURVE,), ""), 60) if "│" in line or "┤" in line]  # fmt: skip
    heights = [sum((row + " " * 60)[column] == "▒" for row in rows) for column in (8, 42)]
    assert heights[1] / heights[0] == pytest.approx(3, rel=0.35)


def test_logarithmic_axes_leave_out_what_they_cannot_show() -> None:
    chart = Chart(
        "", "x", "y", (series("measured", [0, 1, 100], [1, 0, 10]),), log_x=True, log_y=True
    )
    assert sum(line.count("○") for line in plot_lines(Plot((chart,), ""), 40)) == 1


def test_a_heat_map_in_text_prints_numbers_and_hatches_what_is_hidden() -> None:
    lines = plot_lines(MAPS, 60)
    assert lines[1].split() == ["le", "chat"]
    assert "0.75" in lines[3]
    assert HIDDEN * 3 in lines[2]
    assert "0.00" not in lines[2]


def test_all_heads_share_one_scale() -> None:
    assert shared_scale(MAPS) == (0.0, 1.0)
    pytest.importorskip("matplotlib")
    from regard.show.figures import draw

    limits = [axes.images[0].get_clim() for axes in draw(MAPS).axes if axes.images]
    assert limits == [(0.0, 1.0), (0.0, 1.0)]


def test_a_figure_hatches_hidden_cells_and_prints_the_others() -> None:
    pytest.importorskip("matplotlib")
    from regard.show.figures import draw

    axes = draw(MAPS).axes[0]
    assert [text.get_text() for text in axes.texts] == ["1.00", ".25", ".75"]
    (hatched,) = axes.patches
    assert (hatched.get_x(), hatched.get_y()) == (0.5, -0.5)
    assert hatched.get_hatch() == "////"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["le", "chat"]


def test_large_maps_print_no_numbers() -> None:
    large = Plot((heat_map("", np.full((13, 13), 0.5)),), "")
    assert not any("0.50" in line for line in plot_lines(large, 80))
    pytest.importorskip("matplotlib")
    from regard.show.figures import draw

    assert not draw(large).axes[0].texts


def test_without_matplotlib_a_page_has_the_plot_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = to_html(Document("Title", (Picture(Plot((CURVE,), "A curve.")),)), NumberFormat())
    assert "<svg" not in page
    assert "○" in page
    from regard.show.figures import draw

    with pytest.raises(MissingExtraError, match="pip install 'regard\\[figures\\]'"):
        draw(MAPS)
