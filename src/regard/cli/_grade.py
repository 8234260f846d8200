"""Grade submitted programs: run shut in, on the exercise's numbers and on fresh ones."""

from __future__ import annotations

import argparse
import json

from regard.cli._output import write
from regard.exercises import load_exercise
from regard.grading import KINDS, Limits, grade_program, isolation, read_submission, to_text

EPILOG = """examples:
  regard grade numpy-multi-head submission.py
  regard grade my-exercise.toml submission.py --json
  regard grade torch-self-attention submission.ipynb --seconds 30
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercise", help="a name from `regard solve --list`, or a .toml file")
    parser.add_argument("submissions", nargs="+", metavar="SUBMISSION", help="a .py or .ipynb file")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--output", "-o", metavar="FILE", help="write to FILE instead of printing")
    sandbox = parser.add_argument_group("how a program is run")
    sandbox.add_argument(
        "--isolation", choices=[k for k in KINDS if k != "none"], default="bubblewrap",
        help="what shuts it in (default: bubblewrap)",
    )  # fmt: skip
    sandbox.add_argument(
        "--trust", action="store_true", help="do not shut it in: it may do what you may do"
    )
    sandbox.add_argument(
        "--seconds", type=float, default=Limits.seconds, help="that it may take (default: 10)"
    )
    sandbox.add_argument("--seed", type=int, default=0, help="of the fresh numbers (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    exercise = load_exercise(arguments.exercise)
    shut_in = isolation("none" if arguments.trust else arguments.isolation)
    limits = Limits(seconds=arguments.seconds)
    grades = []
    for path in arguments.submissions:
        submission = read_submission(path)
        grades.append(
            grade_program(
                exercise, submission.name, submission.program, shut_in, limits, arguments.seed
            )
        )
    if arguments.json:
        text = json.dumps([grade.to_dict() for grade in grades], ensure_ascii=False, indent=1)
    else:
        text = "\n".join(map(to_text, grades))
    write(text, arguments.output)
    return 0 if all(grade.is_right for grade in grades) else 1
