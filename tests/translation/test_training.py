"""Training: what is computed, how it is stopped, killed and gone on with."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
pytest.importorskip("safetensors")

from regard import FileError, JobError, OptionError  # noqa: E402
from regard.model import load  # noqa: E402
from regard.translation import runs, training  # noqa: E402
from regard.translation.devices import Machine  # noqa: E402
from regard.translation.optimizers import Average, rate  # noqa: E402
from regard.translation.recipes import Recipe  # noqa: E402
from regard.translation.runs import Run  # noqa: E402
from regard.translation.tokenizer import Tokenizer  # noqa: E402
from regard.translation.training import Objective, Trainer, model_config  # noqa: E402

from .conftest import trained  # noqa: E402

PROGRAM = """
import json, sys
from regard.translation.recipes import Recipe
from regard.translation.training import train
recipe, folder, resume = json.loads(sys.argv[1])
train(Recipe(**recipe), folder, lambda event, facts: None, resume)
"""


def losses(folder: Path) -> dict[int, float]:
    return {facts["step"]: facts["loss"] for facts in Run(folder).logged() if "loss" in facts}


def start(recipe: Recipe, folder: Path, resume: bool = False) -> subprocess.Popen[bytes]:
    said = json.dumps([asdict(recipe), str(folder), resume])
    command = [sys.executable, "-c", PROGRAM, said]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def test_it_learns_and_keeps_the_best(small: Recipe, tmp_path: Path) -> None:
    result, events = trained(replace(small, steps=60, learning_rate=3e-3), tmp_path / "run")
    found = events.losses()
    assert found[60] < found[1] - 1
    assert result.finished
    assert result.test is not None
    assert "case:mixed" in result.test.signatures[0]
    assert load(result.best_folder).config.width == small.width
    assert (result.best_folder / "tokenizer.json").is_file()


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"dropout": 0.2, "average": "ema", "accumulate": 2, "source_mask": "mixed"},
        {"dropout": 0.1, "optimizer": "muon", "bpe_dropout": 0.1, "average": "last"},
        {"dropout": 0.1, "r_drop": 1.0, "source_mask": "causal", "with_source": True},
    ],
)
def test_going_on_gives_the_same_losses_to_the_last_bit(
    words: dict[str, object], small: Recipe, tmp_path: Path
) -> None:
    recipe = small.changed(words)
    _, whole = trained(recipe, tmp_path / "whole")
    run = Run(tmp_path / "whole")
    for state in sorted(run.folder.glob("state-*12*")):
        state.unlink()
    _, rest = trained(recipe, tmp_path / "whole", resume=True)
    assert min(rest.losses()) == 9
    assert rest.losses().items() <= whole.losses().items()
    assert losses(run.folder) == whole.losses()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_points_it_ends_as_if_it_had_not_been(
    seed: int, small: Recipe, tmp_path: Path
) -> None:
    recipe = replace(small, dropout=0.2, average="ema", steps=60)
    trained(recipe, tmp_path / "whole")
    rng, folder = random.Random(seed), tmp_path / "killed"
    for _ in range(5):
        running = start(recipe, folder, resume=Run(folder).started)
        before, more = len(losses(folder)), rng.randrange(1, 12)
        while running.poll() is None and len(losses(folder)) < before + more:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        running.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        running.wait()
    assert start(recipe, folder, resume=True).wait() == 0
    assert losses(folder) == losses(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_update_with_a_state(
    number: signal.Signals, small: Recipe, tmp_path: Path
) -> None:
    """A real signal in the midst of an update; afterwards the handlers are as they were."""
    recipe = replace(small, steps=100000, checkpoint_every=100000, validate_every=100000)
    before = signal.getsignal(number)

    def told(event: str, facts: dict[str, Any]) -> None:
        if event == "update" and facts["step"] == 3:
            os.kill(os.getpid(), number)

    result = training.train(recipe, tmp_path / "run", told)
    assert (result.finished, result.signal, result.steps) == (False, number, 3)
    assert signal.getsignal(number) == before
    found = Run(tmp_path / "run").last_state()
    assert found is not None
    assert found[1].step == max(losses(tmp_path / "run")) == 3


def test_a_damaged_state_is_told_and_the_one_before_it_taken(small: Recipe, tmp_path: Path) -> None:
    _, whole = trained(small, tmp_path / "run")
    newest = tmp_path / "run" / "state-00000012.safetensors"
    content = bytearray(newest.read_bytes())
    content[-100] ^= 1
    newest.write_bytes(content)
    _, rest = trained(small, tmp_path / "run", resume=True)
    told = rest.of("note")[0]["text"]
    assert told == "state-00000012.safetensors is damaged; going on from the one before it"
    assert rest.losses().items() <= whole.losses().items()


def test_nothing_whole_to_go_on_from_is_an_error(small: Recipe, tmp_path: Path) -> None:
    trained(small, tmp_path / "run")
    for path in (tmp_path / "run").glob("*.sha256"):
        path.unlink()
    with pytest.raises(FileError, match=r"no state .* is whole.*was not finished"):
        trained(small, tmp_path / "run", resume=True)


def test_a_full_disk_leaves_the_state_before(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = runs.write_atomically

    def full(path: Path, content: bytes | str) -> None:
        if "00000008" in str(path):
            raise FileError(f"write: {str(path)!r} cannot be written: No space left on device")
        write(path, content)

    monkeypatch.setattr(runs, "write_atomically", full)
    with pytest.raises(FileError, match=r"No space left on device; once it can: .*--resume"):
        trained(small, tmp_path / "run")
    monkeypatch.undo()
    _, rest = trained(small, tmp_path / "run", resume=True)
    assert min(rest.losses()) == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_that_finds_no_room_is_told(tmp_path: Path) -> None:
    (tmp_path / runs.LOG).symlink_to("/dev/full")
    run = Run(tmp_path)
    with pytest.raises(FileError, match=r"log\.jsonl.*No space left on device.*--resume"):
        run.log(step=1)
    run.close()


def test_a_folder_that_is_taken_is_refused(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("")
    with pytest.raises(OptionError, match="is not empty; go on with it"):
        trained(small, tmp_path)
    with pytest.raises(FileError, match="is not the folder of a run"):
        Run(tmp_path / "nowhere").recipe()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"kv_heads": 2, "heads": 3}, "`kv_heads`: 3 query heads cannot share 2"),
        ({"head_dim": 3}, "`head_dim` must be even"),
        ({"shape": "lama"}, "did you mean 'llama'"),
        ({"longest": 3}, "`longest`: every pair of the corpus has more than 3 tokens"),
    ],
)
def test_what_cannot_begin_leaves_a_folder_that_can(
    words: dict[str, object], said: str, small: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=said):
        trained(small.changed(words), tmp_path / "run")
    result, _ = trained(replace(small, steps=1), tmp_path / "run")
    assert result.finished


def test_without_a_validation_set_the_last_is_the_best(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("a\tb\n")  # too few to hold any out
    recipe = replace(small, corpus=str(tmp_path / "one.tsv"), vocabulary=270)
    result, _ = trained(recipe, tmp_path / "run")
    last = Run(tmp_path / "run").last_state()
    assert last is not None
    for name, weight in load(result.best_folder).state_dict().items():
        assert weight.equal(last[0][f"model.{name}"]), name


def test_a_run_killed_before_its_first_state_logs_nothing_twice(
    small: Recipe, tmp_path: Path
) -> None:
    _, whole = trained(small, tmp_path / "run")
    for state in (tmp_path / "run").glob("state-*"):
        state.unlink()
    trained(small, tmp_path / "run", resume=True)
    logged = [facts["step"] for facts in Run(tmp_path / "run").logged() if "loss" in facts]
    assert logged == list(whole.losses())


def test_it_stops_early_when_nothing_gets_better(small: Recipe, tmp_path: Path) -> None:
    recipe = replace(small, steps=40, validate_every=2, patience=3, learning_rate=0.0)
    result, _ = trained(recipe, tmp_path / "run")
    assert result.steps == 2 * (1 + 3)  # the first is the best; three bring nothing better


def test_accumulating_is_one_batch_in_parts(small: Recipe, tmp_path: Path) -> None:
    """Two batches added up give the gradient of both, whatever their sizes."""
    recipe = replace(small, accumulate=2, dropout=0.0)
    trainer = made(recipe, tmp_path)
    _, _, batches = next(trainer.feed.updates())
    predicted = sum(batch.predicted for batch in batches)
    for batch in batches:
        trainer._backward(batch, predicted)
    added = [p.grad.clone() for p in trainer.model.parameters()]
    trainer.model.zero_grad()
    objective = Objective(trainer.model, recipe)
    (sum(objective(batch, True) for batch in batches) / predicted).backward()
    for one, p in zip(added, trainer.model.parameters(), strict=True):
        torch.testing.assert_close(one, p.grad)


def made(recipe: Recipe, folder: Path) -> Trainer:
    from regard.translation.corpora import read_corpus
    from regard.translation.distributed import Place

    corpus = read_corpus(recipe)
    texts = [text for pair in corpus.train for text in pair]
    tokenizer = Tokenizer.trained(texts, recipe.vocabulary)
    return Trainer(Run(folder), recipe, corpus, tokenizer, Place(), lambda *_: None)


def test_r_drop_without_dropout_is_the_plain_loss(small: Recipe, tmp_path: Path) -> None:
    """Both passes agree, so that nothing is added, and half of both is one."""
    trainer = made(replace(small, dropout=0.0), tmp_path)
    _, _, (batch,) = next(trainer.feed.updates())
    plain = trainer.objective(batch, True)
    doubled = Objective(trainer.model, replace(trainer.recipe, r_drop=3.0))(batch, True)
    torch.testing.assert_close(plain, doubled)


@pytest.fixture
def in_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU without bfloat16 does, on the CPU."""
    machine = Machine(torch.device("cpu"), torch.float16, False, ("float16: for the test",))
    monkeypatch.setattr(training, "choose", lambda *_: machine)


@pytest.mark.usefixtures("in_float16")
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_scaled_float16_learns_what_float32_does(
    optimizer: str, small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(small, optimizer=optimizer)
    _, half = trained(recipe, tmp_path / "half")
    monkeypatch.undo()
    _, single = trained(recipe, tmp_path / "single")
    assert half.losses() == pytest.approx(single.losses(), rel=0.01)


@pytest.mark.usefixtures("in_float16")
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("part", ["all of it", "the embeddings alone"])
def test_an_update_that_overflows_is_skipped_and_the_scale_halved(
    optimizer: str, part: str, small: Recipe, tmp_path: Path
) -> None:
    """Muon must not move the matrices by a gradient that was clipped by no number."""
    trainer = made(replace(small, optimizer=optimizer, average="ema"), tmp_path)
    updates = trainer.feed.updates()
    trainer._update(next(updates)[2])
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.scaler.update(2.0**60 if part == "all of it" else 2.0**10)
    scale = trainer.scaler.get_scale()
    hook = trainer.model.embedding.weight.register_hook(lambda given: given * float("nan"))
    if part == "all of it":
        hook.remove()
    facts = trainer._update(next(updates)[2])
    hook.remove()
    assert (facts["skipped"], facts["scale"]) == (True, scale / 2)
    for name, p in trainer.model.named_parameters():
        assert p.equal(before[name]), name
    trainer.scaler.update(2.0**10)
    assert "skipped" not in trainer._update(next(updates)[2])
    assert not any(p.equal(before[name]) for name, p in trainer.model.named_parameters())


@pytest.mark.usefixtures("in_float16")
def test_the_scale_goes_on_with_the_run(small: Recipe, tmp_path: Path) -> None:
    trainer = made(small, tmp_path)
    updates = trainer.feed.updates()
    trainer._update(next(updates)[2])
    trainer.scaler.update(2.0**60)
    trainer._update(next(updates)[2])
    trainer.run.begin(trainer.recipe, trainer.tokenizer)
    trainer._save()
    again = made(small, tmp_path)
    again.restore()
    assert again.scaler.get_scale() == 2.0**59
    assert again.scaler.state_dict() == trainer.scaler.state_dict()


def test_a_loss_that_is_no_number_ends_the_run(small: Recipe, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"gradient's norm nan.*lower `learning_rate`"):
        trained(replace(small, learning_rate=1e30, clip=0.0), tmp_path / "run")


@pytest.mark.parametrize(
    ("schedule", "halfway", "end"),
    [
        # After 20 updates of warm-up out of 100, update 60 is halfway down.
        ("linear", 0.5, 1 / 80),
        ("cosine", 0.5, 0.001),
        ("inverse-sqrt", (20 / 61) ** 0.5, (20 / 100) ** 0.5),
        ("constant", 1.0, 1.0),
    ],
)
def test_schedules(schedule: str, halfway: float, end: float) -> None:
    recipe = Recipe(schedule=schedule, warmup=0.2)
    assert rate(recipe, 0, 100) == pytest.approx(1 / 20)
    assert rate(recipe, 19, 100) == 1
    assert rate(recipe, 60, 100) == pytest.approx(halfway)
    assert rate(recipe, 99, 100) == pytest.approx(end, abs=1e-3)


def test_averages() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    ema = Average(model, Recipe(average="ema", average_decay=0.5))
    last = Average(model, Recipe(average="last", average_last=2))
    for value in (1.0, 2.0, 4.0):
        torch.nn.init.constant_(model.weight, value)
        ema.after_update()
        last.before_validation()
    # 1, then (1 + 2)/2 = 1.5, then (1.5 + 4)/2
    assert ema.weights()["weight"].item() == 2.75
    assert last.weights()["weight"].item() == 3.0
    again = Average(model, last.recipe)
    again.restore(last.state())
    assert again.weights()["weight"].item() == 3.0


def test_the_model_knows_its_tokens(small: Recipe) -> None:
    config = model_config(small, 400)
    assert (config.pad, config.begin, config.separator, config.end) == (0, 1, 2, 3)
    assert os.environ.get("RANK") is None
