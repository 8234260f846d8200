"""One head and several on the same weights: same parameters, other routing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import OptionError
from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.graph.numbers import read_given
from regard.show.plots import HeatMap, Plot, heat_map
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
MOST_TOKENS_SHOWN = 16


@experiment
def heads(
    *,
    heads: int = 3,
    n: int = 5,
    d: int = 6,
    X: Any = None,
    WQ: Any = None,
    WK: Any = None,
    WV: Any = None,
    tokens: Sequence[str] | None = None,
    seed: int = 0,
) -> Result:
    """Why do one head and H heads give different results with the same X, W_Q, W_K and W_V?

    heads: H; the columns of the weights are split evenly among them.
    n, d: how many tokens of how many numbers are drawn, when none are given.
    X, WQ, WK, WV: the tokens and the weights; all four or none.
    tokens: their names, for the figure.
    seed: of the tokens and the weights, when none are given.
    """
    number = _checks.whole("heads", heads, at_least=2)
    given: dict[str, Any] = _given(n, d, seed, {"X": X, "WQ": WQ, "WK": WK, "WV": WV})
    names = _names(tokens, len(given["X"]))
    one, many = (work("multi-head", **given, heads=count) for count in (1, number))
    table = Table([*_rows(one, one), *_rows(many, one)])
    facts = _facts(given, one, many)
    return Result(
        title=f"One head and {number} heads on the same weights",
        finding=_finding(number, facts),
        prediction=(
            "one head: C = A·V; H heads: C = [A₁V₁ … A_H V_H], each Aᵢ n × n, each Vᵢ n × d/H",
            "A₁ = … = A_H = A would give [A V₁ … A V_H] = A·V: the maps alone make the difference",
        ),
        table=table,
        facts=facts,
        plot=_plot(one, many, names),
        trace=many,
    )


def _given(n: Any, d: Any, seed: Any, given: dict[str, Any]) -> dict[str, Array]:
    missing = [name for name, value in given.items() if value is None]
    if missing and len(missing) < len(given):
        raise OptionError(
            f"heads: X, WQ, WK and WV are given together or not at all; {missing[0]} is missing"
        )
    if not missing:
        return {name: read_given(name, value) for name, value in given.items()}
    n, d = _checks.whole("n", n, at_least=2), _checks.whole("d", d)
    rng = generator(_checks.whole("seed", seed, at_least=0))
    return {
        "X": rng.standard_normal((n, d)).round(1),
        **{name: rng.standard_normal((d, d)).round(1) for name in ("WQ", "WK", "WV")},
    }


def _names(tokens: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if tokens is None:
        return ()
    names = (tokens,) if isinstance(tokens, str) else tuple(str(token) for token in tokens)
    if len(names) != n:
        raise OptionError(f"`tokens` must be {n} names, but {len(names)} were passed: {names}")
    return names


def _maps(trace: Trace) -> Array:
    """One map for each head."""
    maps: Array = trace["weights"].value
    return maps.reshape(-1, *maps.shape[-2:])


def _output(trace: Trace) -> Array:
    return np.asarray(trace[trace.steps[-1]].value, np.float64)


def _entropy(weights: Array) -> Array:
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.asarray(-(weights * logarithms).sum(axis=-1))


def _rows(trace: Trace, one: Trace) -> list[dict[str, float]]:
    maps, single = _maps(trace), _maps(one)[0]
    return [
        {
            "heads": len(maps), "head": place, "rank": int(np.linalg.matrix_rank(weights)),
            "entropy": float(_entropy(weights).mean()),
            "largest_weight": float(weights.max(axis=1).mean()),
            "weight_moved_from_one_head": float(abs(weights - single).sum(axis=1).mean() / 2),
        }
        for place, weights in enumerate(maps, 1)
    ]  # fmt: skip


def _facts(given: dict[str, Array], one: Trace, many: Trace) -> dict[str, float]:
    values = given["X"] @ given["WV"]
    maps, number = _maps(many), len(_maps(many))
    output, single = _output(many), _output(one)
    # The same map in every head, by the same splitting and merging: exactly the one head.
    shared = many.replace(weights=np.repeat(_maps(one), number, axis=0))
    best = output @ np.linalg.pinv(values)  # of all n × n matrices, not only of weights
    moved = [abs(a - b).sum(axis=1).mean() / 2 for a, b in combinations(maps, 2)]
    counts = [each.cost() for each in (one, many)]
    products, exponentials = (
        [cost.number(getattr(cost.total, name)) for cost in counts]
        for name in ("multiplications", "exponentials")
    )
    return {
        "difference": float(abs(output - single).max()),
        "difference_with_one_map": float(abs(_output(shared) - single).max()),
        "beyond_any_single_map": float(
            np.linalg.norm(output - best @ values) / np.linalg.norm(output)
        ),
        "entropy_one": float(_entropy(_maps(one)).mean()),
        "entropy_many": float(_entropy(maps).mean()),
        "entropy_even": log(len(values)),
        "weight_moved_between_heads": float(np.mean(moved)),
        "parameters": sum(weights.size for name, weights in given.items() if name != "X"),
        "multiplications_one": products[0],
        "multiplications_many": products[1],
        "exponentials_one": exponentials[0],
        "exponentials_many": exponentials[1],
    }


def _finding(number: int, facts: dict[str, float]) -> str:
    return (
        f"One head and {number} heads have the same {facts['parameters']} parameters and make "
        f"{facts['multiplications_one']} and {facts['multiplications_many']} multiplications (but "
        f"{facts['exponentials_one']} and {facts['exponentials_many']} exponentials, because each "
        "head has a softmax of its own), "
        f"and yet their outputs differ by up to {facts['difference']:.3g}. The maps are n × n "
        "however few columns a head has: they are not sliced with Q, K and V, there are more of "
        f"them, and each routes its own columns of V. With one map in all heads the difference is "
        f"{facts['difference_with_one_map']:.1g}, so the routing alone makes it. Any two heads "
        f"place {100 * facts['weight_moved_between_heads']:.0f} % of their weight differently, and "
        "the best single map, even with negative weights, misses "
        f"{100 * facts['beyond_any_single_map']:.2g} % of the output of {number} heads."
    )


def _plot(one: Trace, many: Trace, names: tuple[str, ...]) -> Plot:
    maps = _maps(many)
    shown = names if maps.shape[-1] <= MOST_TOKENS_SHOWN else ()
    panels: list[HeatMap] = [heat_map("One head", _maps(one)[0], shown)]
    panels += [
        heat_map(f"Head {place} of {len(maps)}", weights, shown)
        for place, weights in enumerate(maps, 1)
    ]
    caption = (
        "The weights of one head and of each of several heads, made of the same W_Q and W_K: "
        "darker is more. Each map sends its columns of V another way."
    )
    return Plot(tuple(panels), caption, across=2 if len(panels) in (2, 4) else 3)
