"""Mistakes with the scale of the scores."""

from __future__ import annotations

from collections.abc import Iterator

from regard.graph.graph import Graph
from regard.graph.notation import Symbol
from regard.graph.operations import Scale
from regard.graph.polynomial import Polynomial
from regard.graph.rewrites import Change, Expand, Insert, Skip
from regard.mistakes._mistake import Mistake, Way, helper, step_named


def _scale(graph: Graph) -> Scale | None:
    """The division by a root, where the scores are divided by one."""
    step = step_named(graph, "scaled")
    return step.operation if step and isinstance(step.operation, Scale) else None


def _not_scaled(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "scaled"):
        yield Way(Skip("scaled"))


def _by_size(graph: Graph) -> Iterator[Way]:
    if _scale(graph):
        yield Way(Change("scaled", root=False))


def _multiplied(graph: Graph) -> Iterator[Way]:
    if _scale(graph):
        yield Way(Change("scaled", multiply=True))
        yield Way(Change("scaled", multiply=True, root=False), "by d_k itself")


def _by_other(graph: Graph, *sizes: str) -> Iterator[Way]:
    """Division by the root of another size, where that is another number."""
    scale = _scale(graph)
    if scale is None:
        return
    seen = {Polynomial.parse(scale.size).evaluate(graph.sizes)}
    for size in sizes:
        formula = Polynomial.parse(size)
        if set(formula.symbols) <= set(graph.sizes):
            number = formula.evaluate(graph.sizes)
            if number not in seen:
                seen.add(number)
                yield Way(Change("scaled", size=size), f"by √{number}")


def _by_width(graph: Graph) -> Iterator[Way]:
    yield from _by_other(graph, "d_model", "h d_k")


def _by_length(graph: Graph) -> Iterator[Way]:
    yield from _by_other(graph, "n", "n_k", "n_q")


def _by_value_width(graph: Graph) -> Iterator[Way]:
    yield from _by_other(graph, "d_v")


def _scaled_anyway(graph: Graph) -> Iterator[Way]:
    scores = step_named(graph, "scores")
    if scores is None or step_named(graph, "scaled"):
        return
    yield Way(Insert("scores", helper("scores_scaled", "S", Scale(), "scores")))
    raw = helper("scores_raw", "S", scores.operation, *scores.operands)
    yield Way(
        Expand("scores", (raw, helper("scores", "S", Scale(), "scores_raw"))), "in the scores"
    )


def _softmax_first(graph: Graph) -> Iterator[Way]:
    scale, weights = _scale(graph), step_named(graph, "weights")
    if scale and weights:
        whole = helper("weights_unscaled", "A", weights.operation, *weights.operands)
        divided = weights.__class__("weights", Symbol("A"), scale, ("weights_unscaled",))
        yield Way(Skip("scaled") | Expand("weights", (whole, divided)))


MISTAKES = (
    Mistake(
        "no-scale",
        "The scores are not divided by √d_k",
        "Scaled dot-product attention divides every dot product by √d_k before the softmax. "
        "Without the division the scores are too far apart and the weights come out too extreme.",
        "The weights are the softmax of the raw dot products.",
        "Compare the formula with your steps between Q Kᵀ and the softmax: is one missing?",
        _not_scaled,
    ),
    Mistake(
        "scale-by-size",
        "The scores are divided by d_k instead of √d_k",
        "Dot products of vectors with d_k entries grow like √d_k, so the root is what brings them "
        "back to the same size. Dividing by d_k itself (or by √d_k twice) makes the weights "
        "too even.",
        "Every score is smaller than it should be by the factor √d_k.",
        "Look closely at the number you divide by: what exactly does the formula say about d_k?",
        _by_size,
    ),
    Mistake(
        "scale-by-model-width",
        "The scores are divided by the root of the width of the whole model",
        "The number under the root is d_k, how many entries one query and one key have. The width "
        "of X, or of all heads together, is another number here.",
        "The scores are those of Q Kᵀ divided by the root of a width that Q and K do not have.",
        "How many numbers are multiplied and added in one dot product of a query with a key?",
        _by_width,
    ),
    Mistake(
        "scale-by-length",
        "The scores are divided by the root of the number of tokens",
        "The number under the root is d_k, how many entries one query and one key have; it does "
        "not depend on how many tokens there are.",
        "The scores are those of Q Kᵀ divided by √n.",
        "Would your divisor change if the sequence had one more token? Should it?",
        _by_length,
    ),
    Mistake(
        "scale-by-value-width",
        "The scores are divided by √d_v instead of √d_k",
        "The values do not take part in the dot products: what counts is d_k, how many entries a "
        "query and a key have.",
        "The scores are those of Q Kᵀ divided by √d_v.",
        "Which two vectors meet in a score? How many entries do these have?",
        _by_value_width,
    ),
    Mistake(
        "scale-multiplied",
        "The scores are multiplied by √d_k instead of divided",
        "The division keeps the scores small as d_k grows; multiplying makes them larger still, "
        "and the softmax nearly picks a single key.",
        "Every score is larger than Q Kᵀ, where it should be smaller.",
        "Should the scaled scores be closer together than the raw ones, or farther apart?",
        _multiplied,
    ),
    Mistake(
        "scaled-anyway",
        "The scores are divided by √d_k although this exercise does not scale",
        "Here the dot products go into the softmax as they are.",
        "The weights are the softmax of the dot products divided by √d_k.",
        "Read again what the exercise says about scaling.",
        _scaled_anyway,
    ),
    Mistake(
        "softmax-before-scale",
        "The softmax comes before the division by √d_k",
        "First the scores are divided, then the softmax is taken. In the other order the weights "
        "of a query no longer sum to 1.",
        "Every row of the weights sums to 1/√d_k.",
        "Add up one row of your weights. What should come out?",
        _softmax_first,
    ),
)
