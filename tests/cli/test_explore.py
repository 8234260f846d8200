"""`regard explore` as its users meet it."""

import json
import re
from pathlib import Path

import pytest

from regard.cli import main
from regard.explore import EXPERIMENTS


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(EXPERIMENTS)
    assert main(["explore", "--json", "--list"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(EXPERIMENTS)


def test_an_experiment_prints_its_finding_and_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "copy", "--n", "4,9", "--gap", "0,1,2", "--epsilon", "0.1"]) == 0
    printed = capsys.readouterr().out
    assert "n = 9 keys" in printed
    assert "┤" in printed
    assert "\x1b" not in printed


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    figure, table, page = (tmp_path / name for name in ("f.svg", "t.csv", "p.html"))
    command = ["explore", "norm-noise", "--samples", "200", "--figure", str(figure)]
    assert main([*command, "--table", str(table), "--output", str(page)]) == 0
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert table.read_text(encoding="utf-8").startswith("weight_from,")
    assert "<svg" in page.read_text(encoding="utf-8")


def test_latex_shows_the_figure_that_is_written_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    command = ["explore", "norm-noise", "--samples", "200", "--format", "latex"]
    page = tmp_path / "swings.tex"
    assert main([*command, "--output", str(page)]) == 0
    assert r"\includegraphics[width=\linewidth]{swings-figure.pdf}" in page.read_text("utf-8")
    assert (tmp_path / "swings-figure.pdf").read_bytes().startswith(b"%PDF")
    named = tmp_path / "figures" / "own.png"
    named.parent.mkdir()
    assert main([*command, "--output", str(page), "--figure", str(named)]) == 0
    assert r"{figures/own.png}" in page.read_text("utf-8")
    assert len(list(tmp_path.iterdir())) == 3
    assert main([*command, "--output", str(page), "--figure", str(tmp_path / "own.svg")]) == 0
    assert r"{swings-figure.pdf}" in page.read_text("utf-8")  # LaTeX reads no SVG
    assert (tmp_path / "own.svg").exists()
    capsys.readouterr()
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "includegraphics" not in printed.partition(r"\begin{document}")[2]
    assert "Figure, to be saved as a file of its own" in printed


def test_json_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "norm-noise", "--samples", "200", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "regard-experiment"
    assert data["options"]["samples"] == 200


def test_the_arrays_of_an_exercise_are_explored(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "heads", "--exercise", "numpy-multi-head", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["options"]["X"] == "array (5, 6)"
    assert data["facts"]["parameters"] == 108
    assert main(["explore", "heads", "--exercise", "copying"]) == 2
    assert "no step 'X'" in capsys.readouterr().err
    assert main(["explore", "heads", "--exercise", "two-head-attention"]) == 2
    assert "'two-head-attention' has matrices for each head" in capsys.readouterr().err
    command = ["explore", "heads", "--exercise", "numpy-multi-head", "--sweep", "heads=2,3"]
    assert main([*command, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["table"]) == 2


def test_a_sweep_that_cannot_be_drawn_keeps_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figure, table = str(tmp_path / "f.svg"), tmp_path / "t.csv"
    command = ["explore", "norm-noise", "--samples", "100", "--sweep", "draw=keys,products"]
    assert main([*command, "--figure", figure, "--table", str(table)]) == 2
    assert len(table.read_text(encoding="utf-8").splitlines()) == 3
    told = capsys.readouterr()
    assert "has nothing to draw against ['draw']" in told.err
    assert "mean a" in told.out


def test_a_sweep_falls_short_when_a_point_fails(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explore", "norm-noise", "--samples", "100", "--seed", "5", "--sweep"]
    assert main([*command, "n=2,4", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["table"]) == 2
    assert main([*command, "n=2,17", "--keep-going"]) == 1
    assert "regard: n = 17 failed: `n` = 17 keys cannot be orthogonal" in capsys.readouterr().err
    assert main([*command, "n=2,17"]) == 2


def test_help_of_an_experiment_tells_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explore", "norm-noise", "--help"])
    told = capsys.readouterr().out
    assert "the variance of the length of key a" in told
    assert "--tau VALUE" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name an experiment"),
        (["norm-nose"], "did you mean 'norm-noise'"),
        (["norm-noise", "--bta", "3"], "no option '--bta': did you mean '--beta'"),
        (["norm-noise", "--n", "9", "--d", "8"], "cannot be orthogonal"),
        (["norm-noise", "--figure", "x.gif"], "saved as .svg, .png, .pdf, but 'x.gif'"),
        (["norm-noise", "--table", "x.xls"], "saved as .csv, .parquet, but 'x.xls'"),
        (["norm-noise", "--folder", "x"], "--folder goes with --sweep"),
        (["norm-noise", "--workers", "all"], "--workers goes with --sweep"),
        (["norm-noise", "--keep-going"], "--keep-going goes with --sweep"),
        (["norm-noise", "--table", "none/x.csv"], "there is no folder 'none'"),
        (["norm-noise", "--sweep", "n=1:1000000000000"], "1,000,000,000,000 runs are more"),
        (["norm-noise", "--sweep", "n"], "--sweep takes NAME=VALUES"),
        (["norm-noise", "--sweep", "n=2", "--sweep", "n=3"], "--sweep n was given twice"),
        (["norm-noise", "--sweep", "n=2", "--workers", "many"], "`workers` must be"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(re.escape(message), told.err), told.err
