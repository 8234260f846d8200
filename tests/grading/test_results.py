"""Grades as platforms read them, held against the formats that they document."""

from __future__ import annotations

import json
from xml.etree import ElementTree as Xml

import pytest
from jsonschema import Draft202012Validator

from regard import OptionError
from regard.grading import Finding, Grade, Item
from regard.grading._results import gradescope, junit, prairielearn

# Written from https://gradescope-autograders.readthedocs.io/en/latest/specs/
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
GRADESCOPE = {
    "type": "object",
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "leaderboard": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "name_format": FORMAT,
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "output_format": FORMAT,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
    },
    "anyOf": [{"required": ["score"]}, {"required": ["tests"]}],
    "additionalProperties": False,
}
# Written from PrairieLearn's documentation of external grading.
PRAIRIELEARN = {
    "type": "object",
    "properties": {
        "gradable": {"type": "boolean"},
        "format_errors": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        },
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "message": {"type": "string"},
        "output": {"type": "string"},
        "images": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "points": {"type": "number"},
                    "max_points": {"type": "number"},
                    "message": {"type": "string"},
                    "output": {"type": "string"},
                    "images": {"type": "array"},
                },
                "additionalProperties": False,
            },
        },
    },
    "if": {"properties": {"gradable": {"const": False}}, "required": ["gradable"]},
    "else": {"required": ["score"]},
}

ITEMS = (
    Item("weights", 1, 1, "right"),
    Item("context <&>", 0.5, 2, "wrong", "entry 1\x00\x1b[2J\ufffe", ("No scale",)),
)
GRADED = Grade(
    "ann",
    "graded",
    ITEMS,
    findings=(Finding("size", "fails when n is 3", 0.25),),
    rules=("line 1 imports os",),
)
FAILED = Grade(
    "bob", "failed", (Item("weights", 0, 1, "missing"),), "it ran longer than 10 seconds"
)
UNREAD = Grade("cy", "not gradable", (Item("weights", 0, 1, "missing"),), "this is no TOML")


@pytest.mark.parametrize("grade", [GRADED, FAILED, UNREAD], ids=lambda grade: grade.status)
def test_gradescope_reads_the_results(grade: Grade) -> None:
    results = json.loads(gradescope([grade]))
    Draft202012Validator(GRADESCOPE).validate(results)
    assert results["score"] == grade.points
    assert sum(test.get("max_score", 0) for test in results["tests"]) == grade.of
    assert grade.reason in results["output"]


def test_gradescope_shows_probes_and_rules_without_points() -> None:
    *_, probe, rule = json.loads(gradescope([GRADED]))["tests"]
    assert (probe["name"], probe["output"]) == ("probe: size", "fails when n is 3 (−0.25)")
    assert (rule["name"], rule["output"]) == ("rule", "line 1 imports os")
    assert "score" not in probe
    assert "max_score" not in rule


@pytest.mark.parametrize("grade", [GRADED, FAILED, UNREAD], ids=lambda grade: grade.status)
def test_prairielearn_reads_the_results(grade: Grade) -> None:
    results = json.loads(prairielearn([grade]))
    Draft202012Validator(PRAIRIELEARN).validate(results)
    assert results["gradable"] == (grade is not UNREAD)
    if grade is GRADED:
        assert results["score"] == pytest.approx(1.25 / 3)
    if grade is UNREAD:
        assert results["format_errors"] == ["this is no TOML"]


def test_one_file_holds_one_submission() -> None:
    for writer in (gradescope, prairielearn):
        with pytest.raises(OptionError, match="holds one submission, but 2 were passed"):
            writer([GRADED, FAILED])


# The order of elements and the attributes, as Jenkins' junit-10.xsd has them.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out", "system-err"},
    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
}
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {
        "name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp",
        "hostname", "id", "package",
    },
    "testcase": {"name", "assertions", "time", "classname", "status"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "system-out": set(),
}  # fmt: skip


def test_junit_is_what_build_servers_read() -> None:
    root = Xml.fromstring(junit([GRADED, FAILED, UNREAD]))
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.tag
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    suites = root.findall("testsuite")
    assert [s.get("name") for s in suites] == ["ann", "bob", "cy"]
    for suite in suites:
        for what, tag in (
            ("tests", "testcase"),
            ("failures", ".//failure"),
            ("errors", ".//error"),
        ):
            assert int(suite.get(what, "")) == len(suite.findall(tag))
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "entry 1[2J"
