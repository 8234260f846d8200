"""Answers in running text: Markdown, LaTeX, pasted NumPy or MATLAB, printed arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from regard.exercises.reading import UnreadableError, plain_text, read_block

# Which names mean which step: as symbols they are told by their case, as words they are not.
Named = Mapping[str, str]

# What people call the steps, besides their names and symbols.
WORDS = {
    "Q": ("query", "queries"),
    "K": ("key", "keys"),
    "V": ("value", "values"),
    "scores": ("attention scores", "dot products", "raw scores", "unscaled scores", "logits"),
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
_INDEX = re.compile(r"[ _]*(?:head)?[ _#]*\(?(\d+)\)?$")
_HEAD = re.compile(r"^[\s*#>_$-]*(?:attention )?head\s*#?\s*(\d+)[\s*_:$]*$", re.IGNORECASE)
_STARTS = re.compile(r"=|:|≈|\\approx|\n|^", re.MULTILINE)
_MARKUP = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|mathrm|text|textbf|operatorname|hat|vec|left|right|displaystyle"
    r"|begin\{\w+\*?\}|[,;:!\[\]()]|quad)|[{}$*`\"&#>]"
)
_LABEL = re.compile(r"^[\s#*>_]*(\(?[A-Za-z0-9]{1,3}[).])", re.MULTILINE)


@dataclass(frozen=True)
class Written:
    """One array in a text; `head` counts from 0, `near` is the label that it stands below."""

    name: str
    values: Any
    line: int
    near: str = ""
    head: int | None = None
    problem: str = ""


def read_text(text: str, names: Named, labels: tuple[str, ...], step: str = "") -> list[Written]:
    """Every array that stands under a name that means a step; one alone is that of `step`."""
    source = plain_text(text)
    found = list(_named(source, names, labels))
    if step and not found:
        found = [_alone(source, step)]
    return _counted_from_zero(found)


def _named(text: str, names: Named, labels: tuple[str, ...]) -> Iterator[Written]:
    claimed = 0
    last = ""
    for start in _STARTS.finditer(text):
        if start.start() < claimed:
            continue
        left = text[text.rfind("\n", 0, start.start()) + 1 : start.start()]
        head: int | None = None
        if heading := _HEAD.match(left):
            name, head = last, int(heading[1])
        else:
            name, head = _identify(left, names)
            last = name or last
        if not name:
            continue
        line = text.count("\n", 0, start.start()) + 1
        near = _label_before(text, start.start(), labels)
        try:
            block = read_block(text, start.end())
        except UnreadableError as error:
            if not error.symbolic:
                yield Written(name, None, line, near, head, f"{error.problem}. {error.advice}.")
            continue
        if block is not None:
            claimed = block.end
            yield Written(name, block.values, line, near, head)


def _identify(left: str, names: Named) -> tuple[str, int | None]:
    """The step that the words before an array name, and which head of it."""
    bare = " ".join(_MARKUP.sub(" ", left.replace("\\", " \\").replace("_", " ")).split())
    bare = bare.replace("\\", "").strip(" :=-–")
    if not bare or len(bare) > 80:
        return "", None
    for text, head in _readings(bare):
        if text in names:
            return names[text], head
        words = text.lower().replace("-", " ").split()
        for first in range(len(words)):
            name = names.get(" ".join(words[first:]))
            if name and (first == 0 or len(" ".join(words[first:])) > 2):
                return name, head
        if text.split()[-1] in names and len(text.split()) <= 3:
            return names[text.split()[-1]], head
    return "", None


def _readings(bare: str) -> Iterator[tuple[str, int | None]]:
    yield bare, None
    if index := _INDEX.search(bare):
        yield bare[: index.start()].strip(), int(index[1])


def _label_before(text: str, at: int, labels: tuple[str, ...]) -> str:
    known = {label.strip("()."): label for label in labels if label}
    found = ""
    for label in _LABEL.finditer(text, 0, at):
        found = known.get(label[1].strip("()."), found)
    return found


def _alone(text: str, step: str) -> Written:
    """The one array that a text holds."""
    problem = "No array of numbers was found."
    for start in _STARTS.finditer(text):
        try:
            block = read_block(text, start.end())
        except UnreadableError as error:
            problem = f"{error.problem}. {error.advice}."
            continue
        if block is not None:
            return Written(step, block.values, text.count("\n", 0, start.end()) + 1)
    return Written(step, None, 1, problem=problem)


def _counted_from_zero(found: list[Written]) -> list[Written]:
    """Heads counted from 0, however the text counts them."""
    lowest = {
        name: min(each.head for each in found if each.name == name and each.head is not None)
        for name in {each.name for each in found if each.head is not None}
    }
    return [
        each
        if each.head is None
        else Written(
            each.name,
            each.values,
            each.line,
            each.near,
            each.head - lowest[each.name],
            each.problem,
        )
        for each in found
    ]
