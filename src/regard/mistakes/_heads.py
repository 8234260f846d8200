"""Mistakes with many heads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from regard.graph.graph import Graph, Step
from regard.graph.operations import Add, Mean, Merge, PickHead, PutHead, Scale, Split, Sum
from regard.graph.rewrites import Change, Expand, Rewrite, Skip, Substitute
from regard.mistakes._mistake import Mistake, Way, helper, step_named


def _splits(graph: Graph) -> bool:
    return any(isinstance(step.operation, Split) for step in graph.steps)


def _merges(graph: Graph) -> Step | None:
    step = step_named(graph, "merged")
    return step if step and isinstance(step.operation, Merge) else None


def _laid_out(graph: Graph, layout: str, *merged: str) -> Iterator[Way]:
    """The heads cut in another layout, and put together in one of these."""
    if _splits(graph) and _merges(graph):
        for back in merged:
            change: Rewrite = Change(Split, layout=layout)
            if back != "columns":
                change = change | Change("merged", layout=back)
            yield Way(change, "" if back == merged[0] else "and put together in the same way")


def _by_rows(graph: Graph) -> Iterator[Way]:
    """The width of a head is then that of all heads, and people divide by the root of that."""
    for way in _laid_out(graph, "rows", "rows"):
        yield way
        scaled = step_named(graph, "scaled")
        if scaled and isinstance(scaled.operation, Scale):
            yield Way(way.rewrite | Change("scaled", size="h d_k"), "and scaled by their width")


def _interleaved(graph: Graph) -> Iterator[Way]:
    yield from _laid_out(graph, "interleaved", "columns", "interleaved")


def _by_view(graph: Graph) -> Iterator[Way]:
    yield from _laid_out(graph, "view", "columns", "view")


def _merged_as(graph: Graph, layout: str) -> Iterator[Way]:
    if _merges(graph):
        yield Way(Change("merged", layout=layout))


def _merged_by_view(graph: Graph) -> Iterator[Way]:
    yield from _merged_as(graph, "view")


def _merged_interleaved(graph: Graph) -> Iterator[Way]:
    yield from _merged_as(graph, "interleaved")


def _merged_by_rows(graph: Graph) -> Iterator[Way]:
    yield from _merged_as(graph, "rows")


def _reversed(graph: Graph) -> Iterator[Way]:
    merged, heads = _merges(graph), graph.sizes.get("h", 0)
    if merged is None or heads < 2:
        return
    (context,) = merged.operands
    steps: list[Step] = []
    whole = ""
    for head in range(heads):
        steps.append(helper(f"picked_{head + 1}", "C", PickHead(head), context))
        put = PutHead(heads - 1 - head, "h")
        steps.append(helper(f"placed_{head + 1}", "C", put, f"picked_{head + 1}"))
        if whole:
            steps.append(helper(f"joined_{head + 1}", "C", Add(), whole, f"placed_{head + 1}"))
        whole = steps[-1].name
    last = Step("merged", merged.symbol, merged.operation, (whole,))
    yield Way(Expand("merged", (*steps, last)))


def _averaged(graph: Graph) -> Iterator[Way]:
    if _merges(graph):
        yield Way(Substitute("merged", Mean(("head",))))
        yield Way(Substitute("merged", Sum(("head",))), "they are added up")


def _single_head(graph: Graph) -> Iterator[Way]:
    splits = [step for step in graph.steps if isinstance(step.operation, Split)]
    if splits and _merges(graph):
        skips: list[Rewrite] = [Skip(step.name) for step in splits]
        yield Way(reduce(lambda one, other: one | other, skips) | Skip("merged"))


def _first_head(graph: Graph) -> Iterator[Way]:
    """Every head with the weight matrices of the first."""
    given = {each.name: each for each in graph.givens}
    headed = [
        name
        for name in ("WQ", "WK", "WV")
        if name in given and any(axis.name == "head" for axis in given[name].axes)
    ]
    if len(headed) < 3 or graph.sizes.get("h", 0) < 2:
        return
    rewrites: list[Rewrite] = []
    for step in graph.steps:
        if len(step.operands) == 2 and step.operands[1] in headed:
            weight = step.operands[1]
            first = helper(f"{weight}_first", "W", PickHead(0), weight)
            again = Step(step.name, step.symbol, step.operation, (step.operands[0], first.name))
            rewrites.append(Expand(step.name, (first, again)))
    yield from _spread(graph, rewrites)


def _spread(graph: Graph, rewrites: list[Rewrite]) -> Iterator[Way]:
    merged = _merges(graph)
    if not rewrites or merged is None:
        return
    (context,) = merged.operands
    parts, whole = [], ""
    for head in range(graph.sizes["h"]):
        parts.append(helper(f"placed_{head + 1}", "C", PutHead(head, "h"), context))
        if whole:
            parts.append(helper(f"joined_{head + 1}", "C", Add(), whole, f"placed_{head + 1}"))
        whole = parts[-1].name
    last = Step("merged", merged.symbol, merged.operation, (whole,))
    yield Way(reduce(lambda one, other: one | other, rewrites) | Expand("merged", (*parts, last)))


MISTAKES = (
    Mistake(
        "heads-by-rows",
        "The heads are split by rows instead of columns",
        "Every head sees all tokens, but only its own columns of Q, K and V. Split by rows, a head "
        "sees only some of the tokens.",
        "Each head's weights belong to a part of the sequence.",
        "How many tokens does one head see in your work?",
        _by_rows,
    ),
    Mistake(
        "heads-interleaved",
        "The heads take every h-th column instead of neighbouring columns",
        "Head 1 has the first d_k columns, head 2 the next d_k, and so on.",
        "The columns of Q, K and V are dealt to the heads in turn.",
        "Which columns of W_Q belong to the first head?",
        _interleaved,
    ),
    Mistake(
        "heads-by-view",
        "The heads are reshaped without moving the head axis",
        "Reshaping n × (h·d_k) straight to h × n × d_k reads the numbers row by row, so that a "
        "head mixes tokens. First n × h × d_k, then the two first axes change places.",
        "The rows of a head hold numbers of different columns.",
        "Is the first row of Q of the first head the beginning of the first row of Q?",
        _by_view,
    ),
    Mistake(
        "heads-merged-by-view",
        "The heads are reshaped together without moving the head axis back",
        "From h × n × d_v the head axis moves behind the tokens before the last two axes become "
        "one; otherwise the numbers of different tokens meet in one row.",
        "A row of the merged heads holds several rows of the first head.",
        "Is the first row of the merged heads made of the first rows of all heads?",
        _merged_by_view,
    ),
    Mistake(
        "heads-merged-interleaved",
        "The heads' columns are dealt in turn instead of set side by side",
        "The results of the heads stand side by side: first all columns of head 1, then those of "
        "head 2.",
        "The columns of the merged heads alternate between the heads.",
        "Whose columns are the first ones of your merged heads?",
        _merged_interleaved,
    ),
    Mistake(
        "heads-merged-by-rows",
        "The heads are put one below the other instead of side by side",
        "Concatenating joins the columns: every token keeps one row, which gets longer.",
        "There are h times as many rows as tokens.",
        "How many rows should the result have if there are n tokens?",
        _merged_by_rows,
    ),
    Mistake(
        "heads-reversed",
        "The heads are put together in the wrong order",
        "Head 1 comes first: the rows of W_O belong to the heads in this order.",
        "The columns of the last head stand first.",
        "Whose columns are the first ones of your merged heads?",
        _reversed,
    ),
    Mistake(
        "heads-averaged",
        "The heads are averaged instead of concatenated",
        "The results of the heads are set side by side; W_O then mixes them.",
        "The merged heads are as narrow as a single one.",
        "How wide should the heads be when they are put together?",
        _averaged,
    ),
    Mistake(
        "single-head",
        "All columns are used as one single head",
        "With h heads there are h maps of attention, each from its own columns.",
        "There is one map of attention, from all columns.",
        "How many maps of attention do you have? How many heads are there?",
        _single_head,
    ),
    Mistake(
        "first-head-everywhere",
        "Every head uses the weight matrices of the first head",
        "Each head has matrices of its own.",
        "All heads give the same result.",
        "Do your heads give different results? Which matrices does the second one use?",
        _first_head,
    ),
)
