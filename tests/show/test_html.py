"""HTML that is well-formed, self-contained and escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from types import ModuleType

import numpy as np
import pytest

from regard.graph.notation import Call, Matrix, Product, Symbol, Words
from regard.show._format import NumberFormat
from regard.show.document import Code, Display, Document, Heading, Note, Paragraph, Table
from regard.show.html import to_fragment, to_html

HOSTILE = "<script>alert('x')</script>&\"</math></style>"
XHTML = "{http://www.w3.org/1999/xhtml}"
MATHML = "{http://www.w3.org/1998/Math/MathML}"


def test_pages_are_well_formed_and_self_contained(everything: ModuleType) -> None:
    page = to_html(everything.DOCUMENT, NumberFormat())
    root = ET.fromstring(page)
    assert root.get("lang") == "en"
    names = {element.tag for element in root.iter()}
    assert not names & {f"{XHTML}{tag}" for tag in ("script", "link", "img", "iframe", "object")}
    assert not re.search(r"(src|href)=|@import|@font-face|url\(", page)
    addresses = set(re.findall(r"https?://[^\"\s]+", page))
    assert addresses <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"}
    assert "prefers-color-scheme: dark" in page


def test_fragments_stand_alone(everything: ModuleType) -> None:
    fragment = to_fragment(everything.DOCUMENT, NumberFormat())
    root = ET.fromstring(fragment)
    assert (root.tag, root.get("class")) == ("div", "regard")
    assert "<html" not in fragment
    style = re.sub(r"/\*.*?\*/|@media print", "", root.findtext("style") or "", flags=re.S)
    selectors = re.findall(r"([^{}]+)\{", style)
    parts = [part.strip() for selector in selectors for part in selector.split(",") if part.strip()]
    assert parts
    assert all(".regard" in part for part in parts)


@pytest.mark.parametrize("write", [to_html, to_fragment])
def test_everything_is_escaped(write: object) -> None:
    prose = (HOSTILE, Words(HOSTILE), Symbol(HOSTILE, HOSTILE, HOSTILE), Call(HOSTILE, (), HOSTILE))
    document = Document(HOSTILE, (
        Heading(HOSTILE, 1), Paragraph(prose), Note(prose), Display(Product(prose[1:])),
        Table((prose,), ((prose,),)), Code(HOSTILE, HOSTILE),
    ))  # fmt: skip
    assert callable(write)
    page = write(document, NumberFormat())
    assert "<script" not in page
    words = "".join(ET.fromstring(page).itertext())
    assert words.count("<script>alert('x')</script>") >= 8


def test_what_is_no_ordinary_number_has_its_class() -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 0.5]])
    page = to_html(Document("", (Display(Matrix(values)),)), NumberFormat())
    (row,) = list(ET.fromstring(page).iter(f"{MATHML}mtr"))
    marks = [cell[0].get("class") for cell in row]
    assert marks == ["nan", "infinity", "minus-infinity", None]
    for mark in ("nan", "infinity", "minus-infinity"):
        assert f".regard .{mark} {{" in page


def test_sections_nest_and_headings_descend(everything: ModuleType) -> None:
    root = ET.fromstring(to_html(everything.DOCUMENT, NumberFormat()))
    main = root.find(f".//{XHTML}main")
    assert main is not None
    answers = main.findall(f"{XHTML}section[@class='answer']")
    titles = [answer.findtext(f"{XHTML}h2") for answer in answers]
    assert titles == ["Answer (a)", "Answer (b): 100% of the mathematics", "Answer (c)"]
    steps = answers[0].findall(f"{XHTML}section[@class='step']")
    assert [step.findtext(f"{XHTML}h3") for step in steps] == ["Queries", "Weights"]


def test_scrolling_parts_can_be_reached_by_keyboard(everything: ModuleType) -> None:
    root = ET.fromstring(to_html(everything.DOCUMENT, NumberFormat()))
    scrolling = [e for e in root.iter() if "scroll" in (e.get("class") or "").split()]
    assert scrolling
    assert all(e.get("tabindex") == "0" and e.get("aria-label") for e in scrolling)
