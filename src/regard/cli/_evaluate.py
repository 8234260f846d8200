"""Score translations: BLEU and chrF with intervals, and the sentences that went worst."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from regard._errors import FileError, OptionError
from regard.cli._translate import add_model_arguments, read_lines, searching

if TYPE_CHECKING:
    from regard.translation.scoring import Evaluation

EPILOG = """examples:
  regard evaluate                                   (the pocket model on its test set)
  regard evaluate --model runs/multi30k --source test.fr --reference test.en
  regard evaluate --translations said.en --reference test.en
  regard evaluate --model runs/multi30k --greedy --worst 10 --json
"""


# How to translate, unless it is said.
UNSAID = {"model": None, "beam": None, "greedy": False, "length_penalty": 1.0, "stop": "likely",
          "longest": 0, "precision": "auto"}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--source", metavar="FILE", help="what to translate, a sentence a line")
    parser.add_argument("--reference", metavar="FILE", help="how it should have been translated")
    parser.add_argument("--translations", metavar="FILE", help="score these, without any model")
    parser.add_argument(
        "--worst", type=int, default=5, metavar="N", help="show the N worst sentences (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="scores and sentences as JSON")


def run(arguments: argparse.Namespace) -> int:
    from regard.translation.scoring import evaluate

    if arguments.worst < 0:
        raise OptionError(f"--worst must be at least 0, but {arguments.worst} was passed")
    said, references, sources = _translated(arguments)
    evaluation = evaluate(said, references, sources)
    if arguments.json:
        facts = {
            "scores": [asdict(score) for score in evaluation.scores],
            "sentences": len(evaluation.sentences),
            "worst": [asdict(sentence) for sentence in evaluation.worst(arguments.worst)],
        }
        print(json.dumps(facts, ensure_ascii=False))
    else:
        _show(evaluation, arguments.worst)
    return 0


def _translated(
    arguments: argparse.Namespace,
) -> tuple[list[str], list[str], list[str] | None]:
    """Translations, references and sources."""
    if arguments.translations:
        if not arguments.reference:
            raise OptionError("evaluate: --translations needs --reference, to compare with")
        unused = [
            f"--{name.replace('_', '-')}"
            for name, unsaid in UNSAID.items()
            if getattr(arguments, name) != unsaid
        ]
        if unused:
            raise OptionError(
                f"evaluate: --translations are there already, so that {', '.join(unused)} would "
                "change nothing: leave that out, or --translations"
            )
        sources = read_lines(arguments.source) if arguments.source else None
        return read_lines(arguments.translations), read_lines(arguments.reference), sources
    from regard.translation.scoring import check_lines
    from regard.translation.translating import Translator, find_checkpoint

    if (arguments.source is None) != (arguments.reference is None):
        raise OptionError("evaluate: --source and --reference go together")
    how = searching(arguments)
    if arguments.source:
        sources, references = read_lines(arguments.source), read_lines(arguments.reference)
        check_lines("--source", sources, "--reference", references)
    else:
        sources, references = _own_test_set(find_checkpoint(arguments.model))
    translator = Translator.load(arguments.model, arguments.precision)
    return [each.text for each in translator.translate(sources, how)], references, sources


def _own_test_set(checkpoint: object) -> tuple[list[str], list[str]]:
    """The test set of the recipe that the checkpoint was trained by."""
    from pathlib import Path

    from regard.translation.corpora import read_corpus
    from regard.translation.recipes import read_recipe

    recipe = Path(str(checkpoint)) / "recipe.toml"
    if not recipe.is_file():
        raise FileError(
            f"evaluate: {str(checkpoint)!r} has no recipe.toml that names a test set: pass "
            "--source and --reference"
        )
    test = read_corpus(read_recipe(str(recipe))).test
    if not test:
        raise FileError(
            f"evaluate: {str(recipe)!r} names no test set: pass --source and --reference"
        )
    return [source for source, _ in test], [target for _, target in test]


def _show(evaluation: Evaluation, worst: int) -> None:
    print(f"{len(evaluation.sentences):,} sentences; 95% intervals by resampling them")
    for score in evaluation.scores:
        print(score)
    for sentence in evaluation.worst(worst):
        print(f"\nline {sentence.line}, chrF {sentence.chrf:.1f}")
        if sentence.source:
            print(f"  source     {sentence.source}")
        print(f"  said       {sentence.said}")
        print(f"  reference  {sentence.reference}")
