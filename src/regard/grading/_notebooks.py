"""Test files for Otter, and a notebook of cells for nbgrader."""

from __future__ import annotations

import json
from typing import Any

from regard._errors import OptionError
from regard.exercises import Exercise
from regard.grading._archive import zipped
from regard.grading._code_checks import COMPARE, CodeCheck, code_checks, indented

OTTER = '''"""{title}"""

import numpy as np
from otter.test_files import test_case
{imports}
OK_FORMAT = False

name = {name!r}
points = {points!r}

{compare}


@test_case(points={points!r}, hidden=False)
def test_{name}({arguments}):
{missing}
{body}
'''


def _checks(exercise: Exercise) -> list[CodeCheck]:
    checks = code_checks(exercise)
    if not checks:
        raise OptionError(
            f"export: {exercise.title!r} asks for nothing that a cell can check: no values of "
            "steps, and no function in [[code.run]]"
        )
    return checks


def _imports(exercise: Exercise) -> str:
    return "import torch\n" if exercise.code and exercise.code.library == "torch" else ""


def otter(exercise: Exercise) -> bytes:
    """A zip of exception-based test files, one a question."""
    files = {}
    for check in _checks(exercise):
        missing = "\n".join(
            f'assert {name} is not None, "{name} is not defined"' for name in check.names
        )
        files[f"tests/{check.name}.py"] = OTTER.format(
            title=check.title.replace('"', "'"), name=check.name, points=check.points,
            compare=COMPARE, arguments=", ".join(check.names), body=indented(check.body),
            missing=indented(missing), imports=_imports(exercise),
        )  # fmt: skip
    return zipped(files)


def nbgrader(exercise: Exercise) -> bytes:
    """The instructor's notebook: questions, answers with solutions, and hidden tests."""
    cells = [_cell("markdown", "title", f"# {exercise.title}\n\n{exercise.text}", locked=True)]
    for check in _checks(exercise):
        cells.append(_cell("markdown", f"{check.name}-question", f"## {check.title}", locked=True))
        cells.append(_cell("code", f"{check.name}-answer", _answer(check), solution=True))
        tests = (
            f"import numpy as np\n{_imports(exercise)}### BEGIN HIDDEN TESTS\n{COMPARE}\n\n"
            f"{check.body}\n### END HIDDEN TESTS"
        )
        test = _cell("code", f"{check.name}-test", tests, locked=True, points=check.points)
        cells.append(test)
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode()


def _answer(check: CodeCheck) -> str:
    """nbgrader puts its own stub in the place of the solution."""
    imports = "" if "import " in check.solution else "import numpy as np\n\n"
    return f"{imports}### BEGIN SOLUTION\n{check.solution or check.stub}\n### END SOLUTION"


def _cell(
    kind: str,
    name: str,
    source: str,
    *,
    locked: bool = False,
    solution: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    graded: dict[str, Any] = {
        "schema_version": 3, "grade_id": name, "grade": points is not None, "locked": locked,
        "solution": solution, "task": False,
    }  # fmt: skip
    if points is not None:
        graded["points"] = points
    cell: dict[str, Any] = {
        "cell_type": kind, "id": name, "metadata": {"nbgrader": graded},
        "source": source.splitlines(keepends=True),
    }  # fmt: skip
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
