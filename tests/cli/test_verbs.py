"""The command line as its users meet it: output, files, exit codes, and mistakes in a sentence."""

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main

ASSIGNMENT = r"""
Compute self-attention for
$$X = \begin{bmatrix} 1 & 0 \\ 0 & 2 \\ 1 & 1 \end{bmatrix}, \quad
W_Q = \begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}, \quad
W_K = \begin{bmatrix} 0 & 1 \\ 1 & 0 \end{bmatrix}, \quad
W_V = \begin{bmatrix} 2 & 0 \\ 0 & 3 \end{bmatrix}$$
"""


@pytest.fixture
def assignment(tmp_path: Path) -> str:
    path = tmp_path / "assignment.md"
    path.write_text(ASSIGNMENT, encoding="utf-8")
    return str(path)


def test_solving_prints_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "unscaled-self-attention"]) == 0
    printed = capsys.readouterr().out
    assert "0.4284" in printed
    assert "\x1b" not in printed


def test_the_list_names_every_exercise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--list"]) == 0
    assert "unscaled-self-attention" in capsys.readouterr().out
    assert main(["solve", "--list", "--json"]) == 0
    names = [exercise["name"] for exercise in json.loads(capsys.readouterr().out)]
    assert "unscaled-self-attention" in names
    assert names == sorted(names)


def test_a_skeleton_is_printed_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "torch-self-attention", "--skeleton"]) == 0
    assert "class SelfAttention" in capsys.readouterr().out
    assert main(["solve", "copying", "--skeleton"]) == 2
    assert "copying" in capsys.readouterr().err


def test_options_of_a_kind_change_what_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "decoder-block", "--set", "feed_forward=swiglu,causal=true"]) == 0
    printed = capsys.readouterr().out
    assert "gate_share" in printed
    assert "masked" in printed


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("html", "<!DOCTYPE html>"),
        ("tex", "\\documentclass"),
        ("md", "# "),
        ("json", "{"),
        ("txt", "Self-attention"),
    ],
)
def test_the_ending_of_the_output_chooses_the_format(
    tmp_path: Path, ending: str, start: str
) -> None:
    target = tmp_path / f"solution.{ending}"
    assert main(["solve", "unscaled-self-attention", "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8").startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_json_holds_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "unscaled-self-attention", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "regard-solution"
    assert data["traces"]["main"]["kind"] == "self-attention"


def test_an_assignment_asks_for_what_it_does_not_say(
    assignment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", assignment]) == 2
    assert "pass --scale sqrt (they are) or --scale 1" in capsys.readouterr().err
    assert main(["solve", assignment, "--scale", "1", "--only", "scores"]) == 0
    printed = capsys.readouterr().out
    assert "Understood as" in printed
    assert "⎡0  2  1⎤" in printed


def test_a_draft_is_an_exercise_that_solves_the_same(
    assignment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", assignment, "--scale", "sqrt", "--draft"]) == 0
    draft = tmp_path / "draft.toml"
    draft.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["solve", str(draft), "--level", "result"]) == 0
    from_draft = capsys.readouterr().out
    assert main(["solve", assignment, "--scale", "sqrt", "--level", "result"]) == 0
    from_assignment = capsys.readouterr().out
    results = [text[text.index("Q = ") :] for text in (from_draft, from_assignment)]
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve"], "name an exercise or a file"),
        (["slove", "copying"], "no verb 'slove': did you mean 'solve'"),
        (["solve", "copying", "--levle=result"], "no option '--levle': did you mean '--level'"),
        (["solve", "copying", "mask"], "nothing is expected where 'mask' stands"),
        (["solve", "unscaled-self-atention"], "did you mean 'unscaled-self-attention'"),
        (
            ["solve", "unscaled-self-attention", "--only", "wieghts"],
            "nothing asked is .wieghts.: did you mean .weights.",
        ),
        (["solve", "unscaled-self-attention", "--digits", "0"], "`digits` must be .* at least 1"),
        (["solve", "unscaled-self-attention", "--width", "3"], "at least 20, but 3"),
        (["solve", "unscaled-self-attention", "-o", "no/such/folder/x.md"], "no/such/folder"),
        (["solve", "."], "is a folder; pass a file"),
        (["count", "atention"], "is no kind .* and no exercise"),
        (["count", "attention", "--size", "n_q=2"], "also needs the sizes n_k, d_k, d_v"),
        (["count", "attention", "--growth", "4,8"], "growth needs the other sizes.*n_q=…"),
        (["count", "attention", "--size", "n_q"], "--size takes NAME=VALUE"),
        (["count", "attention", "--growth", "a,b"], "whole numbers"),
        (["count", "unscaled-self-attention", "--size", "n=3"], "go with a kind"),
        (["count", "attention", "--set", "causal"], "--set takes NAME=VALUE"),
        (["count", "attention", "--set", "casual=true"], "'casual'"),
        (["count", "attention", "--itemsize", "0"], "itemsize"),
        (["solve", "copying", "-o", "x.pdf"], "no format has the ending '.pdf'"),
        (["solve", "copying", "--json", "--only", "c"], "--only: the format 'json' has no use"),
        (
            ["solve", "copying", "--new-page-per-answer"],
            "--new-page-per-answer: the format 'text' has no use",
        ),
        (["solve", "copying", "--format", "numpy", "--level", "result"], "--level"),
        (["count", "attention", "--figure", "x.gif"], "saved as .svg, .png, .pdf, but 'x.gif'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_with_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("regard: ")
    assert "Traceback" not in told.err
    assert re.search(message, told.err), told.err


def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "scan.pdf"
    binary.write_bytes(b"%PDF-1.7\xff\xfe\x00")
    assert main(["solve", str(binary)]) == 2
    assert "no UTF-8 text" in capsys.readouterr().err


def test_a_failed_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "solution.md"
    target.write_text("old", encoding="utf-8")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    assert main(["solve", "unscaled-self-attention", "-o", str(target)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["solution.md"]


def test_counting_prints_formulas_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "attention"]) == 0
    assert "n_q n_k (d_k − 1)" in capsys.readouterr().out
    sizes = "n_q=3,n_k=5,d_k=2,d_v=7"
    assert main(["count", "attention", "--size", sizes, "--json", "--growth", "10,20"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["total"]["multiplications"]["number"] == 3 * 5 * (2 + 7)
    assert [row["n"] for row in data["growth"]] == [10, 20]


def test_a_figure_of_growth_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "growth.svg"
    sizes = "n_q=3,n_k=5,d_k=2,d_v=7"
    assert main(["count", "attention", "--size", sizes, "--figure", str(target)]) == 0
    assert "<svg" in target.read_text(encoding="utf-8")


def test_info_tells_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["regard"]
    assert "C++ extension" in facts["kernel"]


def test_help_shows_an_example_for_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("solve", "count", "grade", "info"):
        with pytest.raises(SystemExit) as stopped:
            main([verb, "--help"])
        assert stopped.value.code == 0
        assert f"regard {verb}" in capsys.readouterr().out.partition("examples:")[2]


def run_regard(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regard", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_an_unknown_verb_and_no_verb_end_with_2() -> None:
    assert run_regard("sovle").returncode == 2
    assert run_regard().returncode == 2


def test_standard_input_is_an_assignment() -> None:
    finished = run_regard("solve", "-", "--scale", "1", input=ASSIGNMENT)
    assert finished.returncode == 0, finished.stderr
    assert "S = Q Kᵀ" in finished.stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m regard solve unscaled-self-attention | head -n 1"
    finished = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0
    assert finished.stderr == ""


def test_an_ascii_terminal_does_not_stop_the_output() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    finished = run_regard("solve", "unscaled-self-attention", env=environment)
    assert finished.returncode == 0, finished.stderr
    assert "0.4284" in finished.stdout


def test_garbage_is_looked_for_in_verbs_that_run_for_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["solve", "--list"]) == 0
    assert gc.isenabled()
    assert gc.get_threshold()[0] < 1_000_000
