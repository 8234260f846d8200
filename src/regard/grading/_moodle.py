"""Questions for Moodle: XML with one Cloze question a step, and one number of each on its own."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import numpy as np

from regard._errors import OptionError
from regard.exercises import Exercise
from regard.grading._questions import WITHIN, StepQuestion, step_questions, table, written

MOST_ENTRIES = 60  # of a Cloze question; larger steps are asked for by one number alone
MOST_WRONG = 8  # wrong numbers with feedback, a gap
# Characters that mean something inside a gap.
SPECIAL = str.maketrans({c: f"\\{c}" for c in '}#~/"\\'})


def moodle(exercise: Exercise) -> bytes:
    questions = list(step_questions(exercise))
    if not questions:
        raise OptionError(f"export: {exercise.title!r} asks for no values of steps")
    quiz = Xml.Element("quiz")
    _category(quiz, exercise, "whole matrices")
    for question in questions:
        if question.right.size <= MOST_ENTRIES and np.isfinite(question.right).all():
            _cloze(quiz, question)
    _category(quiz, exercise, "single numbers")
    for question in questions:
        if np.isfinite(question.right[question.telling]):
            _numerical(quiz, question)
    Xml.indent(quiz, " ")
    text: bytes = Xml.tostring(quiz, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _category(quiz: Xml.Element, exercise: Exercise, part: str) -> None:
    question = Xml.SubElement(quiz, "question", type="category")
    title = exercise.title.replace("/", "-")
    _text(question, "category", f"$course$/top/regard/{title}/{part}")


def _text(parent: Xml.Element, name: str, text: str, **attributes: str) -> Xml.Element:
    element = Xml.SubElement(parent, name, attributes)
    Xml.SubElement(element, "text").text = text
    return element


def _cloze(quiz: Xml.Element, question: StepQuestion) -> None:
    """Every entry is a gap of its own, with a point for each."""
    gaps = {place: _gap(question, place) for place in np.ndindex(question.right.shape)}
    element = Xml.SubElement(quiz, "question", type="cloze")
    _text(element, "name", f"{question.title} (all of it)")
    ask = f"<p>Compute {question.symbol}. Give two decimals.</p>"
    body = question.given + ask + table(question.right, gaps)
    _text(element, "questiontext", body, format="html")
    _text(element, "generalfeedback", "", format="html")
    Xml.SubElement(element, "penalty").text = "0.3333333"
    Xml.SubElement(element, "hidden").text = "0"


def _gap(question: StepQuestion, place: tuple[int, ...]) -> str:
    """{1:NUMERICAL:=right:tolerance~%0%wrong:tolerance#feedback}"""
    answers = [f"={written(float(question.right[place]))}:{WITHIN:g}"]
    for number, words in list(question.feedback(place))[:MOST_WRONG]:
        answers.append(f"%0%{written(number)}:{WITHIN:g}#{_html(words).translate(SPECIAL)}")
    return f"{{1:NUMERICAL:{'~'.join(answers)}}}"


def _html(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _numerical(quiz: Xml.Element, question: StepQuestion) -> None:
    place = question.telling
    element = Xml.SubElement(quiz, "question", type="numerical")
    _text(element, "name", f"{question.title} (one number)")
    ask = f"<p>Compute {question.symbol}. Which number is in {question.called(place)}? "
    _text(element, "questiontext", f"{question.given}{ask}Give two decimals.</p>", format="html")
    _text(element, "generalfeedback", "", format="html")
    Xml.SubElement(element, "defaultgrade").text = f"{question.points:g}"
    Xml.SubElement(element, "penalty").text = "0.3333333"
    Xml.SubElement(element, "hidden").text = "0"
    _answer(element, 100, float(question.right[place]), "")
    for number, words in question.feedback(place):
        _answer(element, 0, number, _html(words))


def _answer(question: Xml.Element, fraction: int, number: float, feedback: str) -> None:
    kind = {"fraction": str(fraction), "format": "moodle_auto_format"}
    answer = Xml.SubElement(question, "answer", kind)
    Xml.SubElement(answer, "text").text = written(number)
    _text(answer, "feedback", feedback, format="html")
    Xml.SubElement(answer, "tolerance").text = f"{WITHIN:g}"
