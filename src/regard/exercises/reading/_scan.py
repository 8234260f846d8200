"""Finding the arrays of a text: what is assigned with ``=``, and what a sentence introduces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.exercises.reading._latex import BEGIN, read_environment, read_tuple
from regard.exercises.reading._matlab import read_matlab, read_printed
from regard.exercises.reading._names import SYMBOL, Name, understand
from regard.exercises.reading._python import read_literal
from regard.exercises.reading._records import Block, ReadingError, UnreadableError
from regard.exercises.reading._tables import read_table
from regard.exercises.reading._text import OPERATOR_AFTER, SKIPPED, line_of, quoted

_EQUALS = re.compile(r"(?<![=<>!+\-*/|^%@~])=(?!=)")
_LEFT_WINDOW = 300
# K = V = X: nobody writes longer ones, and following them all would take cubic time.
_LONGEST_CHAIN = 6
# Between a name and its equals sign: markup, the space it lies in, or a type annotation.
_DECORATION = (
    r"[\s:&$*`\"]*(?:\\in\s*\\mathbb\s*\{?R\}?\s*\^\s*\{[^{}]*\}"
    r"|:\s*(?:np|torch|list)\b[\w.\[\]]*)?[\s:&$*`]*"
)
_LEFT = re.compile(rf"(?P<symbol>{SYMBOL}){_DECORATION}$")
_LIST_OF_NAMES = re.compile(r"^[ \t]*((?:[A-Za-z_]\w*[ \t]*,[ \t]*)+)$")
# What may stand before a name that is assigned to; anything else makes it part of a formula.
_FREE_BEFORE = re.compile(
    r"(?:^|[$,;:.*`&|\"'>\n#\[{]|\w\(|\\\\|\\q?quad|\\[\[,;:! ]|\\\("
    r"|\\(?:text|mbox|begin|hspace|label|tag|intertext|textbf)\*?\{[^{}]*\}(?:\{[^{}]*\})?"
    r"|\\end\{[^{}]*\}\s*(?:\n|\\q?quad)|(?:^|\s)\(?[\w.]{1,4}\)"
    r"|(?<![\\A-Za-z])(?:a|[A-Za-z][a-z]+))[ \t]*$"
)
_CONVERSION = re.compile(r"(?:np|numpy|torch|jnp)\.\w*(?:array|tensor)\w*\(\s*(\w+)\s*[,)]")
_NOTHING = re.compile(r"\s*(?:None|False)\b")
_LINE_END = re.compile(r"[^\n;#]*")
_RANDOM = re.compile(r"rand|normal|uniform")
# A colon, a verb right before an array, or a line that holds nothing but a name.
_INTRODUCES = re.compile(
    r":(?=[\s*$`]|\[|\\)|\b(?:is|are|be|by|follows|matrix|vector)[ \t]*(?=[$\n\\]|\[\[)"
    rf"|^[ \t#>*`$-]*{SYMBOL}[*`$ \t]*$",
    re.MULTILINE,
)
_SENTENCE_START = re.compile(r"[.;:{}\]?!](?=\s)|\n[ \t]*\n|[\]}],?|\\\]")
_ASKS = re.compile(
    r"\b(?:comput\w*|calculat\w*|find|show|determin\w*|deriv\w*|result\w*|answer\w*|obtain\w*"
    r"|yields?|gives us|after|print\w*)\b|=",
    re.IGNORECASE,
)
_PHRASES = (
    (r"query weights?|weights? (?:matrix )?(?:for|of) the quer", "WQ"),
    (r"key weights?|weights? (?:matrix )?(?:for|of) the key", "WK"),
    (r"value weights?|weights? (?:matrix )?(?:for|of) the value", "WV"),
    (r"output (?:weights?|projection)|weights? (?:matrix )?(?:for|of) the output", "WO"),
    (r"quer(?:y|ies)\b", "Q"), (r"keys?\b", "K"), (r"values?\b", "V"),
    (r"input|embedding", "X"),
)  # fmt: skip
# In prose "keys" and "a" are words; Q, W_Q and $k$ are symbols.
_WORDS_FOR_SYMBOLS = re.compile(r"[a-z]+|[b-zB-Z]+[a-z]*[a-z]")
_NAME_LINE = re.compile(
    rf"[\s#>*`$\"{{,-]*(?:the\s+)?(?:(?:matrix|vector|array|tensor)\s+)?(?P<symbol>{SYMBOL})"
    r"(?:\s*\([\dx×, ]+\))?[*`$\s\"]*:?[*`$\s]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """An array together with the name that the text gives it."""

    name: Name
    written: str
    block: Block
    at: int


@dataclass(frozen=True)
class Alias:
    """A name that the text sets equal to another: ``K = V``."""

    name: Name
    written: str
    of: Name
    at: int


@dataclass
class Scan:
    """A text under examination, and what was found in it so far."""

    text: str
    original: str
    candidates: list[Candidate] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    computed: list[tuple[Name, str, int]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    claimed: list[tuple[int, int]] = field(default_factory=list)

    def note(self, at: int, sentence: str) -> None:
        """Tell what happened at an offset."""
        line = line_of(self.text, at)
        self.notes.append((line, f"line {line}: {sentence}"))

    def is_claimed(self, at: int) -> bool:
        """Whether an offset lies in an array that was read already."""
        return any(first <= at < last for first, last in self.claimed)


@dataclass(frozen=True)
class _Target:
    """A name on the left of an equation."""

    name: Name
    written: str
    at: int


def scan(text: str, original: str) -> Scan:
    """Find every named array; ``text`` is ``original`` made plain, offset for offset."""
    found = Scan(text, original)
    for equals in _EQUALS.finditer(text):
        if not found.is_claimed(equals.start()):
            _read_equation(found, equals)
    for introduces in _INTRODUCES.finditer(text):
        if not found.is_claimed(introduces.end()):
            _read_introduction(found, introduces.end())
    _note_nameless(found)
    return found


def read_block(text: str, at: int) -> Block | None:
    """The array that starts at an offset, in whatever layout it is written."""
    after = SKIPPED.match(text, at)
    start = after.end() if after else at
    for read in (read_environment, read_matlab, read_printed, read_tuple, read_literal):
        if (block := read(text, start)) is not None:
            return block
    return read_table(text, start) if "\n" in text[at:start] else None


def _read_equation(found: Scan, equals: re.Match[str]) -> None:
    targets = _targets(found, equals.start())
    if not targets:
        return
    unpacked = _unpacked(found, targets[0], equals.end())
    if unpacked:
        return
    block = _read_for(found, targets, equals.end())
    if block is None:
        _read_right_side(found, targets, equals.end())
        return
    _accept(found, targets, equals.start(), block)


def _accept(found: Scan, targets: list[_Target], equals: int, block: Block) -> None:
    if OPERATOR_AFTER.match(found.text, block.end):
        found.note(
            equals,
            f"the array after {quoted(targets[0].written)} is part of a formula and"
            " was not read as a given",
        )
        return
    if not _is_free(found.text, targets[-1].at):
        if targets[0].name.known:
            found.note(
                equals,
                f"the array after {quoted(targets[0].written)} ends a calculation:"
                " a result, not a given",
            )
        return
    found.claimed.append((equals, block.end))
    for target in reversed(targets):
        found.candidates.append(Candidate(target.name, target.written, block, target.at))


def _targets(found: Scan, equals: int) -> list[_Target]:
    """The names left of an equals sign, the nearest first: two of them in ``K = V =``."""
    targets: list[_Target] = []
    end = equals
    while len(targets) < _LONGEST_CHAIN:
        first = max(0, end - _LEFT_WINDOW)
        left = _LEFT.search(found.text[first:end])
        if left is None:
            return targets if targets and all(target.name.known for target in targets) else []
        at = first + left.start("symbol")
        written = found.original[at : first + left.end("symbol")]
        targets.append(_Target(understand(left["symbol"]), written, at))
        before = found.text[first:at].rstrip(" \t&$")
        if not before.endswith("=") or before.endswith("=="):
            return [] if _is_keyword(found.text, targets[0]) else targets
        end = first + len(before) - 1
    return []


def _is_keyword(text: str, target: _Target) -> bool:
    """Whether an unknown name is the keyword of a call, or only tells a size."""
    if target.name.known:
        return False
    line = text[text.rfind("\n", 0, target.at) + 1 : target.at]
    sizes = re.fullmatch(r".*(?:shape|size|dims?|range|axis|seed)", target.name.symbol)
    return line.count("(") > line.count(")") or sizes is not None


def _is_free(text: str, at: int) -> bool:
    before = text[max(0, at - _LEFT_WINDOW) : at]
    return _FREE_BEFORE.search(before) is not None


def _read_for(found: Scan, targets: list[_Target], at: int) -> Block | None:
    """Read the array, and refuse a broken one if any of its names has a role."""
    try:
        return read_block(found.text, at)
    except UnreadableError as unreadable:
        known = next((target for target in targets if target.name.known), None)
        if known and not unreadable.symbolic and _is_free(found.text, targets[-1].at):
            raise ReadingError(
                line_of(found.text, unreadable.at),
                f"{_kind_of_thing(known)}: {unreadable.problem}",
                unreadable.advice,
            ) from unreadable
        if known or not unreadable.symbolic:
            found.note(
                unreadable.at, f"{quoted(targets[0].written)} was not read: {unreadable.problem}"
            )
        return None


def _kind_of_thing(target: _Target) -> str:
    vector = target.name.symbol.islower() or target.name.symbol.startswith("b")
    return f"{'vector' if vector else 'matrix'} {target.written}"


def _unpacked(found: Scan, target: _Target, at: int) -> bool:
    """Read ``Q, K, V = [[..]], [[..]], [[..]]``; whether it was one."""
    line_start = found.text.rfind("\n", 0, target.at) + 1
    names = _LIST_OF_NAMES.match(found.text[line_start : target.at])
    if names is None:
        return False
    targets = [
        _Target(understand(name[0]), name[0], line_start + name.start())
        for name in re.finditer(r"\w+", names[0])
    ]
    targets.append(target)
    blocks: list[Block] = []
    while len(blocks) < len(targets):
        block = _read_for(found, targets[len(blocks) : len(blocks) + 1], at)
        if block is None:
            return False
        blocks.append(block)
        at = block.end + 1
        if found.text[block.end : at] != ",":
            break
    if len(blocks) < len(targets):
        return False
    for one, block in zip(targets, blocks, strict=True):
        found.candidates.append(Candidate(one.name, one.written, block, one.at))
    found.claimed.append((target.at, blocks[-1].end))
    return True


def _read_right_side(found: Scan, targets: list[_Target], at: int) -> None:
    """Remember names that are set equal to names, and known names that are computed."""
    line = _LINE_END.match(found.text, at)
    right = line[0] if line else ""
    name = re.match(rf"\s*({SYMBOL})\s*(?=[$.,;\n]|\\|and\b|$)", right)
    for target in targets:
        if not target.name.known or not _is_free(found.text, targets[-1].at):
            continue
        if name and understand(name[1]).known:
            found.aliases.append(Alias(target.name, target.written, understand(name[1]), target.at))
        elif _RANDOM.search(right):
            found.note(
                at, f"{quoted(target.written)} holds random numbers that the text does not show"
            )
        elif right.strip() and not (_is_conversion(target, right) or _NOTHING.match(right)):
            statement = f"{target.written} ={right.rstrip()}"
            found.computed.append((target.name, statement, target.at))


def _is_conversion(target: _Target, right: str) -> bool:
    conversion = _CONVERSION.search(right)
    return conversion is not None and conversion[1] == target.written


def _read_introduction(found: Scan, at: int) -> None:
    sentence, start = _sentence_before(found.text, at)
    target = _introduced(sentence, start)
    if target is None:
        return
    block = _read_for(found, [target], at)
    if block is None or OPERATOR_AFTER.match(found.text, block.end):
        return
    if block.printed and not _NAME_LINE.fullmatch(sentence):
        return
    found.claimed.append((at, block.end))
    found.candidates.append(Candidate(target.name, target.written, block, target.at))


def _sentence_before(text: str, at: int) -> tuple[str, int]:
    first = max(0, at - _LEFT_WINDOW)
    before = text[first : at - 1 if text[at - 1] == ":" else at]
    starts = [found.end() for found in _SENTENCE_START.finditer(before.rstrip())]
    start = starts[-1] if starts else 0
    return before[start:], first + start


def _introduced(sentence: str, start: int) -> _Target | None:
    """The one array that a sentence announces, by its symbol or else by its role."""
    if alone := _NAME_LINE.fullmatch(sentence):
        name = understand(alone["symbol"])
        return _Target(name, alone["symbol"], start + alone.start("symbol")) if name.known else None
    if _ASKS.search(sentence):
        return None
    symbols = [
        _Target(name, found[0], start + found.start())
        for found in re.finditer(rf"(?<![\w\\])(?:{SYMBOL})(?!\w)", sentence)
        if (name := understand(found[0])).known and not _WORDS_FOR_SYMBOLS.fullmatch(found[0])
    ]
    if symbols:
        return symbols[-1]
    for phrase, symbol in _PHRASES:
        if role := re.search(phrase, sentence, re.IGNORECASE):
            return _Target(Name(symbol), role[0].strip(), start + role.start())
    return None


def _note_nameless(found: Scan) -> None:
    lines = sorted(set(_nameless_lines(found)))
    if len(lines) == 1:
        found.notes.append((lines[0], f"line {lines[0]}: an array that has no name was not read"))
    elif lines:
        listed = ", ".join(map(str, lines))
        found.notes.append((lines[0], f"lines {listed}: arrays that have no name were not read"))


def _nameless_lines(found: Scan) -> Iterator[int]:
    noted = {line for line, _ in found.notes}
    for start in (
        *BEGIN.finditer(found.text),
        *re.finditer(r"^[ \t]*\[\[", found.text, re.MULTILINE),
    ):
        line = line_of(found.text, start.end())
        if not found.is_claimed(start.end() - 1) and line not in noted:
            yield line


def values_of(candidate: Candidate) -> list[Any]:
    """The numbers of a candidate, turned when its name is written transposed."""
    values = candidate.block.values
    if candidate.name.transposed and values and isinstance(values[0], list):
        return [list(column) for column in zip(*values, strict=True)]
    return values
