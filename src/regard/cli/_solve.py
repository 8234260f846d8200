"""Solve an exercise of the library, an exercise file, or a pasted assignment."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from regard._errors import OptionError
from regard.cli._output import (
    CODE,
    FORMATS,
    PAGES,
    add_output_arguments,
    deliver,
    number_or_word,
    write,
)
from regard.exercises import (
    Said,
    Solution,
    library_names,
    load_exercise,
    parse_exercise,
    to_toml,
)
from regard.graph.numbers import NUMBERS
from regard.show._format import STYLES
from regard.show.layout import LEVELS

EPILOG = """examples:
  regard solve unscaled-self-attention
  regard solve unscaled-self-attention --only weights --numbers certified --digits 30
  regard solve assignment.md --scale sqrt --heads 3
  regard solve assignment.md --draft > my-exercise.toml
  regard solve my-exercise.toml --level entries --output solution.html
  cat assignment.md | regard solve -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", help="a name from --list, a .toml file, an assignment, or - for stdin"
    )
    parser.add_argument("--list", action="store_true", help="the exercises that come with regard")
    parser.add_argument("--level", choices=LEVELS, help="how much to show (default: steps)")
    parser.add_argument("--only", metavar="STEP,…", help="these steps alone, or these answers")
    parser.add_argument("--numbers", choices=NUMBERS, default="float64", help="the kind of numbers")
    parser.add_argument("--style", choices=STYLES, help="how numbers are written")
    parser.add_argument(
        "--digits", type=int, help="digits that are printed, and proven in certified numbers"
    )
    parser.add_argument(
        "--new-page-per-answer", action="store_true", help="LaTeX: a page for each answer"
    )
    parser.add_argument(
        "--draft", action="store_true", help="print the exercise file, not solve it"
    )
    parser.add_argument(
        "--skeleton", action="store_true", help="print the program to complete, if there is one"
    )
    said = parser.add_argument_group("what an assignment's text does not say")
    said.add_argument("--scale", help='"sqrt" (divide by √d_k) or a number (1 for none)')
    said.add_argument("--heads", type=int, help="how many heads")
    said.add_argument("--causal", help='true, "top-left", "bottom-right" or a shift')
    add_output_arguments(parser, FORMATS | CODE)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _print_list(arguments.json)
        return 0
    if not arguments.source:
        raise OptionError(
            "solve: name an exercise or a file; `regard solve --list` shows the library"
        )
    solution = _solution(arguments)
    if arguments.draft or arguments.skeleton:
        text = solution.skeleton if arguments.skeleton else to_toml(solution.exercise)
        write(text, arguments.output)
        return 0
    deliver(solution, arguments, _how(arguments), FORMATS | CODE)
    return 0


def _print_list(as_json: bool) -> None:
    rows = {name: load_exercise(name) for name in library_names()}
    if as_json:
        import json

        facts = [{"name": n, "title": e.title, "source": e.source} for n, e in rows.items()]
        print(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    for name, exercise in rows.items():
        print(f"{name:32} {exercise.title} ({exercise.source})")


def _solution(arguments: argparse.Namespace) -> Solution:
    causal = number_or_word(arguments.causal)
    said = Said(number_or_word(arguments.scale), arguments.heads, causal)
    if arguments.source == "-":
        exercise = parse_exercise(sys.stdin.read(), "standard input", said)
    else:
        exercise = load_exercise(arguments.source, said)
    digits = max(15, arguments.digits or 15)
    return Solution(arguments.source, exercise, {"numbers": arguments.numbers, "digits": digits})


def _how(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was asked for of the showing; digits belong to the numbers when those are certified."""
    how: dict[str, Any] = {}
    if arguments.only:
        how["only"] = tuple(word.strip() for word in arguments.only.split(","))
    for name in ("level", "style"):
        if getattr(arguments, name) is not None:
            how[name] = getattr(arguments, name)
    if arguments.digits is not None and not (arguments.json and arguments.numbers == "certified"):
        how["digits"] = arguments.digits
    if arguments.new_page_per_answer:
        how[PAGES] = True
    return how
