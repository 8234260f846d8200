"""Train a translation model, go on with a run that was stopped, or watch one."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from regard._errors import MissingExtraError, OptionError
from regard.translation.recipes import RECIPES, Recipe, read_recipe

if TYPE_CHECKING:
    from regard.translation.training import Result

EPILOG = f"""recipes: {", ".join(RECIPES)}, or a TOML file with the words below

examples:
  regard train
  regard train --recipe multi30k --data-dir data --set dropout=0.3 --output runs/mine
  regard train --source texts.fr --target texts.en --epochs 5
  regard train --resume runs/pocket
  regard train --watch runs/pocket
  torchrun --nproc-per-node 4 -m regard train --recipe multi30k
"""
MAY_CHANGE = ("epochs", "steps", "patience", "data_dir", "threads", "sharded")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", metavar="NAME", help="a recipe, or a file (default: pocket)")
    parser.add_argument(
        "--set", metavar="WORD=VALUE", action="append", default=[], help="a word of the recipe"
    )
    parser.add_argument("--output", "-o", metavar="DIR", help="where to (default: runs/RECIPE)")
    parser.add_argument("--resume", metavar="RUN", help="go on with the run in this folder")
    parser.add_argument("--watch", metavar="RUN", help="draw the curves of the run in this folder")
    parser.add_argument("--show", action="store_true", help="print the recipe and do nothing")
    parser.add_argument("--json", action="store_true", help="tell events as lines of JSON")
    parser.add_argument("--tensorboard", action="store_true", help="write curves for TensorBoard")
    words = parser.add_argument_group("words of a recipe, as options")
    for word in fields(Recipe):
        words.add_argument(
            f"--{word.name.replace('_', '-')}", dest=f"word_{word.name}", metavar="X",
            help=f"default: {word.default!r}" if word.default != "" else "default: none",
        )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if arguments.watch:
        from regard.cli._watch import watch

        return watch(arguments.watch)
    recipe = _recipe(arguments)
    if arguments.show:
        print("\n".join(f"{name} = {json.dumps(said)}" for name, said in asdict(recipe).items()))
        return 0
    try:
        from regard.translation.training import train
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "translate", str(error.name)) from error
    from regard.cli._told import teller

    folder = arguments.resume or arguments.output or f"runs/{arguments.recipe or recipe.corpus}"
    with teller(arguments.json, folder, arguments.tensorboard) as told:
        result = train(recipe, folder, told, resume=bool(arguments.resume))
    return _ended(result, arguments)


def _recipe(arguments: argparse.Namespace) -> Recipe:
    named = {
        name.removeprefix("word_"): value
        for name, value in vars(arguments).items()
        if name.startswith("word_") and value is not None
    }
    if arguments.resume:
        from regard.translation.runs import Run

        if arguments.recipe or arguments.output:
            raise OptionError(
                "train: --resume goes on as the run began, without --recipe, --output"
            )
        recipe = Run(arguments.resume).recipe()
        settings = dict(text.partition("=")[::2] for text in arguments.set) | named
        if fixed := settings.keys() - {*MAY_CHANGE}:
            raise OptionError(
                f"train: a run that goes on keeps its `{min(fixed)}`; only "
                f"{', '.join(MAY_CHANGE)} may change"
            )
        return recipe.changed(settings)
    others = arguments.recipe is None and ({"corpus", "source"} & named.keys())
    if others:
        return Recipe().changed(named | dict(t.partition("=")[::2] for t in arguments.set))
    return read_recipe(arguments.recipe or "pocket", arguments.set).changed(named)


def _ended(result: Result, arguments: argparse.Namespace) -> int:
    said = sys.stderr if arguments.json else sys.stdout
    if os.environ.get("RANK", "0") != "0":  # the first process tells of all
        return 0 if result.finished else 128 + result.signal
    if not result.finished:
        print(
            f"stopped after update {result.steps:,}; go on with: "
            f"regard train --resume {result.folder}", file=said,
        )  # fmt: skip
        return 128 + result.signal
    for line in result.lines():
        print(line, file=said)
    return 0
