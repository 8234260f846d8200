"""Run an experiment about attention, or sweep it over a grid of its options."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard._errors import FileError, NoSuchStepError, OptionError, did_you_mean
from regard._options import one_of
from regard.cli._output import FORMATS, add_output_arguments, deliver, format_of, number_or_word
from regard.explore import EXPERIMENTS
from regard.explore._experiments import named
from regard.show.layout import LEVELS

ARRAYS = ("X", "WQ", "WK", "WV")
TAKEN = "take one with X, WQ, WK and WV as single matrices, such as numpy-multi-head"
EPILOG = """examples:
  regard explore --list
  regard explore norm-noise
  regard explore norm-noise --beta 20 --samples 1000000 --figure swings.svg
  regard explore copy --n 4,64 --output copy.html
  regard explore heads --exercise numpy-multi-head
  regard explore norm-noise --sweep n=2,4,8 --sweep beta=1:64:log --workers all --table swings.csv
  regard explore norm-noise --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="an experiment from --list")
    parser.add_argument("--list", action="store_true", help="what experiments there are")
    parser.add_argument("--json", action="store_true", help="the list as JSON")
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="…", help="see regard explore NAME --help"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _print_list(arguments.json)
        return 0
    if not arguments.name:
        raise OptionError("explore: name an experiment; `regard explore --list` shows them all")
    one_of("experiment", arguments.name, EXPERIMENTS)
    chosen, options = _parsed(arguments.name, arguments.options)
    return _sweep(chosen, options) if chosen.sweep else _single(chosen, options)


def _print_list(as_json: bool) -> None:
    if as_json:
        rows = [{"name": name, "question": question} for name, question in EXPERIMENTS.items()]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    for name, question in EXPERIMENTS.items():
        print(f"{name:20} {question}")


def _parsed(name: str, words: list[str]) -> tuple[argparse.Namespace, dict[str, Any]]:
    """The arguments that all experiments share, and the options of this one."""
    experiment = named(name)
    known = {each.name: each.default for each in inspect.signature(experiment).parameters.values()}
    parser = argparse.ArgumentParser(
        prog=f"regard explore {name}",
        description=inspect.getdoc(experiment),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.set_defaults(experiment=name)
    own = parser.add_argument_group("options of this experiment (several values: 4,64,1024)")
    for option, default in known.items():
        if option in ARRAYS:
            continue
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
        own.add_argument(
            "--" + option.replace("_", "-"), dest=f"own {option}", type=_value, metavar="VALUE",
            help="" if default is None else f"default: {shown}",
        )  # fmt: skip
    if "X" in known:
        parser.add_argument(
            "--exercise", default=None, help="X, WQ, WK and WV of an exercise or a file"
        )
    _add_shared(parser)
    chosen, others = parser.parse_known_args(words)
    if others:
        options = [f"--{option.replace('_', '-')}" for option in known]
        raise OptionError(f"{name}: no option {others[0]!r}: {did_you_mean(others[0], options)}")
    mine = {key[4:]: value for key, value in vars(chosen).items() if key.startswith("own ")}
    if exercise := getattr(chosen, "exercise", None):
        mine |= _arrays(exercise)
    return chosen, mine


def _arrays(exercise: str) -> dict[str, Any]:
    from regard.exercises import solve

    trace = solve(exercise).trace
    try:
        arrays = {name: trace[name].value for name in ARRAYS}
    except NoSuchStepError as error:
        raise OptionError(f"explore: --exercise {exercise!r}: {error}; {TAKEN}") from error
    if any(array.ndim != 2 for array in arrays.values()):
        raise OptionError(f"explore: --exercise {exercise!r} has matrices for each head; {TAKEN}")
    return arrays


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--level", choices=LEVELS, default="steps", help="how much to show")
    parser.add_argument("--figure", metavar="FILE", default=None, help="svg, png or pdf")
    parser.add_argument("--table", metavar="FILE", default=None, help="csv or parquet")
    grid = parser.add_argument_group("sweeps: the experiment at every point of a grid")
    grid.add_argument(
        "--sweep", action="append", metavar="NAME=VALUES", default=[],
        help="8,16,32 or 1:5 (whole steps) or 1:64:log (doubling) or 0:1:linear:5 or 1:100:log:5",
    )  # fmt: skip
    grid.add_argument("--workers", default="1", help="processes on this machine, or all")
    grid.add_argument(
        "--cluster", metavar="ADDRESS", default=None, help="a Dask scheduler, tcp://…"
    )
    grid.add_argument("--folder", default=None, help="keeps finished points: a sweep resumes there")
    grid.add_argument("--keep-going", action="store_true", default=False, help="report failures")
    output = parser.add_argument_group("output")
    add_output_arguments(output, FORMATS)  # type: ignore[arg-type]
    parser.set_defaults(format=None, json=False, output=None, width=None)


def _value(text: str) -> Any:
    if "," in text:
        return tuple(number_or_word(part) for part in text.split(",") if part)
    return number_or_word(text)


def _single(chosen: argparse.Namespace, options: dict[str, Any]) -> int:
    unset = {"cluster": None, "folder": None, "workers": "1", "keep_going": False}
    for name, default in unset.items():
        if getattr(chosen, name) != default:
            option = name.replace("_", "-")
            raise OptionError(f"explore: --{option} goes with --sweep NAME=VALUES")
    _check_files(chosen)
    result = named(chosen.experiment)(**options)
    _tell(result, chosen)
    return 0


def _sweep(chosen: argparse.Namespace, options: dict[str, Any]) -> int:
    from regard.explore import sweep

    _check_files(chosen)
    grid: dict[str, Any] = {}
    for text in chosen.sweep:
        name, values = grid_values(text)
        if name in grid:
            raise OptionError(f"explore: --sweep {name} was given twice; join its values by commas")
        grid[name] = values
    if "X" in options:  # pieces of work are JSON
        options |= {name: options[name].tolist() for name in ARRAYS}
    seed = options.pop("seed", 0)
    result = sweep(
        chosen.experiment, grid, seed=seed, workers=number_or_word(chosen.workers),
        cluster=chosen.cluster, folder=chosen.folder, keep_going=chosen.keep_going, **options,
    )  # fmt: skip
    _tell(result, chosen)
    for failed in result.failed:
        print(f"regard: {failed}", file=sys.stderr)
    return 1 if result.failures else 0


def _check_files(chosen: argparse.Namespace) -> None:
    """Before anything is computed: names that nothing could be written to."""
    from regard.explore import _table
    from regard.show import figures

    if chosen.figure:
        figures.check_ending(chosen.figure)
    if chosen.figure or _included(chosen):
        figures.matplotlib_figure()
    if chosen.table:
        _table.check_ending(chosen.table)
    for path in filter(None, (chosen.figure, chosen.table, chosen.output)):
        if not Path(path).parent.is_dir():
            raise FileError(f"explore: {path!r}: there is no folder {str(Path(path).parent)!r}")


def _tell(result: Any, chosen: argparse.Namespace) -> None:
    """The figure last: when there is nothing to draw, the numbers are not lost."""
    if chosen.table:
        result.table.save(chosen.table)
    how = {} if chosen.level == "steps" else {"level": chosen.level}
    included = _included(chosen) if result.plot else ""
    if included:
        folder = Path(chosen.output or "").parent
        how["figure"] = os.path.relpath(included, folder).replace(os.sep, "/")
    deliver(result, chosen, how, FORMATS)
    if chosen.figure:
        result.save_figure(chosen.figure)
    if included and included != chosen.figure:
        from regard.show import figures

        on_page = replace(result.plot, across=2)  # more panels would be too small to read
        figures.save_figure(figures.draw(on_page), included)
        print(f"wrote {included}", file=sys.stderr)


def _included(chosen: argparse.Namespace) -> str:
    """The figure that a LaTeX document shows: the one that was named, else one beside it."""
    if format_of(chosen, FORMATS) != "latex":
        return ""
    if chosen.figure and not chosen.figure.endswith(".svg"):
        return str(chosen.figure)
    return f"{Path(chosen.output).with_suffix('')}-figure.pdf" if chosen.output else ""


def grid_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """What `--sweep NAME=VALUES` says."""
    name, equals, values = (part.strip() for part in text.partition("="))
    name = name.replace("-", "_")
    if not equals or not name or not values:
        raise OptionError(f"explore: --sweep takes NAME=VALUES, such as n=8,16, not {text!r}")
    if ":" not in values:
        return name, tuple(number_or_word(part.strip()) for part in values.split(",") if part)
    try:
        spanned = _span(*values.split(":"))
        if not spanned:
            raise ValueError(values)
        return name, spanned
    except OptionError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        raise OptionError(
            f"explore: --sweep {name} takes 8,16,32 or 1:5 or 1:64:log or 0:1:linear:5 or "
            f"1:100:log:3, the smaller first (log: above 0), not {values!r}"
        ) from error


def _few(points: int) -> int:
    from regard.explore._sweep import LARGEST

    if points > LARGEST:
        raise OptionError(f"sweep: {points:,} runs are more than the {LARGEST:,} that are allowed")
    return points


def _span(low: str, high: str, spacing: str = "", points: str = "") -> tuple[Any, ...]:
    """1:5 in whole steps, 1:64:log doubling, and with a number of points evenly between."""
    from math import log

    a, b = (number_or_word(text) for text in (low, high))
    if spacing == "" or (spacing == "linear" and not points):
        return tuple(range(int(low), int(low) + _few(int(high) - int(low) + 1)))
    if spacing == "log" and not points:
        count = int(log(b / a) / log(2) + 1e-9) + 1
        return tuple(a * 2**step for step in range(count))
    count = _few(int(points))
    shares = [step / (count - 1) for step in range(count)]
    if spacing == "log":
        return tuple(a * (b / a) ** share for share in shares)
    if spacing == "linear":
        return tuple(a + (b - a) * share for share in shares)
    raise ValueError(spacing)
