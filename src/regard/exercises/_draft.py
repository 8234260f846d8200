"""A pasted assignment as an exercise: what was read, what is still to be said, and its TOML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from regard._errors import AssignmentError, RegardError
from regard._options import positive_integer
from regard.exercises._compute import graph_of
from regard.exercises._exercise import FORMAT, MAIN, Asked, AskedSteps, Exercise, Variant
from regard.exercises._roles import givens_of_kind, has_role, hides_the_future

if TYPE_CHECKING:
    from regard.exercises.reading import Found, Reading

# What is asked of an assignment that only states its numbers, in the order of the work.
STEPS = ("Q", "K", "V", "scores", "scaled", "masked", "weights", "context", "merged", "output")


class Said(NamedTuple):
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
        usable = [found for found in reading.found if has_role(found)]
        if not usable:
            continue
        understood.append((title, reading.notes))
        for words, variant in _computations(reading, usable, name, said):
            label = ", ".join(filter(None, (title, words)))
            key = MAIN if not variants else f"part-{len(variants) + 1}"
            variants[key] = variant
            steps = AskedSteps(_asked_steps(variant, name))
            asked.append(Asked(steps, title=label, variant=key))
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
    kind = reading.kind
    if kind is None:
        listed = ", ".join(dict.fromkeys(found.written for found in usable))
        reasons = [f"; {note[:-1]}" for note in reading.notes if not note.startswith("line")]
        raise AssignmentError(
            f"{name}: {listed} were found, which make no attention computation: it takes s and h, "
            f"Q, K and V, or X with W_Q, W_K and W_V{''.join(reasons)}"
        )
    given_heads = len({found.head for found in usable if found.head is not None})
    counts = _head_counts(reading, given_heads, name, said)
    if "X" not in {found.name for found in usable}:
        yield from _without_input(kind, reading, usable, name, said, counts)
        return
    if given_heads == 1:
        usable = [replace(found, head=None) for found in usable]
        given_heads = 0
    if reading.joined and not counts:
        raise AssignmentError(f"{name}: the text does not say how many heads; pass --heads N")
    for count in counts or (1,):
        made = kind if kind == "cross-attention" else "multi-head"
        made = "self-attention" if count == 1 and made == "multi-head" else made
        givens = givens_of_kind(made, usable, name)
        options = _options(reading, givens, name, said)
        if count > 1 and not (given_heads and count == given_heads):
            options["heads"] = count
        words = "1 head" if count == 1 else f"{count} heads"
        yield (
            (words if len(counts) > 1 or (counts and not given_heads) else ""),
            Variant(made, givens, options),
        )


def _head_counts(reading: Reading, given: int, name: str, said: Said) -> tuple[int, ...]:
    """For how many heads it is to be worked: said, or stated, or as many as have matrices."""
    counts = (positive_integer("heads", said.heads),) if said.heads is not None else reading.heads
    by_column = given == 1 and said.heads is not None
    if given and counts != (given,) and not by_column:
        listed = " and ".join(str(count) for count in counts if count != given)
        raise AssignmentError(
            f"{name}: there are matrices for {given} head{'s' * (given > 1)}, but {listed} heads "
            f"are asked for: give the matrices of all heads, or pass --heads {given}"
        )
    return counts


def _without_input(
    kind: str,
    reading: Reading,
    usable: list[Found],
    name: str,
    said: Said,
    counts: tuple[int, ...],
) -> Iterator[tuple[str, Variant]]:
    """A vector over a set, or Q, K and V; heads only where each has its own Q, K and V."""
    heads = {found.head for found in usable if found.head is not None}
    if not heads and max(counts, default=1) > 1:
        given = ", ".join(dict.fromkeys(found.written for found in usable))
        raise AssignmentError(
            f"{name}: {given} are given for {max(counts)} heads without X and the weights: each "
            "head could take its own columns of them, or they could be those of one head. Give X, "
            "W_Q, W_K and W_V; or Q_1, K_1, V_1, Q_2, … for each head; or pass --heads 1"
        )
    kind = "attention" if kind == "multi-head" else kind
    for head in sorted(heads) or (None,):
        own = [found for found in usable if found.head in (None, head)]
        own = [replace(found, head=None) for found in own]
        givens = givens_of_kind(kind, own, name)
        words = f"Head {head + 1}" if head is not None and len(heads) > 1 else ""
        yield words, Variant(kind, givens, _options(reading, givens, name, said))


def _options(reading: Reading, givens: dict[str, Any], name: str, said: Said) -> dict[str, Any]:
    """How it is to be made; a source vector over a set is not scaled unless it is said."""
    options: dict[str, Any] = {}
    plain = {found.name for found in reading.found} >= {"s", "h"}
    if not plain or said.scale is not None or reading.scale is not None:
        options["scale"] = _scale(reading, name, said)
    causal = said.causal if said.causal is not None else reading.causal
    if causal and "mask" in givens and said.causal is None:
        if not hides_the_future(givens["mask"]):
            raise AssignmentError(
                f"{name}: the text says that the attention is causal and gives a mask that lets a "
                "query look at later keys: take one of them out, or pass --causal for both"
            )
        causal = False
    if causal:
        options["causal"] = causal
    return options


def _scale(reading: Reading, name: str, said: Said) -> Any:
    if said.scale is not None:
        return said.scale
    if reading.scale is None:
        raise AssignmentError(
            f"{name}: the text does not say whether the scores are divided by √d_k; "
            "pass --scale sqrt (they are) or --scale 1 (they are not)"
        )
    return "sqrt" if reading.scale else 1


def _asked_steps(variant: Variant, name: str) -> tuple[str, ...]:
    """The steps of this computation that people ask for."""
    try:
        graph = graph_of(variant)
    except RegardError as error:
        raise AssignmentError(f"{name}: {error}") from error
    return tuple(name for name in STEPS if name in graph and not graph.is_given(name))


# ---- as TOML -------------------------------------------------------------------------------


def to_toml(exercise: Exercise) -> str:
    """The exercise in the format that `read_exercise` reads, to be edited further."""
    if exercise.toml:
        return exercise.toml
    main = exercise.variants[MAIN]
    lines = [f"format = {FORMAT}", f"title = {_text(exercise.title)}", f"kind = {_text(main.kind)}"]
    lines += [f"text = {_text(exercise.text)}"] if exercise.text else []
    for title, notes in exercise.understood:
        lines += [f"# {line}" for line in (title, *notes) if line]
    lines += _tables(main, "")
    for name, variant in exercise.variants.items():
        if name != MAIN:
            lines += ["", f"[variants.{name}]", f"kind = {_text(variant.kind)}"]
            lines += _tables(variant, f"variants.{name}.")
    for asked in exercise.asked:
        lines += ["", "[[asked]]"]
        lines += [f"label = {_text(asked.label)}"] if asked.label else []
        lines += [f"title = {_text(asked.title)}"] if asked.title else []
        lines += [f"points = {asked.points:g}"] if asked.points != 1 else []
        lines += [f"variant = {_text(asked.variant)}"] if asked.variant != MAIN else []
        if isinstance(asked.question, AskedSteps):
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
