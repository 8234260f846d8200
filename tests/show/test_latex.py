"""LaTeX that compiles without an overfull line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from regard.graph.notation import Equation, Matrix, Number, Product, Sum, Symbol
from regard.show._format import NumberFormat
from regard.show._tex import escape
from regard.show.document import Code, Display, Document, Heading, Paragraph, Table
from regard.show.latex import to_latex

HAS_PDFLATEX = shutil.which("pdflatex") is not None
needs_pdflatex = pytest.mark.skipif(
    not HAS_PDFLATEX and os.environ.get("CI", "").lower() != "true",
    reason="pdflatex is not installed",
)


def compiled(source: str, folder: Path) -> str:
    """The log of a run that must succeed."""
    (folder / "paper.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    log = (folder / "paper.log").read_text(encoding="latin-1")
    assert run.returncode == 0, log[-3000:]
    return log


def complaints(log: str) -> list[str]:
    return re.findall(
        r"^(?:Overfull|Underfull|LaTeX (?:Font )?Warning|Package \w+ Warning).*", log, re.M
    )


@needs_pdflatex
@pytest.mark.parametrize(
    "numbers", [NumberFormat(), NumberFormat("significant", 12), NumberFormat("numpy", 3)]
)
def test_everything_compiles(everything: ModuleType, numbers: NumberFormat, tmp_path: Path) -> None:
    assert complaints(compiled(to_latex(everything.DOCUMENT, numbers), tmp_path)) == []


@needs_pdflatex
def test_whatever_is_too_wide_is_made_to_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(3, 40))
    words = ("a long word or two " * 4).strip()
    blocks = (
        Display(Equation((Symbol("S"), Matrix(wide)))),
        Display(Equation((Symbol("S"), Product((Matrix(wide), Matrix(wide.T)))))),
        Display(Sum(tuple(Number(value) for value in wide.ravel()))),
        Paragraph(("In a line: ", Matrix(wide), " and on.")),
        Table(tuple((f"column {i}",) for i in range(5)), (((words,),) * 5,) * 3),
        Table(tuple((f"column{i}",) for i in range(20)),
              (tuple((Number(v),) for v in wide[0, :20]),) * 60),
        Code("python", "values = [" + ", ".join(map(str, range(200))) + "]\n" + "x" * 300),
    )  # fmt: skip
    source = to_latex(Document("Wide", blocks), NumberFormat(elide_above=None))
    assert "Overfull" not in compiled(source, tmp_path)


@needs_pdflatex
def test_any_unicode_in_prose_compiles(tmp_path: Path) -> None:
    letters = (
        "".join(map(chr, range(0xA1, 0x250))) + "αΩϕ ⁽²⁾ ₁ ℝ∞≤ 注意 שלום 🙂 \u200b\u2028\x07 ﬁ ½"
    )
    text = " ".join(letters)
    blocks = (Heading(letters[:40], 1), Paragraph((text,)), Code("", text))
    compiled(to_latex(Document(letters[:30], blocks), NumberFormat()), tmp_path)


@needs_pdflatex
def test_each_answer_on_a_page_of_its_own(tmp_path: Path) -> None:
    answers = ((Heading(f"Problem {i}", 1), Paragraph(("Yes.",))) for i in range(4))
    document = Document("Answers", tuple(block for answer in answers for block in answer))
    log = compiled(to_latex(document, NumberFormat(), new_page_per_answer=True), tmp_path)
    assert "Output written on paper.pdf (4 pages" in log


def test_new_pages_only_between_answers() -> None:
    document = Document("", (Heading("a", 1), Heading("step", 2), Heading("b", 1)))
    source = to_latex(document, NumberFormat(), new_page_per_answer=True)
    body = source.split(r"\begin{document}")[1]
    assert body.count(r"\clearpage") == 1
    assert body.index(r"\section*{a}") < body.index(r"\clearpage") < body.index(r"\section*{b}")
    assert r"\clearpage" not in to_latex(document, NumberFormat())


def test_escapes() -> None:
    assert escape(r"50% of a_b & #1 {x} $5 ~ ^ \n") == (
        r"50\% of a\_b \& \#1 \{x\} \$5 \textasciitilde{} \textasciicircum{} \textbackslash{}n"
    )
