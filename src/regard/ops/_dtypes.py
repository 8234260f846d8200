"""The floats that the operator takes, and the floats that it computes in.

NumPy has no bfloat16 of its own: such numbers are held as their bits, in uint16, which is half of
a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# float64 is computed in float64, everything else in float32.
COMPUTING: dict[str, type[np.floating[Any]]] = {
    "float16": np.float32,
    "bfloat16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
}
ACCEPTED = "float16, bfloat16, float32 or float64"
QUIET_NAN = 0x7FC0


def held(array: Array) -> Array:
    """An array as the operator holds it: native bytes, strides that count whole numbers."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    array = array if whole and array.flags.aligned else array.copy()
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def widened(array: Array, dtype: str) -> Array:
    """Numbers in the computing type of `dtype`."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(COMPUTING[dtype], copy=False)


def narrowed(array: Array, dtype: str) -> Array:
    """Numbers of the computing type rounded to `dtype`, half to even."""
    if dtype != "bfloat16":
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(dtype, copy=False)
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), QUIET_NAN, rounded).astype(np.uint16)


def empty(shape: tuple[int, ...], dtype: str) -> Array:
    return np.empty(shape, np.uint16 if dtype == "bfloat16" else dtype)
