"""A graph under construction: givens come in and bind the sizes, parts add their steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard._axes import written
from regard._errors import OptionError, ShapeError
from regard._options import one_of
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.numbers import written_fraction
from regard.graph.operation import Axes, Axis, Operation
from regard.graph.polynomial import Polynomial

# What there may be none of; the result is then empty, or 0 where there is no key to attend to.
MAY_BE_EMPTY = ("batch", "token", "query", "key")
LARGEST_NUMBER = 10**300  # near the end of float64
Shape = tuple[int, ...]
Spec = tuple[tuple[str, str], ...]  # (axis name, size formula) for each axis
GIVEN_SYMBOLS = {
    "X": Symbol("X"), "Y": Symbol("Y"), "P": Symbol("P"), "P_Y": Symbol("P", "Y"),
    "Q": Symbol("Q"), "K": Symbol("K"), "V": Symbol("V"),
    "WQ": Symbol("W", "Q"), "WK": Symbol("W", "K"), "WV": Symbol("W", "V"), "WO": Symbol("W", "O"),
    "bQ": Symbol("b", "Q"), "bK": Symbol("b", "K"), "bV": Symbol("b", "V"), "bO": Symbol("b", "O"),
    "s": Symbol("s"), "h": Symbol("H"), "v": Symbol("V"),
    "mask": Symbol("M", "given"), "bias": Symbol("B"), "lengths": Symbol("ℓ"),
    "prefix": Symbol("p"), "sinks": Symbol("z"),
    "gamma_1": Symbol("γ", "1"), "beta_1": Symbol("β", "1"),
    "gamma_2": Symbol("γ", "2"), "beta_2": Symbol("β", "2"),
    "W1": Symbol("W", "1"), "b1": Symbol("b", "1"), "W2": Symbol("W", "2"), "b2": Symbol("b", "2"),
    "WG": Symbol("W", "G"), "WU": Symbol("W", "U"), "WD": Symbol("W", "D"),
}  # fmt: skip
# How the computation is to be made; the words are the same everywhere in regard.
DEFAULTS: Mapping[str, Any] = {
    "scale": "sqrt",
    "causal": False,
    "window": None,
    "softcap": None,
    "positions": None,
    "rotary_layout": "half",
    "rotary_base": 10000,
    "heads": None,
    "kv_heads": None,
    "norm": "layer",
    "feed_forward": "gelu",
    "eps": "1e-5",
}
OPTION_NAMES = tuple(DEFAULTS)


def exact_text(option: str, value: Any, at_least: int | None = None) -> str:
    """A number as the text of a Fraction: 0.8 is 4/5."""
    wanted = "a number" if at_least is None else f"a number of at least {at_least}"
    try:
        if isinstance(value, bool):
            raise ValueError("True and False are no numbers here")
        number = written_fraction(str(value))
        if abs(number) > LARGEST_NUMBER or (at_least is not None and number < at_least):
            raise ValueError("out of range")
    except (ValueError, ZeroDivisionError) as error:
        raise OptionError(f"`{option}` must be {wanted}, but {value!r} was passed") from error
    return str(number)


def positive_text(option: str, value: Any) -> str:
    text = exact_text(option, value, at_least=0)
    if text == "0":
        raise OptionError(f"`{option}` must be a number above 0, but {value!r} was passed")
    return text


@dataclass
class Builder:
    """Givens and steps so far; sizes are bound as givens come in."""

    kind: str
    shapes: Mapping[str, Shape]
    options: Mapping[str, Any]
    givens: list[Given] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    known: dict[str, Axes] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def option(self, name: str) -> Any:
        """The option as passed, or its default."""
        self.asked.add(name)
        return self.options.get(name, DEFAULTS[name])

    def has(self, name: str) -> bool:
        return name in self.shapes

    def rank(self, name: str) -> int:
        if name not in self.shapes:
            raise OptionError(f"{self.kind} needs {name}, which was not given")
        return len(self.shapes[name])

    def given(self, name: str, *spec: tuple[str, str], is_mask: bool = False) -> str:
        """Take in a given whose axes have these names and sizes."""
        if self.rank(name) != len(spec):
            sizes = " × ".join(str(Polynomial.parse(size)) for _, size in spec)
            wanted = f"have {len(spec)} axes ({sizes})" if spec else "be a single number"
            raise ShapeError(
                f"{self.kind}: {name} must {wanted}, but it is {written(self.shapes[name])}"
            )
        axes = tuple(Axis(axis, Polynomial.parse(size)) for axis, size in spec)
        for axis, number in zip(axes, self.shapes[name], strict=True):
            if number == 0 and axis.name not in MAY_BE_EMPTY:
                raise ShapeError(
                    f"{self.kind}: {name} is {written(self.shapes[name])}; "
                    f"its {axis.name} axis must have at least one entry"
                )
            self._bind(name, axis.name, axis.size, number)
        self.givens.append(Given(name, GIVEN_SYMBOLS[name], axes, is_mask))
        self.known[name] = axes
        return name

    def _bind(self, name: str, axis: str, size: Polynomial, number: int) -> None:
        unknown = [symbol for symbol in size.symbols if symbol not in self.sizes]
        if unknown:
            (symbol,) = unknown
            rest = size.over(Polynomial.of(symbol)).evaluate(self.sizes)
            if number % rest:
                raise ShapeError(
                    f"{self.kind}: {name} is {written(self.shapes[name])}; its {axis} axis of "
                    f"{number} is to hold {size}, but {number} is not divisible by {rest}"
                )
            self.sizes[symbol] = number // rest
            self.origins[symbol] = name
        elif size.evaluate(self.sizes) != number:
            wanted = size.evaluate(self.sizes)
            origins = " and ".join(sorted({self.origins[symbol] for symbol in size.symbols}))
            raise ShapeError(
                f"{self.kind}: {name} is {written(self.shapes[name])}; its {axis} axis must have "
                f"{size} = {wanted} entries to fit {origins}, but it has {number}"
            )

    def set_size(self, symbol: str, number: int, origin: str) -> None:
        self.sizes[symbol] = number
        self.origins[symbol] = origin

    def step(self, name: str, symbol: Symbol, operation: Operation, *operands: str) -> str:
        self.steps.append(Step(name, symbol, operation, operands))
        self.known[name] = operation.axes(*(self.known[operand] for operand in operands))
        return name

    def axes(self, name: str) -> Axes:
        """The axes of a given or step so far."""
        return self.known[name]

    def finish(self) -> Graph:
        taken = {given.name for given in self.givens}
        if unused := [name for name in self.shapes if name not in taken]:
            raise OptionError(
                f"{self.kind} does not use {', '.join(unused)} "
                f"(it was given {', '.join(self.shapes)})"
            )
        for name, value in self.options.items():
            if name not in self.asked and not _same(value, DEFAULTS[name]):
                raise OptionError(
                    f"`{name}={value!r}` changes nothing in this {self.kind}: leave it out"
                )
        return Graph(self.kind, tuple(self.givens), tuple(self.steps), self.sizes)


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def chosen_positions(b: Builder) -> str | None:
    """The kind of positions that is asked for, if any."""
    positions = b.option("positions")
    if positions is None:
        return None
    return one_of("positions", positions, ("sinusoidal", "learned", "rotary", "alibi"))
