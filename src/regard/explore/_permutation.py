"""Permuting the tokens: what attention does not notice, and what makes it notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import MissingExtraError, OptionError
from regard.explore import _checks
from regard.explore._result import Result, experiment
from regard.explore._sampling import generator
from regard.explore._table import Table
from regard.show.plots import HeatMap, Plot
from regard.show.trace import Trace, work

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
KEPT = 1e-9  # a difference below this is the rounding of float64
POSITIONS = ("none", "sinusoidal", "learned", "rotary", "ALiBi", "causal mask")


@dataclass(frozen=True)
class Change:
    """Something done to the tokens, and how far the output is from having it done to itself."""

    name: str
    difference: Callable[[Setting, str], float]
    keeps: tuple[str, ...]  # the positions that are predicted not to notice


@dataclass(frozen=True)
class Setting:
    """Tokens and weights, to be run with any positions."""

    givens: dict[str, Array]
    places: Array  # learned positions, more of them than there are tokens
    order: NDArray[np.intp]
    hidden: int  # tokens in front that nobody may see, for the shift

    @property
    def x(self) -> Array:
        return self.givens["X"]

    def trace(self, positions: str, x: Array, **more: Any) -> Trace:
        options: dict[str, Any] = {**self.givens, "X": x, "heads": 2, **more}
        if positions == "causal mask":
            options["causal"] = True
        elif positions == "learned":
            options |= {"positions": "learned", "P": self.places[: len(x)]}
        elif positions != "none":
            options["positions"] = positions.lower()
        return work("multi-head", **options)

    def output(self, positions: str, x: Array, **more: Any) -> Array:
        trace = self.trace(positions, x, **more)
        return np.asarray(trace[trace.steps[-1]].value, np.float64)


def _permuted(setting: Setting, positions: str) -> float:
    before = setting.output(positions, setting.x)
    return _largest(setting.output(positions, setting.x[setting.order]), before[setting.order])


def _reversed(setting: Setting, positions: str) -> float:
    before = setting.output(positions, setting.x)
    return _largest(setting.output(positions, setting.x[::-1]), before[::-1])


def _past_permuted(setting: Setting, positions: str) -> float:
    """The last token stays; those before it change places. Only its output is compared."""
    past = setting.order[setting.order != len(setting.x) - 1]
    changed = setting.x[[*past, len(setting.x) - 1]]
    before, after = (setting.output(positions, x)[-1] for x in (setting.x, changed))
    return _largest(after, before)


def _shifted(setting: Setting, positions: str) -> float:
    """Hidden tokens in front move all others to later positions."""
    n, hidden = len(setting.x), setting.hidden
    longer = np.concatenate([np.ones((hidden, setting.x.shape[1])), setting.x])
    visible = np.tile(np.arange(n + hidden) >= hidden, (n + hidden, 1))
    visible[:hidden, :hidden] |= np.eye(hidden, dtype=bool)
    after = setting.output(positions, longer, mask=visible)[hidden:]
    return _largest(after, setting.output(positions, setting.x))


def _largest(after: Array, before: Array) -> float:
    return float(abs(after - before).max())


CHANGES = (
    Change("all permuted", _permuted, ("none",)),
    Change("past permuted, last output", _past_permuted, ("none", "causal mask")),
    Change("reversed", _reversed, ("none", "ALiBi")),
    Change("all moved on", _shifted, ("none", "rotary", "ALiBi", "causal mask")),
)


@experiment
def permutation(
    *,
    n: int = 6,
    d: int = 8,
    X: Any = None,
    WQ: Any = None,
    WK: Any = None,
    WV: Any = None,
    seed: int = 0,
) -> Result:
    """What happens to the output when the tokens change places, and what makes attention notice?

    n, d: how many tokens of how many numbers are drawn, when none are given; d is a multiple of 4.
    X, WQ, WK, WV: the tokens and the weights; all four or none. Two heads share them.
    seed: of the permutation, and of the tokens and weights when none are given.
    """
    setting = _setting(n, d, seed, {"X": X, "WQ": WQ, "WK": WK, "WV": WV})
    rows = [
        {
            "positions": positions, "change": change.name, "difference": difference,
            "kept": difference < KEPT, "predicted_kept": positions in change.keeps,
        }
        for positions in POSITIONS
        for change in CHANGES
        if not np.isnan(difference := _difference(change, setting, positions))
    ]  # fmt: skip
    table = Table(rows)
    proof = _proof()
    of_permuting = table.where(change="all permuted")["difference"]
    facts = {
        "without_positions": float(of_permuting[0]),
        "least_with_positions": float(of_permuting[1:].min()),
        "verdicts": len(table),
        "as_predicted": int((table["kept"] == table["predicted_kept"]).sum()),
        "proven_zero": int(proof == "proven"),
    }
    return Result(
        title="Permuting the tokens",
        finding=_finding(facts, proof),
        prediction=(
            "f(P X) = P f(X): q, k and v are made row by row; a softmax knows no order of keys",
            "rotary and ALiBi know distances alone; a causal mask knows who came before",
        ),
        table=table,
        facts=facts,
        plot=_plot(table),
        trace=setting.trace("none", setting.x[setting.order]),
    )


def _setting(n: Any, d: Any, seed: Any, given: dict[str, Any]) -> Setting:
    from regard.explore._heads import _given

    n, d = _checks.whole("n", n, at_least=3), _checks.whole("d", d, at_least=4)
    seed = _checks.whole("seed", seed, at_least=0)
    if d % 4:
        raise OptionError(
            "`d` must be a multiple of 4, so that two heads can have rotary positions, "
            f"but {d} was passed"
        )
    givens = _given(n, d, seed, given)
    rng = generator(seed, 1)
    tokens, width = givens["X"].shape
    order = rng.permutation(tokens)
    while np.array_equal(order, np.arange(tokens)) or np.array_equal(
        order[order != tokens - 1], np.arange(tokens - 1)
    ):
        order = rng.permutation(tokens)
    return Setting(givens, rng.standard_normal((tokens + 3, width)).round(1), order, hidden=3)


def _difference(change: Change, setting: Setting, positions: str) -> float:
    """NaN where the sizes do not allow these positions: rotary ones turn pairs of columns."""
    width = setting.givens["WQ"].shape[1]
    if positions == "rotary" and width % 4:
        return nan
    if positions == "sinusoidal" and setting.x.shape[1] % 2:
        return nan
    return change.difference(setting, positions)


def _proof() -> str:
    """f(PX) − P f(X) in exact numbers, for three tokens and every permutation of them."""
    x = [[1, 2], [0, -1], [3, 1]]
    weights: dict[str, Any] = {
        "WQ": [[1, 0], [2, 1]], "WK": [[0, 1], [1, 1]], "WV": [[2, 1], [1, 0]],
    }  # fmt: skip
    orders = ([1, 0, 2], [2, 0, 1], [2, 1, 0])
    try:
        before = work("self-attention", X=x, **weights, numbers="exact")["context"].value
        for order in orders:
            moved = [x[place] for place in order]
            after = work("self-attention", X=moved, **weights, numbers="exact")["context"].value
            if any(a - b != 0 for a, b in zip(after.flat, before[order].flat, strict=True)):
                return "refuted"
    except MissingExtraError:
        return "not tried"
    return "proven"


def _finding(facts: dict[str, float], proof: str) -> str:
    words = {
        "proven": "in exact numbers it is proven to be zero, symbol by symbol",
        "not tried": "install 'regard[exact]' to have it proven in exact numbers",
        "refuted": "but exact numbers refute it",
    }
    return (
        "Without positions attention is equivariant: permuting the tokens permutes the output and "
        f"changes nothing else (largest difference {facts['without_positions']:.1g}, the rounding "
        f"of float64; {words[proof]}). The weights must move along, rows and columns both. Every "
        "kind of position breaks this, and so does a causal mask (least difference "
        f"{facts['least_with_positions']:.2g}). What each keeps: rotary positions and ALiBi do not "
        "notice when all tokens move on together, ALiBi not even when they are reversed; under a "
        "causal mask the last token does not notice the order of those before it. "
        f"{facts['as_predicted']} of {facts['verdicts']} verdicts are as predicted."
    )


def _plot(table: Table) -> Plot:
    shown = [each for each in POSITIONS if len(table.where(positions=each))]
    rows = [list(table.where(positions=each)) for each in shown]
    panel = HeatMap(
        "Grey: noticed, by so much",
        tuple(tuple(0.0 if row["kept"] else 0.4 for row in line) for line in rows),
        tuple(shown),
        tuple(change.name.replace(" ", "\n", 1).replace(", ", ",\n") for change in CHANGES),
        x="what is done to the tokens", y="positions", scale=(0.0, 1.0), measure="",
        texts=tuple(
            tuple("0" if row["kept"] else f"{row['difference']:.2g}" for row in line)
            for line in rows
        ),
    )  # fmt: skip
    caption = (
        "The largest difference between the output for changed tokens and the changed output. "
        "White, 0: attention does not notice; grey: it does."
    )
    return Plot((panel,), caption, across=1)
