"""How numbers are written: a value becomes a Cell, a matrix a Grid, before any output format."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from regard._errors import ShapeError
from regard._options import one_of, positive_integer
from regard.show import _digits
from regard.show._digits import Between, Digits
from regard.show._exact import exact_math, is_sympy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from regard.graph.notation import Math

Kind = Literal[
    "number", "exact", "truth", "bound", "unproven", "nan", "infinity", "minus-infinity", "masked",
    "ellipsis",
]  # fmt: skip

EDGE = 3  # rows or columns kept at either end of what is elided


STYLES = ("decimals", "significant", "numpy")


@dataclass(frozen=True)
class NumberFormat:
    """Decimals, significant digits or NumPy's own style; long matrices elide in the middle."""

    style: str = "decimals"
    digits: int = 4
    elide_above: int | None = 12

    def __post_init__(self) -> None:
        one_of("style", self.style, STYLES)
        positive_integer("digits", self.digits)
        if self.elide_above is not None:
            positive_integer("elide_above", self.elide_above)


class Cell(NamedTuple):
    """One written number: `digits` in ASCII and a power of ten, or an exact expression.

    `proven` is False where fewer digits than asked could be proven; a "bound" means |x| < cell;
    `verbatim` digits are NumPy's and stay as they are.
    """

    kind: Kind
    digits: str = ""
    exponent: int | None = None
    proven: bool = True
    verbatim: bool = False
    expression: Math | None = None

    @property
    def negative(self) -> bool:
        return self.kind == "minus-infinity" or self.digits.startswith("-")

    @property
    def unsigned(self) -> str:
        return self.digits.lstrip("-")


class Grid(NamedTuple):
    """A written matrix, or a vector of one row; `columns` are numbered from 1, None is elided."""

    rows: tuple[tuple[Cell, ...], ...]
    columns: tuple[int | None, ...]
    is_vector: bool
    left_out: str = ""


NAN = Cell("nan", "NaN")
INFINITY = Cell("infinity", "∞")
MINUS_INFINITY = Cell("minus-infinity", "∞")
MASKED = Cell("masked", "■")


def format_number(value: Any, numbers: NumberFormat, rounding: float = 0.0) -> Cell:
    """One number on its own."""
    if rounding and numbers.style != "numpy" and abs(value) <= rounding:
        value = 0.0
    return _written([value], numbers)[0]


def format_matrix(
    values: NDArray[Any],
    numbers: NumberFormat,
    rounding: float = 0.0,
    hidden: NDArray[np.bool_] | None = None,
) -> Grid:
    """A vector or a matrix; its entries share their decimals, but for those that are hidden."""
    array: NDArray[Any] = values if isinstance(values, np.ndarray) else np.asarray(values)
    if rounding and numbers.style != "numpy":
        array = np.where(np.abs(array) <= rounding, 0.0, array)
    if array.ndim not in (1, 2):
        raise ShapeError(f"a matrix has one or two axes, but one of shape {array.shape} was passed")
    table = array[np.newaxis, :] if array.ndim == 1 else array
    limit = None if array.ndim == 1 else numbers.elide_above
    rows = _kept(table.shape[0], limit)
    columns = _kept(table.shape[1], numbers.elide_above)
    cells = _cells_at(table, rows, columns, numbers)
    if hidden is not None:
        barred = hidden.reshape(table.shape)
        cells = {place: MASKED if barred[place] else cell for place, cell in cells.items()}
    body = tuple(
        tuple(cells.get((row, column)) or _ellipsis(row, column) for column in columns)
        for row in rows
    )
    places = tuple(None if column is None else column + 1 for column in columns)
    return Grid(body, places, array.ndim == 1, left_out(array, numbers.elide_above))


def _kept(count: int, limit: int | None) -> list[int | None]:
    if limit is None or count <= max(limit, 2 * EDGE):
        return list(range(count))
    return [*range(EDGE), None, *range(count - EDGE, count)]


def _ellipsis(row: int | None, column: int | None) -> Cell:
    if row is None:
        return Cell("ellipsis", "⋱" if column is None else "⋮")
    return Cell("ellipsis", "…")


def left_out(array: NDArray[Any], limit: int | None) -> str:
    words = ("entries", "entry") if array.ndim == 1 else ("rows", "row")
    axes = zip((words, ("columns", "column")), array.shape, strict=False)
    phrases = [
        f"{many} {EDGE + 1} to {count - EDGE} of {count}"
        if count - 2 * EDGE > 1
        else f"{one} {EDGE + 1} of {count}"
        for (many, one), count in axes
        if None in _kept(count, limit)
    ]
    return " and ".join(phrases) + " left out" if phrases else ""


def _cells_at(
    table: NDArray[Any], rows: list[int | None], columns: list[int | None], numbers: NumberFormat
) -> dict[tuple[int | None, int | None], Cell]:
    seen_rows = [row for row in rows if row is not None]
    seen_columns = [column for column in columns if column is not None]
    places = [(row, column) for row in seen_rows for column in seen_columns]
    if numbers.style == "numpy" and table.dtype.kind in "biuf" and table.size <= 1000:
        # NumPy chooses one form for the whole array, seen or not (but for more than 1000 entries
        # it too looks at the corners alone).
        everything = _numpy_cells(table, numbers.digits)
        chosen = [everything[row * table.shape[1] + column] for row, column in places]
    else:
        chosen = _written([table[place] for place in places], numbers)
    return dict(zip(places, chosen, strict=True))


def _written(values: Sequence[Any], numbers: NumberFormat) -> list[Cell]:
    """Numbers that stand together, hence share their decimals."""
    if numbers.style == "numpy" and all(_is_plain(value) for value in values):
        return _numpy_cells(np.asarray(values), numbers.digits)
    read = [_read(value) for value in values]
    found = [item for item in read if isinstance(item, Between)]
    whole = all(item.is_whole for item in found)
    places = 0 if whole else min(numbers.digits, max(item.decimals for item in found))
    return [
        item if isinstance(item, Cell) else _cell(item, places, whole, numbers) for item in read
    ]


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def _numpy_cells(array: NDArray[Any], digits: int) -> list[Cell]:
    """Exactly what NumPy prints for the array at this precision."""
    with np.printoptions(formatter=None, nanstr="nan", infstr="inf", suppress=False, sign="-"):
        text = np.array2string(
            array, precision=digits, threshold=sys.maxsize, max_line_width=sys.maxsize
        )
    return [_numpy_cell(word) for word in text.replace("[", " ").replace("]", " ").split()]


def _numpy_cell(word: str) -> Cell:
    special: dict[str, Kind] = {
        "nan": "nan", "inf": "infinity", "-inf": "minus-infinity",
        "True": "truth", "False": "truth",
    }  # fmt: skip
    kind = special.get(word, "number")
    return Cell(kind, word.lstrip("-") if kind == "minus-infinity" else word, verbatim=True)


def _read(value: Any) -> Cell | Between:
    """What kind of number it is: a special cell, an exact expression, or bounds for its digits."""
    if isinstance(value, (bool, np.bool_)):
        return Cell("truth", str(bool(value)))
    if isinstance(value, (int, np.integer)):
        return Between.counted(int(value))
    if isinstance(value, (float, np.floating)):
        return _special(float(value)) or Between.of_float(value)
    if hasattr(value, "mid") and hasattr(value, "rad"):
        return _read_ball(value)
    return _read_exact(value)


def _special(value: float) -> Cell | None:
    if value != value:
        return NAN
    return {float("inf"): INFINITY, float("-inf"): MINUS_INFINITY}.get(value)


def _read_ball(ball: Any) -> Cell | Between:
    if ball.is_finite():
        return Between.of_ball(ball)
    if ball.is_nan() or ball.rad() != 0:
        return NAN if ball.mid().is_nan() else Cell("unproven", "?")
    return INFINITY if ball > 0 else MINUS_INFINITY


def _read_exact(value: Any) -> Cell | Between:
    if getattr(value, "is_Float", False):
        return _special(float(value)) or Between.of_float(float(value))
    specials = {"nan": NAN, "zoo": NAN, "oo": INFINITY, "-oo": MINUS_INFINITY}
    if is_sympy(value) and str(value) in specials:
        return specials[str(value)]
    if getattr(value, "is_Integer", False) or getattr(value, "denominator", None) == 1:
        return Between.counted(int(value))
    return Cell("exact", expression=exact_math(value))


def _cell(item: Between, places: int, whole: bool, numbers: NumberFormat) -> Cell:
    if item.is_counted:
        return Cell("number", str(round(item.low)))
    if not item.is_exact and item.low <= 0 <= item.high:
        return _bound(item)
    if whole or numbers.style != "significant":
        candidates = _digits.in_decimals(item, places, numbers.digits)
    else:
        candidates = _digits.in_significant(numbers.digits)
    return _proven(item, candidates)


def _bound(item: Between) -> Cell:
    power = _digits.power_above(max(abs(item.low), abs(item.high)))
    return Cell("bound", "1", power or None)


def _proven(item: Between, candidates: Iterable[_digits.Writing]) -> Cell:
    """The first writing on which both ends of the bounds agree: each digit of it is proven."""
    for place, write in enumerate(candidates):
        text: Digits = write(item.low)
        if item.is_exact or text == write(item.high):
            if item.low and _digits.is_nothing(text.mantissa):
                return _bound(item)
            return Cell("number", text.mantissa, text.exponent, proven=place == 0)
    return Cell("unproven", "?")
