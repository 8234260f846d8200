"""Whole classes: nobody stops the rest, nothing is graded twice, and the report adds up."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.exercises import load_exercise
from regard.exercises._library import LIBRARY
from regard.grading import (
    Finding,
    Grade,
    Grader,
    Item,
    Submission,
    found_submissions,
    grade_class,
    to_csv,
    to_html,
)
from regard.grading._statistics import class_statistics

STEPS = ("Q", "K", "V", "scores", "weights", "context")


def answers(**changed: object) -> str:
    run = regard.solve("unscaled-self-attention").trace.run
    values = {step: np.round(run.values[step], 3).tolist() for step in STEPS} | changed
    return "".join(f"{step} = {value}\n" for step, value in values.items())


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    folder = tmp_path / "submissions"
    (folder / "dora").mkdir(parents=True)
    (folder / "emil").mkdir()
    (folder / "ann.toml").write_text(answers())
    (folder / "bob.toml").write_text("Q = [[")
    (folder / "cy.toml").write_text(answers(scores=[[1, 2, 3]] * 3))
    (folder / "dora" / "answers.toml").write_text(answers())
    (folder / "emil" / "one.toml").write_text(answers())
    (folder / "emil" / "two.toml").write_text(answers())
    (folder / ".hidden").write_text("")
    return folder


def test_a_folder_holds_one_submission_a_file_or_folder(submissions: Path) -> None:
    found = found_submissions([submissions])
    assert [each.name for each in found] == ["ann", "bob", "cy", "dora", "emil"]
    assert found[-1].problem == "one file is wanted in its folder, found: one.toml, two.toml"
    (one,) = found_submissions([submissions / "dora"], one=True)
    assert (one.name, one.file) == ("dora", "answers.toml")


def test_a_link_is_no_submission(submissions: Path, tmp_path: Path) -> None:
    secret = tmp_path / "solution.toml"
    secret.write_text(answers())
    (submissions / "fay").mkdir()
    (submissions / "fay" / "answers.toml").symlink_to(secret)
    (submissions / "gus.toml").symlink_to(secret)
    found = {each.name: each for each in found_submissions([submissions])}
    assert "gus" not in found
    assert found["fay"].problem == "one file is wanted in its folder, found: none"


def test_an_archive_without_end_is_not_unpacked() -> None:
    file = io.BytesIO()
    np.savez_compressed(file, weights=np.zeros(4_000_000))
    assert len(file.getvalue()) < 100_000
    exercise = load_exercise("unscaled-self-attention")
    bomb, junk = (Submission("it", "it.npz", data) for data in (file.getvalue(), b"PK junk"))
    grades = [grade_class(exercise, [submission])[0] for submission in (bomb, junk)]
    assert [grade.status for grade in grades] == ["not gradable", "not gradable"]
    assert "unpacked it has more than 5,000,000 bytes" in grades[0].reason
    assert "this is no .npz file" in grades[1].reason


def test_answers_may_be_arrays() -> None:
    run = regard.solve("unscaled-self-attention").trace.run
    file = io.BytesIO()
    np.savez(file, **{step: run.values[step] for step in STEPS})
    exercise = load_exercise("unscaled-self-attention")
    (grade,) = grade_class(exercise, [Submission("it", "it.npz", file.getvalue())])
    assert grade.is_right


def test_files_of_one_name_are_two_submissions(tmp_path: Path) -> None:
    for name in ("ann.py", "ann.ipynb", "bob.py"):
        (tmp_path / name).write_text("", encoding="utf-8")
    names = [submission.name for submission in found_submissions([tmp_path])]
    assert names == ["ann.ipynb", "ann.py", "bob"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["ann.toml", "ann.toml"], "two submissions are called 'ann.toml'"),
        (["nobody"], "'.*nobody' cannot be read: No such file"),
        (["empty"], "'.*empty' is empty"),
    ],
)
def test_what_cannot_be_a_class_is_told(submissions: Path, paths: list[str], message: str) -> None:
    (submissions / "empty").mkdir()
    with pytest.raises(regard.FileError, match=message):
        found_submissions([submissions / path for path in paths])


def test_one_bad_submission_stops_nothing(submissions: Path) -> None:
    exercise = load_exercise("unscaled-self-attention")
    ann, bob, cy, dora, emil = grade_class(exercise, found_submissions([submissions]))
    assert ann.is_right
    assert dora.is_right
    assert (bob.status, bob.points, bob.of) == ("not gradable", 0, 3)
    assert "'bob.toml' is no TOML" in bob.reason
    assert (emil.status, emil.of) == ("not gradable", 3)
    assert cy.status == "graded"
    assert 0 < cy.points < 3


def test_everybody_is_graded_by_an_exercise_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ann and bob hand in the same: what is right for ann's numbers is not for bob's."""
    text = (LIBRARY / "unscaled-self-attention.toml").read_text(encoding="utf-8")
    for name, own in (("ann", text), ("bob", text.replace("[0.8, -0.4]", "[0.8, 0.4]"))):
        (tmp_path / "variants" / name).mkdir(parents=True)
        (tmp_path / "variants" / name / "exercise.toml").write_text(own, encoding="utf-8")
    (tmp_path / "handed-in").mkdir()
    for name in ("ann", "bob", "stranger"):
        (tmp_path / "handed-in" / f"{name}.toml").write_text(answers())
    arguments = ["grade", str(tmp_path / "variants"), str(tmp_path / "handed-in")]
    assert main([*arguments, "--json"]) == 1
    ann, bob, stranger = json.loads(capsys.readouterr().out)
    assert ann["points"] == ann["of"] == bob["of"] == stranger["of"] == 3
    assert bob["points"] < 3
    assert (stranger["status"], stranger["reason"]) == (
        "not gradable", "there is no exercise of this name",
    )  # fmt: skip
    (tmp_path / "empty").mkdir()
    assert main(["grade", str(tmp_path / "empty"), str(tmp_path / "handed-in")]) == 2
    assert "holds no exercise for any submission" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_graded_is_not_graded_again(
    submissions: Path, tmp_path: Path, workers: int
) -> None:
    exercise = load_exercise("unscaled-self-attention")
    found = found_submissions([submissions])
    first = grade_class(exercise, found, folder=tmp_path / "records", workers=workers)
    stamps = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "records").iterdir()}
    assert len(stamps) == len(found)
    (submissions / "cy.toml").write_text(answers())
    again = grade_class(exercise, found_submissions([submissions]), folder=tmp_path / "records")
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "records").iterdir()}
    assert {name: after[name] for name in stamps} == stamps
    assert len(after) == len(stamps) + 1
    assert [g.submission for g in again if g != first[found_names(found).index(g.submission)]] == [
        "cy"
    ]


def found_names(found: list[Submission]) -> list[str]:
    return [each.name for each in found]


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed in the middle, run again: every grade is there, and those from before are kept."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(40):
        (folder / f"s{number:02d}.toml").write_text(answers(Q=[[number, 1], [2, 3], [4, 5]]))
    command = [sys.executable, "-m", "regard", "grade", "unscaled-self-attention", str(folder)]
    command += ["--results", str(tmp_path / "grades")]
    records = tmp_path / "grades" / "records"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(records.glob("*.json"))) < 3:
        time.sleep(0.01)
    process.kill()
    process.wait()
    kept = {p: p.stat().st_mtime_ns for p in records.glob("*.json")}
    assert kept
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 1, finished.stderr
    assert "40 submissions" in finished.stdout
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert len(list((tmp_path / "grades" / "feedback").iterdir())) == 40


# ---- the report ----------------------------------------------------------------------------


def item(points: float, name: str = "a", of: float = 1) -> Item:
    return Item(name, points, of, "right" if points == of else "wrong")


def test_an_item_discriminates_when_the_good_ones_solve_it() -> None:
    """With points (0, 0, 1, 1, 1) against (0, 1, 2, 3, 4) elsewhere r is √3/2 by the formula."""
    grades = [
        Grade(f"s{i}", "graded", (item(own), item(rest, "b", 4), item(1, "c")))
        for i, (own, rest) in enumerate([(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)])
    ]
    a, _, c = class_statistics(grades).items
    assert a.discrimination == pytest.approx(np.sqrt(3) / 2)
    assert (a.share, a.words) == (0.6, "discriminates")
    assert (c.discrimination, c.words) == (None, "cannot be told")


def test_four_submissions_say_nothing_about_items() -> None:
    grades = [Grade(f"s{i}", "graded", (item(i % 2), item(i, "b", 4))) for i in range(4)]
    assert class_statistics(grades).items[0].discrimination is None


def test_what_could_not_be_graded_says_nothing_about_items() -> None:
    grades = [Grade("a", "graded", (item(1),)), Grade("b", "not gradable", (item(0),), "no TOML")]
    facts = class_statistics(grades)
    assert facts.items[0].share == 1
    assert facts.mean == 0.5
    assert dict(facts.statuses)["not gradable"] == 1


def test_mistakes_are_counted_with_their_makers() -> None:
    wrong = Item("a", 0, 1, "wrong", "", ("No scale (by √3)",))
    other = Item("a", 0, 1, "wrong", "", ("No scale (by √2)",))
    grades = [
        Grade("ann", "graded", (wrong, wrong), rules=("line 3 imports os; only numpy",)),
        Grade("bob", "graded", (other,), rules=("line 5 imports os; only numpy",)),
        Grade("cy", "graded", (item(1),)),
    ]
    facts = class_statistics(grades)
    assert facts.mistakes == (("No scale", ("ann", "bob")),)
    assert facts.rules == (("imports os; only numpy", ("ann", "bob")),)


HOSTILE = Grade(
    "=cmd|'/c calc'!A1<script>alert(1)</script>",
    "graded",
    (item(0.5),),
    findings=(Finding("size", "<img src=x onerror=alert(1)>"),),
)


class Tags(HTMLParser):
    """The elements of a page, and whether each is closed in turn."""

    VOID = ("meta", "br", "rect", "line")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_runs_nothing() -> None:
    page = to_html("A <title>", [HOSTILE, Grade("b", "failed", (item(0),), "it slept")])
    tags = Tags(page)
    assert tags.open == []
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "img", "link", "iframe", "object"}
    for _, attributes in tags.seen:
        assert not attributes.keys() & {"src", "href", "onerror", "onclick"}
    assert "url(" not in page
    assert "it slept" in page


def test_a_cell_is_never_a_formula() -> None:
    rows = list(csv.reader(io.StringIO(to_csv([HOSTILE]))))
    assert rows[0][:5] == ["submission", "status", "points", "of", "a"]
    assert rows[1][0].startswith("'=cmd")
    assert rows[1][2:5] == ["0.5", "1", "0.5"]


# ---- as a teacher meets it -----------------------------------------------------------------


def test_a_class_on_the_command_line(
    submissions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    arguments = ["grade", "unscaled-self-attention", str(submissions), "--results", str(results)]
    assert main(arguments) == 1
    told = capsys.readouterr()
    assert re.search(r"^ann +3 of 3$", told.out, re.MULTILINE)
    assert "5 submissions, mean" in told.out
    assert sorted(p.name for p in results.iterdir()) == [
        "feedback", "records", "report.csv", "report.html",
    ]  # fmt: skip
    assert "no TOML" in (results / "feedback" / "bob.txt").read_text()


def test_one_folder_is_one_submission_for_a_platform(submissions: Path, tmp_path: Path) -> None:
    target = tmp_path / "results.json"
    arguments = ["grade", "unscaled-self-attention", str(submissions / "emil"), "--one"]
    assert main([*arguments, "--format", "gradescope", "-o", str(target)]) == 2
    assert "one file is wanted" in target.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name submissions"),
        (["x.toml", "--jobs", "many"], '--jobs must be a whole number of at least 1, or "all"'),
        (["x.toml", "--jobs", "0"], "--jobs must be a whole number of at least 1, or"),
        (["x.toml", "--seconds", "0"], "--seconds must be above 0"),
        (["x.toml", "y.toml", "--against", "z.py"], "name one submission"),
        (["x.toml", "--export", "moodle"], "leave submissions out"),
        (["--export", "moodle", "-o", "x.zip"], "writes a .xml file, not 'x.zip'"),
    ],
)
def test_a_mistake_is_told(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", "unscaled-self-attention", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_program_for_an_exercise_of_numbers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "it.py").write_text("")
    assert main(["grade", "unscaled-self-attention", str(tmp_path / "it.py"), "--trust"]) == 2
    assert "does not say what to call in a program" in capsys.readouterr().err


def test_a_class_on_a_dask_cluster(submissions: Path) -> None:
    distributed = pytest.importorskip("distributed")
    exercise = load_exercise("unscaled-self-attention")
    found = found_submissions([submissions])
    here = grade_class(exercise, found)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=False
    ) as cluster:
        there = grade_class(exercise, found, cluster=cluster.scheduler_address)
    assert there == here


def test_the_numbers_are_the_same_for_the_whole_class() -> None:
    one, two = (Grader(load_exercise("numpy-multi-head"), seed=5) for _ in range(2))
    other = Grader(load_exercise("numpy-multi-head"), seed=6)
    first = [trial.call["arguments"] for trial in one.trials[0]]
    assert first == [trial.call["arguments"] for trial in two.trials[0]]
    assert first[1] != other.trials[0][1].call["arguments"]
