"""Which path computes a problem."""

from __future__ import annotations

from typing import Any, Protocol

from regard.ops import _kernel
from regard.ops._dtypes import Array
from regard.ops._inspection import Inspect
from regard.ops._numpy import BLOCKS, Gradients
from regard.ops._problem import Problem


class Path(Protocol):
    """One way of computing attention. Arrays keep the four axes of the problem."""

    def plain(self, *call: Any) -> Array | None:
        """attention(q, k, v) with mask, causal, window, scale and layout, if no check is needed."""

    def forward(self, problem: Problem) -> tuple[Array, Array]: ...

    def backward(
        self,
        problem: Problem,
        output: Array,
        log_sum_exp: Array,
        d_output: Array,
        with_bias: bool = False,
    ) -> Gradients: ...

    def inspect(
        self, problem: Problem, log_sum_exp: Array, wanted: Inspect
    ) -> dict[str, Array | None]: ...


CHOSEN: Path = _kernel.KernelPath() if _kernel.AVAILABLE else BLOCKS
