"""Mistakes with the matrix products: projections, scores, and the weights on the values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from regard.graph.graph import Graph
from regard.graph.operations import Add, MatMul
from regard.graph.rewrites import Change, Operands, Rewrite, Skip, Swap
from regard.mistakes._mistake import (
    Mistake,
    Way,
    has_axis,
    product_of,
    projections,
    step_named,
)


def _together(rewrites: list[Rewrite]) -> Rewrite:
    return reduce(lambda one, other: one | other, rewrites)


def _not_transposed(graph: Graph) -> Iterator[Way]:
    scores = step_named(graph, "scores")
    if scores and isinstance(scores.operation, MatMul) and scores.operation.transpose_b:
        yield Way(Change("scores", transpose_b=False))


def _turned(graph: Graph) -> Iterator[Way]:
    scores = step_named(graph, "scores")
    if scores and isinstance(scores.operation, MatMul) and scores.operation.transpose_b:
        yield Way(Operands("scores", scores.operands[::-1]))


def _wrong_operands(graph: Graph) -> Iterator[Way]:
    scores, context = step_named(graph, "scores"), step_named(graph, "context")
    if not (scores and context and isinstance(scores.operation, MatMul)):
        return
    if not scores.operation.transpose_b:
        return
    q, k, v = *scores.operands, context.operands[1]
    for detail, operands in {
        "Q Qᵀ": (q, q), "K Kᵀ": (k, k), "Q Vᵀ": (q, v), "K Vᵀ": (k, v), "V Vᵀ": (v, v),
    }.items():  # fmt: skip
        yield Way(Operands("scores", operands), detail)


def _wrong_values(graph: Graph) -> Iterator[Way]:
    scores, context = step_named(graph, "scores"), step_named(graph, "context")
    if not (scores and context and len(scores.operands) == 2):
        return
    for name in scores.operands:
        if name != context.operands[1] and not name.startswith("s"):
            operands = (context.operands[0], name, *context.operands[2:])
            yield Way(Operands("context", operands), f"{name[0]} in the place of V")


def _raw_scores(graph: Graph) -> Iterator[Way]:
    made = projections(graph)
    if {"Q", "K"} <= made.keys():
        yield Way(Skip(made["Q"].name) | Skip(made["K"].name), "neither Q nor K is projected")
        yield Way(Skip(made["Q"].name), "Q is not projected")
        yield Way(Skip(made["K"].name), "K is not projected")


def _raw_values(graph: Graph) -> Iterator[Way]:
    if "V" in (made := projections(graph)):
        yield Way(Skip(made["V"].name))


def _weights_transposed(graph: Graph) -> Iterator[Way]:
    changes = {
        letter: Change(step.name, transpose_b=True) for letter, step in projections(graph).items()
    }
    if changes:
        yield Way(_together(list(changes.values())), "all of them")
        yield from (Way(change, f"W_{letter}") for letter, change in changes.items())


def _queries_keys_swapped(graph: Graph) -> Iterator[Way]:
    if {"WQ", "WK"} <= set(graph.names):
        yield Way(Swap("WQ", "WK"))


def _wrong_matrix(graph: Graph) -> Iterator[Way]:
    made = projections(graph)
    for letter, step in made.items():
        for other in made:
            if other != letter:
                operands = (step.operands[0], f"W{other}")
                yield Way(Operands(step.name, operands), f"{letter} from W_{other}")
    for one, other in (("Q", "V"), ("K", "V")):
        if {one, other} <= made.keys():
            yield Way(Swap(f"W{one}", f"W{other}"), f"W_{one} and W_{other} exchanged")


def _weights_turned(graph: Graph) -> Iterator[Way]:
    if has_axis(graph, "weights", "query") and step_named(graph, "context"):
        yield Way(Change("context", transpose_a=True))


def _no_bias(graph: Graph) -> Iterator[Way]:
    biased = [
        name
        for name in ("Q", "K", "V", "output")
        if (step := step_named(graph, name)) and isinstance(step.operation, Add)
    ]
    if len(biased) > 1:
        yield Way(_together([Skip(name) for name in biased]), "all of them")
    yield from (Way(Skip(name), f"of {name}") for name in biased)


def _sides_swapped(graph: Graph) -> Iterator[Way]:
    if graph.kind == "cross-attention" and graph.sizes.get("n_q") == graph.sizes.get("n_k"):
        yield Way(Swap("X", "Y"))


def _own_side(graph: Graph) -> Iterator[Way]:
    """Keys or values of a cross-attention made from the sequence that looks."""
    if graph.kind != "cross-attention":
        return
    made = projections(graph)
    own = {
        letter: Operands(made[letter].name, (made["Q"].operands[0], f"W{letter}"))
        for letter in "KV"
        if letter in made
    }
    if len(own) == 2:
        yield Way(_together(list(own.values())), "both")
    yield from (Way(change, letter) for letter, change in own.items())


def _no_output(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "output"):
        yield Way(Skip("output"))


def _output_transposed(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "output"):
        yield Way(Change(product_of(graph, "output"), transpose_b=True))


MISTAKES = (
    Mistake(
        "keys-not-transposed",
        "Q is multiplied with K instead of Kᵀ",
        "A score is the dot product of a query (a row of Q) with a key (a row of K), so K enters "
        "transposed. Q K happens to fit only because there are as many tokens as columns.",
        "The scores are the product Q K.",
        "Compute the first score as a dot product of one query with one key. Is it yours?",
        _not_transposed,
    ),
    Mistake(
        "scores-transposed",
        "The scores are K Qᵀ instead of Q Kᵀ",
        "Rows of the scores belong to queries, columns to keys. K Qᵀ has them the other way "
        "round, so the softmax then normalises over the queries.",
        "The scores are the transpose of the right ones.",
        "Which token looks, and which is looked at, in the score of row 1, column 2?",
        _turned,
    ),
    Mistake(
        "wrong-score-operands",
        "The scores are not made from Q and K",
        "A score is the dot product of a query with a key. Another matrix stands in the place of "
        "one of them.",
        "The scores are the product that is named here.",
        "Check which two matrices you multiply to get the scores.",
        _wrong_operands,
    ),
    Mistake(
        "wrong-values",
        "The weights are multiplied with another matrix than V",
        "The result is the average of the values, weighted by the attention: the weights are "
        "multiplied with V.",
        "The result is the product of the weights with Q or K.",
        "What does attention take the weighted average of?",
        _wrong_values,
    ),
    Mistake(
        "queries-keys-not-projected",
        "Queries or keys are taken from X without their weight matrix",
        "Q = X W_Q and K = X W_K: the projections decide what a token asks for and what it "
        "answers to.",
        "The scores use X where Q or K should stand.",
        "How do Q and K come out of X?",
        _raw_scores,
    ),
    Mistake(
        "values-not-projected",
        "The values are not projected: X stands for V",
        "V = X W_V. The weights are to be multiplied with these values, not with the tokens.",
        "The result is the weighted average of the rows of X.",
        "What do you multiply the weights with, and how does it come out of X?",
        _raw_values,
    ),
    Mistake(
        "weight-matrix-transposed",
        "A weight matrix is transposed",
        "Tokens are rows of X, so Q = X W_Q. (A linear layer of PyTorch stores the transpose, "
        "which is where this often comes from.)",
        "The projection is X Wᵀ.",
        "Compute one entry of the projection as a row of X times a column of W. Is it yours?",
        _weights_transposed,
    ),
    Mistake(
        "queries-keys-swapped",
        "W_Q and W_K are exchanged",
        "The queries come from W_Q and the keys from W_K. Exchanged, the matrix of scores comes "
        "out transposed.",
        "Q is X W_K and K is X W_Q.",
        "Check which matrix makes the queries and which the keys.",
        _queries_keys_swapped,
    ),
    Mistake(
        "wrong-weight-matrix",
        "A projection uses the weight matrix of another",
        "Queries, keys and values each have a matrix of their own: W_Q, W_K and W_V.",
        "One of Q, K and V is X times the matrix of another.",
        "Check, for each of Q, K and V, which weight matrix you used.",
        _wrong_matrix,
    ),
    Mistake(
        "weights-transposed",
        "The weights are transposed before they are multiplied with V",
        "Row i of the weights says how much query i attends to each key, so row i of the result is "
        "that row times V.",
        "The result is Aᵀ V.",
        "Compute the first row of the result from the first row of the weights. Is it yours?",
        _weights_turned,
    ),
    Mistake(
        "bias-forgotten",
        "A bias is not added",
        "Here a projection is X W + b, with a vector b added to every row.",
        "The projection is X W alone.",
        "Read again what belongs to a projection in this exercise.",
        _no_bias,
    ),
    Mistake(
        "sides-swapped",
        "Queries come from the sequence that is looked at, keys and values from the one that looks",
        "In cross-attention the queries come from X, the keys and values from Y.",
        "X and Y have changed places.",
        "Which sequence asks, and which one answers?",
        _sides_swapped,
    ),
    Mistake(
        "keys-from-own-side",
        "Keys or values are made from the sequence that looks",
        "In cross-attention only the queries come from X; keys and values come from Y.",
        "K or V is made from X.",
        "Which sequence is looked at?",
        _own_side,
    ),
    Mistake(
        "output-projection-forgotten",
        "W_O is forgotten",
        "The result of the heads is multiplied with W_O at the end.",
        "The output is what should only go into the last product.",
        "Is there a matrix among the givens that you have not used?",
        _no_output,
    ),
    Mistake(
        "output-projection-transposed",
        "W_O is transposed",
        "The rows of the merged heads are multiplied with W_O as it is given.",
        "The output is Z W_Oᵀ.",
        "Compute one entry of the output as a row times a column of W_O. Is it yours?",
        _output_transposed,
    ),
)
