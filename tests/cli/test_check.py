"""`regard check` and `regard new` as their users meet them: exit codes, levels, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.cli import main

EXERCISE = "scaled-attention-by-hand"
RIGHT = "context = [[0.86, 1.58, -0.72], [0.99, 1.88, -1.56]]\n"  # course document 002
UNSCALED = "context = [[0.91, 1.67, -0.93], [1.0, 1.95, -1.81]]\n"


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        (RIGHT, 0, "right to the 2 decimals given"),
        (UNSCALED, 1, "The scores are not divided by √d_k"),
        ("context = [[1, 2], [3, 4]]\n", 2, "2×2 was read, but 2×3 is wanted"),
        ("weights = [[1, 0, 0], [0, 1, 0]]\n", 2, "no answer was found"),
    ],
)
def test_exit_codes_say_how_it_went(
    answers: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answers.toml"
    path.write_text(answers, encoding="utf-8")
    assert main(["check", EXERCISE, str(path)]) == code
    assert words in capsys.readouterr().out
    assert main(["check", EXERCISE, str(path), "--json"]) == code
    assert json.loads(capsys.readouterr().out)["right"] is (code == 0)


def test_levels_of_reveal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.toml"
    path.write_text(UNSCALED, encoding="utf-8")
    shown = {}
    for hint in ("where", "why", "full"):
        main(["check", EXERCISE, str(path), "--hint", hint, "--width", "90"])
        shown[hint] = capsys.readouterr().out
    assert "√d_k" not in shown["where"]
    assert "a known mistake" not in shown["where"]
    assert "not divided by √d_k" in shown["why"]
    assert "0.8600" not in shown["where"] + shown["why"]
    assert "0.8600" in shown["full"]


def test_the_mistakes_that_an_exercise_can_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", EXERCISE, "--mistakes"]) == 0
    assert "The scores are not divided by √d_k" in capsys.readouterr().out
    assert main(["check", EXERCISE, "--mistakes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["main"]
    assert "no-scale" in found["seen"]
    assert ["scale-by-length", "scale-by-value-width"] in found["alike"]  # n_k = d_v = 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", EXERCISE], "name a file of answers"),
        (["check", EXERCISE, "nothing.toml"], "cannot be read"),
        (["check", "no-exercise", "a.toml"], "no exercise of the library"),
        (["check", EXERCISE, "-", "--step", "contxt"], "did you mean 'context'"),
        (["new", "attention", "--format", "pdf"], "--format is of the sheets in a folder: say --o"),
        (["new", "attention", "--format", "pdf", "-o", "a.toml"], "--format is of the sheets"),
        (["new", "self-atention"], "did you mean 'self-attention'"),
        (["new", "attention", "--format", "docx", "-o", "sheets"], "'markdown', 'latex', 'pdf'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err
