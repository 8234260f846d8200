"""Mistakes with positions, and with what a decoder block adds around the attention."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from regard.graph.graph import Graph
from regard.graph.operations import Add, Affine, Rotary, Sinusoidal
from regard.graph.rewrites import Change, Insert, Rewrite, Skip
from regard.mistakes._mistake import Mistake, Way, helper, step_named


def _all_skipped(*names: str) -> Rewrite:
    skips: list[Rewrite] = [Skip(name) for name in names]
    return reduce(lambda one, other: one | other, skips)


def _positioned(graph: Graph) -> list[str]:
    return [name for name in ("positioned", "positioned_Y") if step_named(graph, name)]


def _rotated(graph: Graph) -> list[str]:
    return [step.name for step in graph.steps if isinstance(step.operation, Rotary)]


def _forgotten(graph: Graph) -> Iterator[Way]:
    if names := _positioned(graph):
        yield Way(_all_skipped(*names))
    if names := _rotated(graph):
        yield Way(_all_skipped(*names))
    if step_named(graph, "distanced"):
        yield Way(Skip("distanced"))


def _half_rotated(graph: Graph) -> Iterator[Way]:
    if len(names := _rotated(graph)) > 1:
        yield from (Way(Skip(name), f"only {name[0]} is not turned") for name in names)


def _added_twice(graph: Graph) -> Iterator[Way]:
    inserts: list[Rewrite] = [
        Insert(name, helper(f"{name}_again", "X", Add(), name, graph.step(name).operands[1]))
        for name in _positioned(graph)
    ]
    if inserts:
        yield Way(reduce(lambda one, other: one | other, inserts))


def _instead_of_tokens(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "positioned"):
        yield Way(Skip("positioned", 1))


def _swapped(graph: Graph) -> Iterator[Way]:
    if any(isinstance(step.operation, Sinusoidal) for step in graph.steps):
        yield Way(Change(Sinusoidal, swapped=True))


def _other_pairs(graph: Graph) -> Iterator[Way]:
    for step in graph.steps:
        if isinstance(step.operation, Rotary):
            other = "interleaved" if step.operation.layout == "half" else "half"
            yield Way(Change(Rotary, layout=other))
            return


def _no_residual(graph: Graph) -> Iterator[Way]:
    names = [name for name in ("residual_1", "residual_2") if step_named(graph, name)]
    yield from (
        Way(
            Skip(name, 1), "around the " + ("attention" if name[-1] == "1" else "feed-forward part")
        )
        for name in names
    )


def _no_norm(graph: Graph) -> Iterator[Way]:
    norms = [step for step in graph.steps if step.name in ("norm_1", "norm_2")]
    for step in norms:
        source = "X" if step.name == "norm_1" else "residual_1"
        if source in graph:
            users = [each for each in graph.steps if step.name in each.operands]
            if users:
                yield Way(
                    Insert(step.name, helper(f"{step.name}_left_out", "X", Affine(), source)),
                    f"before the {'attention' if step.name == 'norm_1' else 'feed-forward part'}",
                )


def _no_cap(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "capped"):
        yield Way(Skip("capped"))


MISTAKES = (
    Mistake(
        "positions-forgotten",
        "The positions are not used",
        "Attention by itself does not know in which order the tokens stand; the positions tell it.",
        "The result is that of the tokens without positions.",
        "Would your result be the same, row for row, with the tokens in another order?",
        _forgotten,
    ),
    Mistake(
        "positions-twice",
        "The positions are added twice",
        "X with its positions is X + P; Q, K and V are all made from that one sum.",
        "The projections use X + 2 P.",
        "At how many places in your work are the positions added?",
        _added_twice,
    ),
    Mistake(
        "positions-instead-of-tokens",
        "The positions take the place of the tokens",
        "The positions are added to X, they do not replace it.",
        "The result does not depend on X.",
        "Where does X enter your work?",
        _instead_of_tokens,
    ),
    Mistake(
        "sine-cosine-swapped",
        "Sine and cosine are exchanged",
        "Even columns (counted from 0) hold sines, odd ones cosines, so the first position is "
        "0, 1, 0, 1, …",
        "The first position is 1, 0, 1, 0, …",
        "What is sin 0, and in which column of the first position does it stand?",
        _swapped,
    ),
    Mistake(
        "rotary-half",
        "Only queries or only keys are turned",
        "Rotary positions turn queries and keys alike, so that a score depends on the distance.",
        "One of Q and K is used as it is.",
        "What is to be turned before the dot products?",
        _half_rotated,
    ),
    Mistake(
        "rotary-pairs",
        "The wrong columns are turned as a pair",
        "A pair is either two neighbouring columns, or a column and the one half the width away; "
        "the exercise says which.",
        "The turned queries and keys are those of the other pairing.",
        "Which two columns are turned together?",
        _other_pairs,
    ),
    Mistake(
        "softcap-forgotten",
        "The scores are not capped",
        "The scores go through cap·tanh(score / cap) before the softmax.",
        "Scores beyond the cap are left as they are.",
        "Is there a score larger than the cap?",
        _no_cap,
    ),
    Mistake(
        "residual-forgotten",
        "A residual connection is missing",
        "What comes out of a part of the block is added to what went in.",
        "The result is what the part gives, without what went in.",
        "What is added to what in the picture of the block?",
        _no_residual,
    ),
    Mistake(
        "norm-forgotten",
        "A normalisation is left out",
        "Here each part of the block works on normalised tokens.",
        "The part works on the tokens as they are.",
        "What does the block do with its input first?",
        _no_norm,
    ),
)
