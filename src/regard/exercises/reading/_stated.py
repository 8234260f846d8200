"""What the words of a text say about scaling, heads and masks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.exercises.reading._text import line_of, quoted

# What says to leave scaling out is looked for first: "skip dividing by √d_k" names the root too.
_ROOT = r"(?:\\sqrt|√|sqrt|square root|d_k)(?:\([^)\n]{0,20}\))?"
_LEAVING_OUT = (
    r"\b(?:without|no|skip(?:ping)?|omit(?:ting)?|ignor(?:e|ing)|leav(?:e|ing) out|drop(?:ping)?)"
)
_FORBIDDING = (
    r"\b(?:do(?:es)?[ \t]+not|don't|don’t|never|not(?:[ \t]+to)?(?:[ \t]+be)?)"
    r"(?:[ \t]+(?:use|apply))?(?:[ \t]+(?:the|any))?"
)
_UNSCALED = re.compile(
    rf"{_LEAVING_OUT}(?:[ \t]+(?:the|any|all))?[ \t]+scal(?:ing|e)\b(?:[ \t]+(?:factor|step))?"
    rf"|{_LEAVING_OUT}[ \t][^.\n]{{0,30}}{_ROOT}"
    rf"|{_FORBIDDING}[ \t]+scal(?:e|ed|ing)\b(?:[ \t]+the[ \t]+[\w-]+)?"
    rf"|{_FORBIDDING}[ \t]+divided?\b[^.\n]{{0,40}}{_ROOT}"
    r"|\bunscaled\b|\bscale[ \t]*=[ \t]*1(?:\.0*)?\b(?!\s*/)",
    re.IGNORECASE,
)
_SCALED = re.compile(
    r"(?<!un)\bscaled[ \t]+dot[- ]?[ \t]*product|\bscaled[ \t]+(?:self-|cross-)?attention\b"
    r"|\\sqrt(?:\{\s*(?:\\[a-z]+\{?\s*)?[dD](?![A-Za-z])\}?(?:_\w|_\{(?:[^{}]|\{[^{}]*\})*\})?\s*\}|\s*d(?![A-Za-z]))"
    r"|√\s*\(?d\w*|(?:\b(?:np|math|torch|numpy)\.)?\bsqrt\(\s*(?:d\w*|\w+\.shape\[-?\d\]"
    r"|\w+\.size\(-?\d\))\s*\)"
    r"|\bd_?k[ \t]*\*\*[ \t]*-?[ \t]*0?\.5"
    r"|\bsquare root of (?:the )?\$?(?:d\b|d_|key|dimension|head)",
    re.IGNORECASE,
)
_NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
                 "ten", "eleven", "twelve"]  # fmt: skip
_HEADS_ASSIGNED = re.compile(
    r"(?<![\w\\{}^])"
    r"(?:(?:H|n_?heads?|num_?heads?|num_attention_heads|(?:number of )?heads)"
    r"[ \t]*\$?[ \t]*[=:]|number of heads(?:[ \t]+(?:is|of|\$?H[ \t]*=))*)"
    r"[ \t]*\$?[ \t]*(?:H[ \t]*=[ \t]*)?(\d{1,3})\b(?!\.?\d)"
)
_HEADS_COUNTED = re.compile(
    rf"(?<![\w.=])\$?(?:h[ \t]*=[ \t]*)?(\d{{1,3}}|{'|'.join(_NUMBER_WORDS[2:])})\$?[- ]"
    r"(?:(?:parallel|attention|self-attention|separate|different|independent|equal)[ \t]+)*"
    r"head(?:s\b|ed\b|[ \t]+(?:self-|cross-)?attention\b)",
    re.IGNORECASE,
)
_NOT_CAUSAL = re.compile(
    r"\bnon-?causal\b|\bbidirectional\b|\b(?:without|no|not)(?:[ \t]+(?:a|any|the|apply(?:ing)?))*"
    r"[ \t]+(?:causal[ \t]*(?:mask\w*)?|mask(?:ing|s|ed)?)\b|\b(?:is_)?causal[ \t]*=[ \t]*False\b",
    re.IGNORECASE,
)
_CAUSAL = re.compile(
    r"(?<![a-z])causal(?:ly)?\b(?![ \t]*=[ \t]*False)|\bmasked[ \t]+(?:multi-?head(?:ed)?[ \t]+)?"
    r"(?:self-?)?attention\b|\blook-?ahead[ \t]+mask|\bautoregressive[ \t]+mask"
    r"|\bmask(?:s|ing)?[ \t]+(?:out[ \t]+)?(?:all[ \t]+)?(?:the[ \t]+)?future\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.?!](?=[\s*)]|$)|\n\s*\n")


@dataclass(frozen=True)
class Stated:
    """The choices that a text states, and the words that state them, with their lines."""

    scale: bool | None
    heads: tuple[int, ...]
    causal: bool | None
    notes: tuple[tuple[int, str], ...]


def read_choices(text: str) -> Stated:
    """Scaling, numbers of heads, and causality, as far as the words tell."""
    scale, scale_notes = _read_scale(text)
    heads, head_notes = _read_heads(text)
    causal, causal_notes = _read_causal(text)
    return Stated(scale, heads, causal, (*scale_notes, *head_notes, *causal_notes))


def _read_scale(text: str) -> tuple[bool | None, list[tuple[int, str]]]:
    refused, asked = _all(_UNSCALED, text), _all(_SCALED, text)
    if not refused:
        return (True if asked else None), _notes(text, asked[:1], "division by the root of d_k")
    notes = _notes(text, refused, "no scaling")
    beside = [one for one in asked if not any(_within(one, other) for other in refused)]
    overruled = f"scaling, which {quoted(refused[0][0])} rules out"
    return False, notes + _notes(text, beside[:1], overruled)


def _within(found: re.Match[str], other: re.Match[str]) -> bool:
    return other.start() <= found.start() < other.end()


def _read_heads(text: str) -> tuple[tuple[int, ...], list[tuple[int, str]]]:
    heads: dict[int, re.Match[str]] = {}
    for found in (*_HEADS_ASSIGNED.finditer(text), *_HEADS_COUNTED.finditer(text)):
        word = found[1].lower()
        number = int(word) if word.isdigit() else _NUMBER_WORDS.index(word)
        if number > 0:
            heads.setdefault(number, found)
    notes = [
        note
        for number, found in heads.items()
        for note in _notes(text, [found], "1 head" if number == 1 else f"{number} heads")
    ]
    return tuple(sorted(heads)), notes


def _read_causal(text: str) -> tuple[bool | None, list[tuple[int, str]]]:
    if refused := _all(_NOT_CAUSAL, text):
        return False, _notes(text, refused[:1], "no causal mask")
    asked = _all(_CAUSAL, text)
    return (True if asked else None), _notes(text, asked[:1], "a causal mask")


def _all(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches that are not part of a question."""
    return [found for found in pattern.finditer(text) if not _is_question(text, found.end())]


def _is_question(text: str, at: int) -> bool:
    ending = _SENTENCE_END.search(text, at)
    return ending is not None and ending[0] == "?"


def _notes(text: str, all_found: list[re.Match[str]], meaning: str) -> list[tuple[int, str]]:
    lines = [line_of(text, found.start()) for found in all_found]
    return [
        (line, f"line {line}: {quoted(found[0])} read as: {meaning}")
        for line, found in zip(lines, all_found, strict=True)
    ]
