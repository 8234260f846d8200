"""`pip wheel .` makes a wheel that works where nothing but its dependencies is installed."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ATTEND = """
import sys
import numpy as np
import regard
from regard import kernel

assert kernel.report().extension, kernel.report().reason
q, k, v = np.ones((3, 2)), np.ones((5, 2)), np.arange(5.0)[:, None]
assert regard.attention(q, k, v).tolist() == [[2.0]] * 3
assert "torch" not in sys.modules
print(regard.__file__)
"""


def run(command: list[str], cwd: Path = ROOT) -> str:
    finished = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


@pytest.mark.long
def test_a_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    run([*pip, str(tmp_path), "."])
    (wheel,) = tmp_path.glob("regard-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv/bin/python")
    run([python, "-m", "pip", "install", "--quiet", str(wheel)])
    assert str(tmp_path) in run([python, "-c", ATTEND], cwd=tmp_path)
    solved = run([str(tmp_path / "venv/bin/regard"), "solve", "copying"], cwd=tmp_path)
    assert solved.startswith("Copying one value with attention")
