"""The command line: `regard VERB …`, one module a verb.

Exit codes: 0 fine, 1 the answer or the run fell short, 2 bad input.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from regard._errors import OptionError, RegardError, did_you_mean

VERBS = {
    "solve": "solve an exercise or a pasted assignment, step by step",
    "check": "check answers: what is right, and what went wrong where",
    "count": "count the operations and the memory of a computation",
    "explore": "run an experiment about attention, or sweep it over a grid",
    "grade": "grade submitted programs, run shut in",
    "new": "make an exercise with pleasant numbers, its sheets, a variant for each student",
    "train": "train a translation model from French to English, or of your own pairs",
    "translate": "translate sentences, files or what you type",
    "evaluate": "score translations: BLEU and chrF, with intervals and the worst sentences",
    "info": "say what is installed and which parts can be used",
}
QUIET = 200_000  # objects until garbage is looked for: more than a short verb makes
EPILOG = """examples:
  regard solve --list
  regard solve unscaled-self-attention
  regard solve assignment.md --format html --output solution.html
  regard check unscaled-self-attention answers.toml
  regard count multi-head --size n=128,d_model=512,h=8,d_k=64,d_v=64
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; a user's mistake is told in a sentence, without a traceback."""
    gc.set_threshold(QUIET)  # looking for garbage while modules load took a tenth of the start
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ∞ must not stop the output
    try:
        return _run(arguments)
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever was reading has gone; the rest of the output must not raise once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("regard: stopped", file=sys.stderr)
        return 130
    finally:
        gc.freeze()  # the interpreter's own last look would take another tenth


def _run(arguments: list[str]) -> int:
    """Load only the verb that is asked for: everything else would slow its start."""
    if arguments and arguments[0] in VERBS:
        verb = import_module(f"regard.cli._{arguments[0]}")
        parser = argparse.ArgumentParser(
            prog=f"regard {arguments[0]}",
            description=verb.__doc__,
            epilog=verb.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(parser)
        chosen, unknown = parser.parse_known_args(arguments[1:])
        if unknown:
            raise _unknown(parser, unknown[0])
        code: int = verb.run(chosen)
        return code
    if arguments and not arguments[0].startswith("-"):
        raise OptionError(f"no verb {arguments[0]!r}: {did_you_mean(arguments[0], VERBS)}")
    _parser().parse_args(arguments)
    _parser().print_help()
    return 2


def _unknown(parser: argparse.ArgumentParser, word: str) -> OptionError:
    """Why a verb cannot take a word."""
    verb = parser.prog.removeprefix("regard ")
    if not word.startswith("-"):
        return OptionError(f"{verb}: nothing is expected where {word!r} stands")
    name = word.partition("=")[0]
    meant = did_you_mean(name, parser._option_string_actions)
    return OptionError(f"{verb}: no option {name!r}: {meant}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="regard",
        description="Attention, shown step by step with numbers that can be trusted.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=_version())
    verbs = parser.add_subparsers(metavar="VERB", title="verbs")
    for name, what in VERBS.items():
        verbs.add_parser(name, help=what)
    return parser


def _version() -> str:
    import regard

    return f"regard {regard.__version__}"
