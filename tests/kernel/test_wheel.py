"""`pip wheel .` makes a wheel that works where nothing but its dependencies is installed."""

import sys
import venv
from pathlib import Path

import pytest
from tests.kernel.installing import run

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
