"""Count the operations and the memory of a computation, as formulas and as numbers."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from regard._errors import OptionError
from regard.cli._output import FORMATS, add_output_arguments, deliver
from regard.exercises import Solution, library_names, solve
from regard.graph.builders import KINDS
from regard.graph.cost import CONVENTIONS
from regard.show.costs import Costs, count

EPILOG = f"""kinds: {", ".join(KINDS)}

examples:
  regard count attention
  regard count multi-head --size n=128,d_model=512,h=8,d_k=64,d_v=64
  regard count self-attention --size n=64,d_model=64,d_k=64,d_v=64 --growth 64,256,1024,4096
  regard count unscaled-self-attention --convention stable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a kind of computation, or an exercise")
    parser.add_argument("--size", metavar="NAME=N,…", help="sizes of a kind, such as n=128,d_k=64")
    parser.add_argument(
        "--convention", choices=CONVENTIONS, default="schoolbook", help="how to count"
    )
    parser.add_argument("--causal", action="store_true", help="with a causal mask")
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
        sizes = _sizes(arguments.size) if arguments.size else {}
        options: dict[str, Any] = {"causal": True} if arguments.causal else {}
        costs = count(arguments.what, convention=arguments.convention, **sizes, **options)
    elif arguments.size or arguments.causal:
        raise OptionError(
            f"count: --size and --causal go with a kind ({', '.join(KINDS)}); "
            f"{arguments.what!r} has its own"
        )
    else:
        costs = _exercise(arguments.what).trace.cost(arguments.convention)
    return replace(costs, growing=growing)


def _exercise(source: str) -> Solution:
    try:
        return solve(source)
    except OptionError:
        raise
    except ValueError as error:
        if "no file and no exercise" not in str(error):
            raise
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


def _sizes(text: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not number.strip().isdigit():
            raise OptionError(f"count: --size takes NAME=N,…, such as n=128,d_k=64, not {part!r}")
        sizes[name.strip()] = int(number)
    return sizes
