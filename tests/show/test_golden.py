"""Every rendering of the document that contains everything, as it was last looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import regard
from regard.show._format import NumberFormat
from regard.show.costs import Costs, count
from regard.show.data import read_trace
from regard.show.html import to_fragment, to_html
from regard.show.latex import to_latex
from regard.show.markdown import to_markdown
from regard.show.text import to_text
from regard.show.trace import Trace

Golden = Callable[[str, str], None]
STYLES = {
    "decimals": NumberFormat(),
    "significant": NumberFormat("significant", 3),
    "numpy": NumberFormat("numpy", 1),
}


@pytest.mark.parametrize("width", [60, 80, 120, None])
def test_text(everything: ModuleType, golden: Golden, width: int | None) -> None:
    text = to_text(everything.DOCUMENT, NumberFormat(), width)
    golden(f"everything-{width or 'unlimited'}.txt", text)


@pytest.mark.parametrize("style", ["significant", "numpy"])
def test_styles(everything: ModuleType, golden: Golden, style: str) -> None:
    golden(f"everything-{style}.txt", to_text(everything.DOCUMENT, STYLES[style], 100))


def test_markdown(everything: ModuleType, golden: Golden) -> None:
    golden("everything.md", to_markdown(everything.DOCUMENT, NumberFormat()))


def test_latex(everything: ModuleType, golden: Golden) -> None:
    golden("everything.tex", to_latex(everything.DOCUMENT, NumberFormat()))


def test_html(everything: ModuleType, golden: Golden) -> None:
    golden("everything.html", to_html(everything.DOCUMENT, NumberFormat()))


def test_fragment(everything: ModuleType, golden: Golden) -> None:
    golden("fragment.html", to_fragment(everything.DOCUMENT, NumberFormat("numpy", 2)))


# ---- what people really look at --------------------------------------------------------------


def trace() -> Trace:
    """Two heads under a causal mask, of numbers that a hand can follow."""
    return regard.work(
        "multi-head",
        X=[[1, 0], [0.5, -1], [2, 1]],
        WQ=[[1, 0], [0, 2]],
        WK=[[0.5, 1], [1, 0]],
        WV=[[1, 2], [3, 4]],
        heads=2,
        causal=True,
    )


REAL: dict[str, Callable[[], Trace | Costs]] = {
    "trace": trace,
    "gradient": lambda: trace().gradient(),
    "costs": lambda: count("multi-head", n=3, d_model=2, d_k=1, d_v=1, h=2, causal=True),
}
FORMATS: dict[str, Callable[[Trace | Costs], str]] = {
    "txt": lambda shown: shown.to_text(width=100),
    "md": lambda shown: shown.to_markdown(),
    "tex": lambda shown: shown.to_latex(),
    "html": lambda shown: shown.to_html(),
}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", REAL)
def test_real_things(golden: Golden, name: str, ending: str) -> None:
    golden(f"{name}.{ending}", FORMATS[ending](REAL[name]()))


def test_costs_as_data(golden: Golden) -> None:
    golden("costs.json", REAL["costs"]().to_json() + "\n")


@pytest.mark.parametrize("name", ["trace", "gradient"])
def test_traces_as_data(golden: Golden, name: str, request: pytest.FixtureRequest) -> None:
    """The last digits of the values may differ between builds; `read_trace` compares those."""
    text = REAL[name]().to_json() + "\n"
    path = Path(__file__).parent / "golden" / f"{name}.json"
    if request.config.getoption("--update-goldens", default=False) or not path.exists():
        golden(path.name, text)
    stored = path.read_text(encoding="utf-8")
    assert without_values(json.loads(stored)) == without_values(json.loads(text))
    assert read_trace(stored).steps == REAL[name]().steps


def without_values(data: dict[str, Any]) -> dict[str, Any]:
    steps = [{k: v for k, v in step.items() if k != "value"} for step in data["steps"]]
    return data | {"steps": steps}
