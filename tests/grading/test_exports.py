"""Exercises as platforms take them in, held against the formats that these document."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import types
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from jsonschema import Draft4Validator

import regard
from regard.cli import main
from regard.exercises import library_names, load_exercise
from regard.grading._code_checks import code_checks
from regard.grading._moodle import moodle
from regard.grading._notebooks import nbgrader, otter
from regard.grading._qti import qti
from regard.grading._questions import WITHIN, step_questions
from regard.mistakes import CATALOGUE, commit_all

WITH_STEPS = [
    "scaled-attention-by-hand", "two-head-attention", "unscaled-self-attention",
    "source-over-vectors",
]  # fmt: skip
NUMBER = re.compile(r"-?\d+(\.\d+)?")


# ---- Moodle --------------------------------------------------------------------------------

# Which elements a question of each type has, from https://docs.moodle.org/en/Moodle_XML_format
COMMON = {"name", "questiontext", "generalfeedback", "penalty", "hidden"}
QUESTION = {
    "category": {"category"},
    "cloze": COMMON,
    "numerical": COMMON | {"defaultgrade", "answer"},
}
# A gap, from https://docs.moodle.org/en/Embedded_Answers_(Cloze)_question_type
GAP = re.compile(r"\{(\d+):NUMERICAL:((?:[^{}\\]|\\.)+)\}")


def split(text: str, mark: str) -> list[str]:
    """At marks that no backslash protects."""
    return re.split(rf"(?<!\\){mark}", text)


@pytest.mark.parametrize("name", WITH_STEPS)
def test_moodle_reads_the_questions(name: str) -> None:
    root = Xml.fromstring(moodle(load_exercise(name)))
    assert root.tag == "quiz"
    kinds = [question.get("type") for question in root]
    assert kinds.count("category") == 2
    assert "cloze" in kinds
    assert "numerical" in kinds
    for question in root:
        kind = question.get("type", "")
        assert {child.tag for child in question} <= QUESTION[kind]
        if kind != "category":
            assert question.findtext("name/text")
            assert question.find("questiontext").get("format") == "html"  # type: ignore[union-attr]
            Xml.fromstring(f"<p>{question.findtext('questiontext/text')}</p>")


def gaps(name: str) -> Iterator[list[tuple[float, float, float, str]]]:
    """By gap: fraction, number, tolerance and feedback of each answer."""
    for question in Xml.fromstring(moodle(load_exercise(name))).findall("question[@type='cloze']"):
        for gap in GAP.finditer(question.findtext("questiontext/text") or ""):
            assert gap[1] == "1"
            yield [answer(each) for each in split(gap[2], "~")]


def answer(text: str) -> tuple[float, float, float, str]:
    head, _, feedback = (
        text.partition("#") if "\\#" not in text.partition("#")[0] else (text, "", "")
    )
    fraction = 1.0
    if head.startswith("%"):
        percent, head = re.fullmatch(r"%(\d+)%(.*)", head).groups()  # type: ignore[union-attr]
        fraction = int(percent) / 100
    else:
        assert head.startswith("=")
        head = head[1:]
    number, tolerance = head.split(":")
    assert NUMBER.fullmatch(number)
    return fraction, float(number), float(tolerance), feedback


@pytest.mark.parametrize("name", WITH_STEPS)
def test_every_gap_has_one_right_number_that_no_wrong_one_covers(name: str) -> None:
    found = list(gaps(name))
    assert found
    for answers in found:
        (right,) = [number for fraction, number, _, _ in answers if fraction == 1]
        assert answers[0][1] == right  # Moodle takes the first that fits
        for fraction, number, tolerance, feedback in answers[1:]:
            assert fraction == 0
            assert abs(number - right) > tolerance + WITHIN
            assert feedback.endswith(("?", "."))


def test_the_gaps_hold_the_numbers_of_the_solution() -> None:
    run = regard.solve("unscaled-self-attention").trace.run
    wanted = [
        x for s in ("Q", "K", "V", "scores", "weights", "context") for x in run.values[s].flat
    ]
    found = [answers[0][1] for answers in gaps("unscaled-self-attention")]
    np.testing.assert_allclose(found, wanted, atol=5e-5)


def test_a_wrong_number_is_one_that_a_mistake_makes() -> None:
    run = regard.solve("unscaled-self-attention").trace.run
    made = {
        round(float(x), 4)
        for _, one in commit_all(run, CATALOGUE)
        for step in ("Q", "K", "V", "scores", "weights", "context")
        for x in np.ravel(one.values.get(step, []))
    }
    wrong = {a[1] for answers in gaps("unscaled-self-attention") for a in answers[1:]}
    assert wrong
    assert wrong <= made


@pytest.mark.parametrize("name", WITH_STEPS)
def test_single_numbers_tell_mistakes(name: str) -> None:
    root = Xml.fromstring(moodle(load_exercise(name)))
    for question in root.findall("question[@type='numerical']"):
        first, *rest = question.findall("answer")
        assert first.get("fraction") == "100"
        assert all(each.get("fraction") == "0" for each in rest)
        for each in (first, *rest):
            assert NUMBER.fullmatch(each.findtext("text") or "")
            assert float(each.findtext("tolerance") or "0") > 0
        assert all(each.findtext("feedback/text") for each in rest)
    telling = [q for q in step_questions(load_exercise(name)) if list(q.feedback(q.telling))]
    assert telling


# ---- QTI 1.2 -------------------------------------------------------------------------------

# Which elements may stand in which, from the DTD of IMS QTI 1.2 (as far as is used), and the
# pieces of a numerical question as Canvas writes it when it exports one.
CONTENT = {
    "questestinterop": "assessment", "assessment": "section", "section": "item*",
    "item": "itemmetadata presentation resprocessing itemfeedback*",
    "itemmetadata": "qtimetadata", "qtimetadata": "qtimetadatafield*",
    "qtimetadatafield": "fieldlabel fieldentry", "fieldlabel": "", "fieldentry": "",
    "presentation": "material response_str", "material": "mattext", "mattext": "",
    "response_str": "render_fib", "render_fib": "response_label", "response_label": "",
    "resprocessing": "outcomes respcondition*", "outcomes": "decvar", "decvar": "",
    "respcondition": "conditionvar (setvar|displayfeedback)", "setvar": "",
    "displayfeedback": "", "conditionvar": "(or|vargte varlte)", "or": "varequal and",
    "and": "vargte varlte", "varequal": "", "vargte": "", "varlte": "",
    "itemfeedback": "flow_mat", "flow_mat": "material",
}  # fmt: skip


def fits(element: Xml.Element, namespace: str) -> None:
    tag = element.tag.removeprefix(f"{{{namespace}}}")
    children = "".join(child.tag.removeprefix(f"{{{namespace}}}") + " " for child in element)
    pattern = re.sub(r"([a-z_]+)", r"(?:\1 )", CONTENT[tag]).replace(" )*", " )*")
    assert re.fullmatch(pattern.replace(") (", ")("), children), (tag, children)
    for child in element:
        fits(child, namespace)


@pytest.mark.parametrize("name", WITH_STEPS)
def test_qti_is_a_package_with_an_assessment(name: str) -> None:
    archive = zipfile.ZipFile(io.BytesIO(qti(load_exercise(name))))
    assert archive.testzip() is None
    manifest = Xml.fromstring(archive.read("imsmanifest.xml"))
    package = "{http://www.imsglobal.org/xsd/imscp_v1p1}"
    assert [child.tag for child in manifest] == [
        f"{package}{word}" for word in ("metadata", "organizations", "resources")
    ]
    (resource,) = manifest.findall(f".//{package}resource")
    assert resource.get("type") == "imsqti_xmlv1p2"
    (file,) = resource.findall(f"{package}file")
    assert file.get("href") == resource.get("href")
    assert set(archive.namelist()) == {"imsmanifest.xml", file.get("href")}
    root = Xml.fromstring(archive.read(file.get("href", "")))
    namespace = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
    fits(root, namespace)
    idents = [item.get("ident") for item in root.iter(f"{{{namespace}}}item")]
    assert len(set(idents)) == len(idents) > 0
    for item in root.iter(f"{{{namespace}}}item"):
        links = {e.get("linkrefid") for e in item.iter(f"{{{namespace}}}displayfeedback")}
        assert links == {e.get("ident") for e in item.iter(f"{{{namespace}}}itemfeedback")}
        for bound in item.iter(f"{{{namespace}}}vargte"):
            assert NUMBER.fullmatch(bound.text or "")  # no exponents, which Canvas does not read


# ---- notebooks -----------------------------------------------------------------------------

# The properties of nbgrader's schema 3 (nbgrader/nbgraderformat/v3.json), in our own words.
NBGRADER = {
    "type": "object",
    "properties": {
        "schema_version": {"enum": [3]},
        "grade": {"type": "boolean"},
        "locked": {"type": "boolean"},
        "solution": {"type": "boolean"},
        "task": {"type": "boolean"},
        "grade_id": {"type": "string", "pattern": r"^[a-zA-Z0-9_\-]*$"},
        "points": {"type": "number", "minimum": 0},
        "checksum": {"type": "string", "minLength": 32, "maxLength": 32},
        "cell_type": {"enum": ["raw", "code", "markdown"]},
    },
    "required": ["schema_version", "grade", "locked", "solution"],
    "additionalProperties": False,
}
NOTEBOOKS = ["numpy-multi-head", "scaled-attention-by-hand", "unscaled-self-attention"]
if find_spec("torch"):
    NOTEBOOKS.append("torch-self-attention")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_nbgrader_reads_the_cells(name: str) -> None:
    notebook = json.loads(nbgrader(load_exercise(name)))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    idents = []
    for cell in notebook["cells"]:
        assert set(cell) >= {"id", "cell_type", "metadata", "source"}
        assert re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell["id"])
        assert ("outputs" in cell) == (cell["cell_type"] == "code")
        graded = cell["metadata"]["nbgrader"]
        Draft4Validator(NBGRADER).validate(graded)
        assert ("points" in graded) == graded["grade"]
        idents.append(graded["grade_id"])
    assert len(set(idents)) == len(idents)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_solution_passes_the_hidden_tests_and_the_stub_does_not(name: str) -> None:
    cells = json.loads(nbgrader(load_exercise(name)))["cells"]
    program = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    space: dict[str, object] = {}
    for source in program:
        exec(compile(source, "cell", "exec"), space)
    stubbed = re.sub(
        r"### BEGIN SOLUTION.*?### END SOLUTION", "raise NotImplementedError()", program[0],
        flags=re.DOTALL,
    )  # fmt: skip
    with pytest.raises(NotImplementedError):
        exec(compile(stubbed, "cell", "exec"), {})
    with pytest.raises(NameError):
        exec(compile(program[1], "cell", "exec"), {})


class OtterCase:
    """What otter.test_files.test_case makes: https://otter-grader.readthedocs.io"""

    def __init__(self, name=None, points=None, hidden=False, success_message=None,
                 failure_message=None):  # type: ignore[no-untyped-def]  # fmt: skip
        self.points, self.hidden = points, hidden

    def __call__(self, function):  # type: ignore[no-untyped-def]
        self.function = function
        return self


@pytest.fixture
def fake_otter(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("otter.test_files")
    module.test_case = OtterCase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", module)


def run_otter(name: str, space: dict[str, object]) -> dict[str, str]:
    """What each test file says of a student's names, called as Otter calls it."""
    archive = zipfile.ZipFile(io.BytesIO(otter(load_exercise(name))))
    said = {}
    for file in archive.namelist():
        assert re.fullmatch(r"tests/\w+\.py", file)
        source = archive.read(file).decode()
        assert ast.get_docstring(ast.parse(source))
        own: dict[str, object] = {}
        exec(compile(source, file, "exec"), own)
        assert own["OK_FORMAT"] is False
        assert isinstance(own["name"], str)
        assert isinstance(own["points"], (int, float))
        (case,) = [value for value in own.values() if isinstance(value, OtterCase)]
        names = case.function.__code__.co_varnames[: case.function.__code__.co_argcount]
        try:
            case.function(**{each: space.get(each) for each in names})
            said[str(own["name"])] = ""
        except AssertionError as error:
            said[str(own["name"])] = str(error)
    return said


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_otter_passes_the_solution_and_explains_what_is_wrong(name: str, fake_otter: None) -> None:
    space: dict[str, object] = {}
    for check in code_checks(load_exercise(name)):
        exec("import numpy as np\n" + check.solution, space)
    assert set(run_otter(name, space).values()) == {""}
    assert all("is not defined" in words for words in run_otter(name, {}).values())


@pytest.mark.parametrize("biases", ["bias=False", "bias=True"])
def test_otter_judges_a_module_with_biases_or_without(biases: str, fake_otter: None) -> None:
    pytest.importorskip("torch")
    (check,) = code_checks(load_exercise("torch-self-attention"))
    space: dict[str, object] = {}
    exec(check.solution.replace("bias=False", biases), space)
    assert run_otter("torch-self-attention", space) == {"SelfAttention": ""}
    exec(check.solution.replace("bias=False", biases).replace("dim=-1", "dim=1"), space)
    assert "over the columns" in run_otter("torch-self-attention", space)["SelfAttention"]


def test_otter_names_a_mistake(fake_otter: None) -> None:
    source = """
import numpy as np

def self_attention(X, Wq, Wk, Wv):
    scores = X @ Wq @ (X @ Wk).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ X @ Wv, weights
"""
    space: dict[str, object] = {}
    exec(source, space)
    assert "not divided by √d_k" in run_otter("numpy-multi-head", space)["self_attention"]
    values = {"Q": np.zeros((3, 3)), "K": np.ones((3, 2)), "V": np.ones((3, 2))}
    said = run_otter("unscaled-self-attention", values)
    assert any("Q has the shape (3, 3), not (3, 2)" in words for words in said.values())


def test_every_exercise_is_written_or_refused_with_a_reason() -> None:
    pytest.importorskip("torch")
    refused = set()
    for name in library_names():
        for export in (moodle, qti, otter, nbgrader):
            try:
                assert export(load_exercise(name))
            except regard.OptionError as error:
                refused.add(str(error).partition(" asks for no")[1])
    assert refused == {" asks for no"}


def test_an_export_on_the_command_line(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert main(["grade", "unscaled-self-attention", "--export", "moodle"]) == 0
    assert "wrote unscaled-self-attention-moodle.xml" in capsys.readouterr().err
    with open("unscaled-self-attention-moodle.xml", "rb") as file:
        assert Xml.fromstring(file.read()).tag == "quiz"
