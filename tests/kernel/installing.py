"""Programs that build and install the package, run from its root."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(command: list[str], cwd: Path = ROOT, **environment: str) -> str:
    """Return what the command wrote, both streams together; a failure shows it."""
    finished = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout
