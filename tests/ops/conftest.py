"""Every path behind one face, and the float64 oracle that they are held against.

A test that takes `attend` runs once for each path: the NumPy path in whole and in blocks of a few
rows, the compiled kernel where there is one, torch's operator and torch's own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import regard
from regard.ops import _kernel, _numpy, _paths
from regard.ops._arguments import pose

Attend = Callable[..., Any]
PATHS = {
    "blocks": lambda: _numpy.BLOCKS,
    "few-rows": lambda: _numpy.NumpyPath(at_once=5000),
    "kernel": _kernel.KernelPath,
}


@pytest.fixture(params=PATHS)
def attend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Attend:
    """`regard.attention`, computed on one of the paths; NumPy in, NumPy out."""
    if request.param == "kernel" and not _kernel.AVAILABLE:
        pytest.skip("no compiled kernel here")
    monkeypatch.setattr(_paths, "CHOSEN", PATHS[request.param]())
    return regard.attention


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
