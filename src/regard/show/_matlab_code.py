"""Programs in MATLAB, which Octave runs too: matrices, with heads and batches as their pages.

An array's rows and columns are dimensions 1 and 2, whatever has one axis is a column, heads are
dimension 3 and batches dimension 4; so leading axes meet each other without further ado.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from regard._axes import LEADING
from regard.graph.operation import Array, Axes, Operand
from regard.graph.polynomial import Polynomial
from regard.graph.program import WIDTH, Formula, Program, Regrouping, Span, polynomial

PAGES = {"head": 3, "batch": 4}
LOOPS = {"batch": ("item", 4), "head": ("head", 3)}


class Matlab(Program):
    times = ".*"
    over = "./"
    exact_division = "/"
    comment_sign = "%"
    minus_infinity = "-Inf"
    pi = "pi"

    def assign(self, variable: str, expression: str) -> None:
        line = f"{variable} = {expression};"
        if len(line) <= WIDTH or "\n" in line:
            self.lines.append(line)
            return
        parts = textwrap.wrap(line, WIDTH - 4, break_long_words=False, subsequent_indent="    ")
        self.lines.extend([*(f"{part} ..." for part in parts[:-1]), parts[-1]])

    def zeros(self, target: Operand) -> None:
        self.set(target, f"zeros({self._shape(target.axes)})")

    def _shape(self, axes: Axes) -> str:
        places = _places_of(tuple(axis.name for axis in axes))
        sizes = {places[axis.name]: axis.size for axis in axes}
        last = max([2, *sizes])
        return ", ".join(self.size(sizes.get(place, 1)) for place in range(1, last + 1))

    def fill(self, target: Operand, axis: str, where: Span | int, value: Operand) -> None:
        single = isinstance(where, int)
        axes = tuple(a for a in target.axes if a.name != axis or not single)
        text = self.aligned(value, tuple(a.name for a in axes))
        if {a.name for a in axes} > set(value.names):  # MATLAB assigns no smaller array
            axes = tuple(
                a._replace(size=_length(where, a.size)) if a.name == axis else a for a in axes
            )
            text = f"{text} + zeros({self._shape(axes)})"
        self.assign(self.part(target, axis, where), text)

    def permit(self, target: Operand, condition: str) -> None:
        self.set(target, f"-Inf({self._shape(target.axes)})")
        self.assign(f"{target.text}({condition})", "0")

    def choose(self, target: Operand, condition: str, chosen: str, otherwise: str) -> None:
        self.set(target, otherwise)
        self.assign(f"{target.text}(({condition}) & true(size({target.text})))", chosen)

    def product(
        self, target: Operand, a: Operand, b: Operand, transpose_a: bool, transpose_b: bool
    ) -> None:
        loops = [name for name in LOOPS if name in target.names]
        left, right = self._page(a, loops), self._page(b, loops)
        row = len(a.tensor.core) == 1
        if row and len(b.tensor.core) == 1:
            text = f"{left}' * {right}"
        elif row:  # a column in the end: the product is turned as a whole
            text = f"{right if transpose_b else _turned(right)} * {left}"
        else:
            left = _turned(left) if transpose_a else left
            text = f"{left} * {_turned(right) if transpose_b else right}"
        if not loops:
            self.set(target, text)
            return
        self.zeros(target)
        for depth, name in enumerate(loops):
            counter = LOOPS[name][0]
            size = self.size(target.axis(name).size)
            self.lines.append("    " * depth + f"for {counter} = 1:{size}")
        self.lines.append("    " * len(loops) + f"{self._page(target, loops)} = {text};")
        self.lines.extend("    " * depth + "end" for depth in reversed(range(len(loops))))

    @staticmethod
    def _page(operand: Operand, loops: list[str]) -> str:
        """The matrix of this head and batch entry."""
        own = [name for name in loops if name in operand.names]
        if not own:
            return operand.text
        last = max(PAGES[name] for name in own)
        counters = {place: counter for name, (counter, place) in LOOPS.items() if name in own}
        pages = [counters.get(place, "1") for place in range(3, last + 1)]
        return f"{operand.text}({', '.join([':', ':', *pages])})"

    def literal(self, array: Array, axes: Axes, column: int) -> str:
        if array.size == 0:
            return f"zeros({self._shape(axes)})"
        names = tuple(axis.name for axis in axes)
        paged = next((name for name in LEADING if name in names), None)
        if paged is None:
            return self._matrix(array, column)
        place = names.index(paged)
        opening = f"cat({PAGES[paged]}, "
        column += len(opening)
        pages = [
            self.literal(np.asarray(page, array.dtype), axes[:place] + axes[place + 1 :], column)
            for page in np.moveaxis(array, place, 0)
        ]
        fits = sum(len(page) + 2 for page in pages) < WIDTH - column and "\n" not in "".join(pages)
        return opening + (", " if fits else ",\n" + " " * column).join(pages) + ")"

    def _matrix(self, array: Array, column: int) -> str:
        if array.ndim == 0:
            return self._entry(array[()])
        if array.ndim == 1:
            parts = textwrap.wrap("; ".join(map(self._entry, array)), max(WIDTH - column - 7, 20))
            return "[" + (" ...\n" + " " * (column + 1)).join(parts) + "]"
        rows = [
            (" ...\n" + " " * (column + 3)).join(
                textwrap.wrap(", ".join(map(self._entry, row)), max(WIDTH - column - 7, 20))
            )
            for row in array
        ]
        return "[" + (";\n" + " " * (column + 1)).join(rows) + "]"

    def _entry(self, value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, Fraction):
            return self.number(value)
        number = float(value)
        if np.isfinite(number):
            return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
        return repr(number).replace("inf", "Inf").replace("nan", "NaN")

    def aligned(self, operand: Operand, names: tuple[str, ...]) -> str:
        places = _places_of(names)
        wanted = {name: places[name] for name in operand.names}
        return _moved(operand.text, _places_of(operand.names), wanted)

    def function(self, name: str, argument: str) -> str:
        return f"{name}({argument})"

    def root(self, number: str) -> str:
        return f"sqrt({number})"

    def power(self, base: str, exponents: str) -> str:
        return f"{base} .^ {exponents}"

    def at_least(self, expression: str, least: str) -> str:
        return f"max({expression}, {least})"

    def counted(self, stop: Formula, step: int = 1) -> str:
        last = self.size(polynomial(stop) - 1)
        return f"(0:{last})'" if step == 1 else f"(0:{step}:{last})'"

    def reduced(self, word: str, operand: Operand, over: tuple[str, ...], keep: bool) -> str:
        places = _places_of(operand.names)
        text = operand.text
        for name in over:
            along = f"[], {places[name]}" if word == "max" else str(places[name])
            text = f"{word}({text}, {along})"
        if keep:
            return text
        kept = {name: place for name, place in places.items() if name not in over}
        return _moved(text, kept, _places_of(tuple(kept)))

    def part(self, operand: Operand, axis: str, where: Span | int) -> str:
        dimensions = _places_of(operand.names)
        place, last = dimensions[axis], max([2, *dimensions.values()])
        places = [":"] * last
        places[place - 1] = self._places(where, operand.axis(axis).size)
        return f"{operand.text}({', '.join(places)})"

    def _places(self, where: Span | int, size: Formula) -> str:
        """Places counted from 1."""
        if isinstance(where, int):
            return str(where + 1)
        start = self.size(polynomial(where.start) + 1)
        at_end = where.stop is None or polynomial(where.stop) == polynomial(size)
        stop = "end" if at_end or where.stop is None else self.size(where.stop)
        return f"{start}:{stop}" if where.step == 1 else f"{start}:{where.step}:{stop}"

    def spread(self, operand: Operand, like: Operand) -> str:
        return f"{self.aligned(operand, like.names)} + zeros(size({like.text}))"

    def repeated(self, operand: Operand, axis: str, times: str) -> str:
        dimensions = _places_of(operand.names)
        place, last = dimensions[axis], max([2, *dimensions.values()])
        counts = [times if dimension == place else "1" for dimension in range(1, last + 1)]
        return f"repelem({operand.text}, {', '.join(counts)})"

    def regrouped(self, operand: Operand, groups: tuple[Regrouping, ...], target: Operand) -> str:
        """MATLAB counts down columns, so the order within every group is the other way round."""
        grouped = {axis.name for group, _ in groups for axis in group}
        kept = tuple(axis for axis in operand.axes if axis.name not in grouped)
        read = [axis.name for group, _ in groups for axis in reversed(group)]
        written = [axis for _, group in groups for axis in reversed(group)]
        order = [*read, *(axis.name for axis in kept)]
        source = _places_of(operand.names)
        text = operand.text
        if sorted(order, key=lambda name: source[name]) != order:
            text = _moved(text, source, {name: place for place, name in enumerate(order, 1)})
        places = {axis.name: place for place, axis in enumerate([*written, *kept], 1)}
        wanted = _places_of(target.names)
        if sorted(places, key=lambda name: wanted[name]) == list(places):
            return f"reshape({text}, {self._shape(target.axes)})"
        sizes = ", ".join(self.size(axis.size) for axis in (*written, *kept))
        return _moved(f"reshape({text}, {sizes})", places, wanted)

    def barred_after(self, rows: Formula, columns: Formula, diagonal: Formula) -> str:
        shape = f"{self.size(rows)}, {self.size(columns)}"
        return f"triu(-Inf({shape}), {self.size(diagonal)})"

    def softmax(self, operand: Operand, axis: str) -> None:
        return None


def _length(where: Span | int, size: Polynomial) -> Polynomial:
    """How many places these are, for spans of neighbours."""
    if isinstance(where, int):
        return Polynomial.of(1)
    return (size if where.stop is None else polynomial(where.stop)) - polynomial(where.start)


def _places_of(names: tuple[str, ...]) -> dict[str, int]:
    """The dimension of each axis; a third and further one that is no page comes after them."""
    core = [name for name in names if name not in PAGES]
    own = dict(zip(core, (1, 2, 5, 6, 7), strict=False))
    return {name: PAGES.get(name) or own[name] for name in names}


def _moved(text: str, source: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """The array with its axes at other dimensions."""
    last = max([2, *source.values(), *wanted.values()])
    free = [place for place in range(1, last + 1) if place not in source.values()]
    taken = {wanted[name]: source[name] for name in source}
    order = [taken.get(place) or free.pop(0) for place in range(1, last + 1)]
    if order == sorted(order):
        return text
    return _turned(text) if order == [2, 1] else f"permute({text}, {order})"


def _turned(text: str) -> str:
    return text[:-1] if text.endswith("'") else f"{text}'"
