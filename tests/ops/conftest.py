"""Fixtures of the operator's tests: each path, and the float64 oracle that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.ops.paths import PATHS, TOLERANCES, Attend, inspected, on_path

import regard
from regard.ops import _numpy
from regard.ops._arguments import pose


@pytest.fixture(params=PATHS)
def attend(request: pytest.FixtureRequest) -> Iterator[Attend]:
    if request.param in ("torch", "device"):
        pytest.importorskip("torch")
    with on_path(request.param) as attention:
        yield attention


@pytest.fixture
def oracle() -> Attend:
    """The whole n×n computation in float64; the answers of Inspect likewise."""

    def attend(
        q: Any, k: Any, v: Any, inspect: regard.Inspect | None = None, **options: Any
    ) -> Any:
        posed = pose(q, k, v, **options)
        problem = posed.problem.in_float64()
        problem.check_counts()
        answer = inspected(posed, problem, inspect or regard.Inspect(), _numpy.REFERENCE)
        return answer if inspect is not None else answer[0]

    return attend


@pytest.fixture
def same() -> Callable[..., None]:
    """Two answers alike: NaN where the other has NaN, and close everywhere else.

    of_terms: of how many terms each number is a sum that may cancel.
    """

    def compare(
        have: Any, want: Any, dtype: Any = np.float64, case: str = "", of_terms: int = 1
    ) -> None:
        assert np.shape(have) == np.shape(want), case
        have, want = (np.asarray(each, np.float64) for each in (have, want))
        finite = np.abs(want[np.isfinite(want)])
        largest = max(1.0, finite.max(initial=0.0))
        close = TOLERANCES[np.dtype(dtype).name]
        slack = close * largest * of_terms**0.5
        np.testing.assert_allclose(have, want, rtol=close, atol=slack, err_msg=case)

    return compare


@pytest.fixture
def same_inspection(same: Callable[..., None]) -> Callable[..., None]:
    def compare(have: Any, want: Any, dtype: Any = np.float64, case: str = "") -> None:
        for field in fields(regard.Inspection):
            a, b = getattr(have, field.name), getattr(want, field.name)
            if b is None:
                assert a is None, f"{case} {field.name}"
            elif field.name != "top_keys":
                same(a, b, dtype, f"{case} {field.name}")
            elif np.dtype(dtype) == np.float64:  # rounding may swap equals in others
                np.testing.assert_array_equal(a, b, err_msg=case)

    return compare


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
