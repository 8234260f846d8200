"""The two kinds of arrays that the operator takes, seen alike: NumPy's and torch's."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from math import prod
from typing import Any, Protocol

import numpy as np

from regard._axes import written
from regard._errors import NumberError, OptionError, ShapeError
from regard.ops._dtypes import ACCEPTED, COMPUTING, held, narrowed, widened


class Arrays(Protocol):
    """Reads arguments; whatever it returns is an array of its kind."""

    def numbers(self, name: str, given: Any) -> tuple[Any, str]:
        """Floats as they are held, and the name of their type."""

    def scores(self, name: str, given: Any, dtype: str) -> Any:
        """Floats that meet the scores, in the computing type of `dtype`."""

    def booleans(self, name: str, given: Any) -> Any: ...

    def integers(self, name: str, given: Any) -> Any: ...

    def full(self, size: int, number: int) -> Any:
        """A whole number so many times over."""

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        """A view in which axes of size 1 have other sizes."""

    def linear(self, vectors: Any, weight: Any, bias: Any, dtype: str) -> Any:
        """vectors @ weight + bias, summed in the computing type of `dtype`, rounded once."""


def stacked(name: str, given: Any) -> Any:
    """A list of arrays as one array with an axis more; anything else as it is."""
    if not isinstance(given, (list, tuple)) or not all(hasattr(each, "shape") for each in given):
        return given
    shapes = {tuple(each.shape): None for each in given}
    if len(shapes) != 1:
        listed = ", ".join(map(written, shapes)) or "none"
        raise ShapeError(f"attention: {name} must be matrices of one shape, but they are {listed}")
    if not any(map(is_tensor, given)):
        return np.stack(given)
    kind_of((f"{name}[{place}]", each) for place, each in enumerate(given))
    import torch

    return torch.stack(tuple(given))


def kind_of(given: Iterable[tuple[str, Any]]) -> Arrays:
    """How to read these named arguments, all of which must be of one kind."""
    named = [(name, value) for name, value in given if hasattr(value, "shape")]
    tensors = [(name, value) for name, value in named if is_tensor(value)]
    if not tensors:
        return NumpyArrays()
    others = [name for name, value in named if not is_tensor(value)]
    if others:
        raise OptionError(
            f"attention: {tensors[0][0]} is a torch tensor and {others[0]} is not: pass all of "
            "them as tensors (torch.from_numpy) or none (tensor.numpy())"
        )
    devices = {str(value.device): name for name, value in tensors}
    if len(devices) > 1:
        listed = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise OptionError(f"attention: tensors on several devices ({listed}): move them to one")
    return TorchArrays(tensors[0][1].device)


def is_tensor(value: object) -> bool:
    """Whether it is torch's; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


class NumpyArrays:
    """Arrays of NumPy; lists and whole numbers are taken as float64, as NumPy takes them."""

    def numbers(self, name: str, given: Any) -> tuple[Any, str]:
        array = _array(name, given)
        if array.dtype.kind in "iu":
            array = array.astype(np.float64)
        check_float(name, array.dtype.name)
        return held(array), array.dtype.name

    def scores(self, name: str, given: Any, dtype: str) -> Any:
        array, own = self.numbers(name, given)
        return widened(array, own).astype(COMPUTING[dtype], copy=False)

    def booleans(self, name: str, given: Any) -> Any:
        array = _array(name, given)
        check_boolean(name, array.dtype.name)
        return array

    def integers(self, name: str, given: Any) -> Any:
        array = _array(name, given)
        check_integer(name, array.dtype.name)
        return held(array.astype(np.int64, copy=False))

    def full(self, size: int, number: int) -> Any:
        return np.full(size, number, np.int64)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(array, shape)

    def linear(self, vectors: Any, weight: Any, bias: Any, dtype: str) -> Any:
        *leading, width = vectors.shape
        with np.errstate(invalid="ignore", over="ignore"):
            flat = widened(vectors, dtype).reshape(prod(leading), width)
            product = flat @ widened(weight, dtype)
            product = product if bias is None else product + widened(bias, dtype)
        return narrowed(product, dtype).reshape(*leading, weight.shape[1])


class TorchArrays:
    """Tensors of torch on one device; their types are never changed silently."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def numbers(self, name: str, given: Any) -> tuple[Any, str]:
        tensor = self._tensor(given)
        dtype = type_name(tensor)
        check_float(name, dtype)
        return tensor, dtype

    def scores(self, name: str, given: Any, dtype: str) -> Any:
        import torch

        tensor, _ = self.numbers(name, given)
        return tensor.to(torch.float64 if dtype == "float64" else torch.float32)

    def booleans(self, name: str, given: Any) -> Any:
        tensor = self._tensor(given)
        check_boolean(name, type_name(tensor))
        return tensor

    def integers(self, name: str, given: Any) -> Any:
        tensor = self._tensor(given)
        check_integer(name, type_name(tensor))
        return tensor.long()

    def full(self, size: int, number: int) -> Any:
        import torch

        return torch.full((size,), number, dtype=torch.int64, device=self.device)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.broadcast_to(shape)

    def linear(self, vectors: Any, weight: Any, bias: Any, dtype: str) -> Any:
        import torch

        return torch.nn.functional.linear(vectors, weight.T, bias)

    def _tensor(self, given: Any) -> Any:
        import torch

        tensor = torch.as_tensor(given, device=self.device)
        if tensor.layout != torch.strided or tensor.is_nested:
            kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise OptionError(
                f"attention: tensors must be dense, but a {kind} one was passed: convert it "
                "(tensor.to_dense(), torch.nested.to_padded_tensor)"
            )
        return tensor


def type_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def check_float(name: str, dtype: str) -> None:
    if dtype in COMPUTING:
        return
    if name == "bias" and dtype == "bool":
        raise OptionError(
            "attention: `bias` is added to the scores, but booleans were passed: pass them as "
            "`mask` (True may be attended)"
        )
    raise NumberError(f"attention: {name} is {dtype}, but it must be {ACCEPTED}: convert it first")


def check_boolean(name: str, dtype: str) -> None:
    if dtype == "bool":
        return
    if dtype in COMPUTING:
        remedy = "numbers that are added to the scores are `bias`"
    else:
        remedy = f"if other numbers than 0 may be attended, pass {name} != 0"
    raise OptionError(
        f"attention: `{name}` must be boolean (True may be attended), but {dtype} was passed: "
        f"{remedy}"
    )


def check_integer(name: str, dtype: str) -> None:
    if dtype not in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"):
        raise OptionError(f"attention: `{name}` must be whole numbers, but {dtype} was passed")


def _array(name: str, given: Any) -> Any:
    if isinstance(given, np.ma.MaskedArray):
        raise OptionError(
            f"attention: {name} is a masked array, whose mask would be lost: pass {name}.data, and "
            "what is hidden as `mask` (True may be attended)"
        )
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ShapeError(f"attention: {name} is not an array of numbers: {error}") from error
