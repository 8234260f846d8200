"""Every rendering of the document that contains everything, as it was last looked at."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from regard.show._format import NumberFormat
from regard.show.html import to_fragment, to_html
from regard.show.latex import to_latex
from regard.show.markdown import to_markdown
from regard.show.text import to_text

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
