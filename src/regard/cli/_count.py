"""Count the operations and the memory of a computation, as formulas and as numbers."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from regard._errors import NoSuchExerciseError, OptionError
from regard.cli._output import FORMATS, add_output_arguments, deliver, number_or_word
from regard.exercises import Solution, library_names, solve
from regard.graph.builders import KINDS
from regard.graph.cost import CONVENTIONS
from regard.show.costs import Costs, count

EPILOG = f"""kinds: {", ".join(KINDS)}

examples:
  regard count attention
  regard count multi-head --size n=128,d_model=512,h=8,d_k=64,d_v=64
  regard count self-attention --size n=64,d_model=64,d_k=64,d_v=64 --growth 64,256,1024,4096
  regard count decoder-block --set norm=rms,feed_forward=swiglu
  regard count unscaled-self-attention --convention stable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a kind of computation, or an exercise")
    parser.add_argument("--size", metavar="NAME=N,…", help="sizes of a kind, such as n=128,d_k=64")
    parser.add_argument(
        "--convention", choices=CONVENTIONS, default="schoolbook", help="how to count"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE,…", help="options of a kind, such as causal=true,kv_heads=2"
    )
    parser.add_argument("--itemsize", type=int, default=8, help="bytes of one number (default: 8)")
    parser.add_argument("--growth", metavar="N,…", help="the totals at these numbers of tokens")
    parser.add_argument("--figure", metavar="FILE", help="plot the growth (svg, png or pdf)")
    add_output_arguments(parser, FORMATS)


def run(arguments: argparse.Namespace) -> int:
    costs = _costs(arguments)
    if arguments.figure:
        from regard.show.figures import check_ending, save_figure

        check_ending(arguments.figure)
        save_figure(costs.figure(), arguments.figure)
    deliver(costs, arguments, {}, FORMATS)
    return 0


def _costs(arguments: argparse.Namespace) -> Costs:
    growing = _whole_numbers(arguments.growth) if arguments.growth else ()
    if arguments.what in KINDS:
        given = {**_pairs(arguments.size, "--size"), **_pairs(arguments.set, "--set")}
        costs = count(
            arguments.what, convention=arguments.convention, itemsize=arguments.itemsize, **given
        )
    elif arguments.size or arguments.set:
        raise OptionError(
            f"count: --size and --set go with a kind ({', '.join(KINDS)}); "
            f"{arguments.what!r} has its own"
        )
    else:
        costs = _exercise(arguments.what).cost(arguments.convention, arguments.itemsize)
    return replace(costs, growing=growing)


def _exercise(source: str) -> Solution:
    try:
        return solve(source)
    except NoSuchExerciseError as error:
        raise OptionError(
            f"count: {source!r} is no kind ({', '.join(KINDS)}) and no exercise "
            f"({', '.join(library_names())})"
        ) from error


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise OptionError(f"count: --growth takes whole numbers 64,128,…, not {text!r}") from error
    if min(numbers) < 1:
        raise OptionError(f"count: --growth takes numbers of at least 1, not {text!r}")
    return numbers


def _pairs(text: str | None, option: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        number = number_or_word(value)
        if not equals or not value or (option == "--size" and not isinstance(number, int)):
            example = "n=128,d_k=64" if option == "--size" else "causal=true,kv_heads=2"
            raise OptionError(
                f"count: {option} takes NAME=VALUE,…, such as {example}, not {part!r}"
            )
        pairs[name] = number
    return pairs
