"""The autograder for Gradescope runs as it is, from the zip to results.json."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from regard import OptionError
from regard.exercises import load_exercise
from regard.grading._gradescope import autograder

RIGHT = (Path(__file__).with_name("programs") / "multi_head.py").read_text(encoding="utf-8")


def test_the_zip_has_what_gradescope_wants_at_its_root() -> None:
    archive = zipfile.ZipFile(io.BytesIO(autograder(load_exercise("numpy-multi-head"))))
    assert archive.testzip() is None
    for name in ("setup.sh", "run_autograder"):
        info = archive.getinfo(name)
        assert info.external_attr >> 16 & 0o111
        assert archive.read(name).startswith(b"#!/usr/bin/env bash\n")
        checked = subprocess.run(["bash", "-n"], input=archive.read(name), check=False)
        assert checked.returncode == 0
    assert {"exercise.toml", "regard/__main__.py", "regard/grading/_runner.py"} <= set(
        archive.namelist()
    )
    assert not [name for name in archive.namelist() if name.endswith((".so", ".pyc", ".cpp"))]


def test_the_same_exercise_gives_the_same_zip() -> None:
    exercise = load_exercise("numpy-multi-head")
    assert autograder(exercise) == autograder(exercise)


def test_an_exercise_without_programs_has_no_autograder() -> None:
    with pytest.raises(OptionError, match="does not say what to call"):
        autograder(load_exercise("copying"))


def python_for_everybody() -> str:
    """A Python that every user may run, of the version that the packages here are for."""
    system = shutil.which(f"python3.{sys.version_info[1]}", path="/usr/bin:/bin")
    if system is None:
        pytest.skip("no Python of this version that every user may run")
    return system


@pytest.mark.skipif(os.getuid() != 0, reason="Gradescope runs autograders as root")
def test_it_runs_as_it_is(tmp_path: Path) -> None:
    """Two submissions, one of which tries to read the exercise and the results."""
    root = Path("/var/tmp", f"regard-autograder-{os.getpid()}")  # pytest's folders are private
    packages = Path(__import__("numpy").__file__).parents[1]
    python = root / "python"
    try:
        source = root / "source"
        source.mkdir(parents=True)
        root.chmod(0o755)
        zipfile.ZipFile(io.BytesIO(autograder(load_exercise("numpy-multi-head")))).extractall(
            source
        )
        # Stands for the virtual environment that setup.sh makes.
        python.write_text(
            f"#!/bin/sh\nexec env PYTHONPATH=$PYTHONPATH:{packages} {python_for_everybody()} $@\n"
        )
        python.chmod(0o755)
        stealing = RIGHT.replace(
            "    scores =", f"    open({str(source / 'exercise.toml')!r}).read()\n    scores =", 1
        )
        for program, score in ((RIGHT, 2.0), (stealing, 0.0)):
            submission = root / "submission"
            shutil.rmtree(submission, ignore_errors=True)
            submission.mkdir()
            (submission / "attention.py").write_text(program)
            environment = {"AUTOGRADER": str(root), "REGARD_PYTHON": str(python)}
            finished = subprocess.run(
                ["bash", str(source / "run_autograder")],
                env={"PATH": os.environ["PATH"], **environment},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert finished.returncode == 0, finished.stderr
            results = json.loads((root / "results" / "results.json").read_text())
            assert results["score"] == score, results
        assert "Permission denied" in results["output"]
        assert (source / "exercise.toml").stat().st_mode & 0o077 == 0
    finally:
        shutil.rmtree(root, ignore_errors=True)
