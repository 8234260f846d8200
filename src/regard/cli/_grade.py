"""Grade submissions: answer files, or programs that are run shut in, one or a whole class."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard._errors import OptionError
from regard._files import write_atomically
from regard.cli._output import write
from regard.exercises import Exercise, load_exercise
from regard.grading import (
    EXPORTS,
    FORMATS,
    KINDS,
    NOT_GRADABLE,
    Grade,
    Grader,
    Limits,
    Submission,
    divergence,
    divergence_text,
    found_submissions,
    grade_class,
    isolation,
    read_submission,
    to_csv,
    to_html,
    to_table,
    to_text,
    variants_in,
)

EPILOG = """a submission is an answer file as `regard check` reads it, a .py program, or a notebook;
in a folder, each file or folder is one. Programs are run as [[code.run]] of the exercise says.

exit codes: 0 everything is right, 1 something is not, 2 nothing could be graded

examples:
  regard grade unscaled-self-attention answers.toml
  regard grade numpy-multi-head submission.py
  regard grade my-exercise.toml submissions/ --jobs 2 --results grades/
  regard grade variants/ submissions/ --results grades/
  regard grade my-exercise.toml submissions/ --cluster tcp://host:8786 --results grades/
  regard grade numpy-multi-head mine.py --against theirs.py
  regard grade my-exercise.toml submission.py --format gradescope -o results.json
  regard grade my-exercise.toml --export gradescope -o autograder.zip
"""
SHOWN: dict[str, str] = {".json": "json", ".csv": "csv", ".html": "html", ".xml": "junit"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "exercise",
        help="a name from `regard solve --list`, a .toml file, or a folder of variants "
        "(NAME/exercise.toml) as `regard new --for` writes it",
    )
    parser.add_argument("submissions", nargs="*", metavar="SUBMISSION", help="files and folders")
    parser.add_argument(
        "--format", choices=["text", "json", "csv", "html", *FORMATS],
        help="what to write (default: by --output's ending, else text)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE instead of printing")
    parser.add_argument("--against", metavar="PROGRAM", help="where two programs' results part")
    parser.add_argument(
        "--export", choices=EXPORTS, help="write the exercise for a platform, and grade nothing"
    )
    classes = parser.add_argument_group("whole classes")
    classes.add_argument("--one", action="store_true", help="a folder is one submission")
    classes.add_argument("--jobs", metavar="N", default="1", help='processes, or "all" cores')
    classes.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, tcp://host:8786")
    classes.add_argument(
        "--results", metavar="FOLDER",
        help="keep each grade there, to resume, and write report.html, report.csv and feedback/",
    )  # fmt: skip
    sandbox = parser.add_argument_group("how programs are run")
    sandbox.add_argument(
        "--isolation", choices=[k for k in KINDS if k != "none"], default="bubblewrap",
        help="what shuts them in (default: bubblewrap)",
    )  # fmt: skip
    sandbox.add_argument(
        "--trust", action="store_true", help="do not shut them in: they may do what you may do"
    )
    sandbox.add_argument(
        "--seconds", type=float, default=Limits.seconds, help="that each may take (default: 10)"
    )
    sandbox.add_argument("--seed", type=int, default=0, help="of the fresh numbers (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.export:
        return _export(load_exercise(arguments.exercise), arguments)
    if not arguments.submissions:
        raise OptionError("grade: name submissions: files, or folders of them")
    if not 0 < arguments.seconds <= 3600:
        raise OptionError(f"--seconds must be above 0 and at most 3600, not {arguments.seconds:g}")
    if arguments.against:
        return _against(load_exercise(arguments.exercise), arguments)
    workers = _workers(arguments.jobs)
    submissions = found_submissions(arguments.submissions, one=arguments.one)
    exercise, title = _exercise(arguments.exercise, submissions)
    grades = grade_class(
        exercise,
        submissions,
        shut_in="none" if arguments.trust else arguments.isolation,
        limits=Limits(seconds=arguments.seconds),
        seed=arguments.seed,
        workers=workers,
        cluster=arguments.cluster,
        folder=Path(arguments.results, "records") if arguments.results else None,
        title="grading" if len(submissions) > 1 else "",
    )
    if arguments.results:
        _keep(title, grades, Path(arguments.results))
    write(_written(title, grades, arguments), arguments.output)
    if all(grade.status == NOT_GRADABLE for grade in grades):
        return 2
    return 0 if all(grade.is_right for grade in grades) else 1


def _exercise(
    source: str, submissions: Sequence[Submission]
) -> tuple[Exercise | dict[str, Exercise], str]:
    """One exercise, or from a folder everybody's own; and what the report is called."""
    if Path(source).is_dir():
        own = variants_in(Path(source), submissions)
        return own, next(iter(own.values())).title
    exercise = load_exercise(source)
    return exercise, exercise.title


def _workers(jobs: str) -> int | str:
    if jobs != "all" and (not jobs.isdecimal() or int(jobs) < 1):
        raise OptionError(
            f'--jobs must be a whole number of at least 1, or "all", but {jobs!r} was passed'
        )
    return jobs if jobs == "all" else int(jobs)


def _written(title: str, grades: Sequence[Grade], arguments: argparse.Namespace) -> str:
    name = "json" if arguments.json else arguments.format
    name = name or SHOWN.get(Path(arguments.output or "").suffix, "text")
    if name == "json":
        return json.dumps([grade.to_dict() for grade in grades], ensure_ascii=False, indent=1)
    if name == "csv":
        return to_csv(grades)
    if name == "html":
        return to_html(title, grades)
    if name in FORMATS:
        return FORMATS[name](grades)
    return to_table(grades) if len(grades) > 3 else "\n".join(map(to_text, grades))


def _keep(title: str, grades: Sequence[Grade], folder: Path) -> None:
    """The report, the table, and a text for each student."""
    feedback = folder / "feedback"
    feedback.mkdir(parents=True, exist_ok=True)
    for grade in grades:
        name = "".join(c if c.isalnum() or c in "-_. " else "_" for c in grade.submission)
        write_atomically(feedback / f"{name}.txt", to_text(grade))
    write_atomically(folder / "report.csv", to_csv(grades))
    write_atomically(folder / "report.html", to_html(title, grades))
    print(f"wrote {folder / 'report.html'}, report.csv and feedback/", file=sys.stderr)


def _against(exercise: Exercise, arguments: argparse.Namespace) -> int:
    if len(arguments.submissions) != 1:
        raise OptionError("--against compares one program with another: name one submission")
    pair = [read_submission(path) for path in (arguments.submissions[0], arguments.against)]
    if pair[0].name == pair[1].name:
        pair = [
            replace(each, name=str(path))
            for each, path in zip(pair, (arguments.submissions[0], arguments.against), strict=True)
        ]
    shut_in = isolation("none" if arguments.trust else arguments.isolation)
    limits = Limits(seconds=arguments.seconds)
    found = divergence(Grader(exercise, arguments.seed), pair[0], pair[1], shut_in, limits)
    if arguments.json:
        rows = [
            {"result": d.result, "numbers": d.numbers, "same": d.is_same, "words": d.words}
            for d in found
        ]
        write(json.dumps(rows, ensure_ascii=False, indent=1), arguments.output)
    else:
        write(divergence_text(found, [each.name for each in pair]), arguments.output)
    return 0 if all(each.is_same for each in found) else 1


def _export(exercise: Exercise, arguments: argparse.Namespace) -> int:
    if arguments.submissions:
        raise OptionError("--export writes the exercise and grades nothing: leave submissions out")
    export, ending = EXPORTS[arguments.export]
    target = Path(arguments.output or f"{Path(arguments.exercise).stem}-{arguments.export}{ending}")
    if target.suffix != ending:
        raise OptionError(
            f"--export {arguments.export} writes a {ending} file, not {str(target)!r}"
        )
    write_atomically(target, export(exercise))
    print(f"wrote {target}", file=sys.stderr)
    return 0
