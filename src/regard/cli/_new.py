"""Make an exercise with pleasant numbers, its sheets, and one variant for each student."""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import replace
from pathlib import Path

from regard._errors import OptionError
from regard._files import write_atomically
from regard.authoring import (
    KINDS,
    NUMBERS,
    SHEETS,
    Student,
    Wish,
    make_exercise,
    read_roster,
    seed_of,
    write_sheets,
)
from regard.cli._output import number_or_word, write
from regard.exercises import to_toml

EPILOG = """examples:
  regard new self-attention --seed 7 > exercise.toml
  regard new self-attention --seed 7 --output sheet --format markdown,pdf
  regard new multi-head --seq 3 --dim 2 --heads 2 --numbers halves --output sheet
  regard new attention --causal --for roster.csv --output class --format pdf
  regard check sheet/exercise.toml sheet/answers.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", help=f"what is to be computed: {', '.join(KINDS)}")
    parser.add_argument("--seed", type=int, default=0, help="which exercise (default: 0)")
    parser.add_argument("--seq", type=int, default=3, help="how many tokens (default: 3)")
    parser.add_argument("--dim", type=int, default=2, help="numbers of a query or key (default: 2)")
    parser.add_argument("--heads", type=int, help="heads of multi-head (default: 2)")
    parser.add_argument("--numbers", choices=NUMBERS, default="integers", help="the givens")
    parser.add_argument("--causal", action="store_true", help="a causal mask")
    parser.add_argument("--scale", default="sqrt", help='"sqrt" (divide by √d_k) or 1 for none')
    parser.add_argument(
        "--for", dest="roster", metavar="ROSTER", help="a CSV file: a variant for each id in it"
    )
    parser.add_argument("--output", "-o", metavar="FOLDER", help="where the sheets go")
    parser.add_argument(
        "--format", metavar="FORMAT,…",
        help=f"formats of the sheets: {', '.join(SHEETS)} (default: markdown)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    wish = Wish(
        arguments.kind, arguments.seed, arguments.seq, arguments.dim, arguments.heads,
        arguments.numbers, arguments.causal, number_or_word(arguments.scale),
    )  # fmt: skip
    formats = tuple((arguments.format or "markdown").split(","))
    if arguments.roster:
        if not arguments.output:
            raise OptionError("new: --for writes a folder for each student: say --output FOLDER")
        _write_class(wish, arguments.roster, Path(arguments.output), formats)
    elif not arguments.output or arguments.output.endswith(".toml"):
        if arguments.format:
            raise OptionError("new: --format is of the sheets in a folder: say --output FOLDER")
        write(to_toml(make_exercise(wish)), arguments.output)
    else:
        for path in write_sheets(make_exercise(wish), Path(arguments.output), formats):
            print(path)
    return 0


def _write_class(wish: Wish, roster: str, folder: Path, formats: tuple[str, ...]) -> None:
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    table.writerow(("id", "seed", "exercise"))
    students = read_roster(roster)
    for student in students:
        own = replace(wish, seed=seed_of(wish.seed, student))
        write_sheets(make_exercise(own), folder / student.folder, formats, _called(student))
        table.writerow((student.id, own.seed, f"{student.folder}/exercise.toml"))
    write_atomically(folder / "variants.csv", rows.getvalue())
    made = "1 variant" if len(students) == 1 else f"{len(students)} variants"
    print(f"{folder}: {made}; which is whose stands in variants.csv")


def _called(student: Student) -> str:
    return f"{student.name} ({student.id})" if student.name else student.id
