"""Answers in running text: Markdown, LaTeX, pasted NumPy or MATLAB, printed arrays."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from regard._errors import FileError
from regard.exercises.reading import Block, UnreadableError, plain_text, read_block
from regard.graph.numbers import number_hint

# Which names mean which steps: as symbols they are told by their case, as words they are not.
Named = Mapping[str, tuple[str, ...]]
# Which words announce an answer that is no array, and under which path that is kept.
Announced = Mapping[str, tuple[str, ...]]

# What people call the steps, besides their names and symbols.
WORDS = {
    "Q": ("query", "queries", "q"),
    "K": ("key", "keys", "k"),
    "V": ("value", "values", "v"),
    "scores": (
        "attention scores", "dot products", "raw scores", "unscaled scores", "logits", "qk^t",
        "qk^ top", "q k^t", "q k^ top",
    ),
    "scaled": ("scaled scores", "scaled attention scores"),
    "masked": ("masked scores",),
    "weights": (
        "attention weights", "attention matrix", "self attention matrix", "attention map",
        "self attention weights", "softmax", "attention probabilities", "probabilities", "alpha",
        "attn weights", "attn",
    ),
    "context": (
        "context vector", "context matrix", "attention output", "self attention output",
        "attention result", "result", "output", "out", "z", "head output",
    ),
    "merged": (
        "merged heads", "concat", "concatenated", "concatenated heads", "concatenation", "z",
        "self attention output", "attention output", "output", "out", "result",
    ),
    "output": ("final output", "out", "o", "result"),
}  # fmt: skip
LONGEST_TEXT = 300_000  # characters; nobody's answers are longer
MOST_ARRAYS = 500
LONGEST_ARRAY = 20_000  # characters
LONGEST_LEFT = 200  # characters before an array in which its name is looked for
LONGEST_NAME = 80  # characters of the words before an array that are looked at
LONGEST_SYMBOL = 2
LONGEST_CHOICE = 40  # characters of an answer that stands right after its label
_INDEX = re.compile(r"[ _]*(?:head)?[ _#]*\(?(\d+)\)?$")
_HEAD = re.compile(r"^[\s*#>_$-]*(?:attention )?head\s*#?\s*(\d+)[\s*_:$]*$", re.IGNORECASE)
_HEAD_NEXT = re.compile(r"[\s:*]*(?:attention )?head\s*#?\s*\d+[\s*_:$]*\n", re.IGNORECASE)
_EQUALS = re.compile(r"=|≈|\\approx")
_WORDY = re.compile(r"[$:;]|(?<![\\A-Za-z])(?!softmax|sqrt)[A-Za-z]{4,}")  # no formula alone
_SOFTMAX = re.compile(r"(?<=softmax)\s*\(.*\)$", re.IGNORECASE)
_STARTS = re.compile(r"=|:|≈|\\approx|\n|^", re.MULTILINE)
_MARKUP = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|mathrm|text|textbf|operatorname|hat|vec|left|right|displaystyle"
    r"|begin\{\w+\*?\}|[,;:!\[\]()]|quad)|[{}$*`\"&#>]"
)
_DECIMAL_COMMAS = re.compile(r"\d,\d+\s*;\s*-?\d+,\d")
_LABEL = re.compile(r"^[\s#*>_]*(\(?[A-Za-z0-9]{1,3}[).])", re.MULTILINE)


@dataclass(frozen=True)
class Item:
    """One value: the words under which it stands, and where that was.

    `near` is the label of the question below which it stands in a text; `head` counts from 0.
    `problem` says why there is no value.
    """

    path: tuple[str, ...]
    value: Any
    where: str
    near: str = ""
    head: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class Wanted:
    """What is looked for: the names of steps, other answers, and the labels of questions.

    `asked` says which steps a label asks for: what a name means below it. A choice may stand right
    after its label; `choices` are the labels of questions that have one.
    """

    names: Named = field(default_factory=dict)
    announced: Announced = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    asked: Mapping[str, Collection[str]] = field(default_factory=dict)

    def label(self, written: str) -> str:
        """The label of a question that is written so, with or without brackets."""
        bare = written.strip("().")
        return next((label for label in self.labels if label.strip("().") == bare), "")

    def meant(self, steps: tuple[str, ...], near: str) -> str:
        """The one of several steps that a name means below a label."""
        below = self.asked.get(near, ())
        anywhere = {step for steps in self.asked.values() for step in steps}
        ranked = sorted(steps, key=lambda step: (step not in below, step not in anywhere))
        return ranked[0] if ranked else ""


def read_text(text: str, wanted: Wanted, step: str = "") -> list[Item]:
    """Every array under a name that means a step, and every other answer that is announced.

    An array that stands alone is the answer to `step`.
    """
    if len(text) > LONGEST_TEXT:
        raise FileError(f"check: the text has more than {LONGEST_TEXT:,} characters")
    text = text.replace("{,}", ".")  # the decimal comma of LaTeX
    source = plain_text(text)
    found = list(_named(source, wanted))
    if step and not found:
        return [_alone(source, step)]
    return [*_counted_from_zero(found), *_in_words(source, text, wanted)]


def _in_words(plain: str, text: str, wanted: Wanted) -> Iterator[Item]:
    """Answers on one line: `multiplications: n_q n_k d_k`, or a choice right after its label."""
    near = ""
    lines = zip(plain.split("\n"), text.split("\n"), strict=False)
    for number, (line, original) in enumerate(lines, 1):
        rest = line
        if (label := _LABEL.match(line)) and (known := wanted.label(label[1])):
            near, rest = known, line[label.end() :]
            value = rest.strip(" *_:.$`\t")
            is_choice = near in wanted.choices and len(value) <= LONGEST_CHOICE
            if value and is_choice and not re.search(r"[=\[]", value):
                yield Item((near,), value, f"line {number}", near)
        before, sign, value = _parted(rest)
        if sign:
            words = " ".join(_MARKUP.sub(" ", before).replace("_", " ").split()).lower()
            words = words.strip(" -–*")
            if words in wanted.announced:
                shown = original[-len(value) :] if value else ""
                yield Item(wanted.announced[words], shown.strip(" .;$`*"), f"line {number}", near)


def _parted(line: str) -> tuple[str, str, str]:
    """A line at its first colon or equals sign."""
    sign = re.search(r"[:=]", line)
    if sign is None:
        return line, "", ""
    return line[: sign.start()], sign[0], line[sign.end() :]


def _named(text: str, wanted: Wanted) -> Iterator[Item]:
    claimed = tried = 0
    label_before = _labels(text, wanted)
    last: tuple[str, ...] = ()
    for start in _STARTS.finditer(text):
        if start.start() < claimed:
            continue
        first = max(start.start() - LONGEST_LEFT, 0)
        left = text[max(text.rfind("\n", first, start.start()) + 1, first) : start.start()]
        head: int | None = None
        if heading := _HEAD.match(left):
            steps, head = last, int(heading[1])
        else:
            steps, head = _of_chain(left, wanted.names, start[0])
            last = steps or last
        if not steps or _HEAD_NEXT.match(text, start.end()):
            continue
        tried += 1
        if tried > MOST_ARRAYS:
            raise FileError(f"check: more than {MOST_ARRAYS} answers stand in the text")
        where = f"line {_line(text, start.start())}"
        near = label_before(start.start())
        path = (wanted.meant(steps, near),)
        try:
            block = _block(text, start)
        except UnreadableError as error:
            if not error.symbolic:
                problem = f"{error.problem}. {error.advice}."
                yield Item(path, None, where, near, head, problem)
            continue
        if block is not None:
            claimed = block.end
            yield Item(path, block.values, where, near, head)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _block(text: str, start: re.Match[str]) -> Block | None:
    """The array after a name; a table needs the line end before it."""
    at = start.start() if start[0] == "\n" else start.end()
    block = read_block(text[at : at + LONGEST_ARRAY], 0)
    return replace(block, end=block.end + at) if block else None


def _of_chain(left: str, names: Named, sign: str) -> tuple[tuple[str, ...], int | None]:
    """The steps that `S = Q K^T` before an array can mean: what the chain of formulas begins with.

    One with a root is the scaled scores, whatever it is called.
    """
    *before, last = _EQUALS.split(left)
    links = [last]
    while before and not _WORDY.search(links[0]):
        links.insert(0, before.pop())
    is_equation = sign == "=" or len(links) > 1
    if len(links) > 1 and re.search(r"sqrt|√", last) and "softmax" not in last:
        links.insert(0, "scaled scores")
    for place, link in enumerate(links):
        found = _identify(link, names, is_equation and (place == 0 or len(links) == 1))
        if found[0]:
            return found
    return (), None


def _identify(left: str, names: Named, is_equation: bool) -> tuple[tuple[str, ...], int | None]:
    """The steps that the words before an array can mean, and which head."""
    bare = " ".join(_MARKUP.sub(" ", left.replace("\\", " \\").replace("_", " ")).split())
    bare = bare.replace("\\", "").strip(" :=-–")
    if not bare or len(bare) > LONGEST_NAME:
        return (), None
    for text, head in _readings(bare):
        words = text.replace("-", " ").split()
        for first in range(len(words)):
            ending = " ".join(words[first:])
            is_whole = first == 0 or is_equation  # elsewhere "a" and "k" are no names
            name = names.get(ending) or names.get(ending.lower())
            if name and (is_whole or len(ending) > LONGEST_SYMBOL):
                return name, head
    return (), None


def _readings(bare: str) -> Iterator[tuple[str, int | None]]:
    yield _SOFTMAX.sub("", bare), None
    if index := _INDEX.search(bare):
        yield bare[: index.start()].removesuffix(" of").strip(), int(index[1])


def _labels(text: str, wanted: Wanted) -> Callable[[int], str]:
    """Which label stands before an offset."""
    found = [
        (label.start(), known)
        for label in _LABEL.finditer(text)
        if (known := wanted.label(label[1]))
    ]
    starts = [start for start, _ in found]

    def before(at: int) -> str:
        place = bisect_right(starts, at)
        return found[place - 1][1] if place else ""

    return before


def _alone(text: str, step: str) -> Item:
    """The one array that a text holds."""
    problem = "No array of numbers was found."
    if commas := _DECIMAL_COMMAS.search(text):
        problem += f" {number_hint(commas[0])}."
    text = f"\n{text}"  # tables begin on a line of their own
    for start in _STARTS.finditer(text):
        try:
            block = _block(text, start)
        except UnreadableError as error:
            problem = f"{error.problem}. {error.advice}."
            continue
        if block is not None:
            return Item((step,), block.values, f"line {max(1, _line(text, start.end()) - 1)}")
    return Item((step,), None, "line 1", problem=problem)


def _counted_from_zero(found: list[Item]) -> list[Item]:
    """Heads counted from 0, however the text counts them."""
    lowest: dict[tuple[str, ...], int] = {}
    for each in found:
        if each.head is not None:
            lowest[each.path] = min(each.head, lowest.get(each.path, each.head))
    return [
        each if each.head is None else replace(each, head=each.head - lowest[each.path])
        for each in found
    ]
