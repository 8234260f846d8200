"""Corpora: pairs of sentences from files or by name, and a report of what was wrong with them.

Nothing is dropped silently: what cannot be used is counted, and told with its line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from regard._errors import FileError, MissingExtraError
from regard.translation import pocket
from regard.translation._named import NAMED, Named, named_file
from regard.translation.recipes import Recipe

Pair = tuple[str, str]
Placed = tuple[Pair, str]  # with the place where it stands, for the report
Parts = tuple[list[Placed], list[Placed], list[Placed]]  # train, validation, test
EXAMPLES = 3
POCKET_TRIED = 1000
HELD_OUT_IN = 160

REASONS = {
    "malformed": "lines that are not a source and a target",
    "encoding": "lines that are not UTF-8",
    "empty": "pairs with an empty side",
    "duplicate": "pairs that stand there already",
    "overlap": "training pairs whose source is also in the validation or test set",
    "too long": "pairs with more tokens than `longest`",
}


@dataclass
class Report:
    """What was left out, by reason, with the places of it."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        self.found.setdefault(reason, []).append(place)

    def lines(self) -> list[str]:
        """One a reason, with the first few places."""
        return [
            f"left out: {len(places):,} {REASONS[reason]} ({_some(places)})"
            for reason, places in self.found.items()
        ]


def _some(places: Sequence[str]) -> str:
    more = f" and {len(places) - EXAMPLES:,} more" if len(places) > EXAMPLES else ""
    return ", ".join(places[:EXAMPLES]) + more


@dataclass(frozen=True)
class Corpus:
    """The pairs to train on and to try, and the report on what was left out."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    report: Report


def read_corpus(recipe: Recipe) -> Corpus:
    """The corpus that a recipe asks for: pocket, a named one, or files."""
    report = Report()
    if recipe.corpus == "pocket" and not recipe.source:
        train = list(pocket.pairs("train", recipe.pairs, recipe.seed))
        tried = list(pocket.pairs("val", min(recipe.validate_pairs, POCKET_TRIED)))
        test = list(pocket.pairs("test", min(recipe.test_pairs, POCKET_TRIED)))
        return Corpus(train, tried, test, report)
    if recipe.corpus in NAMED and not recipe.source:
        parts = _named(NAMED[recipe.corpus], recipe, report)
    else:
        parts = _files(recipe, report)
    tried, test = ([pair for pair, _ in part] for part in parts[1:])
    kept = _without_overlap(parts[0], {source for source, _ in (*tried, *test)}, report)
    if not kept:
        name = recipe.source or recipe.corpus
        why = "; ".join(["no pair is left to train on", *report.lines()])
        raise FileError(f"corpus {name!r}: {why}")
    return Corpus(kept, tried, test, report)


def _files(recipe: Recipe, report: Report) -> Parts:
    paths = (recipe.source, recipe.target) if recipe.source else (recipe.corpus,)
    train = read_files(paths, recipe, report)
    validation = read_files((recipe.validation,), recipe, report) if recipe.validation else []
    test = read_files((recipe.test,), recipe, report) if recipe.test else []
    if not validation:
        train, validation = _split(train)
    return train, validation, test


def _split(train: list[Placed]) -> tuple[list[Placed], list[Placed]]:
    """Where no validation set is named, every pair whose target has a certain hash is one.

    By the target, because the same one often has several sources, of which none may leak.
    """
    share = min(HELD_OUT_IN, max(2, len(train) // 10))
    tried = [placed for placed in train if crc32(placed[0][1].encode()) % share == 0]
    return [placed for placed in train if crc32(placed[0][1].encode()) % share], tried


def _without_overlap(train: list[Placed], tried: set[str], report: Report) -> list[Pair]:
    kept = []
    for pair, place in train:
        if pair[0] in tried:
            report.add("overlap", place)
        else:
            kept.append(pair)
    return kept


def _named(named: Named, recipe: Recipe, report: Report) -> Parts:
    def read(names: Sequence[str]) -> list[Placed]:
        found: list[Placed] = []
        for name in names:
            if named.columns:
                path = named_file(recipe.corpus, name, recipe.data_dir)
                found += _usable(_tab_separated(path, named.columns, report), report)
            else:
                source, target = (
                    named_file(recipe.corpus, f"{name}.{language}", recipe.data_dir)
                    for language in (recipe.source_field, recipe.target_field)
                )
                found += _usable(_side_by_side(source, target, report), report)
        return found

    train = read(named.train)
    if named.validation:
        return train, read(named.validation), read(named.test)
    rest, validation = _split(train)
    at = len(validation) // 2
    return rest, validation[:at], validation[at:]


def read_files(paths: Sequence[str], recipe: Recipe, report: Report) -> list[Placed]:
    """Two files side by side, or one: TSV, JSONL or Parquet by its ending."""
    found = [Path(path) for path in paths]
    for path in found:
        if not path.is_file():
            raise FileError(
                f"corpus {str(path)!r} is not a file, and none of the names pocket, "
                f"{', '.join(NAMED)}"
            )
    if len(found) == 2:
        return _usable(_side_by_side(found[0], found[1], report), report)
    readers: dict[str, Callable[[Path, Recipe, Report], Iterator[Placed]]] = {
        ".tsv": _tsv, ".txt": _tsv, ".jsonl": _jsonl, ".parquet": _parquet,
    }  # fmt: skip
    ending = found[0].suffix.lower()
    if ending not in readers:
        raise FileError(
            f"corpus {str(found[0])!r}: the ending {ending!r} tells nothing "
            f"({', '.join(readers)}); two files go into `source` and `target`"
        )
    return _usable(readers[ending](found[0], recipe, report), report)


def _usable(placed: Iterator[Placed], report: Report) -> list[Placed]:
    """Without empty sides and without what was there already."""
    seen: set[Pair] = set()
    kept = []
    for (source, target), place in placed:
        pair = source.strip(), target.strip()
        if not all(pair):
            report.add("empty", place)
        elif pair in seen:
            report.add("duplicate", place)
        else:
            seen.add(pair)
            kept.append((pair, place))
    return kept


def _lines(path: Path, report: Report) -> Iterator[tuple[str | None, str]]:
    """Each line, or None where it is not UTF-8, and its place. Only \\n ends a line."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            place = f"{path.name}:{number}"
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                report.add("encoding", place)
                yield None, place
            else:
                yield text.rstrip("\r\n"), place


def _side_by_side(source: Path, target: Path, report: Report) -> Iterator[Placed]:
    counts = []
    for path in (source, target):
        with path.open("rb") as file:
            counts.append(sum(1 for _ in file))
    if counts[0] != counts[1]:
        raise FileError(
            f"corpus: {source.name} has {counts[0]:,} lines and {target.name} {counts[1]:,}; "
            "line n of one must translate line n of the other"
        )
    sides = zip(_lines(source, report), _lines(target, report), strict=True)
    for (fr, place), (en, _) in sides:
        if fr is not None and en is not None:
            yield (fr, en), place


def _tab_separated(path: Path, columns: tuple[int, int], report: Report) -> Iterator[Placed]:
    for text, place in _lines(path, report):
        if text is None:
            continue
        cells = text.split("\t")
        if len(cells) <= max(columns):
            report.add("malformed", place)
        else:
            yield (cells[columns[0]], cells[columns[1]]), place


def _tsv(path: Path, recipe: Recipe, report: Report) -> Iterator[Placed]:
    """Source TAB target; a first line may name the columns instead, in any order."""
    wanted = (recipe.source_field, recipe.target_field)
    columns = [0, 1]
    header = False
    for text, place in _lines(path, report):
        if text is None:
            continue
        cells = text.split("\t")
        if place.endswith(":1") and {*wanted} <= {*cells}:
            columns, header = [cells.index(name) for name in wanted], True
        elif len(cells) <= max(columns) or (len(cells) != 2 and not header):
            report.add("malformed", place)
        else:
            yield (cells[columns[0]], cells[columns[1]]), place


def _jsonl(path: Path, recipe: Recipe, report: Report) -> Iterator[Placed]:
    for text, place in _lines(path, report):
        if text is None:
            continue
        pair = _fields(text, recipe)
        if pair is None:
            report.add("malformed", place)
        else:
            yield pair, place


def _fields(text: str, recipe: Recipe) -> Pair | None:
    """Both sides of one JSON object, or of what it holds under "translation"."""
    try:
        found = json.loads(text)
        found = found.get("translation", found)
        source, target = found[recipe.source_field], found[recipe.target_field]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (source, target) if isinstance(source, str) and isinstance(target, str) else None


def _parquet(path: Path, recipe: Recipe, report: Report) -> Iterator[Placed]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading Parquet", "parquet", "pyarrow") from error
    wanted = [recipe.source_field, recipe.target_field]
    try:
        columns = parquet.read_table(path, columns=wanted).to_pydict()
        sides = zip(*(columns[name] for name in wanted), strict=True)
    except (KeyError, OSError, ValueError) as error:
        raise FileError(f"corpus {str(path)!r}: {error} (columns {wanted})") from error
    for number, (fr, en) in enumerate(sides, 1):
        place = f"{path.name}:{number}"
        if isinstance(fr, str) and isinstance(en, str):
            yield (fr, en), place
        else:
            report.add("malformed", place)
