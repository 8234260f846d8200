"""Submissions: what a student handed in, read from a file as bytes and told to be a program."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from regard._errors import FileError
from regard._files import as_text, read_bytes

LARGEST = 5_000_000  # bytes
PROGRAMS = (".py", ".ipynb")


@dataclass(frozen=True)
class Submission:
    """A name for reports, the file's own name, and its content.

    `problem` says why there is nothing to grade, such as two files where one is wanted.
    """

    name: str
    file: str
    content: bytes
    problem: str = ""

    @property
    def is_program(self) -> bool:
        return Path(self.file).suffix in PROGRAMS

    @property
    def program(self) -> str:
        """Its Python; of a notebook the code cells, without the lines that only Jupyter knows."""
        text = as_text(self.content, repr(self.name))
        return _code_of(self.name, text) if self.file.endswith(".ipynb") else text


def refuse_bomb(submission: Submission) -> None:
    """An archive of arrays may be small and its content without end."""
    if not submission.file.endswith(".npz"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(submission.content)) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise FileError(f"{submission.name}: this is no .npz file: {error}") from error
    if size > LARGEST:
        raise FileError(f"{submission.name}: unpacked it has more than {LARGEST:,} bytes")


def _code_of(name: str, notebook: str) -> str:
    try:
        cells = json.loads(notebook)["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        texts = [source if isinstance(source, str) else "".join(source) for source in sources]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{name}: this is no Jupyter notebook: {error}") from error
    lines = "\n\n".join(texts).splitlines()
    return "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in lines)


def read_submission(path: str | Path, name: str = "") -> Submission:
    """The submission in a file."""
    path = Path(path)
    content = read_bytes(path, f"grade: {str(path)!r}", LARGEST)
    return Submission(name or path.name, path.name, content)
