"""New exercises: reproducible, readable, discriminating, and checked by what checks all others."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from regard._errors import FileError, OptionError
from regard.authoring import KINDS, NUMBERS, Student, Wish, make_exercise, read_roster, seed_of
from regard.checking import check
from regard.cli import main
from regard.exercises import Solution, to_toml
from regard.mistakes import CATALOGUE, commit_all, discriminate


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", ["integers", "halves"])
def test_the_same_wish_makes_the_same_exercise(kind: str, numbers: str) -> None:
    wish = Wish(kind, seed=1, numbers=numbers)
    one, again = make_exercise(wish), make_exercise(wish)
    assert to_toml(one) == to_toml(again)
    assert to_toml(make_exercise(Wish(kind, seed=2, numbers=numbers))) != to_toml(one)
    parts = NUMBERS[numbers].parts
    for values in one.variants["main"].givens.values():
        assert np.array_equal(np.multiply(values, parts), np.round(np.multiply(values, parts)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_mistake_shows_unless_no_numbers_could_show_it(kind: str) -> None:
    """Compared with numbers without a pattern, of which no two results agree by chance."""
    run = Solution("made", make_exercise(Wish(kind, seed=3))).trace.run
    rng = np.random.default_rng(1)
    steps = tuple(
        s for s in ("Q", "K", "V", "scores", "scaled", "weights", "context", "merged", "output")
        if s in run.graph.step_names
    )  # fmt: skip
    found = discriminate(run, steps, within=0.01)
    generic = run.replace(
        **{given.name: rng.normal(size=run.values[given.name].shape) for given in run.graph.givens}
    )
    inherent = discriminate(generic, steps)
    assert set(found.unseen) <= set(inherent.unseen)
    assert {frozenset(tie) for tie in found.alike} <= {frozenset(tie) for tie in inherent.alike}
    assert len(list(commit_all(run, CATALOGUE))) >= 5


def test_an_exercise_comes_with_its_checker(tmp_path: Path) -> None:
    assert main(["new", "self-attention", "--seed", "7", "-o", str(tmp_path / "sheet")]) == 0
    written = {path.name for path in (tmp_path / "sheet").iterdir()}
    assert written == {"exercise.toml", "answers.toml", "student.md", "solution.md"}
    exercise = tmp_path / "sheet" / "exercise.toml"
    trace = Solution("made", make_exercise(Wish("self-attention", seed=7))).trace
    right = {
        name: trace[name].value.round(2) for name in trace.steps if name not in ("exp", "sums")
    }
    report = check(exercise, right)
    assert report.is_right
    assert report.points == report.out_of
    wrong = right | {"weights": trace["exp"].value}
    assert check(exercise, wrong).mistakes == ("not-normalised",)


def test_the_answer_file_names_everything_that_is_asked(tmp_path: Path) -> None:
    main(["new", "multi-head", "--seed", "7", "-o", str(tmp_path)])
    template = (tmp_path / "answers.toml").read_text(encoding="utf-8")
    assert tomllib.loads(template) == {}
    _, *lines = template.replace("?", "0").splitlines()
    answers = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))
    report = check(tmp_path / "exercise.toml", answers)
    assert not any(finding.judgement.is_missing for finding in report.findings)
    assert not any("was read, but" in finding.judgement.words for finding in report.findings)


def test_a_student_sheet_holds_no_answer(tmp_path: Path) -> None:
    main(["new", "attention", "--seed", "5", "-o", str(tmp_path), "--format", "markdown,latex"])
    trace = Solution("made", make_exercise(Wish("attention", seed=5))).trace
    shown = f"{trace['context'].value[0, 0]:.4f}".lstrip("-")
    for ending in (".md", ".tex"):
        assert shown in (tmp_path / f"solution{ending}").read_text(encoding="utf-8")
        assert shown not in (tmp_path / f"student{ending}").read_text(encoding="utf-8")


def test_a_notebook_runs_its_givens(tmp_path: Path) -> None:
    main(["new", "self-attention", "-o", str(tmp_path), "--format", "notebook"])
    notebook = json.loads((tmp_path / "student.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    variables: dict[str, object] = {}
    exec(first["source"], variables)
    assert np.shape(variables["X"]) == (3, 2)
    solution = json.loads((tmp_path / "solution.ipynb").read_text(encoding="utf-8"))
    exec(solution["cells"][1]["source"], variables)
    exercise = tmp_path / "exercise.toml"
    assert check(exercise, {"context": variables["context"]}, step="context").is_right


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_sheets_are_set_as_pdf(tmp_path: Path) -> None:
    assert main(["new", "dot-product", "-o", str(tmp_path), "--format", "pdf"]) == 0
    assert (tmp_path / "student.pdf").read_bytes().startswith(b"%PDF")


ROSTER = "name,id\nAda Lovelace,a17\nÉvariste Galois,b03\n"


def test_every_student_gets_a_variant_that_the_id_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text(ROSTER, encoding="utf-8")
    for folder in ("one", "two"):
        words = ["new", "attention", "--for", str(roster), "-o", str(tmp_path / folder)]
        assert main(words) == 0
    files = [(tmp_path / f / "a17" / "exercise.toml").read_text() for f in ("one", "two")]
    other = (tmp_path / "one" / "b03" / "exercise.toml").read_text()
    assert files[0] == files[1] != other
    assert "For Ada Lovelace (a17)" in (tmp_path / "one" / "a17" / "student.md").read_text()
    table = (tmp_path / "one" / "variants.csv").read_text(encoding="utf-8").splitlines()
    assert table[1] == f"a17,{seed_of(0, Student('a17'))},a17/exercise.toml"
    assert "2 variants" in capsys.readouterr().out


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_a_roster_may_be_parted_as_spreadsheets_part_it(parted: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    text = "id,name\r\na17,Ada\r\nb03,Évariste\r\n".replace(",", parted)
    path.write_text(text, encoding="utf-8-sig")
    assert read_roster(path) == [Student("a17", "Ada"), Student("b03", "Évariste")]


def test_a_roster_may_be_a_plain_list_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("x1\nx2\n\n", encoding="utf-8")
    assert read_roster(path) == [Student("x1"), Student("x2")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no students"),
        ("first,last\nA,B\n", "has no column of ids"),
        ("id\nx\nx\n", "two students with the id 'x'"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=words):
        read_roster(path)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish("self-atention"), "did you mean 'self-attention'"),
        (Wish("decoder-block"), "`kind` must be one of"),
        (Wish("self-attention", heads=2), "`heads` is for multi-head"),
        (Wish("attention", seq=1), "`seq` must be at least 2"),
        (Wish("attention", seq=40), "`seq` goes up to 12"),
        (Wish("attention", numbers="primes"), "`numbers` must be one of"),
        (Wish("dot-product", causal=True), "no meaning for dot-product"),
        (Wish("attention", seed=-1), "`seed` must be a whole number"),
    ],
)
def test_what_cannot_be_granted_is_told(wish: Wish, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make_exercise(wish)


def test_a_class_needs_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text("a\nb\n")
    assert main(["new", "attention", "--for", str(tmp_path / "r.csv")]) == 2
    assert "say --output FOLDER" in capsys.readouterr().err
