"""Text to text: order, empty lines, lines that are too long, words that were looked at."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

from regard import CheckpointError, OptionError  # noqa: E402
from regard.cli import main  # noqa: E402
from regard.model import Config, Transformer, save  # noqa: E402
from regard.translation import pocket  # noqa: E402
from regard.translation.aligning import align  # noqa: E402
from regard.translation.decoding import Search  # noqa: E402
from regard.translation.pocket._lexicon import BY_KIND  # noqa: E402
from regard.translation.recipes import read_recipe  # noqa: E402
from regard.translation.tokenizer import Tokenizer  # noqa: E402
from regard.translation.training import train  # noqa: E402
from regard.translation.translating import Said, Translator  # noqa: E402

torch.set_num_threads(1)
LINES = ["le chat dort", "", "la petite fille mange deux pommes .", "   ", "il lit", "oui !"]
GREEDY = Search(beam=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose weights are random: what it says is nonsense, always the same."""
    tokenizer = Tokenizer.trained([*LINES, "un mot", "the cat sleeps"], 300)
    torch.manual_seed(2)
    config = Config(vocabulary=len(tokenizer), width=24, layers=2, heads=2, head_dim=12,
                    longest=61)  # fmt: skip
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn_like(weight)
    path = tmp_path_factory.mktemp("run") / "best"
    save(path, model, files={"tokenizer.json": tokenizer.written()})
    return path


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, "float32")


def test_order_is_kept_and_empty_lines_stay(translator: Translator) -> None:
    together = translator.translate(LINES, GREEDY)
    assert [each.source for each in together] == LINES
    assert [each.text for each in together] == [
        translator.translate([line], GREEDY)[0].text for line in LINES
    ]
    assert together[1].text == together[3].text == ""
    assert all(each.text for number, each in enumerate(together) if number not in (1, 3))


def test_a_long_line_is_translated_in_pieces(translator: Translator) -> None:
    """Cut at the ends of sentences first; every piece is translated as it is alone."""
    first, second = "le chat dort . il lit .", "la petite fille mange deux pommes ."
    line = f"{first} {second} {second}"
    pieces = translator._pieces(line)
    assert " ".join(pieces) == line
    assert len(pieces) > 1
    assert all(piece.endswith(".") for piece in pieces)
    (found,) = translator.translate([line], GREEDY, first=7)
    alone = [each.text for each in translator.translate(pieces, GREEDY)]
    assert found.text == " ".join(alone)
    assert found.notes[0] == (
        "line 7: longer than the 29 tokens that the model reads at a time; translated in "
        f"{len(pieces)} pieces"
    )


@pytest.mark.parametrize("line", ["chat " * 100, "x" * 500, "é" * 200, ". " * 90])
def test_lines_without_a_good_place_to_cut(line: str, translator: Translator) -> None:
    pieces = translator._pieces(line)
    assert all(translator._fits(piece) for piece in pieces)
    assert "".join(pieces).replace(" ", "") == line.replace(" ", "")


def test_what_comes_to_no_end_is_told(translator: Translator) -> None:
    (found,) = translator.translate(["le chat"], Search(beam=1, longest=1))
    assert found.notes == ("line 1: the translation came to no end and was cut",)


def test_the_best_are_in_order(translator: Translator) -> None:
    (found,) = translator.translate(["le chat dort"], Search(beam=4, best=3))
    scores = [said.score for said in found.best]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_every_word_looked_somewhere(translator: Translator) -> None:
    (found,) = translator.translate(["la petite fille"], GREEDY)
    aligned = align(translator, "la petite fille", found.best[0])
    assert " ".join(each.word for each in aligned).split() == found.text.split()
    for each in aligned:
        assert [word for word, _ in each.shares] == ["la", "petite", "fille"]
        assert sum(share for _, share in each.shares) == pytest.approx(1)


def test_alignments_follow_the_weights(translator: Translator) -> None:
    """A model whose attention is even gives each word its share of tokens."""
    model = translator.model
    kept = [block.attention.wqkv.weight.detach().clone() for block in model.blocks]
    with torch.no_grad():
        for block in model.blocks:
            block.attention.wqkv.weight[:48] = 0
        (found,) = translator.translate(["la petite fille"], GREEDY)
        aligned = align(translator, "la petite fille", found.best[0])
        for block, weight in zip(model.blocks, kept, strict=True):
            block.attention.wqkv.weight.copy_(weight)
    tokens = [len(row) for row in translator.tokenizer.encode(["la", "petite", "fille"])]
    assert [share for _, share in aligned[0].shares] == pytest.approx(
        [many / sum(tokens) for many in tokens], rel=1e-5
    )


def test_each_word_looked_where_the_model_looks() -> None:
    """A model made by hand: the query of each target word finds the place of one source word."""
    source, said = "un deux trois quatre cinq", "five one four two three"
    truth = ["cinq", "un", "quatre", "deux", "trois"]
    tokenizer = Tokenizer.trained([f"{source} {said}"] * 9, 400)
    (tokens,), (target,) = tokenizer.encode([source]), tokenizer.encode([said])
    assert len(tokens) == len(target) == 5, "a word is a token here"
    places = 13
    config = Config.shaped("gpt2", vocabulary=len(tokenizer), width=places, layers=1, heads=1,
                           head_dim=places, longest=places, source_mask="causal")  # fmt: skip
    model = Transformer(config).eval()
    one_hot = torch.eye(places)
    with torch.no_grad():
        model.embedding.weight.zero_()
        model.places.weight.copy_(one_hot)
        query, key, _ = model.blocks[0].attention.wqkv.weight.split(places)
        key.copy_(one_hot)
        query.zero_()
        for step, word in enumerate(truth):  # the first word is chosen at the separator, place 6
            query[1 + source.split().index(word), 6 + step] = 5.0
    aligned = align(Translator(model, tokenizer), source, Said(said, 0.0, True, target))
    assert [each.word for each in aligned] == said.split()
    assert [each.most for each in aligned] == truth
    assert all(max(share for _, share in each.shares) > 0.9 for each in aligned)


@pytest.mark.long
def test_alignments_are_those_of_the_grammar(tmp_path: Path) -> None:
    """The pocket grammar knows which noun each noun is from.

    By chance one of some eight words would be looked at most: 0.13 of 200 sentences' nouns. Five
    standard deviations above that is 0.23; four of five is asked for.
    """
    train(read_recipe("pocket"), tmp_path / "run", lambda event, facts: None)
    trained = Translator.load(tmp_path / "run")
    nouns: dict[str, set[str]] = {}
    for each in (noun for kind in BY_KIND.values() for noun in kind):
        nouns.setdefault(each.en, set()).add(each.fr)
        nouns.setdefault(each.en_plural, set()).add(each.fr_plural)
    sources = [source for source, _ in pocket.pairs("test", 200)]
    found = []
    for source, said in zip(sources, trained.translate(sources, GREEDY), strict=True):
        for word, shares in align(trained, source, said.best[0]):
            places = [_bare(name) in nouns.get(_bare(word), ()) for name, _ in shares]
            if any(places):
                most = max(range(len(shares)), key=lambda place: shares[place][1])
                found.append((places[most], sum(places) / len(places)))
    right, chance = (sum(each) / len(found) for each in zip(*found, strict=True))
    assert len(found) > 200
    assert chance < 0.2
    assert right > 0.8


def _bare(word: str) -> str:
    return word.strip(".,?!").lower().split("'")[-1]


def test_precisions() -> None:
    with pytest.raises(OptionError, match=r"`precision` must be one of .*did you mean 'bfloat16'"):
        Translator.load("nowhere", "bfloat")


def test_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"no model was named, and .*`regard train` makes one"
    ):
        Translator.load()


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", lambda words: words | {"regard": 7}, "described by words and values"),
        ("config.json", lambda words: {"model_type": "llama", "vocab_size": "x",
         "num_attention_heads": 2, "hidden_size": 8, "num_hidden_layers": 1,
         "intermediate_size": 8, "eos_token_id": 1}, "config.json is none of a llama"),
        ("config.json", lambda words: words | {"regard": words["regard"] | {"separator": 3}},
         "was not trained to translate"),
        ("tokenizer.json", None, "has no tokenizer.json, as one that translates has"),
    ],
)  # fmt: skip
def test_checkpoints_that_are_none(
    file: str, change: Any, message: str, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    if change is None:
        (copy / file).unlink()
    else:
        words = change(json.loads((copy / file).read_text("utf-8")))
        (copy / file).write_text(json.dumps(words), "utf-8")
    with pytest.raises(CheckpointError, match=message):
        Translator.load(copy)


def test_a_tokenizer_of_another_model(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    text = " ".join(f"{one}{other}" for one in "abcdefghij" for other in "abcdefghijklmnop")
    Tokenizer.trained([text], 600).save(copy / "tokenizer.json")
    with pytest.raises(CheckpointError, match=r"tokenizer of \d+ tokens, but its model knows \d+"):
        Translator.load(copy)


def test_a_file_instead_of_its_folder(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file: pass the folder that it is in"):
        Translator.load(folder / "config.json")


# ---- the verbs


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_verb(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = ["--model", str(folder.parent), "--precision", "float32", "--greedy"]
    (tmp_path / "in").write_text("\n".join(LINES) + "\r\n", encoding="utf-8")
    from_file = told(["translate", *model, "--input", str(tmp_path / "in")], capsys)
    assert len(from_file.splitlines()) == len(LINES)
    one = told(["translate", *model, LINES[0]], capsys)
    assert from_file.startswith(one)
    told(["translate", *model, "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")], capsys)
    assert (tmp_path / "out").read_text(encoding="utf-8") == from_file
    facts = json.loads(told(["translate", *model, "--json", "--align", LINES[0]], capsys))
    assert facts["translations"][0]["text"] == one.strip("\n")
    assert facts["alignment"][0]["looked_at"][0][0] == "le"


def test_standard_input(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regard", "translate", "-m", str(folder), "--greedy"],
        input="le chat\n\nil lit\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[1] == ""


def test_several_best_with_scores(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(["translate", "-m", str(folder), "--best", "2", "oui !"], capsys).splitlines()
    assert len(lines) == 2
    assert float(lines[0].split("\t")[0]) >= float(lines[1].split("\t")[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere", "oui"], "there is no folder 'nowhere'"),
        (["--greedy", "--beam", "3", "oui"], "--greedy keeps one hypothesis, but --beam 3"),
        (["--input", "a", "oui"], "pass sentences or --input, not both"),
        (["--beam", "2", "--best", "3", "oui"], "`best` must be at most `beam` (2), but is 3"),
        (["--input", "nowhere.fr"], "'nowhere.fr' cannot be read"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--model" not in arguments:
        arguments = [*arguments, "--model", str(folder)]
    assert main(["translate", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_other_encodings_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(b"oui\n\xe9t\xe9\n")
    assert main(["translate", "-m", str(folder), "-i", str(tmp_path / "in")]) == 2
    assert "line 2 is not UTF-8 (byte 1): convert the file" in capsys.readouterr().err


def test_evaluating(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fr", "en"):
        (tmp_path / name).write_text("le chat dort sous la table\nil lit un livre .\n", "utf-8")
    files = ["--source", str(tmp_path / "fr"), "--reference", str(tmp_path / "en")]
    shown = told(["evaluate", "-m", str(folder), "--greedy", "--worst", "1", *files], capsys)
    assert "2 sentences" in shown
    assert "case:mixed" in shown
    assert shown.count("reference  ") == 1
    facts = json.loads(
        told(["evaluate", "--translations", str(tmp_path / "fr"), *files[2:], "--json"], capsys)
    )
    assert [round(score["score"], 9) for score in facts["scores"]] == [100, 100]
    assert main(["evaluate", "-m", str(folder)]) == 2
    assert "has no recipe.toml that names a test set" in capsys.readouterr().err
    (tmp_path / "one").write_text("the cat\n", "utf-8")
    files[3] = str(tmp_path / "one")
    assert main(["evaluate", "-m", "nowhere", *files]) == 2
    assert "lines of --source: 2, of --reference: 1: each" in capsys.readouterr().err
    assert main(["evaluate", "--translations", "said.en"]) == 2
    assert "--translations needs --reference" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--model", "runs/mine"], "--model"),
        (["--greedy"], "--greedy"),
        (["--stop", "first", "--precision", "float32"], "--stop, --precision"),
    ],
)
def test_what_scoring_alone_has_no_use_for(
    option: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--translations", "a", "--reference", "b", *option]) == 2
    assert f"so that {named} would change nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--longest", "-1"], "how many tokens a translation has at most, or 0 for twice those"),
        (["--length-penalty", "nan"], "`length_penalty` must be a number, but is nan"),
        (["--output", "no/such/place"], "'no/such' is no folder"),
        (["--output", "."], "is a folder; name a file in it"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_loaded(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", "--model", "nowhere", *options, "le chat"]) == 2
    assert message in capsys.readouterr().err


def test_any_object_of_the_kind(translator: Translator) -> None:
    """A translator can be opened: its heads are those of its model."""
    from regard.hf import open_head

    trace: Any = open_head(translator, "le chat dort", layer=1, head=2)
    assert trace["weights"].shape[0] > 3
