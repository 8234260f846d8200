"""Two processes for one run: the losses of one process, and what happens when one is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
torch = pytest.importorskip("torch")

from regard import OptionError  # noqa: E402
from regard.model import load  # noqa: E402
from regard.translation.recipes import Recipe  # noqa: E402
from regard.translation.runs import Run  # noqa: E402

from .conftest import trained  # noqa: E402

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


Tensors = dict[str, Any]
SHARDED = {"sharded": True, "optimizer": "muon", "average": "ema", "accumulate": 2}


def test_shards_give_what_one_process_gives(small: Recipe, tmp_path: Path) -> None:
    recipe = replace(
        small, dropout=0.0, steps=6, batch_tokens=150, validate_every=3, checkpoint_every=1, keep=6
    ).changed(SHARDED)
    _, events = trained(replace(recipe, sharded=False), tmp_path / "one")
    running = torchrun(recipe, tmp_path / "two")
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert "each of 2 processes holds a part" in said
    assert losses(tmp_path / "two") == pytest.approx(events.losses(), rel=1e-4)
    assert_alike(weights(tmp_path / "two" / "best"), weights(tmp_path / "one" / "best"), 2e-3)
    for name in ("one", "two"):
        forget(tmp_path / name, *range(2, 7))
    one, two = (whole_state(tmp_path / name) for name in ("one", "two"))
    # The first update's moments are its clipped gradients, still without the rounding of Muon.
    moments = {name for name in one if name.startswith("optimizer")}
    assert_alike({n: two[n] for n in moments}, {n: one[n] for n in moments}, 1e-6)
    assert_alike(two, one, 1e-3)


def assert_alike(found: Tensors, wanted: Tensors, most: float) -> None:
    """Apart by at most so much; chance is each process's own."""
    assert found.keys() == wanted.keys()
    for name in wanted.keys() - {"random.cpu"}:
        torch.testing.assert_close(found[name], wanted[name], rtol=0, atol=most, msg=name)


def weights(folder: Path) -> Tensors:
    found: Tensors = load(folder).state_dict()
    return found


def test_a_run_goes_on_with_another_number_of_processes(small: Recipe, tmp_path: Path) -> None:
    """Three updates alone, three in shards of two processes, three alone again."""
    recipe = replace(small, dropout=0.0, steps=9, batch_tokens=150, checkpoint_every=3, keep=3)
    recipe = replace(recipe.changed(SHARDED), sharded=False)
    _, whole = trained(recipe, tmp_path / "run")
    forget(tmp_path / "run", 6, 9)
    running = torchrun(
        recipe, tmp_path / "run", "--resume", str(tmp_path / "run"), "--sharded=true"
    )
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert losses(tmp_path / "run") == pytest.approx(whole.losses(), rel=1e-4)
    forget(tmp_path / "run", 9)
    _, rest = trained(recipe, tmp_path / "run", resume=True)
    assert min(rest.losses()) == 7
    assert losses(tmp_path / "run") == pytest.approx(whole.losses(), rel=1e-4)


def forget(folder: Path, *steps: int) -> None:
    for step in steps:
        for path in folder.glob(f"state-*{step}.*"):
            path.unlink()


def whole_state(folder: Path) -> Tensors:
    found = Run(folder).last_state()
    assert found is not None
    return found[0]


def test_shards_of_one_process_are_refused(small: Recipe, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"`sharded`: a single process.*torchrun"):
        trained(replace(small, sharded=True), tmp_path / "run")
    assert not (tmp_path / "run").exists()


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
