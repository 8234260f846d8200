"""Answers beyond the values of steps: shapes, choices, formulas, masks, designs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import inf
from typing import Any

import numpy as np

from regard._axes import written
from regard._errors import NumberError, RegardError
from regard.checking._answer import read_answer
from regard.checking._slips import slip
from regard.checking._verdict import Judgement, Verdict
from regard.exercises._evidence import FACTS
from regard.graph.operation import Array, Axes
from regard.graph.polynomial import Polynomial
from regard.show.trace import Trace

HIDDEN = -1e4  # what is as low as this was meant as −∞
_BY = re.compile(r"\s*(?:×|\\times|,|\bby\b|(?<=[\w)])\s*[x*]\s*(?=[\w(]))\s*")


def judge_shape(value: Any, axes: Axes, sizes: Mapping[str, int]) -> Judgement:
    """A shape, as numbers ([2, 5]) or as formulas (n_q × d_v)."""
    parts = _BY.split(value.strip("()[]$ ")) if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not parts:
        return _ungradable(f"{value!r} is no shape: write n_q × d_v or [2, 5].")
    try:
        given = [Polynomial.parse(_sized(part)) for part in parts]
    except (NumberError, ValueError) as error:
        return _ungradable(f"{error}.")
    wanted = [axis.size for axis in axes]
    if len(given) != len(wanted):
        return Judgement(
            Verdict.WRONG, f"{_plural(len(given), 'axis', 'axes')} were given, not {len(wanted)}."
        )
    if all(_same_size(one, other, sizes) for one, other in zip(given, wanted, strict=True)):
        return Judgement(Verdict.RIGHT)
    turned = list(reversed(wanted))
    if all(_same_size(one, other, sizes) for one, other in zip(given, turned, strict=True)):
        return Judgement(Verdict.WRONG, "Rows and columns are exchanged.")
    return Judgement(Verdict.WRONG)


def _sized(part: Any) -> str:
    text = str(part).strip(" $")
    return re.sub(r"\\(?:text|mathrm)?\{?", "", text).replace("}", "")


def _same_size(given: Polynomial, wanted: Polynomial, sizes: Mapping[str, int]) -> bool:
    """Equal as formulas, or a number that is the size here."""
    if given == wanted:
        return True
    return not given.symbols and given.evaluate({}) == wanted.evaluate(sizes)


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def judge_choice(value: Any, choices: tuple[str, ...], fact: str, trace: Trace) -> Judgement:
    chosen, _ = FACTS[fact].decide(trace)
    known = {_choice(choice): choice for choice in choices}
    picked = known.get(_choice(str(value)))
    if picked is None:
        listed = ", ".join(choice.strip("$") for choice in choices)
        return _ungradable(f"{value!r} is none of the choices: {listed}.")
    right = picked.strip("$") == chosen
    return Judgement(Verdict.RIGHT if right else Verdict.WRONG)


def _choice(text: str) -> str:
    """A choice as it may be written: row-wise, "row wise", Rows."""
    bare = re.sub(r"[\s$_{}\\-]+", "", text).lower()
    return re.sub(r"wise$|s$", "", bare)


def judge_formula(value: Any, wanted: Polynomial, sizes: Collection[str]) -> Judgement:
    """A count as a formula; its equality is proven, not tried out on numbers."""
    try:
        given = Polynomial.parse(_plain_formula(str(value)))
    except NumberError as error:
        return _ungradable(f"{error}.")
    if unknown := [symbol for symbol in given.symbols if symbol not in sizes]:
        listed = ", ".join(sizes)
        return _ungradable(f"{value!r}: {unknown[0]} is none of the sizes, {listed}.")
    if given == wanted:
        return Judgement(Verdict.RIGHT)
    if others := [symbol for symbol in given.symbols if symbol not in wanted.symbols]:
        return Judgement(Verdict.WRONG, f"The count does not depend on {', '.join(others)}.")
    if _degree(given - wanted) < _degree(wanted):
        return Judgement(Verdict.WRONG, "Its leading terms are right, the others are not.")
    return Judgement(Verdict.WRONG, "Its leading terms are wrong already.")


def _degree(formula: Polynomial) -> int:
    return max((sum(power for _, power in term) for term, _ in formula.terms), default=0)


def _plain_formula(text: str) -> str:
    bare = re.sub(r"\\(?:cdot|times)\b|\*(?!\*)", "·", text.strip().strip("$"))
    bare = re.sub(r"_\{(\w+)\}", r"_\1", bare).replace("\\left", "").replace("\\right", "")
    return bare.replace("\\", "")


def judge_mask(value: Any, wanted: Array, where: str) -> Judgement:
    """A mask: 0 and −∞, or True (may be attended) and False."""
    try:
        answer = read_answer("mask", value, where)
    except RegardError as error:
        return _ungradable(f"{error}.")
    if answer.shape != wanted.shape:
        return _ungradable(
            f"{written(answer.shape)} was read, but {written(wanted.shape)} is wanted."
        )
    values = np.where(answer.values <= HIDDEN, -inf, answer.values)
    kinds = set(np.unique(values))
    if kinds <= {0.0, 1.0} and 1.0 in kinds:
        return _ungradable(
            "0 and 1 leave open which of them hides: write 0 and -inf, or true and false."
        )
    if not kinds <= {0.0, -inf}:
        return Judgement(
            Verdict.WRONG, "A mask that is added to the scores holds 0 and −∞ and nothing else."
        )
    if np.array_equal(values, wanted):
        return Judgement(Verdict.RIGHT)
    if np.array_equal(values, np.where(np.isneginf(wanted), 0.0, -inf)):
        return Judgement(Verdict.WRONG, "It hides what should be seen and shows the rest.")
    answered = read_answer("mask", values, where)
    return Judgement(Verdict.WRONG, slip(answered, wanted) or _places(values, wanted))


def _places(values: Array, wanted: Array) -> str:
    diagonal = np.diagonal(values, axis1=-2, axis2=-1)
    if np.isneginf(diagonal).any() and not np.isneginf(np.diagonal(wanted)).any():
        return "It hides a token from itself: look at the diagonal."
    return f"{int((values != wanted).sum())} of its {values.size} entries are wrong."


def _ungradable(words: str) -> Judgement:
    return Judgement(Verdict.UNGRADABLE, words)
