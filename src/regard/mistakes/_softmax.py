"""Mistakes with the softmax."""

from __future__ import annotations

from collections.abc import Iterator

from regard.graph.graph import Graph
from regard.graph.operations import Affine, Exp, Normalise, Sum
from regard.graph.rewrites import Drop, Expand, softmax_over
from regard.mistakes._mistake import Mistake, Way, has_axis, helper, logits, step_named


def _over_queries(graph: Graph) -> Iterator[Way]:
    if has_axis(graph, "exp", "query"):
        yield Way(softmax_over("query"))


def _over_heads(graph: Graph) -> Iterator[Way]:
    if has_axis(graph, "exp", "head"):
        yield Way(softmax_over("head"))


def _over_everything(graph: Graph) -> Iterator[Way]:
    if has_axis(graph, "exp", "query"):
        yield Way(softmax_over("query", "key"))


def _over_batch(graph: Graph) -> Iterator[Way]:
    if has_axis(graph, "exp", "batch"):
        yield Way(softmax_over("batch"))


def _none(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "weights") and logits(graph):
        yield Way(Expand("weights", (helper("weights", "A", Affine(), logits(graph)),)))


def _not_normalised(graph: Graph) -> Iterator[Way]:
    if step_named(graph, "weights") and logits(graph):
        yield Way(Expand("weights", (helper("weights", "A", Affine(), "exp"),)))


def _without_exp(graph: Graph) -> Iterator[Way]:
    if logits(graph):
        yield Way(Drop("exp"))


def _twice(graph: Graph) -> Iterator[Way]:
    weights = step_named(graph, "weights")
    if weights and logits(graph):
        again = (
            helper("weights_once", "A", weights.operation, *weights.operands),
            helper("exp_again", "E", Exp(), "weights_once"),
            helper("sums_again", "r", Sum(("key",)), "exp_again"),
            helper("weights", "A", Normalise(), "exp_again", "sums_again"),
        )
        yield Way(Expand("weights", again))


MISTAKES = (
    Mistake(
        "softmax-over-columns",
        "The softmax is taken over the columns instead of the rows",
        "A row of the scores holds one query against all keys, and each query distributes one "
        "unit of attention over the keys: each row is normalised by itself.",
        "The columns of the weights sum to 1, the rows do not.",
        "Add up a row and a column of your weights. Which of the two should be 1?",
        _over_queries,
    ),
    Mistake(
        "softmax-over-heads",
        "The softmax is taken over the heads instead of the keys",
        "Every head has weights of its own; within one head, each query distributes one unit of "
        "attention over the keys.",
        "The weights of all heads at the same place sum to 1.",
        "Take one head alone: do its weights for one query sum to 1?",
        _over_heads,
    ),
    Mistake(
        "softmax-over-everything",
        "The softmax is taken over the whole matrix at once",
        "Each query distributes one unit of attention over the keys, so each row is divided by its "
        "own sum, not by the sum of all exponentials.",
        "All weights together sum to 1.",
        "Add up one row of your weights, then all of them.",
        _over_everything,
    ),
    Mistake(
        "softmax-over-batch",
        "The softmax is taken over the batch instead of the keys",
        "The sequences of a batch have nothing to do with each other; each query distributes one "
        "unit of attention over the keys of its own sequence.",
        "The weights of all sequences at the same place sum to 1.",
        "Would the weights of the first sequence change if the second one were another?",
        _over_batch,
    ),
    Mistake(
        "no-softmax",
        "There is no softmax: the scores themselves are used as weights",
        "The scores become weights only through the softmax, which makes them positive and lets "
        "them sum to 1 for each query.",
        "The weights are the scores.",
        "Are your weights between 0 and 1, and does each row sum to 1?",
        _none,
    ),
    Mistake(
        "not-normalised",
        "The exponentials are not divided by their sum",
        "The softmax is exp of each score divided by the sum of these over the keys. Without the "
        "division the weights of a query do not sum to 1.",
        "The weights are exp of the scores.",
        "The softmax has two parts. Add up one row of your weights to see which is missing.",
        _not_normalised,
    ),
    Mistake(
        "no-exponential",
        "The scores are divided by their sum without taking exponentials",
        "The softmax first takes exp of every score, which makes all of them positive, and then "
        "divides by the sum.",
        "The weights are the scores divided by the sum of their row.",
        "The softmax has two parts. What happens to a negative score in yours?",
        _without_exp,
    ),
    Mistake(
        "softmax-twice",
        "The softmax is taken twice",
        "After one softmax the rows sum to 1 already; a second one makes the weights nearly equal.",
        "The weights are the softmax of the right weights.",
        "Follow one row through your work: how often is exp applied to it?",
        _twice,
    ),
)
