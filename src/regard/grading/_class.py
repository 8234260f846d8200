"""Whole classes: every submission of a folder graded, one core or many, resumed when stopped."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard._errors import FileError, RegardError, SandboxError
from regard.exercises import Exercise, load_exercise, read_exercise, to_toml
from regard.grading._grade import Grade, grade_from
from regard.grading._grader import Grader
from regard.grading._program import rules_of
from regard.grading._sandbox import Limits, isolation
from regard.grading._submission import PROGRAMS, Submission, read_submission
from regard.jobs import run_jobs

ANSWERS = (".toml", ".json", ".npz", ".npy", ".md", ".tex", ".txt", ".m", ".csv")
ENDINGS = (*PROGRAMS, *ANSWERS)


def found_submissions(paths: Sequence[str | Path], *, one: bool = False) -> list[Submission]:
    """The submissions in these files and folders; in a folder each file or folder is one.

    With `one` a folder is itself one submission.
    """
    found: list[Submission] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileError(f"grade: {str(path)!r} cannot be read: No such file or directory")
        if path.is_dir():
            found += [_folder(path)] if one else _in_folder(path)
        else:
            found.append(read_submission(path))
    names = [submission.name for submission in found]
    for name in names:
        if names.count(name) > 1:
            raise FileError(f"grade: two submissions are called {name!r}; name them apart")
    return found


def _in_folder(folder: Path) -> Iterator[Submission]:
    entries = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "__")))
    stems = [path.stem if path.is_file() else path.name for path in entries]
    for path in entries:
        if path.is_dir():
            yield _folder(path)
        elif _is_submission(path):  # ann.py beside ann.ipynb: both are told apart and graded
            yield read_submission(path, path.stem if stems.count(path.stem) == 1 else path.name)
    if not entries:
        raise FileError(
            f"grade: {str(folder)!r} is empty; put one file, or folder, a student in it"
        )


def _folder(path: Path) -> Submission:
    """What a student handed in as a folder; only one file of it can be graded."""
    files = sorted(each for each in path.rglob("*") if _is_submission(each))
    if len(files) == 1:
        return read_submission(files[0], path.name)
    listed = ", ".join(each.name for each in files[:5]) or "none"
    return Submission(path.name, "", b"", f"one file is wanted in its folder, found: {listed}")


def _is_submission(path: Path) -> bool:
    """A link is none: it may lead to somebody else's file, or to the solution."""
    is_file = path.is_file() and not path.is_symlink()
    return is_file and not path.name.startswith(".") and path.suffix in ENDINGS


def variants_in(folder: Path, submissions: Sequence[Submission]) -> dict[str, Exercise]:
    """Everybody's own exercise, as `regard new --for` writes them: FOLDER/NAME/exercise.toml."""
    found = {}
    for submission in submissions:
        for name in (submission.name, Path(submission.name).stem):
            path = folder / name / "exercise.toml"
            if path.is_file():
                found[submission.name] = load_exercise(path)
                break
    if not found:
        raise FileError(
            f"grade: {str(folder)!r} holds no exercise for any submission; it must hold "
            "NAME/exercise.toml for each, as `regard new --for` writes them"
        )
    return found


def grade_class(
    exercise: Exercise | Mapping[str, Exercise],
    submissions: Sequence[Submission],
    *,
    shut_in: str = "bubblewrap",
    limits: Limits | None = None,
    seed: int = 0,
    workers: int | str = 1,
    cluster: str | None = None,
    folder: str | Path | None = None,
    title: str = "",
) -> list[Grade]:
    """Grade all; what the `folder` holds from before is not graded again if nothing changed.

    `exercise` may be everybody's own, by the name of the submission. A submission that cannot be
    graded stops no other: it becomes a grade that says why.
    """
    limits = limits or Limits()
    graders = _graders(exercise, seed, submissions)
    for submission in submissions:
        if graders[submission.name].takes(submission):
            rules_of(graders[submission.name].exercise)
            isolation(shut_in)  # a refusal concerns all of them, so it comes before the work
    known = exercise if isinstance(exercise, Mapping) else {s.name: s for s in submissions}
    pieces = [
        {
            "exercise": to_toml(graders[submission.name].exercise),
            "files": dict(graders[submission.name].exercise.files),
            "isolation": shut_in,
            "seconds": limits.seconds,
            "seed": seed,
            "name": submission.name,
            "file": submission.file,
            "problem": submission.problem
            or ("" if submission.name in known else "there is no exercise of this name"),
            "content": base64.b64encode(submission.content).decode("ascii"),
        }
        for submission in submissions
    ]
    outcomes = run_jobs(
        grade_piece,
        pieces,
        workers=workers,
        cluster=cluster,
        folder=folder,
        keep_going=True,
        title=title,
    )
    return [
        grade_from(outcome.record) if outcome.failure is None
        else graders[one.name].not_gradable(one, f"regard itself failed on it: {outcome.failure}")
        for one, outcome in zip(submissions, outcomes, strict=True)
    ]  # fmt: skip


def _graders(
    exercise: Exercise | Mapping[str, Exercise], seed: int, submissions: Sequence[Submission]
) -> dict[str, Grader]:
    """By submission; who has no exercise is marked out of the same as somebody who has one."""
    if not isinstance(exercise, Mapping):
        return dict.fromkeys((each.name for each in submissions), Grader(exercise, seed))
    graders = {name: Grader(own, seed) for name, own in exercise.items()}
    any_of_them = next(iter(graders.values()))
    return {each.name: graders.get(each.name, any_of_them) for each in submissions}


def grade_piece(piece: dict[str, Any], _: int) -> dict[str, Any]:
    """One submission, wherever this is run; numbers are the same for the whole class."""
    content = base64.b64decode(piece["content"])
    submission = Submission(piece["name"], piece["file"], content, piece["problem"])
    grader = _grader(piece["exercise"], tuple(sorted(piece["files"].items())), piece["seed"])
    try:
        shut_in = isolation(piece["isolation"]) if grader.takes(submission) else None
        grade = grader.grade(submission, shut_in, Limits(seconds=piece["seconds"]))
    except SandboxError:
        raise
    except RegardError as error:
        grade = grader.not_gradable(submission, str(error))
    return grade.to_dict()


@lru_cache(maxsize=8)
def _grader(toml: str, files: tuple[tuple[str, str], ...], seed: int) -> Grader:
    beside: Mapping[str, str] = dict(files)
    return Grader(read_exercise(toml, "exercise", beside.__getitem__), seed)
