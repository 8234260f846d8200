"""Sweeps give the same table wherever they are run, resume, and go on after failures."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from regard import JobError, OptionError, explore
from regard.cli._explore import grid_values
from regard.explore import sweep

GRID: dict[str, Any] = {"n": (2, 5), "beta": (1, 2, 4)}


def test_a_sweep_is_the_same_on_one_core_and_on_several(tmp_path: Path) -> None:
    here = sweep("norm-noise", GRID, seed=3, samples=400)
    assert len(here.table) == 6
    assert here.table["n"].tolist() == [2, 2, 2, 5, 5, 5]
    there = sweep("norm-noise", GRID, seed=3, samples=400, workers=2, folder=tmp_path)
    assert there.table == here.table
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    wider = {**GRID, "beta": (1, 2, 4, 8)}
    assert len(sweep("norm-noise", wider, seed=3, samples=400, folder=tmp_path).table) == 8
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}.items()


def test_each_row_is_the_experiment_with_its_seed() -> None:
    row = list(sweep("norm-noise", GRID, seed=3, samples=400).table)[4]
    alone = explore.norm_noise(n=5, beta=2, samples=400, seed=row["seed"])
    assert alone.facts["variance_a"] == row["variance_a"]


def test_what_cannot_be_run_is_reported_and_the_rest_is_run() -> None:
    grid = {"n": (17, 2), "beta": (3,)}
    message = r"^sweep of norm-noise: n = 17, beta = 3 failed: `n` = 17 keys cannot be orthogonal"
    with pytest.raises(JobError, match=message):
        sweep("norm-noise", grid, samples=100)
    swept = sweep("norm-noise", {"n": (17, 2)}, samples=100, keep_going=True)
    assert swept.table["n"].tolist() == [2]
    assert "17 keys cannot be orthogonal" in str(swept.failures[0].failure)
    assert "Note: n = 17 failed: `n` = 17 keys cannot" in swept.to_text(width=80)


def test_a_sweep_is_shown_and_drawn() -> None:
    swept = sweep("two-heads", {"beta": (2, 4, 8), "heads": (2, 3)}, samples=200)
    text = swept.to_text(width=100)
    assert "variance one" in text
    assert "heads = 3" in text
    assert "<svg" in swept.to_html()
    assert json.loads(swept.to_json())["grid"] == {"beta": [2, 4, 8], "heads": [2, 3]}


def test_an_experiment_without_chance_is_swept_too() -> None:
    swept = sweep("copy", {"n": (4, 8)}, gap=2)
    assert swept.table["weight"] == pytest.approx(swept.table["predicted_weight"])


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({"nn": (1,)}, {}, "no option 'nn'"),
        ({"seed": (1, 2)}, {}, "each point gets a seed of its own"),
        ({"n": (2, 2)}, {}, "'n' has a value twice: 2, 2"),
        ({}, {}, "name at least one option"),
        ({"n": ()}, {}, "at least one value"),
        ({"n": (2, 3)}, {"n": 4}, "'n' is given once for all points and varied as well"),
        ({"n": range(1000), "d": range(1000)}, {}, "1,000,000 runs are more than"),
    ],
)
def test_grids_that_make_no_sense(grid: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        sweep("norm-noise", grid, **options)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=8,16,32", (8, 16, 32)),
        ("beta=1:64:log", (1, 2, 4, 8, 16, 32, 64)),
        ("n=2:5", (2, 3, 4, 5)),
        ("tau=0:1:linear:5", (0, 0.25, 0.5, 0.75, 1)),
        ("alpha=1:100:log:3", (1, 10, 100)),
        ("draw=keys,products", ("keys", "products")),
    ],
)
def test_how_grids_are_written(text: str, values: tuple[Any, ...]) -> None:
    assert grid_values(text)[1] == pytest.approx(values) if text[0] != "d" else values


@pytest.mark.parametrize(
    "text",
    [
        *("n", "n=", "=3", "n=1:2:3", "n=a:b", "n=1:9:cubic:3"),
        *("n=9:1", "n=0:8:log", "n=8:1:log", "n=1:8:log:1", "n=1:8:linear:0"),
    ],
)
def test_grids_that_are_not_understood(text: str) -> None:
    with pytest.raises(OptionError, match=re.escape("--sweep")):
        grid_values(text)
