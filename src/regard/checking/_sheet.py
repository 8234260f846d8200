"""Answers as they were handed in: values by name, with where each was read."""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from regard._errors import FileError
from regard._files import as_text, read_bytes
from regard.checking._text import Item, Wanted, read_text
from regard.exercises import Source

LARGEST_ARRAY = 1_000_000  # numbers
LONGEST = 400  # digits before or after the point; float64 holds no more
TEXT_ENDINGS = (".md", ".tex", ".txt", ".m", ".py", ".csv", "")


@dataclass(frozen=True)
class Sheet:
    """Everything that was handed in."""

    name: str
    items: tuple[Item, ...]


def plain(word: str) -> str:
    """A name without brackets, spaces and dollar signs, for comparing."""
    return re.sub(r"[\s()$`*.]+", "", word).lower()


def sheet_from(answers: Mapping[str, Any], name: str = "answers") -> Sheet:
    """What was passed from Python: values by step, label or variant."""
    return Sheet(name, tuple(_items(answers, lambda path: "")))


def _items(table: Mapping[str, Any], where: Any, path: tuple[str, ...] = ()) -> Iterator[Item]:
    for word, value in table.items():
        here = (*path, str(word))
        if isinstance(value, Mapping):
            yield from _items(value, where, here)
        else:
            yield Item(here, _exact(value), where(here))


def _exact(value: Any) -> Any:
    """Decimals as the fractions that they say."""
    if isinstance(value, (list, tuple)):
        return [_exact(entry) for entry in value]
    if isinstance(value, Decimal):
        return (
            Fraction(value) if value.is_finite() and abs(value.adjusted()) < 400 else float(value)
        )
    return value


def read_sheet(source: str | PathLike[str], wanted: Wanted, step: str = "") -> Sheet:
    """The answers in a file; `step` is what a file with one array alone answers."""
    path = Path(fspath(source))
    what = f"check: {str(path)!r}"
    data = read_bytes(path, what)
    ending = path.suffix.lower()
    if ending in (".npz", ".npy"):
        return Sheet(path.name, tuple(_arrays(data, path.name, ending, step)))
    return parse_sheet(as_text(data, what), path.name, wanted, step)


def parse_sheet(text: str, name: str, wanted: Wanted, step: str = "") -> Sheet:
    """The answers in a text; the ending of its name says how it is written."""
    ending = Path(name).suffix.lower()
    if ending == ".toml":
        source = Source(name, text)
        return Sheet(
            name, tuple(_items(_toml(text, name), lambda p: f"{name}, line {source.line_of(*p)}"))
        )
    if ending in (".json", ".ipynb"):
        data = _json(text, name)
        if ending == ".json":
            return Sheet(name, tuple(_items(data, lambda p: f"{name}: {' '.join(p)}")))
        text = _cells(data, name)
    elif ending not in TEXT_ENDINGS:
        raise FileError(
            f"check: {name!r}: answers are read from .toml, .json, .npz, .npy, .ipynb, and as text "
            f"from {', '.join(e for e in TEXT_ENDINGS if e)}"
        )
    found = read_text(text, wanted, step)
    return Sheet(name, tuple(replace(each, where=f"{name}, {each.where}") for each in found))


def _arrays(data: bytes, name: str, ending: str, step: str) -> Iterator[Item]:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = dict(loaded) if ending == ".npz" else {step: loaded}
    except (ValueError, OSError, EOFError, MemoryError, KeyError) as error:
        raise FileError(
            f"check: {name!r} cannot be read: it must hold arrays of numbers, saved without pickle"
        ) from error
    except Exception as error:  # of zipfile, whose errors have no common base but this
        raise FileError(f"check: {name!r} is no {ending} file: {error}") from error
    if ending == ".npy" and not step:
        raise FileError(f"check: {name!r} holds one array without a name: say --step")
    for word, array in arrays.items():
        if array.size > LARGEST_ARRAY or array.dtype.kind not in "biufc":
            raise FileError(f"check: {name!r}: {word} is no array of at most a million numbers")
        yield Item((word,), array, f"{name}: {word}")


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ArithmeticError, RecursionError) as error:
        raise FileError(f"check: {name!r} is no TOML: {error}") from error


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        data = json.loads(text, parse_float=Decimal)
    except (json.JSONDecodeError, ArithmeticError, RecursionError) as error:
        raise FileError(f"check: {name!r} is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise FileError(f"check: {name!r} must hold an object with the answers by name")
    return data


def _cells(notebook: dict[str, Any], name: str) -> str:
    """What stands in the cells of a notebook and what they printed, as one text."""
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise FileError(f"check: {name!r} is no notebook: it has no cells")
    parts: list[str] = []
    for cell in cells:
        if isinstance(cell, dict):
            parts.append(_joined(cell.get("source")))
            for output in cell.get("outputs") or ():
                if isinstance(output, dict):
                    data = output.get("data")
                    plain_text = data.get("text/plain") if isinstance(data, dict) else None
                    parts.append(_joined(output.get("text") or plain_text))
    return "\n\n".join(part for part in parts if part)


def _joined(lines: Any) -> str:
    if isinstance(lines, list):
        return "".join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""
