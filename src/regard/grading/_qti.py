"""Questions as an IMS content package with QTI 1.2: for Canvas and what else reads it."""

from __future__ import annotations

from hashlib import sha256
from xml.etree import ElementTree as Xml

import numpy as np

from regard._errors import OptionError
from regard.exercises import Exercise
from regard.grading._archive import zipped
from regard.grading._questions import WITHIN, StepQuestion, step_questions, written

QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"


def qti(exercise: Exercise) -> bytes:
    """A zip: the manifest, and an assessment with one numerical question a step."""
    questions = [
        q for q in step_questions(exercise) if np.isfinite(q.right[q.telling])
    ]  # fmt: skip
    if not questions:
        raise OptionError(f"export: {exercise.title!r} asks for no values of steps")
    ident = "regard-" + sha256(exercise.title.encode()).hexdigest()[:12]
    files = {
        "imsmanifest.xml": _manifest(ident),
        f"{ident}/{ident}.xml": _assessment(ident, exercise.title, questions),
    }
    for root in files.values():
        Xml.indent(root, " ")
    texts = {
        name: Xml.tostring(root, encoding="utf-8", xml_declaration=True)
        for name, root in files.items()
    }
    return zipped(texts)


def _manifest(ident: str) -> Xml.Element:
    root = Xml.Element("manifest", {"xmlns": PACKAGE, "identifier": f"{ident}-manifest"})
    metadata = Xml.SubElement(root, "metadata")
    Xml.SubElement(metadata, "schema").text = "IMS Content"
    Xml.SubElement(metadata, "schemaversion").text = "1.1.3"
    Xml.SubElement(root, "organizations")
    resources = Xml.SubElement(root, "resources")
    href = f"{ident}/{ident}.xml"
    kind = {"identifier": ident, "type": "imsqti_xmlv1p2", "href": href}
    Xml.SubElement(Xml.SubElement(resources, "resource", kind), "file", href=href)
    return root


def _assessment(ident: str, title: str, questions: list[StepQuestion]) -> Xml.Element:
    root = Xml.Element("questestinterop", {"xmlns": QTI})
    assessment = Xml.SubElement(root, "assessment", ident=ident, title=title)
    section = Xml.SubElement(assessment, "section", ident="root_section")
    for question in questions:
        _item(section, question)
    return root


def _item(section: Xml.Element, question: StepQuestion) -> None:
    place = question.telling
    item = Xml.SubElement(section, "item", ident=question.name, title=question.title)
    fields = Xml.SubElement(Xml.SubElement(item, "itemmetadata"), "qtimetadata")
    for label, entry in (
        ("question_type", "numerical_question"),
        ("points_possible", f"{question.points:g}"),
    ):
        field = Xml.SubElement(fields, "qtimetadatafield")
        Xml.SubElement(field, "fieldlabel").text = label
        Xml.SubElement(field, "fieldentry").text = entry
    presentation = Xml.SubElement(item, "presentation")
    ask = f"<p>Compute {question.symbol}. Which number is in {question.called(place)}? "
    _material(presentation, f"{question.given}{ask}Give two decimals.</p>")
    response = Xml.SubElement(
        presentation, "response_str", ident="response1", rcardinality="Single"
    )
    fib = Xml.SubElement(response, "render_fib", fibtype="Decimal")
    Xml.SubElement(fib, "response_label", ident="answer1")
    wrong = list(question.feedback(place))
    _processing(item, float(question.right[place]), [number for number, _ in wrong])
    for number, (_, words) in enumerate(wrong, 1):
        feedback = Xml.SubElement(item, "itemfeedback", ident=f"wrong{number}_fb")
        _material(Xml.SubElement(feedback, "flow_mat"), f"<p>{_html(words)}</p>")


def _material(parent: Xml.Element, html: str) -> None:
    material = Xml.SubElement(parent, "material")
    Xml.SubElement(material, "mattext", texttype="text/html").text = html


def _html(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _processing(item: Xml.Element, right: float, wrong: list[float]) -> None:
    processing = Xml.SubElement(item, "resprocessing")
    outcomes = Xml.SubElement(processing, "outcomes")
    kind = {"maxvalue": "100", "minvalue": "0", "varname": "SCORE", "vartype": "Decimal"}
    Xml.SubElement(outcomes, "decvar", kind)
    for number, value in enumerate(wrong, 1):
        condition = _near(processing, value, "Yes")
        link = {"feedbacktype": "Response", "linkrefid": f"wrong{number}_fb"}
        Xml.SubElement(condition, "displayfeedback", link)
    condition = _near(processing, right, "No", exact=True)
    Xml.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"


def _near(processing: Xml.Element, value: float, more: str, exact: bool = False) -> Xml.Element:
    """A condition that holds where the answer comes as near as it must."""
    condition = Xml.SubElement(processing, "respcondition", {"continue": more})
    variable = Xml.SubElement(condition, "conditionvar")
    ident = {"respident": "response1"}
    if exact:
        variable = Xml.SubElement(variable, "or")
        Xml.SubElement(variable, "varequal", ident).text = written(value)
        variable = Xml.SubElement(variable, "and")
    Xml.SubElement(variable, "vargte", ident).text = written(value - WITHIN)
    Xml.SubElement(variable, "varlte", ident).text = written(value + WITHIN)
    return condition
