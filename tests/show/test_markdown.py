"""Markdown whose prose reads as it was written."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.graph.notation import Number, Symbol
from regard.show._format import NumberFormat
from regard.show.document import Code, Document, Paragraph, Table
from regard.show.markdown import to_markdown

markdown_it = pytest.importorskip("markdown_it")


def read(markdown: str) -> str:
    """What a CommonMark reader shows: the words alone."""
    html = markdown_it.MarkdownIt("commonmark").enable("table").render(markdown)
    from html import unescape

    return unescape(re.sub(r"<[^>]+>", "", html)).strip()


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), min_size=1))
def test_prose_survives(text: str) -> None:
    words = " ".join(text.split())
    assert read(to_markdown(Document("", (Paragraph((text,)),)), NumberFormat())) == words


@pytest.mark.parametrize(
    "text",
    ["# no heading", "- no list", "1. no list", "2) no list", "> no quote", "=== x", "a_b*c*"],
)
def test_nothing_opens_a_block(text: str) -> None:
    markdown = to_markdown(Document("", (Paragraph((text,)),)), NumberFormat())
    assert markdown_it.MarkdownIt().render(markdown).startswith("<p>")
    assert read(markdown) == text


def test_dollar_signs_in_prose_are_no_mathematics() -> None:
    markdown = to_markdown(
        Document("", (Paragraph(("costs $5 to $6", Symbol("x"))),)), NumberFormat()
    )
    assert markdown == "costs \\$5 to \\$6$x$\n"


def test_code_may_contain_fences() -> None:
    code = "```\ninner\n```"
    markdown = to_markdown(Document("", (Code("md", code),)), NumberFormat())
    assert markdown == f"````md\n{code}\n````\n"


def test_no_bar_breaks_a_table(everything: ModuleType) -> None:
    table = Table((("a|b",), ("n",)), ((("x | y",), (Number(1),)), (("z",), (Number(2.5),))))
    markdown = to_markdown(Document("", (table,)), NumberFormat())
    assert markdown.splitlines() == [
        r"| a\|b | n |", "| --- | ---: |", r"| x \| y | $1$ |", "| z | $2.5$ |",
    ]  # fmt: skip
    whole = to_markdown(everything.DOCUMENT, NumberFormat())
    assert markdown_it.MarkdownIt().enable("table").render(whole).count("<tr>") == 4


def test_mathematics_stands_apart(everything: ModuleType) -> None:
    """Display formulas have their own paragraph, and no empty line that would end it."""
    for paragraph in to_markdown(everything.DOCUMENT, NumberFormat()).split("\n\n"):
        if "$$" in paragraph:
            assert paragraph.startswith("$$\n")
            assert paragraph.endswith("\n$$")
