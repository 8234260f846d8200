"""One whole solution in every format, as it was last looked at."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from regard.exercises import Solution, solve

Golden = Callable[[str, str], None]
NAME = "two-head-attention"


@pytest.fixture(scope="module")
def solution() -> Solution:
    pytest.importorskip("flint")  # it shows certified numbers too
    return solve(NAME)


def test_text(solution: Solution, golden: Golden) -> None:
    golden(f"{NAME}.txt", solution.to_text(width=100))


def test_entries(solution: Solution, golden: Golden) -> None:
    golden(f"{NAME}-entries.txt", solution.to_text(level="entries", width=100))


def test_markdown(solution: Solution, golden: Golden) -> None:
    golden(f"{NAME}.md", solution.to_markdown())


def test_latex(solution: Solution, golden: Golden) -> None:
    golden(f"{NAME}.tex", solution.to_latex())


def test_html(solution: Solution, golden: Golden) -> None:
    golden(f"{NAME}.html", solution.to_html())


def test_json(solution: Solution, golden: Golden) -> None:
    """Floats with 12 digits: the last ones depend on the machine."""
    data = json.loads(solution.to_json(), parse_float=lambda text: float(f"{float(text):.12g}"))
    golden(f"{NAME}.json", json.dumps(data, ensure_ascii=False, indent=1) + "\n")
