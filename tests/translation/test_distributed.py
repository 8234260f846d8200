"""Two processes for one run: the losses of one process, and what happens when one is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
pytest.importorskip("torch")

from regard.translation.recipes import Recipe
from regard.translation.runs import Run

from .conftest import trained

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def torchrun(recipe: Recipe, folder: Path, *more: str) -> subprocess.Popen[str]:
    path = folder.parent / "recipe.toml"
    path.write_text(recipe.written())
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = more or ("--recipe", str(path), "--output", str(folder))
    return subprocess.Popen(
        [*launcher, "-m", "regard", "train", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT,
    )  # fmt: skip


def losses(folder: Path) -> dict[int, float]:
    return {facts["step"]: facts["loss"] for facts in Run(folder).logged() if "loss" in facts}


def test_two_processes_give_the_losses_of_one_to_rounding(small: Recipe, tmp_path: Path) -> None:
    recipe = replace(small, dropout=0.0, steps=6, batch_tokens=150)
    _, events = trained(recipe, tmp_path / "one")
    running = torchrun(recipe, tmp_path / "two")
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert losses(tmp_path / "two") == pytest.approx(events.losses(), rel=1e-4)
    assert asdict(Run(tmp_path / "two").recipe()) == asdict(recipe)


@pytest.mark.long
def test_a_killed_process_ends_the_run_with_a_message_and_it_goes_on(
    small: Recipe, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    recipe = replace(small, steps=3000, validate_every=100000, checkpoint_every=5)
    running = torchrun(recipe, folder)
    while len(losses(folder)) < 20:
        assert running.poll() is None
        time.sleep(0.1)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(running.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(children[-1]), signal.SIGKILL)
    said, _ = running.communicate(timeout=120)
    assert running.returncode != 0
    assert re.search(r"another process of this run has ended.*--resume", said), said
    before = max(losses(folder))
    more = ["--resume", str(folder), "--set", f"steps={before + 5}"]
    again = torchrun(recipe, folder, *more)
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert max(losses(folder)) == before + 5
