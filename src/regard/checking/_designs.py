"""Designed inputs, judged by what they bring about: on the exercise's numbers and on fresh ones.

Fresh numbers keep what the design may rely on: keys are turned as a whole, which keeps their
lengths and angles; values are drawn anew; and the exercise's own design must reach its property
on them, otherwise they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from regard._errors import RegardError
from regard.checking._verdict import Judgement, Verdict
from regard.exercises._compute import constants_of, givens_of, trace_of
from regard.exercises._evidence import distance
from regard.exercises._exercise import AskedDesign, Exercise, Variant
from regard.exercises._expressions import evaluate

FRESH = 4  # further sets of numbers
TRIES = 60  # until so many were found on which the exercise's own design works
SEED = 20


def judge_design(exercise: Exercise, variant: str, asked: AskedDesign, given: Any) -> Judgement:
    """Whether what was designed reaches its property; `given` holds a formula for each name."""
    chosen = exercise.variants[variant]
    mine = {name: _formula(exercise, value) for name, value in given.items()}
    try:
        gap = _gap(exercise, _with(chosen, mine), asked)
    except RegardError as error:
        return Judgement(Verdict.UNGRADABLE, f"{error}.")
    if asked.apart and (pair := _equal_pair(chosen, mine)):
        one, other = pair
        return Judgement(
            Verdict.WRONG, f"{one} and {other} are the same, but two different ones are asked for."
        )
    if not gap <= asked.within:
        return Judgement(
            Verdict.WRONG,
            f"With these, {asked.property} misses {asked.target} by {gap:.3g}; it should come "
            f"within {asked.within:g}.",
        )
    for fresh in _fresh(exercise, chosen, asked):
        try:
            gap = _gap(exercise, _with(fresh, mine), asked)
        except RegardError as error:
            return Judgement(Verdict.UNGRADABLE, f"{error}.")
        if not gap <= 10 * asked.within:
            return Judgement(
                Verdict.WRONG,
                f"It works for the numbers of the exercise, but not in general: with other keys "
                f"that meet the conditions, {asked.property} misses its target by {gap:.3g}.",
            )
    return Judgement(Verdict.RIGHT)


def _formula(exercise: Exercise, value: Any) -> Any:
    """A formula in the exercise's real names; numbers stay as they are."""
    if not isinstance(value, str):
        return np.asarray(value, dtype=float).tolist()
    text = value.strip().strip("$").replace("·", "*").replace("−", "-").replace("^", "**")
    for real, alias in exercise.names.items():
        text = re.sub(rf"(?<!\w){re.escape(alias)}(?=\[|\b)", real, text)
    return re.sub(r"(?<=\d)\s*(?=\()", "*", text)


def _with(chosen: Variant, mine: Mapping[str, Any]) -> Variant:
    """The variant with other constants or givens."""
    constants = {n: mine.get(n, v) for n, v in chosen.constants.items()}
    givens = {n: mine.get(n, v) for n, v in chosen.givens.items()}
    return replace(chosen, constants=constants, givens=givens)


def _gap(exercise: Exercise, chosen: Variant, asked: AskedDesign) -> float:
    trace = trace_of(chosen, exercise.names)
    values = {**trace.run.graph.sizes, **trace.run.values, **constants_of(chosen, {})}
    known = values | {alias: values[name] for name, alias in trace.names.items()}
    return distance(evaluate(asked.property, known), evaluate(asked.target, known))


def _equal_pair(chosen: Variant, mine: Mapping[str, Any]) -> tuple[str, str] | None:
    """Two designs with the same numbers, if there are two."""
    variant = _with(chosen, mine)
    constants = constants_of(variant, {})
    values = {**constants, **givens_of(variant, constants, {})}
    for one, other in combinations(mine, 2):
        if np.shape(values[one]) == np.shape(values[other]) and np.allclose(
            np.asarray(values[one], float), np.asarray(values[other], float)
        ):
            return one, other
    return None


def _fresh(exercise: Exercise, chosen: Variant, asked: AskedDesign) -> Iterator[Variant]:
    rng = np.random.default_rng(SEED)
    found = 0
    for _ in range(TRIES):
        if found == FRESH:
            return
        variant = _turned(chosen, asked, rng)
        try:
            works = _gap(exercise, variant, asked) <= asked.within
        except RegardError:
            continue
        if works:
            found += 1
            yield variant


def _turned(chosen: Variant, asked: AskedDesign, rng: np.random.Generator) -> Variant:
    """The same situation with other numbers: keys turned, values drawn, other indices."""
    keys, values = ("h", "K", "mu"), ("v", "V")
    arrays = {**chosen.constants, **chosen.givens}
    width = next(
        (np.shape(arrays[name])[-1] for name in keys if isinstance(arrays.get(name), list)), 0
    )
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0] if width else np.eye(1)
    rows = next((len(arrays[name]) for name in keys if isinstance(arrays.get(name), list)), 0)
    order = rng.permutation(rows) + 1
    indices = [
        name
        for name, value in chosen.constants.items()
        if type(value) is int and f"[{name}]" in f"{asked.property} {asked.target}"
    ]
    new: dict[str, Any] = {}
    for name, value in arrays.items():
        if name in indices:
            new[name] = int(order[indices.index(name)])
        elif isinstance(value, list) and name in keys:
            new[name] = (np.asarray(value, float) @ turn).tolist()
        elif isinstance(value, list) and name in values:
            new[name] = rng.uniform(-9, 9, size=np.shape(value)).tolist()
        elif isinstance(value, list):
            new[name] = rng.normal(size=np.shape(value)).tolist()
    return _with(chosen, new)
