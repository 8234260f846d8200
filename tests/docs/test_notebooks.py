"""Runs the cells of every notebook of the documents, as Jupyter would, with small recipes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
SMALL = (
    "--corpus pocket --pairs 300 --vocabulary 400 --width 32 --layers 2 --heads 2 --head-dim 16 "
    "--batch-tokens 400 --steps 6 --validate-every 3 --validate-pairs 8 --test-pairs 8 --threads 1"
)


def run(cell: dict[str, Any], namespace: dict[str, Any]) -> None:
    """A cell of Python, or one of commands; what it installs is here already."""
    source = "".join(cell["source"])
    if source.startswith("!"):
        for line in source.splitlines():
            command(line.removeprefix("!").format(**namespace))
    elif not source.startswith("%pip install"):
        exec(compile(source, cell["id"], "exec"), namespace)


def command(text: str) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", text], env={**os.environ, "PATH": programs}, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_TUTORIAL", SMALL)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "notebooks are kept without outputs"
            run(cell, namespace)
    assert namespace["trace"]["weights"].value.shape[0] > 5
    assert (tmp_path / "runs" / "multi30k" / "best" / "model.safetensors").is_file()


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
