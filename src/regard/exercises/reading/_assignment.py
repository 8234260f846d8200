"""From the arrays and the words of a text to what it gives and asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.exercises.reading._headings import solutions
from regard.exercises.reading._names import DESCRIPTIONS, PER_HEAD, VECTORS
from regard.exercises.reading._numbers import count, shape, transposed
from regard.exercises.reading._records import Found, Reading, ReadingError
from regard.exercises.reading._scan import Alias, Candidate, Scan, scan, values_of
from regard.exercises.reading._stated import read_choices
from regard.exercises.reading._text import blank, line_of, plain, quoted

_GATHERED = {"h": "h", "k": "k", "v": "v", "q": "q", "s": "s", "X": "X", "K": "k", "V": "v",
             "Q": "q"}  # fmt: skip
_MATRIX_OF = {"q": "Q", "k": "K", "v": "V"}
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
_HEAD_MENTIONED = re.compile(
    rf"\b(?:({'|'.join(_ORDINALS)})[ \t]+(?:attention[ \t]+)?head\b|head[ \t]*\#?[ \t]*(\d+)\b)",
    re.IGNORECASE,
)
_OTHER_INPUT = re.compile(r"cross-?[ ]?attention|encoder|decoder|memory", re.IGNORECASE)


@dataclass(frozen=True)
class _Item:
    """A found array on its way: its index as written, whether it was only printed, its offset."""

    found: Found
    index: int | None
    column: bool
    printed: bool
    at: int


def read_assignment(text: str) -> Reading:
    """Work out what a pasted assignment gives, and which computation it asks for."""
    question, notes = _without_solutions(plain(text))
    scanned = scan(question, text)
    found, found_notes = _settle(scanned)
    stated = read_choices(question)
    found_notes += _recomputed(scanned, found, stated.causal)
    heads = _heads(found, stated.heads)
    kind, kind_notes = _kind(found, heads, question)
    notes += [*scanned.notes, *found_notes, *stated.notes]
    sentences = [sentence for _, sentence in sorted(notes, key=lambda note: note[0])]
    told = tuple(f"{sentence}." for sentence in [*dict.fromkeys(sentences), *kind_notes])
    joined = _is_joined({one.name for one in found}, question)
    return Reading(found, kind, stated.scale, heads, stated.causal, told, joined)


def read_matrices(text: str) -> tuple[Found, ...]:
    """The arrays that a text gives, in order."""
    return read_assignment(text).found


def _without_solutions(text: str) -> tuple[str, list[tuple[int, str]]]:
    notes = []
    for first, last in solutions(text):
        start, end = line_of(text, first), line_of(text, len(text[:last].rstrip()))
        notes.append((start, f"line {start}: a solution up to line {end}; nothing in it was read"))
        text = text[:first] + blank(text[first:last]) + text[last:]
    return text, notes


def _settle(scanned: Scan) -> tuple[tuple[Found, ...], list[tuple[int, str]]]:
    """Give every candidate its final name and shape, and keep one array for each name."""
    items = _gather([_item(scanned.text, one) for one in scanned.candidates])
    items = _with_aliases(_by_mentioned_head(items, scanned.text), scanned)
    kept, notes = _merge(items)
    found = _count_heads_from_zero([item.found for item in kept])
    notes += [(one.line, _read_as(one)) for one in found]
    return tuple(found), notes


def _item(text: str, candidate: Candidate) -> _Item:
    values, name = values_of(candidate), candidate.name
    column = candidate.block.column
    symbol = name.symbol
    if symbol in _MATRIX_OF and name.index is None and _is_matrix(values, symbol):
        symbol = _MATRIX_OF[symbol]
    if symbol in VECTORS or (name.index is not None and symbol in _GATHERED):
        values = _flattened(values)
    elif name.known and not isinstance(values[0], list):
        values = transposed([values]) if column and not name.transposed else [values]
    line = line_of(text, candidate.at)
    found = Found(symbol, candidate.written, None, values, line, candidate.block.layout)
    return _Item(found, name.index, column, candidate.block.printed, candidate.at)


def _is_matrix(values: list[Any], symbol: str) -> bool:
    """Whether q, k or v is written for what others call Q, K or V."""
    extent = shape(values)
    return len(extent) > 1 and (symbol != "q" or min(extent) > 1)


def _flattened(values: list[Any]) -> list[Any]:
    """A single row or column as a flat vector; anything else as it is."""
    if len(shape(values)) != 2:
        return values
    if len(values) == 1:
        return list(values[0])
    return [row[0] for row in values] if len(values[0]) == 1 else values


def _gather(items: Sequence[_Item]) -> list[_Item]:
    """Make one set out of the vectors h_1, h_2, h_3; leave matrices with an index to the heads."""
    gathered: list[_Item] = []
    done: set[str] = set()
    for item in items:
        if not _is_member(item):
            gathered.append(_headed(item) if item.index is not None else item)
        elif (symbol := _GATHERED[item.found.name]) not in done:
            done.add(symbol)
            members = [
                other
                for other in items
                if _is_member(other) and _GATHERED[other.found.name] == symbol
            ]
            gathered.append(_set_of(symbol, members))
    return gathered


def _is_member(item: _Item) -> bool:
    vector = not isinstance(item.found.values[0], list)
    return item.index is not None and item.found.name in _GATHERED and vector


def _headed(item: _Item) -> _Item:
    if item.found.name in PER_HEAD:
        return replace(item, found=replace(item.found, head=item.index))
    if item.found.name in DESCRIPTIONS:
        return replace(item, found=replace(item.found, name=f"{item.found.name}{item.index}"))
    return item


def _set_of(symbol: str, members: Sequence[_Item]) -> _Item:
    first: dict[int, _Item] = {}
    for member in members:
        first.setdefault(member.index or 0, member)
    ordered = [first[index] for index in sorted(first)]
    start = ordered[0]
    for place, member in enumerate(ordered, start=min(first)):
        if member.index != place:
            raise ReadingError(
                member.found.line,
                f"vectors {symbol}: {symbol}_{place} is missing before {member.found.written}",
                "Give every vector of the set",
            )
        if len(member.found.values) != len(start.found.values):
            raise ReadingError(
                member.found.line,
                f"vectors {symbol}: {member.found.written} has {count(len(member.found.values))},"
                f" {start.found.written} has {len(start.found.values)}",
                "Give all vectors of a set the same length",
            )
    written = ", ".join(member.found.written for member in ordered)
    rows = [member.found.values for member in ordered]
    found = replace(
        start.found,
        name=symbol,
        written=written,
        values=rows,
        line=min(member.found.line for member in ordered),
    )
    return _Item(found, None, False, start.printed, min(member.at for member in ordered))


def _by_mentioned_head(items: list[_Item], text: str) -> list[_Item]:
    """Tell W_Q under "the first head" from W_Q under "the second head"."""
    mentions = [(found.end(), _mentioned(found)) for found in _HEAD_MENTIONED.finditer(text)]
    told = [
        next((head for end, head in reversed(mentions) if end <= item.at), None) for item in items
    ]
    candidates = [
        item.found.name in PER_HEAD and item.found.head is None and head is not None
        for item, head in zip(items, told, strict=True)
    ]
    repeated = {
        item.found.name
        for item, head in zip(items, told, strict=True)
        if len(
            {
                other
                for one, other in zip(items, told, strict=True)
                if one.found.name == item.found.name and other is not None
            }
        )
        > 1
    }
    return [
        replace(item, found=replace(item.found, head=head))
        if fits and item.found.name in repeated
        else item
        for item, head, fits in zip(items, told, candidates, strict=True)
    ]


def _mentioned(found: re.Match[str]) -> int:
    return int(found[2]) if found[2] else _ORDINALS.index(found[1].lower()) + 1


def _with_aliases(items: list[_Item], scanned: Scan) -> list[_Item]:
    """Add what the text sets equal to a given: ``Q = K = V = X``."""
    for alias in reversed(scanned.aliases):
        places = {(item.found.name, item.index): item for item in items}
        same = places.get((alias.of.symbol, alias.of.index))
        wanted = (alias.name.symbol, alias.name.index)
        if same and wanted not in places and alias.name.symbol in PER_HEAD:
            items = [*items, _copy(same, alias, scanned.text)]
    return items


def _copy(item: _Item, alias: Alias, text: str) -> _Item:
    turn = alias.of.transposed != alias.name.transposed
    found = replace(
        item.found,
        name=alias.name.symbol,
        written=alias.written,
        head=alias.name.index,
        line=line_of(text, alias.at),
        values=transposed(item.found.values) if turn else item.found.values,
    )
    return replace(item, found=found, index=alias.name.index, at=alias.at)


def _merge(items: Iterable[_Item]) -> tuple[list[_Item], list[tuple[int, str]]]:
    """Keep the first array of each name; what is only printed gives way to what is assigned."""
    kept: dict[tuple[str, int | None], _Item] = {}
    notes = []
    for item in sorted(items, key=lambda one: (one.printed, one.at)):
        first = kept.setdefault((item.found.name, item.found.head), item).found
        # By repr, since NaN differs from itself.
        if repr(first.values) != repr(item.found.values):
            other = f"{quoted(item.found.written)} ({_size(item.found.values)})"
            told = f"{other} differs from the one on line {first.line}, which is kept"
            notes.append((item.found.line, f"line {item.found.line}: {told}"))
    return sorted(kept.values(), key=lambda one: one.at), notes


def _count_heads_from_zero(found: list[Found]) -> list[Found]:
    order = sorted({one.head for one in found if one.head is not None})
    return [one if one.head is None else replace(one, head=order.index(one.head)) for one in found]


def _read_as(one: Found) -> str:
    role = DESCRIPTIONS.get(one.name)
    meaning = f"read as {role}" if role else "not used: its name has no known role"
    whose = "" if one.head is None else f" of head {one.head + 1}"
    return f"line {one.line}: {quoted(one.written)} ({_size(one.values)}) {meaning}{whose}"


def _size(values: list[Any]) -> str:
    extent = shape(values)
    return count(extent[0]) if len(extent) == 1 else " x ".join(map(str, extent))


def _computed_mask(statement: str, line: int, causal: bool | None) -> str:
    """A mask that is no matrix of numbers: fine only where a causal one is stated in words."""
    is_written_out = re.search(r"\b(?:true|false)\b", statement, re.IGNORECASE)
    if "mask" in statement.lower() and (is_written_out or not causal):
        raise ReadingError(
            line,
            f"the mask {quoted(statement)} is no matrix of numbers, and no code is executed",
            "Write 0 where a query may look and -inf where it may not, or say in words that the"
            " attention is causal",
        )
    return f"line {line}: {quoted(statement)} is computed, not given: not used"


def _recomputed(
    scanned: Scan, found: Sequence[Found], causal: bool | None
) -> list[tuple[int, str]]:
    notes = []
    for name, statement, at in scanned.computed:
        first = next((one for one in found if one.name == name.symbol), None)
        line = line_of(scanned.text, at)
        if name.symbol == "M" and first is None:
            notes.append((line, _computed_mask(statement, line, causal)))
        if first and first.line < line:
            notes.append(
                (
                    line,
                    f"line {line}: {quoted(statement)} computes anew what line"
                    f" {first.line} gives, which is kept",
                )
            )
    return notes


def _heads(found: Sequence[Found], stated: tuple[int, ...]) -> tuple[int, ...]:
    """All head counts, those of the matrices included."""
    per_head = {one.head for one in found if one.head is not None}
    return tuple(sorted({*stated, *([len(per_head)] if per_head else [])}))


def _kind(
    found: Sequence[Found], heads: tuple[int, ...], text: str
) -> tuple[str | None, list[str]]:
    """The computation that the givens belong to, and what to say about it."""
    names = {one.name for one in found}
    several = max(heads, default=1) > 1
    dot_product = {"s", "h"} <= names
    triple = {"WQ", "WK", "WV"} <= names
    ready = bool({"Q", "q"} & names and {"K", "k"} & names and {"V", "v"} & names)
    if dot_product and (triple or ready):
        return None, ["the text gives the arrays of more than one exercise: read each on its own"]
    if dot_product:
        return "dot-product", []
    if triple and (lacking := _lacking_heads(found)):
        return None, [f"the heads do not all have their matrices: {lacking}"]
    if triple and {"X", "Y"} <= names and _OTHER_INPUT.search(text):
        return "cross-attention", []
    if triple and "X" in names:
        return ("multi-head" if several or _is_joined(names, text) else "self-attention"), []
    if ready and not several and _is_one_query(found):
        return "dot-product", []
    if ready:
        return ("multi-head" if several else "attention"), []
    return None, _missing(names)


def _is_joined(names: set[str], text: str) -> bool:
    return "WO" in names and bool(re.search(r"multi-?\s?head", text, re.IGNORECASE))


def _is_one_query(found: Sequence[Found]) -> bool:
    """Whether a single vector q looks at the keys."""
    queries = [one for one in found if one.name in ("Q", "q")]
    return len(queries) == 1 and len(shape(queries[0].values)) == 1


def _lacking_heads(found: Sequence[Found]) -> str:
    """Which head lacks which weights, when they are given head by head."""
    given = {(one.name, one.head) for one in found}
    heads = sorted({one.head for one in found if one.head is not None})
    return ", ".join(
        f"head {head + 1} has no {name}"
        for head in heads
        for name in ("WQ", "WK", "WV")
        if (name, head) not in given and (name, None) not in given
    )


def _missing(names: set[str]) -> list[str]:
    """What the nearest computation still lacks."""
    for wanted in (("X", "WQ", "WK", "WV"), ("Q", "K", "V"), ("s", "h")):
        lacking = [name for name in wanted if name not in names]
        if lacking and len(lacking) < len(wanted):
            given = _listed([name for name in wanted if name in names])
            return [f"{given} given, {_listed(lacking)} not: the kind of computation stays open"]
    return []


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} is"
    return f"{', '.join(names[:-1])} and {names[-1]} are"
