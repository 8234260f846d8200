"""Every path of the operator behind one face.

Paths are named: "blocks" and "few rows" compute in NumPy, whole and a few rows at a time; "avx512",
"avx2" and "plain" are the compiled kernels that this CPU runs; "torch" is torch's operator on the
best of these, and "device" is what computes on other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.ma  # loads itself lazily, and would meet the np.empty of a test

import regard
from regard.ops import _kernel, _numpy, _paths
from regard.ops._arguments import Posed
from regard.ops._problem import Problem

Attend = Callable[..., Any]
KERNELS = tuple(_kernel.native.kernels()) if _kernel.AVAILABLE else ()
NUMPY_PATHS = ("blocks", "few rows", *KERNELS)
PATHS = (*NUMPY_PATHS, "torch", "device")
# What may be lost, in parts of the largest number; half precision also loses it in the rounding
# of what is returned.
TOLERANCES = {"float64": 1e-12, "float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
AT_ONCE = 5000  # scores, where some rows are computed at a time


@contextmanager
def on_path(name: str) -> Iterator[Attend]:
    """`regard.attention`, computed on one of the paths; NumPy in, NumPy out."""
    with ExitStack() as stack:
        if name in ("torch", "device"):
            yield through_torch(stack, on_device=name == "device")
            return
        if name in KERNELS:
            before = _kernel.native.kernel()
            _kernel.native.use_kernel(name)
            stack.callback(_kernel.native.use_kernel, before)
            stack.enter_context(patch.object(np, "empty", filled_with_rubbish))
        path = path_named(name)
        stack.enter_context(patch.object(_paths, "CHOSEN", path))
        yield regard.attention


def path_named(name: str) -> Any:
    if name in KERNELS:
        return _kernel.KernelPath()
    return _numpy.BLOCKS if name == "blocks" else _numpy.NumpyPath(at_once=AT_ONCE)


def filled_with_rubbish(shape: Any, dtype: Any = float) -> Any:
    """Memory as it may be: what a kernel forgets to write is seen."""
    return np.full(shape, 77, dtype)


def through_torch(stack: ExitStack, on_device: bool) -> Attend:
    """The same with tensors; `on_device` as if they were not in the memory of the CPU."""
    import torch

    from regard.ops import _device, _torch

    if on_device:
        stack.enter_context(patch.object(_device, "AT_ONCE", AT_ONCE))

        def solve(problem: Problem, asked: regard.Inspect | None) -> Any:
            return _device.solve(problem.with_past_joined(torch.cat), asked)

        stack.enter_context(patch.object(_torch, "solve", solve))

    def attend(*arrays: Any, **options: Any) -> Any:
        answer = regard.attention(*map(to_tensor, arrays), **to_tensor(options))
        return to_numpy(answer)

    return attend


def to_tensor(given: Any) -> Any:
    """Every array in it as a tensor, which knows neither foreign bytes nor negative strides."""
    import torch

    if isinstance(given, dict):
        return {name: to_tensor(each) for name, each in given.items()}
    if isinstance(given, tuple):
        return tuple(map(to_tensor, given))
    if not isinstance(given, np.ndarray):
        return given
    if given.dtype.name == "bfloat16":
        return torch.from_numpy(given.view(np.uint16).copy()).view(torch.bfloat16)
    native = given.astype(given.dtype.newbyteorder("="))
    strides_fit = all(stride >= 0 and stride % given.itemsize == 0 for stride in given.strides)
    return torch.from_numpy(native if strides_fit else np.ascontiguousarray(native))


def to_numpy(given: Any) -> Any:
    import torch

    if isinstance(given, tuple):
        return tuple(map(to_numpy, given))
    if isinstance(given, regard.Inspection):
        told = {field.name: getattr(given, field.name) for field in fields(given)}
        return regard.Inspection(**{name: to_numpy(each) for name, each in told.items()})
    if isinstance(given, torch.Tensor) and given.dtype == torch.bfloat16:
        import ml_dtypes

        return given.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return given.numpy() if isinstance(given, torch.Tensor) else given


def inspected(posed: Posed, problem: Problem, asked: regard.Inspect, path: Any) -> Any:
    """The output and what was asked, as `regard.attention` tells them."""
    output, log_sum_exp = path.forward(problem)
    answers = path.inspect(problem, log_sum_exp, asked)
    told = {name: posed.leading(each) for name, each in answers.items() if each is not None}
    own = posed.bfloat16 if problem.dtype == "bfloat16" else None
    posed = Posed(problem, posed.sizes, posed.tokens_first, own)
    return posed.output(output), regard.Inspection(posed.leading(log_sum_exp), **told)
