import sys
import venv
from pathlib import Path

import pytest
from tests.kernel.installing import run


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="a failing compiler is /bin/false")
def test_a_failing_compiler_leaves_a_working_package_that_says_so(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--verbose", "--disable-pip-version-check", "."]
    build_output = run(install, CC="/bin/false", CXX="/bin/false")
    assert "regard is installed WITHOUT its C++ extension" in build_output
    assert "attention is computed by NumPy, several times slower" in build_output

    report = run(
        [
            python,
            "-c",
            "from regard import kernel; r = kernel.report(); print(r.extension, r.reason)",
        ]
    )
    assert report.startswith("False no C++ extension: it was not compiled")
    regard = str(tmp_path / "venv" / "bin" / "regard")
    assert "weights" in run([regard, "solve", "unscaled-self-attention"]).lower()
