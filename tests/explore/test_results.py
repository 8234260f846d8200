"""Results are shown everywhere, saved as tables and figures, and refuse what makes no sense."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import OptionError, SizeLimitError, explore
from regard.explore import Table

QUICK: dict[str, dict[str, Any]] = {
    "copy": {"n": 5, "gap": (0, 1, 2), "epsilon": 0.1},
    "average": {"n": 5, "beta": (1, 2, 3)},
    "noise": {"alpha": (1e-3, 1e-1, 1), "samples": 500},
    "norm-noise": {"samples": 500},
    "two-heads": {"heads": 2, "samples": 500},
    "heads": {"n": 4, "d": 4, "heads": 2},
    "permutation": {"n": 4},
    "scale": {"d": (4, 16), "n": 8, "samples": 200},
    "mask": {"n": 5, "padding": 1},
    "cost": {"n": (16, 32), "d": (8, 16), "n_fixed": 16, "d_fixed": 8, "runs": 1},
    "temperature": {"n": 8, "temperature": (0.5, 1, 2), "samples": 200},
    "softmax-bottleneck": {"n": (2, 8), "norm": (2, 4)},
}


@pytest.fixture(scope="module", params=QUICK)
def result(request: pytest.FixtureRequest) -> explore.Result:
    found: explore.Result = getattr(explore, request.param.replace("-", "_"))(
        **QUICK[request.param]
    )
    return found


def test_every_experiment_is_tried() -> None:
    assert QUICK.keys() == explore.EXPERIMENTS.keys()
    assert set(explore.__all__) >= {name.replace("-", "_") for name in QUICK}
    assert regard.explore is explore
    with pytest.raises(AttributeError, match="'nosie'"):
        explore.nosie  # noqa: B018


def test_a_result_knows_its_name_options_facts_and_graph(result: explore.Result) -> None:
    assert result.name in QUICK
    assert QUICK[result.name].items() <= dict(result.options).items()
    assert all(
        isinstance(fact, float | int) and math.isfinite(fact) for fact in result.facts.values()
    )
    assert len(result.table) > 0
    assert "weights" in result.trace.steps
    assert len(result.finding) > 100
    assert result.name in repr(result)


def test_a_result_is_shown_in_every_format(result: explore.Result) -> None:
    text = result.to_text(width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert result.title in text
    assert "┤" in text or "↓" in text
    html = result.to_html()
    assert "<svg" in html
    assert 'role="img"' in html
    assert "<img" not in html
    assert "script" not in html
    assert result.title in result.to_markdown()
    assert r"\begin{document}" in result.to_latex()
    assert "<svg" in result._repr_mimebundle_()["text/html"]
    data = json.loads(result.to_json())
    assert data["facts"] == dict(result.facts)
    assert data["finding"] == result.finding


def test_levels_show_less_and_more(result: explore.Result) -> None:
    short, usual, long = (
        result.to_text(width=80, level=level) for level in ("result", "steps", "entries")
    )
    assert len(short) < len(usual) < len(long)
    assert "Measured" not in short
    assert "The graph, worked" in long
    with pytest.raises(OptionError, match="an experiment is shown whole"):
        result.to_text(only="weights")


def test_a_figure_has_its_titles_and_the_captions_words(result: explore.Result) -> None:
    titles = {axes.get_title(loc="left") for axes in result.figure().axes}
    assert {panel.title for panel in result.plot.panels if "^" not in panel.title} <= titles
    assert len(result.plot.caption) > 50


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_is_saved_and_the_same_each_time(ending: str, tmp_path: Path) -> None:
    result = explore.copy(**QUICK["copy"])
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    result.save_figure(str(first))
    result.save_figure(str(second))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 1000


def test_tables_are_read_back_from_csv_and_parquet(result: explore.Result, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result.table.save(tmp_path / "t.csv")
    result.table.save(tmp_path / "t.parquet")
    assert Table(parquet.read_table(tmp_path / "t.parquet").to_pylist()) == result.table
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"))))
    for read, row in zip(rows, result.table, strict=True):
        for name, value in row.items():
            assert read[name] == ("" if value is None else str(value))


def test_the_same_seed_gives_the_same_table_and_another_one_does_not() -> None:
    first, again, other = (
        explore.norm_noise(samples=700, seed=seed).facts["mean_a"] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_table_names_the_nearest_column() -> None:
    table = Table([{"alpha": 1, "error": 2.5}, {"alpha": 3}])
    assert list(table)[1] == {"alpha": 3, "error": None}
    assert table.where(alpha=1)["error"].tolist() == [2.5]
    assert "2 rows: alpha, error" in repr(table)
    assert table != Table([])
    with pytest.raises(OptionError, match="no column 'eror': did you mean 'error'"):
        table["eror"]
    with pytest.raises(OptionError, match=r"saved as .csv, .parquet, but 'x.xls'"):
        table.save("x.xls")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("norm-noise", {"alpha": -0.1}, "no covariance is negative, but -0.1"),
        ("norm-noise", {"tau": -1}, "`tau` is a variance"),
        ("norm-noise", {"n": 1}, "`n` must be a whole number of at least 2, but 1"),
        ("norm-noise", {"n": 9, "d": 8}, "`n` = 9 keys cannot be orthogonal in `d` = 8 dimensions"),
        ("norm-noise", {"bta": 3}, "norm-noise: no option 'bta': did you mean 'beta'?"),
        ("norm-noise", {"beta": "x"}, "`beta` must be a number, but 'x'"),
        ("norm-noise", {"beta": 0}, "`beta` must be a number above 0, but 0"),
        ("norm-noise", {"draw": "kyes"}, "`draw` must be one of 'products', 'keys', but 'kyes'"),
        ("norm-noise", {"precision": 0}, "`precision` must be a number above 0"),
        ("norm-noise", {"samples": 1}, "`samples` must be a whole number of at least 2"),
        ("noise", {"alpha": (1, 1)}, "`alpha` must be one or more different values"),
        ("two-heads", {"heads": 1}, "`heads` must be a whole number of at least 2"),
        ("two-heads", {"heads": 5, "n": 4}, "`n` must be a whole number of at least 5, but 4"),
        ("norm-noise", {"tau": 0, "alpha": 0}, "`alpha` and `tau` are both 0"),
        ("two-heads", {"tau": 0, "alpha": 0}, "`alpha` and `tau` are both 0"),
        ("copy", {"n": 1}, "`n` must be a whole number of at least 2, but 1"),
        ("copy", {"epsilon": 1}, "`1 − epsilon` must be a number above 0"),
        ("average", {"n": 2}, "`n` must be a whole number of at least 3"),
    ],
)  # fmt: skip
def test_bad_input_is_told_with_its_value(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        getattr(explore, name.replace("-", "_"))(**options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("copy", {"n": 10**15}, "copy: n=1000000000000000: too large to be computed here"),
        ("average", {"beta": 1e6}, "average: beta=1000000.0: too large to be computed here"),
        ("temperature", {"temperature": 1e-300}, "the scores spread too far"),
    ],
)
def test_what_is_too_large_is_told(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SizeLimitError, match=re.escape(message)):
        getattr(explore, name)(**options)


def test_options_are_passed_by_name() -> None:
    with pytest.raises(OptionError, match="copy: options are passed by name: n, gap, epsilon"):
        explore.copy(5)  # type: ignore[misc]
