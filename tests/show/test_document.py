"""What a document says is safe to write: no control character of a title or a name survives."""

from __future__ import annotations

import pytest

import regard
from regard.graph.notation import Fraction, Symbol, Words
from regard.show.document import Code, Display, Document, Heading, Note, Paragraph, Table
from regard.show.trace import Trace

EVIL = "a\x1b]0;owned\x07b\x9bc\u202ed\x7f"
SEEN = "a␛]0;owned␇b�c�d␡"


def evil_trace() -> Trace:
    trace = regard.work(
        "dot-product", s=[1, 2], h=[[1, 2], [0, 1]], names={"weights": f"w{EVIL}", "context": "c"}
    )
    return Trace(trace.run, trace.names, EVIL)


@pytest.mark.parametrize("write", ["to_text", "to_markdown", "to_latex", "to_html"])
def test_no_control_character_reaches_an_output(write: str) -> None:
    text = getattr(evil_trace(), write)(level="entries")
    assert "owned" in text
    found = [sign for sign in text if (ord(sign) < 32 or 127 <= ord(sign) < 160) and sign != "\n"]
    assert not found
    assert "\u202e" not in text


def test_every_kind_of_block_is_made_legible() -> None:
    formula = Fraction(Symbol(EVIL, sub=EVIL), Words(EVIL))
    document = Document(
        EVIL,
        (
            Heading(EVIL, 1),
            Paragraph((EVIL, formula)),
            Note((EVIL,)),
            Display(formula),
            Table(((EVIL,),), (((formula,),),)),
            Code("python", f"{EVIL}\n\tindented"),
        ),
    )
    seen = Fraction(Symbol(SEEN, sub=SEEN), Words(SEEN))
    assert document.title == SEEN
    assert document.blocks == (
        Heading(SEEN, 1),
        Paragraph((SEEN, seen)),
        Note((SEEN,)),
        Display(seen),
        Table(((SEEN,),), (((seen,),),)),
        Code("python", f"{SEEN}\n\tindented"),
    )


def test_what_is_legible_stays_the_same_object() -> None:
    display = Display(Fraction(Symbol("a"), Words("b")))
    assert Document("title", (display,)).blocks[0] is display
