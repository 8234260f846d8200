"""Where each word of a TOML file stands, for messages that name the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from regard._errors import ExerciseError

Path = tuple[str, ...]  # ("asked", "2", "table", "vary"), counted from 0

NAME = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
DOTTED = rf"{NAME}(?:\s*\.\s*{NAME})*"
HEADER = re.compile(rf"\s*(\[\[?)\s*({DOTTED})\s*\]\]?\s*(?:#.*)?$")
WORD = re.compile(rf"\s*({DOTTED})\s*=")
FENCES = ('"""', "'''")


@dataclass(frozen=True)
class Source:
    """The text of an exercise file and what messages call it."""

    name: str
    text: str

    def fail(self, message: str, *path: str | int) -> ExerciseError:
        return ExerciseError(f"{self.name}, line {self.line_of(*path)}: {message}")

    def line_of(self, *path: str | int) -> int:
        """The line of the word at this path, or of the nearest table around it."""
        names = tuple(map(str, path))
        while names and names not in self._lines:
            names = names[:-1]
        return self._lines.get(names, 1)

    @cached_property
    def _lines(self) -> dict[Path, int]:
        lines: dict[Path, int] = {}
        for path, line in _words(self.text):
            lines.setdefault(path, line)
        return lines


def _words(text: str) -> Iterator[tuple[Path, int]]:
    table: Path = ()
    counts: dict[Path, int] = {}
    fence = ""
    for line, content in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in content else fence
            continue
        if header := HEADER.match(content):
            table = _table(_names(header[2]), header[1] == "[[", counts)
            yield table, line
            yield (table[:-1] if header[1] == "[[" else table), line
        elif word := WORD.match(content):
            names = _names(word[1])
            yield from ((table + names[:end], line) for end in range(1, len(names) + 1))
        fence = next((mark for mark in FENCES if content.count(mark) % 2), "")


def _names(dotted: str) -> Path:
    return tuple(name.strip("\"'") for name in re.findall(NAME, dotted))


def _table(names: Path, is_entry: bool, counts: dict[Path, int]) -> Path:
    """The path of a table, with the place of each entry of a list of tables in it."""
    path: Path = ()
    for place, name in enumerate(names, 1):
        path = (*path, name)
        if is_entry and place == len(names):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, str(counts[path]))
    return path
