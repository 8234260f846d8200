"""`regard train`: a run, going on with it, its curves, and a user's mistakes."""

import json
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
torch = pytest.importorskip("torch")

from regard.cli import main  # noqa: E402

SMALL = [
    "--pairs", "200", "--vocabulary", "350", "--width", "32", "--layers", "1", "--heads", "1",
    "--head-dim", "32", "--batch-tokens", "400", "--steps", "6", "--validate-every", "3",
    "--validate-pairs", "4", "--test-pairs", "4", "--threads", "1",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("runs") / "small")
    assert main(["train", *SMALL, "--output", where]) == 0
    return where


def test_a_run_says_where_its_checkpoint_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "run"
    assert main(["train", *SMALL, "--output", str(where)]) == 0
    said = capsys.readouterr().out
    assert f"best checkpoint: {where / 'best'}" in said
    assert "test set: BLEU" in said
    assert "padding" in said
    assert (where / "best" / "model.safetensors").is_file()


def test_json_tells_every_update(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *SMALL, "--json", "--output", str(tmp_path / "run")]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["step"] for event in events if event["event"] == "update"] == [1, 2, 3, 4, 5, 6]
    assert {event["event"] for event in events} == {"begin", "update", "validation"}


def test_going_on_and_watching(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", folder, "--steps", "9"]) == 0
    assert "going on after update 6" in capsys.readouterr().out
    assert main(["train", "--watch", folder]) == 0
    said = capsys.readouterr().out
    assert "loss" in said
    assert "update 9" in said
    assert any(0x2800 < ord(sign) < 0x2900 for sign in said)


def test_a_recipe_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--recipe", "multi30k", "--show", "--set", "dropout=0.3"]) == 0
    assert "dropout = 0.3" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "droput=0.3"], "did you mean 'dropout'?"),
        (["--recipe", "mulit30k"], "did you mean 'multi30k'?"),
        (["--resume", "nowhere"], "'nowhere' is not the folder of a run"),
        (["--watch", "nowhere"], "'nowhere' is not the folder of a run"),
        (["--corpus", "nothing.tsv"], "corpus 'nothing.tsv' is not a file"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_what_a_run_keeps(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", folder, "--dropout", "0.5"]) == 2
    assert "a run that goes on keeps its `dropout`" in capsys.readouterr().err
    assert main(["train", *SMALL, "--output", folder]) == 2
    assert "is not empty; go on with it" in capsys.readouterr().err
