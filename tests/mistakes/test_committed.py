"""Every mistake has an answer that commits it and is named, and one that does not and is not.

The answers come from the programs that `to_code` writes of the rewritten graph: they are run as
programs, apart from the graph that the diagnosis replays.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

import regard
from regard.checking import Key, Verdict, read_answer
from regard.graph.run import Run, run
from regard.mistakes import CATALOGUE, Mistake, commit
from regard.show.code import to_code

Arrays = dict[str, Any]
RNG = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).round(2)


WEIGHTS: Arrays = {"WQ": normal(7, 3), "WK": normal(7, 3), "WV": normal(7, 5)}
WIDE: Arrays = {"WQ": normal(8, 6), "WK": normal(8, 6), "WV": normal(8, 6), "WO": normal(6, 6)}
MORE: Arrays = {"W1": normal(8, 11), "W2": normal(11, 8), "WO": normal(6, 8)}
SQUARE: Arrays = {name: normal(5, 5) for name in ("WQ", "WK", "WV")}

# Computations of every kind; between them each mistake of the catalogue can be made and seen.
WORKS: dict[str, tuple[str, Arrays]] = {
    "one head": ("self-attention", {"X": normal(5, 7), **WEIGHTS}),
    "square": ("self-attention", {"X": normal(5, 5), **SQUARE}),
    "unscaled": ("self-attention", {"X": normal(5, 7), **WEIGHTS, "scale": 1}),
    "biased": (
        "self-attention",
        {"X": normal(5, 7), **WEIGHTS, "bQ": normal(3), "bK": normal(3), "bV": normal(5)},
    ),
    "batch": ("self-attention", {"X": normal(2, 5, 7), **WEIGHTS}),
    "heads": ("multi-head", {"X": normal(6, 8), **WIDE, "heads": 3}),
    "a matrix a head": (
        "multi-head",
        {"X": normal(5, 7), "WQ": normal(3, 7, 2), "WK": normal(3, 7, 2), "WV": normal(3, 7, 2)},
    ),
    "causal": ("attention", {"Q": normal(5, 3), "K": normal(5, 3), "V": normal(5, 7), "causal": 0}),
    "longer": (
        "attention",
        {"Q": normal(3, 2), "K": normal(5, 2), "V": normal(5, 7), "causal": "bottom-right"},
    ),
    "padded": (
        "attention",
        {"Q": normal(5, 3), "K": normal(5, 3), "V": normal(5, 7), "lengths": np.array(3)},
    ),
    "window": (
        "attention",
        {"Q": normal(7, 3), "K": normal(7, 3), "V": normal(7, 2), "window": (2, 1), "causal": 0},
    ),
    "across": (
        "cross-attention",
        {"X": normal(5, 7), "Y": normal(5, 7), **WEIGHTS, "WO": normal(5, 5)},
    ),
    "positions": ("self-attention", {"X": normal(5, 8), "positions": "sinusoidal",
                  "WQ": normal(8, 3), "WK": normal(8, 3), "WV": normal(8, 2)}),
    "rotary": ("attention", {"Q": normal(5, 6), "K": normal(5, 6), "V": normal(5, 3),
                             "positions": "rotary", "softcap": 2}),
    "block": ("decoder-block", {"X": normal(6, 8), **WIDE, **MORE, "heads": 3}),
}  # fmt: skip
RUNS: dict[str, Run] = {
    name: regard.work(kind, **given).run for name, (kind, given) in WORKS.items()
}
KEYS = {name: Key(each) for name, each in RUNS.items()}


def steps_to_answer(each: Run, graph_steps: set[str]) -> list[str]:
    """What people are asked for: the steps with names of their own, as far as they are there."""
    asked = ("Q", "K", "V", "scores", "scaled", "masked", "weights", "context", "merged", "output")
    last = each.graph.steps[-1].name
    return [name for name in (*asked, last) if name in each.graph.step_names & graph_steps]


def cases() -> list[Any]:
    """For each mistake the computations in which it can be made."""
    found = []
    for mistake in CATALOGUE:
        homes = [name for name, each in RUNS.items() if list(mistake.ways(each.graph))]
        found.append(pytest.param(mistake, homes, id=mistake.word))
    return found


def by_program(each: Run, mistake: Mistake) -> list[Arrays]:
    """The values of every step, from programs that make the mistake."""
    found = []
    for way in mistake.ways(each.graph):
        committed = commit(each, way.rewrite)
        if committed is None:
            continue
        graph = committed.graph.pruned(*committed.values)
        code = to_code(run(graph, {g.name: each.givens[g.name] for g in graph.givens}), "numpy")
        variables: Arrays = {}
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            exec(code, variables)
        changed = [n for n in steps_to_answer(each, set(committed.changed)) if n in variables]
        found.append({name: variables[name] for name in changed})
    return found


@pytest.mark.parametrize(("mistake", "homes"), cases())
def test_a_mistake_is_named_where_it_is_made_and_only_there(
    mistake: Mistake, homes: list[str]
) -> None:
    assert homes, "no computation here can show it"
    named = 0
    for name in homes:
        each, key = RUNS[name], KEYS[name]
        for wrong in by_program(each, mistake):
            for step, value in wrong.items():
                judgement = key.judge({step: read_answer(step, value)})[step]
                if judgement.verdict in (Verdict.MISTAKE, Verdict.UNGRADABLE) and judgement.causes:
                    words = {cause.mistake.word for causes in judgement.causes for cause in causes}
                    assert mistake.word in words, (name, step, words)
                    named += 1
                right = key.judge({step: read_answer(step, each.values[step])})[step]
                assert right.verdict == Verdict.RIGHT
                assert not right.causes
    assert named
