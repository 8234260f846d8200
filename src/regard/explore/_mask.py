"""Masks: what causal, padding and window masks remove, and that nothing leaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import OptionError
from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.ops import attention
from regard.show.plots import Plot, heat_map
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
FAR = 1e6  # a perturbation that could not stay unseen


@experiment
def mask(*, n: int = 8, d: int = 4, window: int = 2, padding: int = 3, seed: int = 0) -> Result:
    """What do causal, padding and window masks remove, and does anything hidden leak?

    n, d: how many tokens of how many numbers.
    window: how many keys a token sees on each side.
    padding: how many of the tokens at the end are none.
    seed: of the queries, keys and values.
    """
    n, d = _checks.whole("n", n, at_least=2), _checks.whole("d", d)
    window = _checks.whole("window", window, at_least=0)
    padding = _checks.whole("padding", padding, at_least=0)
    if padding >= n:
        raise OptionError(
            f"`padding` must leave at least one of {n} tokens, but {padding} was passed"
        )
    rng = generator(_checks.whole("seed", seed, at_least=0))
    q, k, v = rng.standard_normal((3, n, d))
    kinds: dict[str, dict[str, Any]] = {
        "causal": {"causal": True},
        "padding": {"lengths": n - padding},
        "window": {"window": window},
        "causal window": {"causal": True, "window": (window, 0)},
    }
    traces = {name: work("attention", Q=q, K=k, V=v, **options) for name, options in kinds.items()}
    predicted = _predicted(n, window, padding)
    rows = [
        _row(name, _influence(q, k, v, how), predicted[name], _nan_reaches(q, k, v, how))
        for name, how in kinds.items()
    ]
    facts = {
        "largest_leak": max(float(row["leak"]) for row in rows),
        "least_influence": min(float(row["least_influence"]) for row in rows),
        "pairs_causal": int(rows[0]["visible"]),
        "predicted_pairs_causal": int(rows[0]["predicted_visible"]),
        "nan_leaks": sum(int(row["nan_leaks"]) for row in rows),
    }
    return Result(
        title="What masks remove",
        finding=_finding(n, rows, facts),
        prediction=(
            "causal: n(n + 1)/2 pairs; padding: n·(n − p); window: Σ over i of the keys within w",
            "a hidden key has weight e^(−∞) = 0: no output depends on it",
        ),
        table=Table(rows),
        facts=facts,
        plot=_plot(traces),
        trace=traces["causal"],
    )


def _finding(n: int, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, float]) -> str:
    listed = "; ".join(f"{row['mask']} {row['visible']} of {n * n}" for row in rows)
    return (
        f"Of the {n}² pairs of a query and a key a mask leaves: {listed}, each as counted. "
        f"Changing a hidden token by {FAR:g} changes no output at all (largest leak "
        f"{facts['largest_leak']:g}), nor does a hidden NaN; changing a visible one always does "
        f"(least influence {facts['least_influence']:.2g}). The weights that a mask takes away go "
        "to the keys that remain: every row still sums to 1."
    )


def _influence(q: Array, k: Array, v: Array, options: Mapping[str, Any]) -> Array:
    """By how much each output changes (rows) when each token's key and value do (columns)."""
    before = attention(q, k, v, **options)
    columns = []
    for token in range(len(k)):
        changed = [each.copy() for each in (k, v)]
        for each in changed:
            each[token] += FAR
        columns.append(abs(attention(q, *changed, **options) - before).max(axis=1))
    return np.stack(columns, axis=1)


def _nan_reaches(q: Array, k: Array, v: Array, options: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which outputs are NaN (rows) when each token's key and value are (columns)."""
    columns = []
    for token in range(len(k)):
        changed = [each.copy() for each in (k, v)]
        for each in changed:
            each[token] = np.nan
        columns.append(np.isnan(attention(q, *changed, **options)).any(axis=1))
    return np.stack(columns, axis=1)


def _visible(n: int, window: int, padding: int) -> dict[str, NDArray[np.bool_]]:
    """Who may see whom, by the definition of each mask."""
    query, key = np.arange(n)[:, None], np.arange(n)[None, :]
    causal, near = key <= query, abs(query - key) <= window
    return {
        "causal": causal,
        "padding": np.broadcast_to(key < n - padding, (n, n)),
        "window": near,
        "causal window": causal & near,
    }


def _predicted(n: int, window: int, padding: int) -> dict[str, tuple[NDArray[np.bool_], int]]:
    w = min(window, n - 1)
    one_side = n * (w + 1) - w * (w + 1) // 2
    counts = {
        "causal": n * (n + 1) // 2, "padding": n * (n - padding), "window": 2 * one_side - n,
        "causal window": one_side,
    }  # fmt: skip
    return {name: (seen, counts[name]) for name, seen in _visible(n, window, padding).items()}


def _row(
    name: str,
    influence: Array,
    predicted: tuple[NDArray[np.bool_], int],
    nan_reaches: NDArray[np.bool_],
) -> dict[str, Any]:
    visible, count = predicted
    return {
        "mask": name,
        "visible": int((influence > 0).sum()),
        "predicted_visible": count,
        "removed_share": 1 - float((influence > 0).mean()),
        "leak": float(influence[~visible].max(initial=0)),
        "least_influence": float(influence[visible].min()),
        "nan_leaks": int(nan_reaches[~visible].sum()),
    }


def _plot(traces: Mapping[str, Trace]) -> Plot:
    panels = []
    for name, trace in traces.items():
        hidden = tuple(
            tuple(bool(np.isneginf(score)) for score in row) for row in trace["masked"].value
        )
        panels.append(heat_map(name.capitalize(), trace["weights"].value, hidden=hidden))
    caption = (
        "The weights under each mask; hatched pairs are hidden. Changing a token in a hatched cell "
        "changes nothing in its row, not even by rounding."
    )
    return Plot(tuple(panels), caption, across=2)
