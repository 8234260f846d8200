"""Sheets: what students get and what the teacher keeps, in the formats that courses use."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import FileError
from regard._files import write_atomically
from regard._options import one_of
from regard.exercises import Exercise, Solution, to_toml
from regard.exercises._answers import Answering, given_blocks
from regard.exercises._exercise import MAIN, AskedSteps
from regard.show.document import Block, Code, Document, Heading, Paragraph
from regard.show.shown import Shown

SECONDS_FOR_LATEX = 120


@dataclass(frozen=True, eq=False)
class StudentSheet(Shown):
    """An exercise without its answers: the situation, what is given, and what is asked."""

    exercise: Exercise
    name: str = ""

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        at = Answering(self.exercise)
        blocks: list[Block] = [Paragraph((f"For {self.name}.",))] if self.name else []
        blocks += at.paragraphs(self.exercise.text)
        blocks += given_blocks(MAIN, at)
        for asked in self.exercise.asked:
            points = f"{asked.points:g} point{'' if asked.points == 1 else 's'}"
            blocks.append(Heading(f"{asked.label} {asked.title} ({points})", 1))
            blocks += at.paragraphs(asked.text)
            if isinstance(asked.question, AskedSteps):
                blocks.append(Paragraph(tuple(self._wanted(at, asked.question.step))))
        blocks += [Heading("How to hand in", 1), Paragraph((HANDING_IN,))]
        blocks.append(Code("toml", self.template()))
        return Document(self.exercise.title, tuple(blocks))

    def _wanted(self, at: Answering, steps: tuple[str, ...]) -> Iterator[Any]:
        trace, symbols = at.trace(MAIN), at.symbols(MAIN)
        yield "Compute "
        for place, step in enumerate(steps):
            yield "" if not place else " and " if place == len(steps) - 1 else ", "
            yield symbols[step]
            yield f" ({step}, {written(trace[step].shape)})"
        yield "."

    def template(self) -> str:
        """An answer file to fill in: a question mark for each number, nothing that counts yet."""
        trace = Answering(self.exercise).trace(MAIN)
        lines = ["# answers.toml: take away the # before a line and put a number for each ?"]
        for asked in self.exercise.asked:
            if isinstance(asked.question, AskedSteps):
                lines += [f"# {step} = {_blank(trace[step].shape)}" for step in asked.question.step]
        return "\n".join(lines)


HANDING_IN = (
    "Fill in this file, or write the matrices under these names in Markdown, LaTeX or a notebook. "
    "regard check exercise.toml answers.toml tells what is right and where it goes wrong."
)


def _blank(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return "[" + ", ".join("?" * shape[0]) + "]"
    return "[" + ", ".join(_blank(shape[1:]) for _ in range(shape[0])) + "]"


# ---- formats -------------------------------------------------------------------------------


def to_notebook(sheet: Shown, cells: list[str]) -> str:
    """A notebook: the sheet as one cell of Markdown, then cells of code."""
    made: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "sheet", "metadata": {}, "source": sheet.to_markdown()}
    ]
    for number, code in enumerate(cells, 1):
        made.append({
            "cell_type": "code", "id": f"code-{number}", "metadata": {}, "source": code,
            "outputs": [], "execution_count": None,
        })  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel},
        "cells": made,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def to_pdf(sheet: Shown) -> bytes:
    """The sheet set by LaTeX, which must be installed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sheet.tex"
        source.write_text(sheet.to_latex(), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", source.name]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=SECONDS_FOR_LATEX, check=False
            )
        except FileNotFoundError as error:
            raise FileError(
                "new: a PDF needs pdflatex, which is not installed: install TeX Live, or take "
                "--format latex"
            ) from error
        made = source.with_suffix(".pdf")
        if done.returncode or not made.exists():
            last = done.stdout.decode(errors="replace").strip().splitlines()[-1:]
            raise FileError(f"new: pdflatex could not set the sheet: {' '.join(last)}")
        return made.read_bytes()


def _student_cells(exercise: Exercise) -> list[str]:
    """The givens as arrays, and a variable for each answer."""
    trace = Answering(exercise).trace(MAIN)
    givens = [
        f"{given.name} = np.array({np.asarray(trace.run.values[given.name]).tolist()})"
        for given in trace.run.graph.givens
    ]
    cells = ["\n".join(["import numpy as np", "", *givens])]
    for asked in exercise.asked:
        if isinstance(asked.question, AskedSteps):
            steps = asked.question.step
            lines = [f"{step} = ...  # {written(trace[step].shape)}" for step in steps]
            prints = [f'print("{step} =", {step}, sep="\\n")' for step in steps]
            cells.append("\n".join([f"# {asked.label} {asked.title}", *lines, "", *prints]))
    return cells


Writer = Callable[[Shown, list[str]], str | bytes]
SHEETS: dict[str, tuple[str, Writer]] = {
    "markdown": (".md", lambda sheet, cells: sheet.to_markdown()),
    "latex": (".tex", lambda sheet, cells: sheet.to_latex()),
    "pdf": (".pdf", lambda sheet, cells: to_pdf(sheet)),
    "notebook": (".ipynb", to_notebook),
    "html": (".html", lambda sheet, cells: sheet.to_html()),
    "text": (".txt", lambda sheet, cells: sheet.to_text(width=90)),
}


def write_sheets(
    exercise: Exercise, folder: Path, formats: tuple[str, ...], name: str = ""
) -> list[Path]:
    """The exercise file, the answers to fill in, and both sheets in each format."""
    for each in formats:
        one_of("format", each, SHEETS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"new: {str(folder)!r} cannot be made: {error.strerror}") from error
    student, solution = StudentSheet(exercise, name), Solution(exercise.title, exercise)
    contents: dict[str, str | bytes] = {
        "exercise.toml": to_toml(exercise),
        "answers.toml": student.template() + "\n",
    }
    for each in formats:
        ending, write = SHEETS[each]
        contents[f"student{ending}"] = write(student, _student_cells(exercise))
        contents[f"solution{ending}"] = write(solution, [solution.to_code("numpy")])
    for file, content in contents.items():
        write_atomically(folder / file, content)
    return [folder / file for file in contents]
