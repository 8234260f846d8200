"""Grades in the formats that course platforms read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from regard._errors import OptionError
from regard.grading._grade import GRADED, NOT_GRADABLE, Grade
from regard.grading._text import number

Writer = Callable[[Sequence[Grade]], str]


def _only(grades: Sequence[Grade], format_: str) -> Grade:
    if len(grades) != 1:
        raise OptionError(
            f"grade: the format {format_!r} holds one submission, but {len(grades)} were passed"
        )
    return grades[0]


def gradescope(grades: Sequence[Grade]) -> str:
    """results.json of Gradescope's autograders."""
    grade = _only(grades, "gradescope")
    tests: list[dict[str, Any]] = [
        {
            "name": item.name,
            "score": round(item.points, 6),
            "max_score": item.of,
            "status": "passed" if item.points == item.of else "failed",
            "output": "; ".join(filter(None, (item.verdict, item.message))),
            "output_format": "text",
            "visibility": "visible",
        }
        for item in grade.items
    ]
    tests += [
        {"name": name, "status": "failed", "output": text, "output_format": "text"}
        for name, text in _remarks(grade)
    ]
    results = {
        "score": grade.points,
        "output": grade.reason or f"{number(grade.points)} of {number(grade.of)} points",
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"status": grade.status, "mistakes": list(grade.mistakes)},
    }
    return json.dumps(results, ensure_ascii=False, indent=1)


def _remarks(grade: Grade) -> list[tuple[str, str]]:
    """What is said beside the items: the name of a probe or rule, and the sentence."""
    found = [
        (f"probe: {each.kind}", each.message + (f" (−{number(each.cost)})" if each.cost else ""))
        for each in grade.findings
    ]
    return found + [("rule", rule) for rule in grade.rules]


def prairielearn(grades: Sequence[Grade]) -> str:
    """results.json of PrairieLearn's external graders; the score is a share of 1."""
    grade = _only(grades, "prairielearn")
    if grade.status == NOT_GRADABLE:
        # Such a submission costs the student no attempt.
        return json.dumps({"gradable": False, "format_errors": [grade.reason]}, ensure_ascii=False)
    results = {
        "gradable": True,
        "score": grade.points / grade.of if grade.of else 0.0,
        "message": grade.reason or f"{number(grade.points)} of {number(grade.of)} points",
        "output": "\n".join(f"{name}: {text}" for name, text in _remarks(grade)),
        "tests": [
            {
                "name": item.name,
                "description": item.verdict,
                "points": item.points,
                "max_points": item.of,
                "message": item.message,
            }
            for item in grade.items
        ],
    }
    return json.dumps(results, ensure_ascii=False, indent=1)


def junit(grades: Sequence[Grade]) -> str:
    """JUnit XML: a suite a submission, a case an item."""
    root = Xml.Element("testsuites", name="regard grade")
    for grade in grades:
        broken = grade.status != GRADED
        failures = sum(item.points < item.of for item in grade.items)
        counts = {"tests": len(grade.items), "failures": 0 if broken else failures}
        counts |= {"errors": len(grade.items) if broken else 0, "skipped": 0}
        named = {"name": _legal(grade.submission)} | {k: str(v) for k, v in counts.items()}
        suite = Xml.SubElement(root, "testsuite", named)
        for item in grade.items:
            names = {"classname": _legal(grade.submission), "name": item.name, "time": "0"}
            case = Xml.SubElement(suite, "testcase", names)
            if broken:
                said = {"type": grade.status, "message": _legal(grade.reason)}
                Xml.SubElement(case, "error", said)
            elif item.points < item.of:
                said = {"type": item.verdict, "message": _legal(item.message)}
                Xml.SubElement(case, "failure", said)
        remarks = "\n".join(f"{name}: {text}" for name, text in _remarks(grade))
        if remarks:
            Xml.SubElement(suite, "system-out").text = _legal(remarks)
    Xml.indent(root, " ")
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """Without the characters that no XML may hold."""
    return "".join(
        c
        for c in text
        if c in "\t\n\r" or " " <= c <= "\ud7ff" or (c >= "\ue000" and c not in "\ufffe\uffff")
    )


FORMATS: Mapping[str, Writer] = {
    "gradescope": gradescope,
    "prairielearn": prairielearn,
    "junit": junit,
}
