"""What an exercise is, and reading one from its TOML file with errors that name the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from regard._errors import ExerciseError, did_you_mean
from regard.graph.builders import GIVEN_SYMBOLS, KINDS, OPTION_NAMES

FORMAT = 1


@dataclass(frozen=True)
class Variant:
    """One computation of an exercise; the exercise's own is called "main"."""

    kind: str
    givens: Mapping[str, Any]
    options: Mapping[str, Any]
    constants: Mapping[str, Any]
    draws: Draws | None = None


@dataclass(frozen=True)
class Draws:
    """Givens that torch draws after a seed, in the order of the parameters of a module."""

    seed: int
    tensors: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Table:
    """Numbers that show an answer: one row for each value of a constant."""

    vary: str
    values: tuple[Any, ...]
    columns: tuple[str, ...]
    header: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """One thing that is asked; exactly one of the words of `ASKED` is used.

    `label` and `text` are the question, `answer` the words of the solution, `remark` what a
    reader of the source must be told.
    """

    label: str = ""
    text: str = ""
    points: float = 1
    variant: str = "main"
    answer: str = ""
    remark: str = ""
    table: Table | None = None
    step: tuple[str, ...] = ()
    shape: str = ""
    choice: tuple[str, ...] = ()
    fact: str = ""
    formula: Mapping[str, Any] | None = None
    mask: str = ""
    design: Mapping[str, Any] | None = None
    compare: tuple[str, ...] = ()
    permute: tuple[int, ...] = ()
    agree: str = ""
    explain: bool = False


# What may be asked, and what it means in an exercise file.
ASKED = {
    "step": "the values of a step, or of several",
    "shape": "the shape of a step",
    "choice": "one of several answers, decided by a `fact` of the computation",
    "formula": "how many operations of a kind some steps take",
    "mask": "a mask's shape and values",
    "design": "an input to design, with a property to meet",
    "compare": "what differs between variants, and why",
    "permute": "what happens when the tokens change places",
    "agree": "agreement with a function of torch",
    "explain": "an answer in words, shown by numbers",
}


@dataclass(frozen=True)
class CodeRules:
    """What a submitted program must keep to."""

    imports: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    seed: int | None = None
    skeleton: str = ""


@dataclass(frozen=True)
class Exercise:
    title: str
    variants: Mapping[str, Variant]
    asked: tuple[Asked, ...]
    text: str = ""
    source: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    code: CodeRules | None = None
    remarks: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()  # how a pasted assignment was read


# ---- reading -------------------------------------------------------------------------------

TOP = ("format", "title", "kind", "text", "source", "remarks", "givens", "options", "constants",
       "draws", "names", "code", "variants", "asked")  # fmt: skip
VARIANT = ("kind", "givens", "options", "constants", "draws")


@dataclass(frozen=True)
class _Source:
    """The text of a file, for messages that name the line."""

    name: str
    text: str

    def fail(self, message: str, key: str = "", table: str = "", count: int = 0) -> ExerciseError:
        line = self.line_of(key, table, count)
        return ExerciseError(f"{self.name}, line {line}: {message}")

    def line_of(self, key: str, table: str, count: int) -> int:
        """The line of `key` in the count-th occurrence of [table] or [[table]]."""
        inside, seen = table == "", 0
        start = 1
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(#.*)?$", line):
                seen += header[1] == table
                inside = header[1] == table and seen == count + 1
                start = number if inside else start
            elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
                return number
        return start


def read_exercise(text: str, name: str) -> Exercise:
    """The exercise in a TOML text; `name` is what messages call the file."""
    source = _Source(name, text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExerciseError(f"{name}: this is no TOML: {error}") from error
    _only(source, data, TOP)
    if data.get("format") != FORMAT:
        raise source.fail(
            f"`format = {FORMAT}` is wanted, but {data.get('format', 'nothing')!r} was found", "format"
        )
    for needed, kind in (("title", str), ("asked", list)):
        if not isinstance(data.get(needed), kind):
            raise source.fail(f"an exercise needs `{needed}`", needed)
    variants = dict(_variants(source, data))
    asked = tuple(_asked(source, item, i, variants) for i, item in enumerate(data["asked"]))
    return Exercise(
        title=data["title"],
        variants=variants,
        asked=asked,
        text=data.get("text", "").strip(),
        source=data.get("source", ""),
        names=data.get("names", {}),
        code=_record(source, CodeRules, data["code"], "code") if "code" in data else None,
        remarks=tuple(data.get("remarks", ())),
    )


def _only(source: _Source, data: Mapping[str, Any], known: tuple[str, ...], table: str = "",
          count: int = 0) -> None:  # fmt: skip
    for key in data:
        if key not in known:
            where = f" in [{table}]" if table else ""
            raise source.fail(f"unknown word {key!r}{where}: {did_you_mean(key, known)}", key, table, count)


def _variants(source: _Source, data: Mapping[str, Any]) -> Iterator[tuple[str, Variant]]:
    """The exercise's own computation, then each variant: the same with some things changed."""
    if not isinstance(data.get("kind"), str):
        raise source.fail("an exercise needs `kind`: one of " + ", ".join(KINDS), "kind")
    yield "main", _variant(source, data, {}, "")
    for name, changes in data.get("variants", {}).items():
        _only(source, changes, VARIANT, f"variants.{name}")
        yield name, _variant(source, changes, data, f"variants.{name}.")


def _variant(source: _Source, own: Mapping[str, Any], base: Mapping[str, Any], at: str) -> Variant:
    kind = own.get("kind", base.get("kind"))
    if kind not in KINDS:
        raise source.fail(f"unknown kind {kind!r}: {did_you_mean(str(kind), KINDS)}", "kind", at[:-1])
    same_kind = kind == base.get("kind", kind)
    tables = {
        part: {**(base.get(part, {}) if same_kind or part != "options" else {}), **own.get(part, {})}
        for part in ("givens", "options", "constants")
    }
    if not same_kind and "givens" in own:
        tables["givens"] = dict(own["givens"])
    for part, known in (("givens", tuple(GIVEN_SYMBOLS)), ("options", OPTION_NAMES)):
        _only(source, tables[part], known, at + part)
    draws = own.get("draws", base.get("draws"))
    return Variant(kind, **tables, draws=_draws(source, draws, at) if draws else None)


DRAWN = {"linear": ("weight", "bias", "shape"), "normal": ("name", "shape")}


def _draws(source: _Source, data: Mapping[str, Any], at: str) -> Draws:
    _only(source, data, ("seed", "tensors"), at + "draws")
    tensors = data.get("tensors", [])
    for tensor in tensors:
        known = DRAWN.get(tensor.get("draw"), ())
        if not known:
            raise source.fail(f"`draw` must be one of {', '.join(DRAWN)}", "tensors", at + "draws")
        _only(source, tensor, ("draw", *known), at + "draws")
    return Draws(int(data.get("seed", 0)), tuple(tensors))


def _asked(source: _Source, item: Any, place: int, variants: Mapping[str, Variant]) -> Asked:
    asked: Asked = _record(source, Asked, item, "asked", place)
    words = [word for word in ASKED if getattr(asked, word)]
    if len(words) != 1:
        found = f"{' and '.join(words)} were found" if words else "none was found"
        raise source.fail(
            f"[[asked]] number {place + 1} must hold one of {', '.join(ASKED)}, but {found}",
            words[0] if words else "", "asked", place,
        )  # fmt: skip
    for variant in {asked.variant, *asked.compare}:
        if variant not in variants:
            message = f"no variant {variant!r}: {did_you_mean(variant, variants)}"
            raise source.fail(message, "variant", "asked", place)
    return asked


def _record(source: _Source, kind: type[Any], data: Any, table: str, count: int = 0) -> Any:
    """A dataclass from a table, its words and their types checked."""
    if not isinstance(data, dict):
        raise source.fail(f"[{table}] must be a table", table)
    known = {record_field.name: record_field for record_field in fields(kind)}
    _only(source, data, tuple(known), table, count)
    values = {}
    for key, value in data.items():
        if key == "table" and kind is Asked:
            value = _record(source, Table, value, "asked.table", count)
        elif key == "step" and isinstance(value, str):
            value = (value,)
        elif isinstance(value, list):
            value = tuple(value)
        default = known[key].default
        if default is not MISSING and default is not None:
            wanted: Any = (int, float) if isinstance(default, float | int) else type(default)
            if not isinstance(value, wanted):
                message = f"`{key}` must be {_type_words(default)}, but {value!r} was found"
                raise source.fail(message, key, table, count)
        values[key] = value
    try:
        return kind(**values)
    except TypeError as error:
        missing = str(error).rpartition(":")[2].strip()
        raise source.fail(f"[{table}] needs {missing}", "", table, count) from error


def _type_words(default: Any) -> str:
    if isinstance(default, bool):
        return "true or false"
    words = {str: "a text", tuple: "a list", int: "a number", float: "a number"}
    return words.get(type(default), "a table")
