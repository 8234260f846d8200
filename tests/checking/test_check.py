"""Checking answers: verdicts, mistakes and marks, against plain NumPy that makes the mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.checking import Verdict, check
from regard.cli import main

X = np.array([[0.8, -0.4], [1.2, 0.3], [-0.5, 1.1]])
WQ = np.array([[0.6, -0.2], [0.1, 0.5]])
WK = np.array([[-0.3, 0.7], [0.4, 0.9]])
WV = np.array([[1.0, -0.5], [0.2, 0.8]])
EXERCISE = "unscaled-self-attention"


def softmax(scores: Any, axis: int = -1) -> Any:
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def right() -> dict[str, Any]:
    q, k, v = X @ WQ, X @ WK, X @ WV
    weights = softmax(q @ k.T)
    steps = {"Q": q, "K": k, "V": v, "scores": q @ k.T, "weights": weights}
    return {**steps, "context": weights @ v}


def verdicts(report: regard.Report) -> dict[str, str]:
    return {finding.asked: finding.verdict.name for finding in report.findings}


def test_right_answers_earn_all_points() -> None:
    report = check(EXERCISE, right())
    assert set(verdicts(report).values()) == {"RIGHT"}
    assert report.is_right
    assert report.points == report.out_of == 3


def test_an_answer_is_judged_to_the_decimals_given() -> None:
    rounded = {name: value.round(2) for name, value in right().items()}
    report = check(EXERCISE, rounded)
    assert report.is_right
    assert {finding.judgement.decimals for finding in report.findings} == {2}
    off = rounded | {"context": rounded["context"] + 0.1}
    assert not check(EXERCISE, off).is_right


def test_intermediate_values_rounded_to_two_decimals_are_right() -> None:
    q, k, v = ((X @ w).round(2) for w in (WQ, WK, WV))
    scores = (q @ k.T).round(2)
    exponentials = np.exp(scores).round(2)
    weights = (exponentials / exponentials.sum(axis=1, keepdims=True)).round(2)
    context = (weights @ v).round(2)
    assert (abs(context - right()["context"]) > 0.005).any()  # not right to the digits given
    report = check(regard.solve(EXERCISE).trace, {"context": context})
    assert verdicts(report) == {"context": "ROUNDED"}


def test_going_on_with_right_values_as_they_were_written_is_right() -> None:
    """One decimal is coarse, but what follows exactly from what stands on the sheet is no error."""
    q, k = (X @ WQ).round(1), (X @ WK).round(1)
    scores = (q @ k.T).round(2)
    assert abs(scores - right()["scores"]).max() > 0.03
    report = check(EXERCISE, {"Q": q, "K": k, "scores": scores})
    assert verdicts(report)["scores"] == "ROUNDED"
    assert verdicts(check(EXERCISE, {"scores": scores}))["scores"] == "WRONG"


def test_the_numbers_of_another_step_are_recognised() -> None:
    report = check(EXERCISE, {"scores": right()["weights"].round(4)})
    assert "the right numbers of weights" in report.to_text(width=200)


def test_huge_numbers_are_wrong_without_a_warning() -> None:
    answer = right()["Q"].round(2)
    answer[0] = 1e308, -1e308
    assert verdicts(check(EXERCISE, {"Q": answer}))["Q"] in ("WRONG", "SLIP")


def test_a_known_mistake_is_named_and_what_follows_from_it_is_accepted() -> None:
    answers = right()
    answers["weights"] = softmax(answers["scores"] / np.sqrt(2))
    answers["context"] = answers["weights"] @ answers["V"]
    report = check(EXERCISE, answers)
    assert report.mistakes == ("scaled-anyway",)
    assert verdicts(report)["weights"] == "MISTAKE"
    assert verdicts(report)["context"] == "CARRIED"
    assert report.points == pytest.approx(3 - 2 / 3)


def test_an_answer_that_leaves_nothing_to_do_earns_no_follow_through() -> None:
    for plain in (np.eye(3), np.zeros((3, 3)), np.full((3, 3), 1 / 3)):
        answers = right() | {"weights": plain, "context": plain @ right()["V"]}
        found = verdicts(check(EXERCISE, answers))
        assert found["weights"] in {"WRONG", "MISTAKE"}
        assert found["context"] == "WRONG"


def test_a_made_up_value_carried_on_is_right_from_there() -> None:
    made_up = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.4, 0.35, 0.25]])
    answers = right() | {"weights": made_up, "context": made_up @ right()["V"]}
    found = verdicts(check(EXERCISE, answers))
    assert found["weights"] == "WRONG"
    assert found["context"] == "CARRIED"


def test_two_mistakes_at_once_are_named_as_a_pair() -> None:
    q, k, v = X @ WQ, X @ WK, X @ WV
    context = softmax(q @ k.T / 2, axis=0).T @ v  # divided by d_k, over the columns, transposed
    trace = regard.work("self-attention", X=X, WQ=WQ, WK=WK, WV=WV)
    wrong = softmax(q @ k.T / 2, axis=0) @ v
    report = check(trace, {"context": wrong})
    assert ("scale-by-size", "softmax-over-columns") in report.findings[0].mistakes
    assert check(trace, {"context": context}).findings[0].mistakes != report.findings[0].mistakes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.__setitem__((1, 0), -a[1, 0]), "wrong sign: row 2, column 1"),
        (lambda a: a.__setitem__((1, 0), 10 * a[1, 0]), "decimal point"),
        (lambda a: a.__setitem__((1, 0), a[1, 0] + 0.3), "One entry is wrong: row 2, column 1"),
        (lambda a: a.__setitem__(2, a[2] + 0.1), "One row is wrong: row 3"),
        (lambda a: a.__setitem__([0, 1], a[[1, 0]]), "Two rows are exchanged: 1 and 2"),
    ],
)
def test_slips_are_found_by_elimination(change: Any, words: str) -> None:
    answers = right()
    change(answers["scores"])
    finding = check(EXERCISE, answers).findings[3]
    assert finding.verdict == Verdict.SLIP
    assert words in finding.judgement.words


def test_a_sign_before_the_step_is_found() -> None:
    q, k, v = X @ WQ, X @ WK, X @ WV
    k[1, 0] *= -1
    report = check(regard.solve(EXERCISE).trace, {"context": softmax(q @ k.T) @ v})
    assert "row 2, column 1" in report.findings[0].judgement.words
    assert report.findings[0].verdict == Verdict.SLIP


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1, 2], [3, 4]], "2×2 was read, but 3×3 is wanted"),
        (np.full((3, 3), np.nan), "There is no number (NaN)"),
        ([1, 2, 3, 4], "4 in a row was read, but 3×3 is wanted"),
        ([[1, 2], [3]], "the rows have different lengths: 2, 1"),
        ([["a", "b"]], "'a' is no number"),
        ([[0, 0, 1], [0, 0, 1], [0, 0, 0]], ""),
    ],
)
def test_what_cannot_be_judged_is_not_called_wrong(given: Any, words: str) -> None:
    finding = check(EXERCISE, right() | {"weights": given}).findings[4]
    assert words in finding.judgement.words
    if words:
        assert finding.verdict == Verdict.UNGRADABLE


@pytest.mark.parametrize("digits", [2, 1, 0])
def test_percentages_are_told_as_such(digits: int) -> None:
    shares = softmax(X @ WQ @ (X @ WK).T)
    written = np.vectorize(lambda share: f"{100 * share:.{digits}f}")(shares).tolist()
    finding = check(EXERCISE, right() | {"weights": written}).findings[4]
    assert finding.verdict == Verdict.SLIP
    assert "percentages: write shares of 1" in finding.judgement.words


def test_small_numbers_are_no_percentages() -> None:
    trace = regard.work("attention", Q=[[9.0]], K=[[0.0], [1.0]], V=[[1.0], [2.0]], scale=1)
    (finding,) = check(trace, {"weights": [[1, 0]]}).findings
    assert "percentages" not in finding.judgement.words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([["0,25", "0,5"]], "'0,25' is no number. Write decimals with a point, such as 0.25"),
        ([["25%", "75 %"]], "'25%' is no number. Write shares of 1, such as 0.25 for 25%"),
        # [0,32, 0,25, 0,43] are six numbers
        ([[0, 32, 0, 25, 0, 43]] * 3, "3×6 was read, but 3×3 is wanted. Write decimals with a po"),
        ([[0.5, 32, 0, 25, 0, 43]] * 3, "3×6 was read, but 3×3 is wanted."),
    ],
)
def test_decimal_commas_and_percent_signs_get_a_hint(given: Any, words: str) -> None:
    finding = check(EXERCISE, right() | {"weights": given}).findings[4]
    assert finding.verdict == Verdict.UNGRADABLE
    assert words in finding.judgement.words
    assert ("decimals" in words) == ("decimals" in finding.judgement.words)


def test_whole_numbers_are_too_coarse() -> None:
    trace = regard.solve("scaled-attention-by-hand").trace
    (coarse,) = check(trace, {"scaled": [[3, 2, 1], [5, 3, 1]]}).findings
    assert coarse.verdict == Verdict.UNGRADABLE
    assert "too coarse" in coarse.judgement.words


def test_float32_is_right() -> None:
    narrow = {n: v.astype(np.float32) for n, v in right().items()}
    assert check(EXERCISE, narrow).is_right
    lists = {name: value.tolist() for name, value in narrow.items()}
    assert check(EXERCISE, lists).is_right


# ---- the command line ------------------------------------------------------------------------


def test_the_command_line_names_the_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = softmax(right()["scores"] / np.sqrt(2)).round(3).tolist()
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"weights": wrong}), encoding="utf-8")
    assert main(["check", EXERCISE, str(path)]) == 1
    assert "although this exercise does not scale" in capsys.readouterr().out
    assert main(["check", EXERCISE, str(path), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["mistakes"] == ["scaled-anyway"]


def test_how_much_a_report_gives_away() -> None:
    answers = right() | {"weights": softmax(right()["scores"] / np.sqrt(2))}
    where, why, full = (check(EXERCISE, answers, hint=h).to_text(width=100) for h in regard_hints())
    title = "although this exercise does not scale"
    assert title not in where
    assert title in why
    right_value = f"{right()['weights'][0, 0]:.4f}"
    assert right_value not in where + why
    assert right_value in full


def regard_hints() -> tuple[str, ...]:
    return ("where", "why", "full")
