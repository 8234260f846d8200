"""A pasted assignment as an exercise: what was read, what is still to be said, and its TOML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from regard._errors import AssignmentError
from regard.exercises._compute import graph_of
from regard.exercises._exercise import FORMAT, MAIN, Asked, Exercise, Steps, Variant
from regard.graph.construction import GIVEN_SYMBOLS

if TYPE_CHECKING:
    from regard.exercises.reading import Found, Reading

# What is asked of an assignment that only states its numbers, in the order of the work.
STEPS = ("Q", "K", "V", "scores", "scaled", "masked", "weights", "context", "merged", "output")


@dataclass(frozen=True)
class Said:
    """What the person who asks says of an assignment that does not say it itself."""

    scale: Any = None
    heads: int | None = None
    causal: Any = None


def exercise_from(text: str, name: str, said: Said) -> Exercise:
    """The exercise that a pasted assignment states; one variant for each computation in it."""
    from regard.exercises.reading import read_assignment, split_exercises

    variants: dict[str, Variant] = {}
    asked: list[Asked] = []
    understood: list[tuple[str, tuple[str, ...]]] = []
    for title, body in split_exercises(text) or [("", text)]:
        reading = read_assignment(body)
        usable = [found for found in reading.found if found.name in GIVEN_SYMBOLS]
        if not usable:
            continue
        understood.append((title, reading.notes))
        for words, variant in _computations(reading, usable, name, said):
            label = ", ".join(filter(None, (title, words)))
            key = MAIN if not variants else f"part-{len(variants) + 1}"
            variants[key] = variant
            asked.append(Asked(Steps(_asked_steps(variant)), title=label, variant=key))
    if not variants:
        raise AssignmentError(
            f"{name}: no matrices or vectors were found; they are read from LaTeX (bmatrix, "
            "pmatrix, array), NumPy, torch, MATLAB, CSV under a name, and Markdown tables"
        )
    title = f"Assignment {PurePath(name).name}"
    return Exercise(title, variants, tuple(asked), understood=tuple(understood))


def _computations(
    reading: Reading, usable: list[Found], name: str, said: Said
) -> Iterator[tuple[str, Variant]]:
    """One variant for each number of heads that is asked for."""
    kind, givens = reading.kind, _givens(usable)
    if kind is None:
        listed = ", ".join(givens)
        raise AssignmentError(
            f"{name}: {listed} were found, which make no attention computation: it takes s and h, "
            "Q, K and V, or X with W_Q, W_K and W_V"
        )
    options = {} if kind == "dot-product" else {"scale": _scale(reading, name, said)}
    causal = said.causal if said.causal is not None else reading.causal
    if causal:
        options["causal"] = causal
    per_head = any(found.head is not None for found in usable)
    if kind != "multi-head" or per_head:
        yield "", Variant(kind, givens, options)
        return
    counts = (said.heads,) if said.heads else reading.heads
    if not counts:
        raise AssignmentError(f"{name}: the text does not say how many heads; pass --heads N")
    for count in counts:
        if count == 1:
            yield "1 head", Variant("self-attention", givens, options)
        else:
            yield f"{count} heads", Variant("multi-head", givens, {**options, "heads": count})


def _scale(reading: Reading, name: str, said: Said) -> Any:
    if said.scale is not None:
        return said.scale
    if reading.scale is None:
        raise AssignmentError(
            f"{name}: the text does not say whether the scores are divided by √d_k; "
            "pass --scale sqrt (they are) or --scale 1 (they are not)"
        )
    return "sqrt" if reading.scale else 1


def _givens(usable: list[Found]) -> dict[str, Any]:
    """Values by name; the matrices of a head in the order of the heads."""
    givens: dict[str, Any] = {}
    for found in usable:
        if found.head is None:
            givens[found.name] = found.values
        else:
            givens.setdefault(found.name, []).append((found.head, found.values))
    for name, values in givens.items():
        if values and isinstance(values[0], tuple):
            givens[name] = [matrix for _, matrix in sorted(values, key=lambda item: item[0])]
    return givens


def _asked_steps(variant: Variant) -> tuple[str, ...]:
    """The steps of this computation that people ask for."""
    graph = graph_of(variant)
    return tuple(name for name in STEPS if name in graph and not graph.is_given(name))


# ---- as TOML -------------------------------------------------------------------------------


def to_toml(exercise: Exercise) -> str:
    """The exercise in the format that `read_exercise` reads, to be edited further."""
    main = exercise.variants[MAIN]
    lines = [f"format = {FORMAT}", f"title = {_text(exercise.title)}", f"kind = {_text(main.kind)}"]
    for title, notes in exercise.understood:
        lines += [f"# {line}" for line in (title, *notes) if line]
    lines += _tables(main, "")
    for name, variant in exercise.variants.items():
        if name != MAIN:
            lines += ["", f"[variants.{name}]", f"kind = {_text(variant.kind)}"]
            lines += _tables(variant, f"variants.{name}.")
    for asked in exercise.asked:
        lines += ["", "[[asked]]"]
        lines += [f"title = {_text(asked.title)}"] if asked.title else []
        lines += [f"variant = {_text(asked.variant)}"] if asked.variant != MAIN else []
        if isinstance(asked.question, Steps):
            lines.append(f"step = {_toml(list(asked.question.step))}")
    return "\n".join(lines) + "\n"


def _tables(variant: Variant, at: str) -> list[str]:
    lines = ["", f"[{at}givens]"]
    lines += [f"{name} = {_toml(value)}" for name, value in variant.givens.items()]
    if variant.options:
        lines += ["", f"[{at}options]"]
        lines += [f"{name} = {_toml(value)}" for name, value in variant.options.items()]
    return lines


def _toml(value: Any, depth: int = 0) -> str:
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(entry, (list, tuple)) for entry in value)
        if not nested:
            return "[" + ", ".join(_toml(entry) for entry in value) + "]"
        pad = "  " * (depth + 1)
        inside = ",\n".join(pad + _toml(entry, depth + 1) for entry in value)
        return f"[\n{inside},\n{'  ' * depth}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    return _number(value)


def _number(value: Any) -> str:
    """A decimal when it ends, a fraction as text when it does not."""
    if isinstance(value, Fraction):
        short = Fraction(repr(float(value)))
        if short != value:
            return _text(str(value))
        return str(int(value)) if value.denominator == 1 else repr(float(value))
    return repr(value)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
