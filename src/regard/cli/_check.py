"""Check answers to an exercise: what is right, and what went wrong where."""

from __future__ import annotations

import argparse
import sys

from regard._errors import OptionError
from regard.checking import HINTS, Report, checker_for, parse_sheet, read_sheet
from regard.checking._check import Checker
from regard.cli._output import FORMATS, add_output_arguments, deliver

EPILOG = """answers: a .toml, .json, .npz, .npy or .ipynb file, or text: Markdown, LaTeX, arrays as
NumPy prints them or MATLAB writes them; - reads text from standard input.

exit codes: 0 everything is right, 1 something is not, 2 nothing could be judged

examples:
  regard check unscaled-self-attention answers.toml
  regard check unscaled-self-attention answers.md --hint where
  echo '[[0.41, 0.19, 0.40], [0.43, 0.13, 0.44], [0.27, 0.35, 0.38]]' |
    regard check unscaled-self-attention - --step weights
  regard check my-exercise.toml answers.npz --json
  regard check unscaled-self-attention --mistakes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercise", help="a name of the library or an exercise file")
    parser.add_argument("answers", nargs="?", help="a file of answers, or - for standard input")
    parser.add_argument(
        "--hint", choices=HINTS, default="why",
        help="how much to give away: where it goes wrong, why (default), or the full solution",
    )  # fmt: skip
    parser.add_argument("--step", default="", help="what a single array answers: weights, …")
    parser.add_argument(
        "--mistakes", action="store_true",
        help="list the mistakes that the exercise's numbers show, and those that look alike",
    )  # fmt: skip
    add_output_arguments(parser, FORMATS)


def run(arguments: argparse.Namespace) -> int:
    checker = checker_for(arguments.exercise)
    if arguments.mistakes:
        from regard.checking._shown_mistakes import ShownMistakes

        deliver(ShownMistakes(checker.asking), arguments, {}, FORMATS)
        return 0
    if not arguments.answers:
        raise OptionError("check: name a file of answers, or - for standard input")
    report = _report(checker, arguments)
    deliver(report, arguments, {}, FORMATS)
    return exit_code(report)


def exit_code(report: Report) -> int:
    """0 when all is right, 1 when something is not, 2 when there was nothing to judge at all."""
    if report.is_right:
        return 0
    verdicts = {finding.verdict.name for finding in report.findings if finding.points}
    return 2 if verdicts <= {"UNGRADABLE", "BY_HAND"} else 1


def _report(checker: Checker, arguments: argparse.Namespace) -> Report:
    step = checker.asking.real(arguments.step)
    if arguments.answers == "-":
        text = sys.stdin.read()
        sheet = parse_sheet(text, "standard input", checker.wanted, step)
    else:
        sheet = read_sheet(arguments.answers, checker.wanted, step)
    return checker.check(sheet, arguments.hint, step)
