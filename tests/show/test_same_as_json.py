"""What the JSON of a trace holds is what every rendering of it shows, entry by entry."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import regard

DIGITS = 7  # enough that no two entries of the example share their digits


def example() -> regard.Trace:
    """Three different sizes, two heads, a mask, biases, an output: nothing is symmetric."""
    rng = np.random.default_rng(11)
    weights = {name: rng.normal(size=(5, 6)) for name in ("WQ", "WK", "WV")}
    biases = {name: rng.normal(size=6) for name in ("bQ", "bK", "bV")}
    x, wo = rng.normal(size=(3, 5)), rng.normal(size=(6, 7))
    return regard.work("multi-head", X=x, WO=wo, heads=2, causal=True, **weights, **biases)


TRACES = {"trace": example(), "gradient": example().gradient(wrt=("X", "bK", "WO"))}


def stored(trace: regard.Trace) -> Iterator[float]:
    """Every finite number of the steps that are shown, as the JSON has it."""
    data = json.loads(trace.to_json())
    for step in data["steps"]:
        if step["name"] in trace.steps:
            yield from (entry for entry in flat(step["value"]) if isinstance(entry, float))


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for entry in value:
            yield from flat(entry)
    else:
        yield value


def shown(text: str) -> set[str]:
    """The decimals of a rendering, in one spelling of the minus sign and without markup."""
    plain = html.unescape(re.sub(r"</?m[a-z]+[^>]*>", " ", text)).replace("−", "-")
    plain = re.sub(r"-\s+(?=\d)", "-", plain)
    return set(re.findall(r"-?\d+\.\d+", plain))


@pytest.mark.parametrize("which", ["to_text", "to_markdown", "to_latex", "to_html"])
@pytest.mark.parametrize("name", TRACES)
def test_every_entry_of_the_json_is_in_every_rendering(name: str, which: str) -> None:
    trace = TRACES[name]
    rendered = shown(getattr(trace, which)(digits=DIGITS, elide_above=None))
    entries = [entry for entry in stored(trace) if abs(entry) >= 1e-6]
    assert len(entries) > 100
    missing = [entry for entry in entries if f"{entry:.{DIGITS}f}" not in rendered]
    assert not missing


def test_a_wrong_number_would_be_noticed() -> None:
    trace = TRACES["trace"]
    other = trace.replace(scores=trace["scores"].value + 1e-3)
    rendered = shown(other.to_latex(digits=DIGITS))
    assert any(f"{entry:.{DIGITS}f}" not in rendered for entry in stored(trace))
