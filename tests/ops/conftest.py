"""Every path behind one face, and the float64 oracle that they are held against.

A test that takes `attend` runs once for each path: the NumPy path in whole and in blocks of a few
rows, the compiled kernel where there is one, torch's operator and torch's own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.ma  # loads itself lazily, and would meet the np.empty of a test
import pytest

import regard
from regard.ops import _kernel, _numpy, _paths
from regard.ops._arguments import pose

Attend = Callable[..., Any]
PATHS = ("blocks", "few rows", "kernel", "torch", "device")


@pytest.fixture(params=PATHS)
def attend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Attend:
    """`regard.attention`, computed on one of the paths; NumPy in, NumPy out."""
    if request.param == "blocks":
        monkeypatch.setattr(_paths, "CHOSEN", _numpy.BLOCKS)
    elif request.param == "few rows":
        monkeypatch.setattr(_paths, "CHOSEN", _numpy.NumpyPath(at_once=5000))
    elif request.param == "kernel":
        if not _kernel.AVAILABLE:
            pytest.skip("no compiled kernel here")
        monkeypatch.setattr(_paths, "CHOSEN", _kernel.KernelPath())
        monkeypatch.setattr(np, "empty", filled_with_rubbish)
    else:
        pytest.importorskip("torch")
        return through_torch(monkeypatch, on_device=request.param == "device")
    return regard.attention


def filled_with_rubbish(shape: Any, dtype: Any = float) -> Any:
    """Memory as it may be: what a kernel forgets to write is seen."""
    return np.full(shape, 77, dtype)


def through_torch(monkeypatch: pytest.MonkeyPatch, on_device: bool) -> Attend:
    """The same with tensors; `on_device` as if they were not in the memory of the CPU."""
    import torch

    from regard.ops import _device, _torch

    if on_device:
        monkeypatch.setattr(_device, "AT_ONCE", 5000)
        monkeypatch.setattr(
            _torch, "solve", lambda p, asked: _device.solve(p.with_past_joined(torch.cat), asked)
        )

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


@pytest.fixture
def oracle() -> Attend:
    """The whole n×n computation in float64; the answers of Inspect likewise."""

    def attend(
        q: Any, k: Any, v: Any, inspect: regard.Inspect | None = None, **options: Any
    ) -> Any:
        posed = pose(q, k, v, **options)
        problem = posed.problem.in_float64()
        problem.check_counts()
        output, log_sum_exp = _numpy.REFERENCE.forward(problem)
        output = posed.leading(output)
        output = output.swapaxes(-3, -2) if posed.tokens_first else output
        if inspect is None:
            return output
        answers = _numpy.REFERENCE.inspect(problem, log_sum_exp, inspect)
        told = {name: posed.leading(each) for name, each in answers.items() if each is not None}
        return output, regard.Inspection(posed.leading(log_sum_exp), **told)

    return attend


@pytest.fixture
def same() -> Callable[..., None]:
    """Two answers alike: NaN where the other has NaN, and close everywhere else."""

    def compare(have: Any, want: Any, dtype: Any = np.float64, case: str = "") -> None:
        tolerance = {"float64": 1e-12, "float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}
        close = tolerance[np.dtype(dtype).name]
        assert np.shape(have) == np.shape(want), case
        have = np.asarray(have, np.float64)
        np.testing.assert_allclose(have, want, rtol=close, atol=close, err_msg=case)

    return compare


@pytest.fixture
def same_inspection(same: Callable[..., None]) -> Callable[..., None]:
    def compare(have: Any, want: Any, dtype: Any = np.float64, case: str = "") -> None:
        for field in fields(regard.Inspection):
            a, b = getattr(have, field.name), getattr(want, field.name)
            if b is None:
                assert a is None, f"{case} {field.name}"
            elif field.name == "top_keys":
                np.testing.assert_array_equal(a, b, err_msg=case)
            else:
                same(a, b, dtype, f"{case} {field.name}")

    return compare


@pytest.fixture
def rng() -> Iterator[np.random.Generator]:
    return np.random.default_rng(20)
