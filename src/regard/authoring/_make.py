"""An exercise with pleasant numbers, on which every mistake that can be made shows.

Numbers are drawn until they are readable and discriminate: a listed mistake that changes no
answer, or two that give the same answers, are admitted only where they do so for all numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from regard._errors import OptionError, RegardError
from regard._options import is_integer, one_of, positive_integer
from regard.exercises import Exercise, read_exercise, to_toml
from regard.exercises._exercise import MAIN, Asked, AskedSteps, Variant
from regard.graph.run import Run
from regard.mistakes import Discrimination, discriminate
from regard.show.trace import work

KINDS = ("dot-product", "attention", "self-attention", "cross-attention", "multi-head")


class Range(NamedTuple):
    """Entries are `low` to `high` parts of which `parts` make one; weights are smaller."""

    parts: int
    tokens: tuple[int, int]
    weights: tuple[int, int]


# Small numbers, so that products can be followed by hand and scores stay moderate.
NUMBERS: Mapping[str, Range] = {
    "integers": Range(1, (-2, 3), (-1, 1)),
    "halves": Range(2, (-3, 4), (-2, 2)),
    "decimals": Range(10, (-12, 13), (-9, 9)),
}
TRIES = 10_000
FILLED = 3  # entries of a column of weights that are not 0, on average
# Two answers with two decimals each are told apart when they differ by more than this.
APART = 0.01
LARGEST_SCORE = 8.0
LARGEST_WEIGHT = 0.97  # a row with a larger one is saturated: it says little about the others
MOST_SATURATED = 0.2  # the share of rows
LARGEST_SIZE = 12
ASKED = (
    ("(a)", "Queries, keys and values", ("Q", "K", "V"), 1),
    ("(b)", "Scores", ("scores", "scaled", "masked"), 1),
    ("(c)", "Attention weights", ("weights",), 1),
    ("(d)", "The result of the attention", ("context",), 1),
    ("(e)", "The heads together", ("merged", "output"), 1),
)


HEADS = 2


@dataclass(frozen=True)
class Wish:
    """What an exercise is to be like."""

    kind: str
    seed: int = 0
    seq: int = 3
    dim: int = 2
    heads: int | None = None  # for multi-head: HEADS unless said
    numbers: str = "integers"
    causal: bool = False
    scale: Any = "sqrt"

    @property
    def head_count(self) -> int:
        return HEADS if self.heads is None else self.heads

    def checked(self) -> Wish:
        """The wish itself, once every word of it can be granted."""
        one_of("kind", self.kind, KINDS)
        one_of("numbers", self.numbers, NUMBERS)
        if self.kind != "multi-head" and self.heads is not None:
            raise OptionError(f"`heads` is for multi-head: {self.kind} has one head")
        for name, size in (("seq", self.seq), ("dim", self.dim), ("heads", self.head_count)):
            if positive_integer(name, size) > LARGEST_SIZE:
                raise OptionError(f"`{name}` goes up to {LARGEST_SIZE} for work by hand")
        if not is_integer(self.seed) or self.seed < 0:
            raise OptionError(f"`seed` must be a whole number of at least 0, not {self.seed!r}")
        if self.seq < 2:
            raise OptionError("`seq` must be at least 2: one token has nothing to weigh")
        if self.causal and self.kind in ("dot-product", "cross-attention"):
            raise OptionError(f"`causal` has no meaning for {self.kind}")
        return self


def make_exercise(wish: Wish) -> Exercise:
    """An exercise as wished; the same wish makes the same exercise."""
    wish = wish.checked()
    inherent = _inherent(wish)
    for attempt in range(TRIES):
        rng = np.random.default_rng([wish.seed, attempt])
        givens = {name: _drawn(rng, wish, name) for name in _shapes(wish)}
        run = _run(wish, givens)
        if _is_pleasant(run) and _discriminates(run, inherent):
            return _exercise(wish, givens, run)
    raise OptionError(
        f"new: no pleasant numbers were found for this {wish.kind} on which every mistake shows; "
        "take another --seed, larger --seq or --dim, or --numbers decimals"
    )


# ---- numbers -------------------------------------------------------------------------------


def _shapes(wish: Wish) -> dict[str, tuple[int, ...]]:
    n, d = wish.seq, wish.dim
    if wish.kind == "dot-product":
        return {"s": (d,), "h": (n, d)}
    if wish.kind == "attention":
        return {"Q": (n, d), "K": (n, d), "V": (n, d)}
    wide = d * wish.head_count if wish.kind == "multi-head" else d
    weights = dict.fromkeys(("WQ", "WK", "WV"), (wide, wide))
    if wish.kind == "multi-head":
        return {"X": (n, wide), **weights, "WO": (wide, wide)}
    if wish.kind == "cross-attention":
        return {"X": (n, d), "Y": (n + 1, d), **weights}
    return {"X": (n, d), **weights}


def _drawn(rng: np.random.Generator, wish: Wish, name: str) -> Any:
    """An array of fractions."""
    numbers, shape = NUMBERS[wish.numbers], _shapes(wish)[name]
    is_weight = name.startswith("W")
    low, high = numbers.weights if is_weight else numbers.tokens
    parts = rng.integers(low, high + 1, size=shape)
    if is_weight and shape[0] > FILLED:  # more zeros in wide matrices, so that sums stay short
        parts *= rng.random(size=shape) < FILLED / shape[0]
    return np.frompyfunc(lambda part: Fraction(int(part), numbers.parts), 1, 1)(parts)


def _options(wish: Wish) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if wish.kind != "dot-product":
        options["scale"] = wish.scale
    if wish.causal:
        options["causal"] = True
    if wish.kind == "multi-head":
        options["heads"] = wish.head_count
    return options


def _run(wish: Wish, givens: Mapping[str, Any]) -> Run:
    return work(wish.kind, **givens, **_options(wish)).run


def _asked(run: Run) -> tuple[str, ...]:
    steps = (step for _, _, names, _ in ASKED for step in names)
    return tuple(step for step in steps if step in run.graph.step_names)


def _is_pleasant(run: Run) -> bool:
    """Moderate scores, few saturated rows, no row of zeros, no two rows that are alike."""
    logits = run.values[run.graph.step("exp").operands[0]]
    if np.abs(logits[np.isfinite(logits)]).max() > LARGEST_SCORE:
        return False
    is_free = np.isfinite(logits).sum(axis=-1) > 1  # a row with one open key always has weight 1
    saturated = run.values["weights"].max(axis=-1) > LARGEST_WEIGHT
    if np.mean(saturated & is_free) > MOST_SATURATED:
        return False
    for given in run.graph.givens:
        value = run.values[given.name]
        if value.ndim > 1 and (
            not value.any(axis=-1).all()
            or not value.any(axis=-2).all()
            or len(np.unique(value, axis=-2)) < value.shape[-2]
        ):
            return False
    return True


def _inherent(wish: Wish) -> Discrimination:
    """What no numbers of these shapes can tell apart, seen on numbers without any pattern."""
    rng = np.random.default_rng(0)
    givens = {name: rng.normal(size=shape) for name, shape in _shapes(wish).items()}
    try:
        run = _run(wish, givens)
    except RegardError as error:
        raise OptionError(f"new: {error}") from error
    return discriminate(run, _asked(run))


def _discriminates(run: Run, inherent: Discrimination) -> bool:
    found = discriminate(run, _asked(run), within=APART)
    ties = [set(words) for words in inherent.alike]
    return set(found.unseen) <= set(inherent.unseen) and all(
        any(set(words) <= tie for tie in ties) for words in found.alike
    )


# ---- words ---------------------------------------------------------------------------------

TITLES = {
    "dot-product": "Dot-product attention", "attention": "Attention",
    "self-attention": "Self-attention", "cross-attention": "Cross-attention",
    "multi-head": "Multi-head attention",
}  # fmt: skip
SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve")  # fmt: skip


def _counted(count: int, noun: str) -> str:
    word = SMALL[count] if count < len(SMALL) else str(count)
    return f"{word} {noun}{'' if count == 1 else 's'}"


def _situation(wish: Wish) -> str:
    tokens = f"{_counted(wish.seq, 'token')} with {{}} each".capitalize()
    numbers = _counted(wish.dim, "number")
    text = {
        "dot-product": f"A source vector $s$ of {numbers} looks at {_counted(wish.seq, 'vector')}, "
        "the rows of $H$. They are keys and values at once, and the dot products are not scaled.",
        "attention": f"{_counted(wish.seq, 'query').replace('querys', 'queries').capitalize()}, as "
        f"many keys and as many values are given, with {numbers} each.",
        "self-attention": f"{tokens.format(numbers)} go through one head of self-attention.",
        "cross-attention": f"{tokens.format(numbers)}, the rows of $X$, look at "
        f"{_counted(wish.seq + 1, 'token')}, the rows of $Y$.",
        "multi-head": tokens.format(_counted(wish.dim * wish.head_count, "number"))
        + f" go through {_counted(wish.head_count, 'head')} of self-attention. Head 1 has the "
        f"first {_counted(wish.dim, 'column')} of $W_Q$, $W_K$ and $W_V$, the next head the next "
        "ones.",
    }[wish.kind]
    if wish.kind != "dot-product":
        text += " " + _scaling(wish.scale)
    if wish.causal:
        text += " The attention is causal: a token sees itself and the tokens before it."
    return text + " Two decimals are enough."


def _scaling(scale: Any) -> str:
    if scale == "sqrt":
        return "The scores are divided by $sqrt(d_k)$."
    if scale == 1:
        return "The scores are not scaled."
    return f"The scores are multiplied by {scale}."


def _exercise(wish: Wish, givens: Mapping[str, Any], run: Run) -> Exercise:
    numbers = {name: value.tolist() for name, value in givens.items()}
    variant = Variant(wish.kind, numbers, _options(wish))
    title = f"{TITLES[wish.kind]} by hand, number {wish.seed}"
    exercise = Exercise(title, {MAIN: variant}, tuple(_questions(run)), _situation(wish))
    # Read back, so that what is handed on is what everybody else reads from the file.
    return replace(read_exercise(to_toml(exercise), f"seed {wish.seed}"))


def _questions(run: Run) -> Iterator[Asked]:
    labels = iter(label for label, *_ in ASKED)
    for _, title, names, points in ASKED:
        steps = tuple(name for name in names if name in run.graph.step_names)
        if steps:
            yield Asked(AskedSteps(steps), next(labels), title, points=points * len(steps))
