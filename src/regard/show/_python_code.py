"""Programs in NumPy and PyTorch: arrays with the axes of the graph, in its order."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from regard._axes import LEADING
from regard.graph.operation import Array, Axes, Operand
from regard.graph.program import WIDTH, Formula, Program, Regrouping, Span, polynomial


class _Python(Program):
    """What both libraries share: indices, shapes and operators."""

    times = "*"
    over = "/"
    exact_division = "//"
    comment_sign = "#"
    library: ClassVar[str]
    math: ClassVar[str]  # where square roots and π of single numbers come from
    axis_word: ClassVar[str]
    _keep: ClassVar[str]
    _swap: ClassVar[str]
    _permute: ClassVar[str]
    _array_prefix: ClassVar[str]

    def assign(self, variable: str, expression: str) -> None:
        line = f"{variable} = {expression}"
        if len(line) <= WIDTH or "\n" in line:
            self.lines.append(line)
            return
        parts = textwrap.wrap(expression, WIDTH - 4, break_long_words=False)
        self.lines.extend([f"{variable} = (", *(f"    {part}" for part in parts), ")"])

    def zeros(self, target: Operand) -> None:
        shape = ", ".join(self.size(axis.size) for axis in target.axes)
        shape = f"({shape})" if len(target.axes) > 1 else shape
        self.set(target, f"{self.library}.zeros({shape})")

    def fill(self, target: Operand, axis: str, where: Span | int, value: Operand) -> None:
        names = target.names
        if isinstance(where, int):
            names = tuple(name for name in names if name != axis)
        self.assign(self.part(target, axis, where), self.aligned(value, names))

    def permit(self, target: Operand, condition: str) -> None:
        self.choose(target, condition, "0.0", self.minus_infinity)

    def choose(self, target: Operand, condition: str, chosen: str, otherwise: str) -> None:
        self.set(target, f"{self.library}.where({condition}, {chosen}, {otherwise})")

    def product(
        self, target: Operand, a: Operand, b: Operand, transpose_a: bool, transpose_b: bool
    ) -> None:
        leading = tuple(name for name in target.names if name in LEADING)
        a_core, b_core = a.tensor.core, b.tensor.core
        # `@` takes a lone vector as it is; a stack of vectors must become one of matrices.
        row = len(a_core) == 1 and a.names != a_core
        column = len(b_core) == 1 and (b.names != b_core or row)
        left = self.aligned(a, (*leading, *(("",) if row else ()), *_turned(a_core, transpose_a)))
        right = self.aligned(
            b, (*leading, *_turned(b_core, transpose_b), *(("",) if column else ()))
        )
        index = {
            (True, True): "[..., 0, 0]", (True, False): "[..., 0, :]", (False, True): "[..., 0]",
        }.get((row, column), "")  # fmt: skip
        text = self._matmul(left, right)
        self.set(target, f"({text}){index}" if index and " @ " in text else f"{text}{index}")

    @abstractmethod
    def _matmul(self, left: str, right: str) -> str: ...

    def literal(self, array: Array, axes: Axes, column: int) -> str:
        prefix = self._array_prefix
        if array.ndim == 0:
            return self._scalar(self._entry(array[()]))
        if array.size == 0:
            return f"{self.library}.zeros({array.shape})"
        return f"{prefix}{self._nested(array, column + len(prefix))})"

    @abstractmethod
    def _scalar(self, text: str) -> str: ...

    def _nested(self, array: Array, column: int) -> str:
        """[[…], […]] with one row a line; long rows are folded."""
        if array.ndim == 1:
            row = ", ".join(self._entry(entry) for entry in array)
            width = max(WIDTH - column - len("[]]]]),"), 20)
            return f"[{_indented(textwrap.wrap(row, width), column + 1)}]"
        rows = [self._nested(part, column + 1) for part in array]
        return "[" + (",\n" + " " * (column + 1)).join(rows) + "]"

    def _entry(self, value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return str(bool(value))
        if isinstance(value, Fraction):
            text = self.number(value)
            return text if "/" in text or "." in text or "e" in text else f"{text}.0"
        text = repr(float(value))
        if "n" in text:  # inf, -inf, nan
            text = text.replace("inf", f"{self.library}.inf").replace("nan", f"{self.library}.nan")
        return text

    def aligned(self, operand: Operand, names: tuple[str, ...]) -> str:
        kept = tuple(name for name in names if name in operand.names)
        text = self._permuted(operand.text, tuple(operand.names.index(name) for name in kept))
        first = next((place for place, name in enumerate(names) if name in operand.names), None)
        if first is None:
            return text
        places = [":" if name in operand.names else "None" for name in names[first:]]
        if "None" not in places:
            return text
        last = len(places) - 1 - places[::-1].index(":")
        if "None" not in places[:last]:
            return f"{text}[{', '.join(['...' if last else ':', *places[last + 1 :]])}]"
        return f"{text}[{', '.join(places)}]"

    def _permuted(self, text: str, order: tuple[int, ...]) -> str:
        moved = [place for place, source in enumerate(order) if place != source]
        if not moved:
            return text
        if len(order) == 2:
            return f"{text}.T"
        if len(moved) == 2:
            one, other = moved
            last = len(order) - 1
            pair = (-2, -1) if (one, other) == (last - 1, last) else (one, other)
            return f"{text}.{self._swap}({pair[0]}, {pair[1]})"
        return f"{text}.{self._permute}({', '.join(map(str, order))})"

    def root(self, number: str) -> str:
        return f"{self._math()}.sqrt({number})"

    def _math(self) -> str:
        if self.math == "math":
            self.needs("import math")
        return self.math

    def needs(self, line: str) -> None:
        if line not in self.imports:
            self.imports.append(line)

    @property
    def pi(self) -> str:
        return f"{self._math()}.pi"

    def power(self, base: str, exponents: str) -> str:
        return f"{base} ** {exponents}"

    def counted(self, stop: Formula, step: int = 1) -> str:
        text = self.size(stop)
        bounds = text if step == 1 else f"0, {text}, {step}"
        return f"{self.library}.arange({bounds})"

    def reduced(self, word: str, operand: Operand, over: tuple[str, ...], keep: bool) -> str:
        places = sorted(operand.names.index(name) - len(operand.names) for name in over)
        if len(places) == len(operand.names):
            return f"{operand.text}.{word}()"
        listed = str(places[0]) if len(places) == 1 else f"({', '.join(map(str, places))})"
        kept = f", {self._keep}=True" if keep else ""
        return f"{operand.text}.{self._reduction(word)}({self.axis_word}={listed}{kept})"

    @abstractmethod
    def _reduction(self, word: str) -> str: ...

    def part(self, operand: Operand, axis: str, where: Span | int) -> str:
        place, last = operand.names.index(axis), len(operand.names) - 1
        size = operand.axis(axis).size
        index = str(where) if isinstance(where, int) else self._slice(where, size)
        if place <= max(1, last - place):
            return f"{operand.text}[{', '.join([':'] * place + [index])}]"
        return f"{operand.text}[{', '.join(['...', index] + [':'] * (last - place))}]"

    def _slice(self, where: Span, size: Formula) -> str:
        start = self.size(where.start)
        at_end = where.stop is None or polynomial(where.stop) == polynomial(size)
        stop = "" if at_end or where.stop is None else self.size(where.stop)
        step = f":{where.step}" if where.step != 1 else ""
        shown = start if start != "0" or step else ""
        return f"{shown}:{stop}{step}"

    def regrouped(self, operand: Operand, groups: tuple[Regrouping, ...], target: Operand) -> str:
        grouped = {axis.name for group, _ in groups for axis in group}
        kept = tuple(axis for axis in operand.axes if axis.name not in grouped)
        read = [axis.name for axis in (*kept, *(axis for group, _ in groups for axis in group))]
        written = [*kept, *(axis for _, group in groups for axis in group)]
        text = self._permuted(operand.text, tuple(operand.names.index(name) for name in read))
        text += f".reshape({', '.join(self.size(axis.size) for axis in written)})"
        names = [axis.name for axis in written]
        return self._permuted(text, tuple(names.index(name) for name in target.names))


def _turned(core: tuple[str, ...], transpose: bool) -> tuple[str, ...]:
    return core[::-1] if transpose else core


def _indented(lines: list[str], column: int) -> str:
    return ("\n" + " " * column).join(lines)


class NumPy(_Python):
    library = "np"
    math = "np"
    minus_infinity = "-np.inf"
    axis_word = "axis"
    _swap = "swapaxes"
    _permute = "transpose"
    _keep = "keepdims"
    _array_prefix = "np.array("

    def _matmul(self, left: str, right: str) -> str:
        return f"{left} @ {right}"

    def _scalar(self, text: str) -> str:
        return text

    def _reduction(self, word: str) -> str:
        return word

    def function(self, name: str, argument: str) -> str:
        if name == "erf":
            self.needs("import math")
            return f"np.vectorize(math.erf)({argument})"
        return f"np.{name}({argument})"

    def at_least(self, expression: str, least: str) -> str:
        return f"np.maximum({expression}, {least})"

    def spread(self, operand: Operand, like: Operand) -> str:
        return f"np.broadcast_to({self.aligned(operand, like.names)}, {like.text}.shape)"

    def repeated(self, operand: Operand, axis: str, times: str) -> str:
        place = operand.names.index(axis)
        return f"{operand.text}.repeat({times}, axis={place})"

    def barred_after(self, rows: Formula, columns: Formula, diagonal: Formula) -> str:
        shape = f"({self.size(rows)}, {self.size(columns)})"
        return f"np.triu(np.full({shape}, -np.inf), {self.size(diagonal)})"

    def softmax(self, operand: Operand, axis: str) -> None:
        return None


class Torch(_Python):
    library = "torch"
    math = "math"
    minus_infinity = "-torch.inf"
    axis_word = "dim"
    _swap = "transpose"
    _permute = "permute"
    _keep = "keepdim"
    _array_prefix = "torch.tensor("

    def _matmul(self, left: str, right: str) -> str:
        return f"torch.matmul({left}, {right})"

    def _scalar(self, text: str) -> str:
        return f"torch.tensor({text})"

    def _reduction(self, word: str) -> str:
        return "amax" if word == "max" else word

    def function(self, name: str, argument: str) -> str:
        return f"torch.{name}({argument})"

    def at_least(self, expression: str, least: str) -> str:
        return f"{expression}.clamp(min={least})"

    def spread(self, operand: Operand, like: Operand) -> str:
        return f"{self.aligned(operand, like.names)}.expand_as({like.text})"

    def repeated(self, operand: Operand, axis: str, times: str) -> str:
        place = operand.names.index(axis)
        return f"{operand.text}.repeat_interleave({times}, dim={place})"

    def barred_after(self, rows: Formula, columns: Formula, diagonal: Formula) -> str:
        shape = f"({self.size(rows)}, {self.size(columns)})"
        return f"torch.triu(torch.full({shape}, -torch.inf), {self.size(diagonal)})"

    def softmax(self, operand: Operand, axis: str) -> str:
        self.needs("import torch.nn.functional as F")
        return f"F.softmax({operand.text}, dim={operand.names.index(axis) - len(operand.names)})"
