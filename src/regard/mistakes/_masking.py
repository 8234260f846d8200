"""Mistakes with masks."""

from __future__ import annotations

from collections.abc import Iterator

from regard.graph.graph import Graph, Step
from regard.graph.notation import Symbol
from regard.graph.operations import (
    Add,
    Affine,
    Causal,
    Exp,
    Mask,
    Multiply,
    Padding,
    Prefix,
    Transpose,
    Window,
)
from regard.graph.polynomial import Polynomial
from regard.graph.rewrites import Change, Expand, Rewrite, Skip
from regard.mistakes._mistake import Mistake, Way, helper, step_named

HIDDEN = "-1000000000"  # what people write for −∞


def _mask_of(graph: Graph) -> str:
    """The mask that is added to the scores; "" where there is none."""
    masked = step_named(graph, "masked")
    return masked.operands[1] if masked and isinstance(masked.operation, Mask) else ""


def _open(mask: str) -> Step:
    """1 where a query may look, 0 where it may not."""
    return helper("mask_open", "M", Exp(over=(), shift=False), mask)


def _forgotten(graph: Graph) -> Iterator[Way]:
    if _mask_of(graph):
        yield Way(Skip("masked"))


def _after_softmax(graph: Graph) -> Iterator[Way]:
    mask, weights = _mask_of(graph), step_named(graph, "weights")
    if mask and weights:
        whole = helper("weights_unmasked", "A", weights.operation, *weights.operands)
        product = Step("weights", Symbol("A"), Multiply(), ("weights_unmasked", "mask_open"))
        yield Way(Skip("masked") | Expand("weights", (whole, _open(mask), product)))


def _with_mask(graph: Graph, *steps: Step) -> Rewrite:
    """The scores under another mask, made by these steps."""
    masked = graph.step("masked")
    scores, _ = masked.operands
    again = Step("masked", masked.symbol, Mask(), (scores, steps[-1].name))
    return Expand("masked", (*steps, again))


def _inverted(graph: Graph) -> Iterator[Way]:
    if mask := _mask_of(graph):
        turned = helper("mask_inverted", "M", Affine(factor=HIDDEN), "mask_open")
        yield Way(_with_mask(graph, _open(mask), turned))


def _transposed(graph: Graph) -> Iterator[Way]:
    mask = _mask_of(graph)
    core = [axis for axis in graph.axes[mask] if axis.name in ("query", "key")] if mask else []
    if len(core) == 2:
        yield Way(_with_mask(graph, helper("mask_transposed", "M", Transpose(), mask)))


def _finite(graph: Graph) -> Iterator[Way]:
    """A number that is too small added to hidden scores, or put in their place."""
    mask, masked = _mask_of(graph), step_named(graph, "masked")
    if not (mask and masked):
        return
    scores, symbol = masked.operands[0], masked.symbol
    for number in ("-1", "-10", "-100"):
        closed = helper("mask_closed", "M", Affine(f"{-int(number)}", number), "mask_open")
        added = Step("masked", symbol, Add(), (scores, "mask_closed"))
        yield Way(Expand("masked", (_open(mask), closed, added)), f"{number} is added")
    for number in ("0", "1/1000000000", "-1", "-10", "-100"):
        shown = "1e-9" if "/" in number else number
        negative = number[1:] if number.startswith("-") else f"-{number}"
        closed = helper("mask_closed", "M", Affine(negative, number), "mask_open")
        kept = helper("scores_kept", "S", Multiply(), scores, "mask_open")
        filled = Step("masked", symbol, Add(), ("scores_kept", "mask_closed"))
        steps = (_open(mask), closed, kept, filled)
        yield Way(Expand("masked", steps), f"{shown} is put there")


def _diagonals(graph: Graph) -> Iterator[Step]:
    for step in graph.steps:
        if isinstance(step.operation, (Causal, Prefix)):
            yield step


def _moved(step: Step, by: int) -> Rewrite:
    assert isinstance(step.operation, (Causal, Prefix))
    return Change(step.name, offset=str(Polynomial.parse(step.operation.offset) + by))


def _strict(graph: Graph) -> Iterator[Way]:
    yield from (Way(_moved(step, -1)) for step in _diagonals(graph))


def _loose(graph: Graph) -> Iterator[Way]:
    yield from (Way(_moved(step, 1)) for step in _diagonals(graph))


def _misaligned(graph: Graph) -> Iterator[Way]:
    for step in _diagonals(graph):
        assert isinstance(step.operation, (Causal, Prefix))
        rows, columns = (Polynomial.parse(s) for s in (step.operation.rows, step.operation.columns))
        now = Polynomial.parse(step.operation.offset).evaluate(graph.sizes)
        for offset in (Polynomial.of(0), columns - rows):
            if offset.evaluate(graph.sizes) != now:
                yield Way(Change(step.name, offset=str(offset)))


def _queries_padded(graph: Graph) -> Iterator[Way]:
    mask, masked = _mask_of(graph), step_named(graph, "masked")
    for step in graph.steps:
        if not (isinstance(step.operation, Padding) and masked):
            continue
        rows = next((a.size for a in graph.axes[masked.name] if a.name == "query"), None)
        if rows is None:
            continue
        padded = helper("padded_queries", "M", Padding(str(rows), "query"), *step.operands)
        if mask == step.name:
            yield Way(_with_mask(graph, padded), "their weights are 0")
            number, scores = "-1000000000", masked.operands[0]
            closed = helper("mask_closed", "M", Affine(number[1:], number), "mask_open")
            kept = helper("scores_kept", "S", Multiply(), scores, "mask_open")
            filled = Step("masked", masked.symbol, Add(), ("scores_kept", "mask_closed"))
            steps = (padded, _open("padded_queries"), closed, kept, filled)
            yield Way(Expand("masked", steps), "their weights are all equal")


def _lengths_off(graph: Graph) -> Iterator[Way]:
    for step in graph.steps:
        if isinstance(step.operation, Padding):
            for shift, detail in (("1", "one key too many"), ("-1", "one key too few")):
                moved = helper("lengths_off", "ℓ", Affine(offset=shift), *step.operands)
                again = Step(step.name, step.symbol, step.operation, ("lengths_off",))
                yield Way(Expand(step.name, (moved, again)), detail)


def _window_off(graph: Graph) -> Iterator[Way]:
    for step in graph.steps:
        if isinstance(step.operation, Window):
            for side in ("left", "right"):
                size = getattr(step.operation, side)
                for other, detail in ((size + 1, "many"), (size - 1, "few")):
                    if size >= 0 <= other:
                        change = Change(step.name, **{side: other})
                        yield Way(change, f"one key too {detail} on the {side}")


def _one_forgotten(graph: Graph) -> Iterator[Way]:
    """One of several masks left out."""
    parts = [s for s in graph.steps if isinstance(s.operation, Mask) and s.name != "masked"]
    for step in parts:
        for operand, left_out in ((0, step.operands[1]), (1, step.operands[0])):
            yield Way(Skip(step.name, operand), left_out.removeprefix("mask_"))


def _added_anyway(graph: Graph) -> Iterator[Way]:
    """A causal mask where none is asked for."""
    exp = step_named(graph, "exp")
    if exp is None or _mask_of(graph) or not exp.operands:
        return
    axes = {axis.name: axis.size for axis in graph.axes[exp.operands[0]]}
    if {"query", "key"} <= axes.keys() and axes["query"] == axes["key"]:
        scores = exp.operands[0]
        causal = helper("mask_extra", "M", Causal(str(axes["query"]), str(axes["key"])))
        masked = helper("scores_masked", "S", Mask(), scores, "mask_extra")
        again = Step("exp", exp.symbol, exp.operation, ("scores_masked",))
        yield Way(Expand("exp", (causal, masked, again)))


MISTAKES = (
    Mistake(
        "mask-forgotten",
        "The mask is not applied",
        "The mask adds −∞ to the scores of the keys that a query may not see, so that their "
        "weights become 0.",
        "Keys that should be hidden have weight.",
        "Which of your weights ought to be exactly 0?",
        _forgotten,
    ),
    Mistake(
        "mask-after-softmax",
        "The mask is applied after the softmax",
        "Weights that are set to 0 after the softmax are missing in the sum: the others no longer "
        "sum to 1. −∞ belongs on the scores, before the softmax.",
        "The hidden weights are 0, but the rows do not sum to 1.",
        "Add up a row of your weights in which something is hidden.",
        _after_softmax,
    ),
    Mistake(
        "mask-inverted",
        "The mask is inverted: it hides what should be seen",
        "−∞ belongs where a query may not look, 0 where it may.",
        "The weights are on the keys that should be hidden.",
        "Which keys may the first query see? Where are its weights?",
        _inverted,
    ),
    Mistake(
        "mask-transposed",
        "The mask is transposed",
        "Rows of the mask belong to queries, columns to keys. A causal mask is open on and below "
        "the diagonal.",
        "The hidden keys are those on the other side of the diagonal.",
        "May the first query see the last key?",
        _transposed,
    ),
    Mistake(
        "mask-finite",
        "Hidden scores get a number that is too large, instead of −∞",
        "Only −∞ (or a very large negative number) makes the weight of a hidden key vanish; a 0 or "
        "a −1 is a score like any other.",
        "Hidden keys have small weights instead of none.",
        "Which number has to stand in a score so that exp of it is 0?",
        _finite,
    ),
    Mistake(
        "causal-hides-itself",
        "The causal mask hides a token from itself",
        "A query sees all keys up to its own position, its own included: the diagonal is open.",
        "The diagonal of the weights is 0.",
        "May a token see itself? What do your weights say on the diagonal?",
        _strict,
    ),
    Mistake(
        "causal-sees-next",
        "The causal mask lets a token see the next one",
        "A query sees the keys up to its own position and none after it.",
        "The first diagonal above the main one has weights.",
        "Which keys has the first query weights on?",
        _loose,
    ),
    Mistake(
        "causal-misaligned",
        "The causal mask is aligned at the wrong end",
        "With unequally many queries and keys the mask can be aligned at the first tokens or at "
        "the last ones; the exercise says which.",
        "The staircase of the mask starts at another key.",
        "Which key does the last query stand at?",
        _misaligned,
    ),
    Mistake(
        "queries-padded",
        "The padding hides queries instead of keys",
        "A padded token must not be looked at: its column is hidden, for every query. Hiding its "
        "row leaves the other queries looking at it.",
        "Padded keys have weight.",
        "Is a padded token to be kept from looking, or from being looked at?",
        _queries_padded,
    ),
    Mistake(
        "padding-off-by-one",
        "The padding begins one key too late or too early",
        "A length of ℓ means that the first ℓ keys are real.",
        "The number of keys with weight is not the length that is given.",
        "Count the keys that have weight in each row.",
        _lengths_off,
    ),
    Mistake(
        "window-off-by-one",
        "The window is one key too wide or too narrow",
        "The window says how many keys on each side a query sees, its own position not counted.",
        "The number of keys with weight in a row is off by one.",
        "Count the keys that a query in the middle sees on either side.",
        _window_off,
    ),
    Mistake(
        "one-mask-forgotten",
        "One of the masks is not applied",
        "A key is hidden if any of the masks hides it.",
        "Keys that one of the masks hides have weight.",
        "Which masks does the exercise ask for? Check each in your weights.",
        _one_forgotten,
    ),
    Mistake(
        "masked-anyway",
        "A causal mask is applied although the exercise has none",
        "Here every query sees every key.",
        "The weights above the diagonal are 0.",
        "Does the exercise hide anything?",
        _added_anyway,
    ),
)
