"""`regard grade` as a teacher meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard import SandboxError
from regard.cli import main
from regard.grading import isolation

RIGHT = (Path(__file__).parents[1] / "grading/programs/multi_head.py").read_text(encoding="utf-8")


@pytest.fixture
def right(tmp_path: Path) -> str:
    try:
        isolation()
    except SandboxError as error:
        pytest.skip(str(error))
    path = tmp_path / "right.py"
    path.write_text(RIGHT, encoding="utf-8")
    return str(path)


def test_a_right_program_ends_with_0(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "numpy-multi-head", right]) == 0
    assert capsys.readouterr().out.startswith("right.py: 2 of 2 points\n")


def test_a_wrong_one_beside_it_ends_with_1(
    right: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(RIGHT.replace("axis=1, keep", "axis=0, keep"), encoding="utf-8")
    assert main(["grade", "numpy-multi-head", right, str(wrong), "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["points"], second["points"]) == (2, 1)
    assert "columns instead of the rows" in second["items"][1]["message"]


def test_a_notebook_is_a_program(
    right: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# no code"},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", "import os\n"]},
        {"cell_type": "code", "source": RIGHT},
    ]
    notebook = tmp_path / "right.ipynb"
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert main(["grade", "numpy-multi-head", str(notebook)]) == 1
    printed = capsys.readouterr().out
    assert "2 of 2 points" in printed
    assert "§ line 3 imports os" in printed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "no UTF-8 text"),
        (b"{", "no Jupyter notebook"),
        (b'{"cells": 3}', "no Jupyter notebook"),
    ],
)
def test_a_notebook_that_is_none_is_told(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = tmp_path / "it.ipynb"
    notebook.write_bytes(content)
    assert main(["grade", "numpy-multi-head", str(notebook), "--trust"]) == 2
    printed = capsys.readouterr().out
    assert "it.ipynb: 0 of 2 points" in printed
    assert message in printed


def test_a_submission_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "numpy-multi-head", "none.py", "--trust"]) == 2
    assert "'none.py' cannot be read: No such file" in capsys.readouterr().err


def test_an_exercise_without_programs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "it.py"
    path.write_text("", encoding="utf-8")
    assert main(["grade", "copying", str(path), "--trust"]) == 2
    assert "value with attention' does not say what to call" in capsys.readouterr().err
