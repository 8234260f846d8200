"""The kinds of numbers that a graph runs in. This module holds the protocol and float64."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import erf, inf, isfinite, nan, pi
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from regard._errors import NumberError, SizeLimitError
from regard._options import one_of

if TYPE_CHECKING:
    from regard.graph.graph import Graph
    from regard.graph.operation import Array
    from regard.graph.run import Run

BYTES = 8  # of one float64; other numbers take more
MOST_BYTES = 4 * 10**9  # of all steps together: what an ordinary computer has to spare


def _gigabytes(size: int) -> str:
    return f"{size / 10**9:,.1f} GB"


class Numbers(ABC):
    """What every operation needs of numbers, elementwise on arrays.

    Addition, multiplication, division, `@` and `sum` are the arrays' own.
    """

    word: ClassVar[str]
    shifts: ClassVar[bool] = False  # whether exp subtracts the maximum first, against overflow

    @abstractmethod
    def array(self, given: Array) -> Array:
        """Given numbers (float64, or Fractions in an object array) in these numbers."""

    @abstractmethod
    def constant(self, value: Fraction | int) -> Any: ...

    @abstractmethod
    def exp(self, array: Array) -> Array: ...

    @abstractmethod
    def sqrt(self, array: Array) -> Array: ...

    @abstractmethod
    def tanh(self, array: Array) -> Array: ...

    @abstractmethod
    def erf(self, array: Array) -> Array: ...

    @abstractmethod
    def sin(self, array: Array) -> Array: ...

    @abstractmethod
    def cos(self, array: Array) -> Array: ...

    @abstractmethod
    def power(self, base: Fraction, exponent: Fraction) -> Any: ...

    @property
    @abstractmethod
    def pi(self) -> Any: ...

    @property
    @abstractmethod
    def minus_infinity(self) -> Any: ...

    @abstractmethod
    def is_masked(self, array: Array) -> Array:
        """Where the array is −∞."""

    @abstractmethod
    def is_zero(self, array: Array) -> Array: ...

    def tidy(self, array: Array, step: str) -> Array:
        """The same values in the form to keep and show; `step` is named when that fails."""
        return array

    def admit(self, graph: Graph) -> None:
        """Raise a SizeLimitError when the graph is too large for these numbers."""
        sizes = {name: BYTES * n for name, n in graph.counts.items()}
        if (total := sum(sizes.values())) > MOST_BYTES:
            largest = max(sizes, key=lambda name: sizes[name])
            raise SizeLimitError(
                f"{graph.kind}: every step is kept, which takes {_gigabytes(total)}, and "
                f"{_gigabytes(MOST_BYTES)} is the most; the largest is {largest} with "
                f"{_gigabytes(sizes[largest])}: work with fewer tokens, or count without numbers"
            )

    def settled(
        self, attempt: Callable[[Mapping[str, Array]], Run], known: Mapping[str, Array]
    ) -> Run:
        """The run to keep, of as many attempts as these numbers need, from the `known` values."""
        return attempt(known)

    def permissions(self, allowed: Array) -> Array:
        """0 where `allowed`, −∞ elsewhere: what a mask adds to the scores."""
        return np.asarray(np.where(allowed, self.constant(0), self.minus_infinity))


class Float64(Numbers):
    word = "float64"
    shifts = True

    def array(self, given: Array) -> Array:
        try:
            return np.asarray(given, dtype=np.float64)
        except OverflowError as error:
            raise NumberError("a number is too large for float64") from error

    def constant(self, value: Fraction | int) -> float:
        return float(value)

    exp = staticmethod(np.exp)  # type: ignore[assignment]
    sqrt = staticmethod(np.sqrt)  # type: ignore[assignment]
    tanh = staticmethod(np.tanh)  # type: ignore[assignment]
    sin = staticmethod(np.sin)  # type: ignore[assignment]
    cos = staticmethod(np.cos)  # type: ignore[assignment]
    is_masked = staticmethod(np.isneginf)  # type: ignore[assignment]

    def erf(self, array: Array) -> Array:
        return np.asarray(np.vectorize(erf, otypes=[np.float64])(array))

    def power(self, base: Fraction, exponent: Fraction) -> float:
        return float(float(base) ** float(exponent))

    @property
    def pi(self) -> float:
        return pi

    @property
    def minus_infinity(self) -> float:
        return -inf

    def is_zero(self, array: Array) -> Array:
        return np.asarray(array == 0)


LARGEST_EXACT_FLOAT = 2**53  # beyond it, float64 leaves out whole numbers


def read_given(name: str, value: Any) -> Array:
    """Numbers as the user passed them: floats, or exact Fractions where text was passed.

    Floats of fewer bits than 64 keep their type, which tells the decimals that they print as.

    True and False stay so: a run knows whether a mask is meant. Complex, ragged and textual input
    is refused.
    """
    if hasattr(value, "detach"):  # a torch tensor; NumPy knows no bfloat16
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in value]
        shown = ", ".join(map(str, lengths)) if len(set(lengths)) > 1 else repr(value)
        raise NumberError(f"{name}: the rows have different lengths: {shown}") from error
    if array.dtype == bool:
        return array
    if array.dtype.kind == "f":
        return array.copy() if _is_short(array) else array.astype(np.float64)
    if array.dtype.kind in "iu" and abs(array).max(initial=0) <= LARGEST_EXACT_FLOAT:
        return array.astype(np.float64)
    if array.dtype.kind in "iuOUS":
        exact = np.frompyfunc(lambda entry: _exact(name, entry), 1, 1)(array.astype(object))
        return np.asarray(exact, dtype=object)
    raise NumberError(f"{name}: numbers are wanted, but an array of {array.dtype} was passed")


def _is_short(array: Array) -> bool:
    return array.dtype.kind == "f" and array.dtype.itemsize < np.dtype(np.float64).itemsize


def as_printed(given: Array) -> Array:
    """Floats of fewer bits as the Fractions that they print as: float32's 0.8 is four fifths."""
    if not _is_short(given):
        return given
    printed = np.empty(given.shape, dtype=object)
    for place in np.ndindex(given.shape):
        entry = given[place]
        printed[place] = Fraction(str(entry)) if np.isfinite(entry) else float(entry)
    return printed


def _exact(name: str, entry: Any) -> Fraction | float:
    """A Fraction, or a float for what has none: NaN and the infinities."""
    if isinstance(entry, float) and not isfinite(entry):
        return entry
    if isinstance(entry, str) and entry.strip().lower() in NOT_FINITE:
        return NOT_FINITE[entry.strip().lower()]
    try:
        if isinstance(entry, str):
            return written_fraction(entry)
        return as_fraction(entry) if isinstance(entry, float) else Fraction(entry)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        hint = number_hint(str(entry))
        told = f". {hint}" if hint else ""
        raise NumberError(f"{name}: {entry!r} is no number{told}") from error


def number_hint(text: str) -> str:
    """How to write a number with a decimal comma, or a percentage; "" for what is neither."""
    if re.search(r"\d\s*\\?%", text):
        return "Write shares of 1, such as 0.25 for 25%"
    if re.search(r"\d,\d|\d\s*;\s*-?\d", text):
        return "Write decimals with a point, such as 0.25, and commas between numbers alone"
    return ""


NOT_FINITE = {"nan": nan} | {
    sign + word: value
    for word in ("inf", "infinity", "∞")
    for sign, value in {"": inf, "+": inf, "-": -inf, "−": -inf}.items()
}
# Written out, 1e9999 has ten thousand digits: no number of an exercise, only a way to hang.
FAR_EXPONENT = re.compile(r"e[+-]?[0-9][0-9_]{3}", re.IGNORECASE)


def written_fraction(text: str) -> Fraction:
    """The number that a text says (0.8, 4/5, −1e-3); a ValueError when it says none."""
    text = text.replace("−", "-").strip()
    if FAR_EXPONENT.search(text):
        raise ValueError(f"the exponent of {text!r} has more than three digits")
    return Fraction(text)


def as_fraction(entry: Any) -> Fraction:
    """A finite given number exactly, as it is written: the float 0.8 is four fifths."""
    if isinstance(entry, (Fraction, int)):
        return Fraction(entry)
    return Fraction(repr(float(entry)))


NUMBERS = ("float64", "exact", "certified")


def numbers_named(word: str, digits: int = 15) -> Numbers:
    """The numbers of this name; `digits` is how many certified numbers prove."""
    one_of("numbers", word, NUMBERS)
    if word == "exact":
        from regard.graph.exact import Exact

        return Exact()
    if word == "certified":
        from regard.graph.certified import Certified

        return Certified(digits)
    return Float64()
