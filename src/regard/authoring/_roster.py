"""One variant for each student, from a list of them."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from regard._errors import FileError
from regard._files import read_text

ID_COLUMNS = ("id", "student", "student id", "student_id", "sid", "username", "user", "email",
              "matriculation", "number")  # fmt: skip
MOST_STUDENTS = 10_000


class Student(NamedTuple):
    """A line of a roster: the id decides the numbers, the name only stands on the sheet."""

    id: str
    name: str = ""

    @property
    def folder(self) -> str:
        """The id as the name of a folder."""
        return re.sub(r"[^\w.@-]+", "_", self.id).strip(".") or "_"


def seed_of(seed: int, student: Student) -> int:
    """The seed of a student's variant: it depends on the id and the exercise's seed alone."""
    digest = hashlib.sha256(f"{seed}:{student.id}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def read_roster(source: str | PathLike[str]) -> list[Student]:
    """The students of a CSV file: a column of ids, and a column of names if there is one."""
    path = Path(fspath(source))
    lines = read_text(path, f"new: the roster {str(path)!r}").splitlines()
    parted = max(",;\t", key=next(filter(str.strip, lines), "").count)  # as spreadsheets write it
    students = list(_students(list(csv.reader(lines, delimiter=parted)), path.name))
    if not students:
        raise FileError(f"new: the roster {path.name!r} has no students")
    if len(students) > MOST_STUDENTS:
        raise FileError(f"new: the roster {path.name!r} has more than {MOST_STUDENTS:,} students")
    for one, other in _alike(students):
        raise FileError(
            f"new: the roster {path.name!r} has two students with the id {one.id!r} "
            f"({other.id!r}): each needs an id of their own"
        )
    return students


def _students(rows: list[list[str]], name: str) -> Iterator[Student]:
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    if not filled:
        return
    header = [cell.strip().lower() for cell in filled[0]]
    column = next((header.index(word) for word in ID_COLUMNS if word in header), None)
    if column is None:
        if len(header) > 1:
            raise FileError(
                f"new: the roster {name!r} has no column of ids: call one of its columns 'id' "
                f"(they are {', '.join(header)})"
            )
        column, body = 0, filled
    else:
        body = filled[1:]
    names = next((header.index(word) for word in ("name", "full name") if word in header), None)
    for row in body:
        cells = [cell.strip() for cell in row]
        if column < len(cells) and cells[column]:
            shown = cells[names] if names is not None and names < len(cells) else ""
            yield Student(cells[column], shown)


def _alike(students: list[Student]) -> Iterator[tuple[Student, Student]]:
    seen: dict[str, Student] = {}
    for student in students:
        first = seen.setdefault(student.folder.lower(), student)
        if first is not student:
            yield first, student
