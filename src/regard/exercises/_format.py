"""Reading an exercise from its TOML file: words, types and lines. Meaning is in `_checks`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from regard._errors import ExerciseError, FileError, did_you_mean
from regard.exercises._checks import check
from regard.exercises._exercise import (
    FORMAT,
    MAIN,
    QUESTIONS,
    AnswerTable,
    Asked,
    AskedProgram,
    CodeRules,
    CodeRun,
    Column,
    Draws,
    Exercise,
    LinearDraw,
    NormalDraw,
    Variant,
)
from regard.exercises._lines import Source
from regard.graph.builders import KINDS
from regard.graph.construction import GIVEN_SYMBOLS, OPTION_NAMES

# The words of a file outside any table and their types, in the order in which they are read.
TOP = {
    "format": "int", "title": "str", "kind": "str", "source": "str", "text": "str",
    "remarks": "tuple[str, ...]", "numpy_precision": "int", "givens": "table",
    "options": "table", "constants": "table", "draws": "table", "names": "Mapping[str, str]",
    "code": "table", "variants": "Mapping[str, table]", "asked": "list",
}  # fmt: skip
NEEDED = ("format", "title", "kind", "asked")
VARIANT = {part: TOP[part] for part in ("kind", "givens", "options", "constants", "draws")}

Place = tuple[str | int, ...]  # of a word, as `Source.line_of` takes it

TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: type(value) is int),
    "int | None": ("a whole number", lambda value: type(value) is int),
    "float": ("a number", lambda value: type(value) in (int, float)),
    "table": ("a table", lambda value: isinstance(value, dict)),
    "anything": ("anything", lambda _: True),  # what it may be, its own reader says
    "list": ("a list of tables", lambda value: _all(value, dict)),
    "tuple[str, ...]": ("a text or a list of texts", lambda value: _all(value, str)),
    "tuple[int, ...]": ("a list of whole numbers", lambda value: _all(value, int)),
    "tuple[float, ...]": ("a list of numbers", lambda value: _all(value, int, float)),
    "Mapping[str, str]": ("a table of texts", lambda value: _all(_values(value), str)),
    "Mapping[str, table]": ("a table of tables", lambda value: _all(_values(value), dict)),
    "Mapping[str, tuple[str, ...]]": (
        "a table of texts or lists of texts",
        lambda value: _all(_values(value), str, tuple),
    ),
}


def _all(value: Any, *kinds: type) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(entry) in kinds for entry in value)


def _values(value: Any) -> Any:
    """The values of a table, lists of texts among them as tuples."""
    if not isinstance(value, dict):
        return None
    return tuple(
        tuple(entry) if isinstance(entry, list) and _all(tuple(entry), str) else entry
        for entry in value.values()
    )


def read_exercise(text: str, name: str, read_file: Callable[[str], str] | None = None) -> Exercise:
    """The exercise in a TOML text; `name` is what messages call the file.

    `read_file` gives the text of a program that stands beside it.
    """
    source = Source(name, text)
    data = _words(source, _parsed(source), TOP, (), NEEDED)
    if data["format"] != FORMAT:
        raise source.fail(f"this regard reads format {FORMAT}, not {data['format']}", "format")
    exercise = Exercise(
        title=data["title"],
        variants=dict(_variants(source, data)),
        asked=tuple(_asked(source, item, place) for place, item in enumerate(data["asked"])),
        text=data.get("text", "").strip(),
        source=data.get("source", ""),
        names=data.get("names", {}),
        code=_code(source, data["code"]) if "code" in data else None,
        remarks=data.get("remarks", ()),
        numpy_precision=data.get("numpy_precision"),
        files=dict(_files(source, data, read_file)),
        toml=text,
    )
    check(exercise, source)
    return exercise


def _parsed(source: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line = int(place[1]) if place else max(1, len(source.text.splitlines()))
        reason = message.partition(" (at")[0]
        if "overwrite" in reason or "twice" in reason:
            reason = "this word or table stands in the file already"
        raise ExerciseError(f"{source.name}, line {line}: this is no TOML: {reason}") from error


# ---- words and their types -----------------------------------------------------------------


def _words(
    source: Source,
    data: Mapping[str, Any],
    known: Mapping[str, str],
    path: Place,
    needed: Iterable[str] = (),
) -> dict[str, Any]:
    """The values of a table whose words are known and whose types fit; lists become tuples."""
    values = {}
    for word, value in data.items():
        if word not in known:
            message = f"unknown word {word!r}{_where(path)}: {did_you_mean(word, known)}"
            raise source.fail(message, *path, word)
        values[word] = _typed(source, value, known[word], (*path, word))
    if missing := [word for word in needed if word not in values]:
        verb = "is" if len(missing) == 1 else "are"
        raise source.fail(f"{', '.join(missing)} {verb} missing{_where(path)}", *path)
    return values


def _where(path: Place) -> str:
    if not path:
        return ""
    if isinstance(path[-1], int):
        return f" in entry {path[-1] + 1} of {'.'.join(str(p) for p in path[:-1])}"
    return f" in [{'.'.join(str(p) for p in path if isinstance(p, str))}]"


def _typed(source: Source, value: Any, kind: str, path: Place) -> Any:
    if kind == "tuple[str, ...]" and isinstance(value, str):
        value = (value,)
    if isinstance(value, list):
        value = tuple(value)
    words, fits = TYPES[kind]
    if not fits(value):
        shown = repr(list(value) if isinstance(value, tuple) else value)
        shown = shown if len(shown) <= 60 else shown[:60] + "…"
        raise source.fail(f"`{path[-1]}` must be {words}, but {shown} was found", *path)
    if kind == "Mapping[str, tuple[str, ...]]":
        return {key: (v,) if isinstance(v, str) else tuple(v) for key, v in value.items()}
    return value


def words_of(kind: type[Any]) -> dict[str, str]:
    """The words that a dataclass reads from a file, with their types."""
    return {each.name: str(each.type) for each in fields(kind)}


def _needed(kind: type[Any]) -> list[str]:
    return [
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    ]


def _record(source: Source, kind: type[Any], data: Any, *path: str | int) -> Any:
    """A dataclass from a table: its fields are the words."""
    return kind(**_words(source, data, words_of(kind), path, _needed(kind)))


# ---- the parts of an exercise --------------------------------------------------------------


def _variants(source: Source, data: Mapping[str, Any]) -> Iterator[tuple[str, Variant]]:
    """The exercise's own computation, then each variant: the same with some things changed."""
    yield MAIN, _variant(source, data, {}, ())
    for name, changes in data.get("variants", {}).items():
        path = ("variants", name)
        if name == MAIN:
            raise source.fail(f"{MAIN!r} is the exercise itself; name the variant otherwise", *path)
        yield name, _variant(source, _words(source, changes, VARIANT, path), data, path)


def _variant(
    source: Source, own: Mapping[str, Any], base: Mapping[str, Any], path: tuple[str, ...]
) -> Variant:
    kind = own.get("kind", base.get("kind"))
    if kind not in KINDS:
        raise source.fail(f"unknown kind {kind!r}: {did_you_mean(str(kind), KINDS)}", *path, "kind")
    for part, known in (("givens", tuple(GIVEN_SYMBOLS)), ("options", OPTION_NAMES)):
        _words(source, own.get(part, {}), dict.fromkeys(known, "anything"), (*path, part))
    parts = {part: dict(own.get(part, {})) for part in ("givens", "options", "constants")}
    for part in parts:
        if kind == base.get("kind", kind) or (part != "options" and part not in own):
            parts[part] = {**base.get(part, {}), **parts[part]}
    draws = own.get("draws", base.get("draws"))
    place = (*path, "draws") if "draws" in own else ("draws",)
    return Variant(kind, **parts, draws=_draws(source, draws, *place) if draws else None)


def _draws(source: Source, data: Mapping[str, Any], *path: str) -> Draws:
    known = {"seed": "int", "tensors": "list"}
    read = _words(source, data, known, path, known)
    draws = {draw.word: draw for draw in (LinearDraw, NormalDraw)}
    tensors = []
    for place, item in enumerate(read["tensors"]):
        here: Place = (*path, "tensors", place)
        word = _one_word(source, item, draws, here)
        tensors.append(_record(source, draws[word], item, *here))
    return Draws(read["seed"], tuple(tensors))


def _one_word(
    source: Source, item: Mapping[str, Any], known: Mapping[str, Any], path: Place
) -> str:
    """The one word of a table that says what the table is."""
    words = [word for word in known if word in item]
    if len(words) == 1:
        return words[0]
    found = f"{' and '.join(words)} were found" if words else "none was found"
    misspelt = [did_you_mean(word, known) for word in item]
    hint = next((f"; {hint}" for hint in misspelt if "known:" not in hint and not words), "")
    message = f"one of {', '.join(known)} is wanted{_where(path)}, but {found}{hint}"
    raise source.fail(message, *path, *words[:1])


def _asked(source: Source, item: Mapping[str, Any], place: int) -> Asked:
    path = ("asked", place)
    word = _one_word(source, item, QUESTIONS, path)
    kind = QUESTIONS[word]
    common = words_of(Asked) | {"table": "table"}
    del common["question"]
    belonging = words_of(kind)
    for other in item:
        owner = next((w for w, k in QUESTIONS.items() if other in words_of(k)), "")
        if other not in common and other not in belonging and owner:
            message = f"`{other}` goes with `{owner}`, but this asks for a `{word}`"
            raise source.fail(message, *path, other)
    read = _words(source, item, common | belonging, path, _needed(kind))
    question = kind(**{key: read.pop(key) for key in belonging if key in read})
    if "table" in read:
        read["table"] = _table(source, read["table"], *path, "table")
    return Asked(question, **read)


def _table(source: Source, data: Mapping[str, Any], *path: str | int) -> AnswerTable:
    known = words_of(AnswerTable) | {"columns": "list"}
    read = _words(source, data, known, path, _needed(AnswerTable))
    read["columns"] = tuple(
        _record(source, Column, column, *path, "columns", place)
        for place, column in enumerate(read["columns"])
    )
    return AnswerTable(**read)


def _code(source: Source, data: Mapping[str, Any]) -> CodeRules:
    """What a program must keep to; `run` is a list of tables of its own."""
    known = words_of(CodeRules) | {"run": "list"}
    read = _words(source, data, known, ("code",))
    read["run"] = tuple(
        _record(source, CodeRun, item, "code", "run", place)
        for place, item in enumerate(read.get("run", ()))
    )
    return CodeRules(**read)


def _files(
    source: Source, data: Mapping[str, Any], read_file: Callable[[str], str] | None
) -> Iterator[tuple[str, str]]:
    """The programs that an exercise names: files right beside it."""
    named: list[tuple[Any, Place]] = [(data.get("code", {}).get("skeleton"), ("code", "skeleton"))]
    for place, item in enumerate(data["asked"]):
        named.append((item.get(AskedProgram.word), ("asked", place, AskedProgram.word)))
    for file, path in named:
        if not file:
            continue
        if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", file):
            raise source.fail(f"{file!r} must be the name of a file beside the exercise", *path)
        if read_file is None:
            message = f"{file!r} stands beside the exercise, but this was not read from a file"
            raise source.fail(message, *path)
        try:
            yield file, read_file(file)
        except FileError as error:
            raise source.fail(str(error), *path) from error
