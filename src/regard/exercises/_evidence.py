"""What decides and shows answers: facts of a computation, agreement with torch, distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard._errors import ExerciseError
from regard.graph.notation import Equation, Matrix, Number, Symbol
from regard.graph.operation import Cost
from regard.graph.operations import Scale
from regard.graph.polynomial import Polynomial
from regard.show.document import Prose
from regard.show.trace import Trace

COUNTS = tuple(Cost().items())  # multiplications, additions, …


def floats(values: Any) -> NDArray[np.float64]:
    """Values of any kind of numbers, to compare with."""
    return np.asarray(values, dtype=np.float64)


def distance(one: Any, other: Any) -> float:
    """The largest difference between two entries."""
    return float(np.max(np.abs(floats(one) - floats(other)), initial=0.0))


# ---- facts that decide a choice ------------------------------------------------------------


class Fact(NamedTuple):
    """Which choice is right, found in the numbers; `steps` must be there for it."""

    steps: tuple[str, ...]
    decide: Callable[[Trace], tuple[str, Prose]]


def _softmax_axis(trace: Trace) -> tuple[str, Prose]:
    weights = floats(trace["weights"].value)
    rows, columns = weights.sum(axis=-1), weights.sum(axis=-2)
    fitting = [way for way, sums in (("row-wise", rows), ("column-wise", columns)) if _ones(sums)]
    if not fitting:
        raise ExerciseError("neither the rows nor the columns of the weights sum to 1")
    return fitting[0], (
        "The rows of the weights sum to ", Matrix(rows), ", the columns to ", Matrix(columns), ".",
    )  # fmt: skip


def _ones(sums: NDArray[np.float64]) -> bool:
    """Whether every sum is 1; a group whose every weight is masked has none."""
    filled = sums[~np.isnan(sums) & (sums != 0)]
    return bool(filled.size) and np.allclose(filled, 1)


def _scale_size(trace: Trace) -> tuple[str, Prose]:
    operation = trace.run.graph.step("scaled").operation
    if not isinstance(operation, Scale):
        return "another number", ("The scores are multiplied by a number of the exercise's own.",)
    size = Polynomial.parse(operation.size).evaluate(trace.run.graph.sizes)
    symbol = Symbol(*operation.size.split("_"))
    number = Equation((symbol, Number(size)))
    return operation.size, ("The rows of ", Symbol("Q"), " and ", Symbol("K"), " have ", number,
                            " entries here.")  # fmt: skip


FACTS = {
    "softmax-axis": Fact(("weights",), _softmax_axis),
    "scale-size": Fact(("scaled",), _scale_size),
}


# ---- agreement with other implementations --------------------------------------------------


def _torch_attention(trace: Trace) -> Any:
    from torch import from_numpy
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (from_numpy(floats(trace[name].value)) for name in "QKV")
    return scaled_dot_product_attention(q, k, v).numpy()


# Each computes the context; an ImportError says that torch is not installed.
AGREEMENTS: dict[str, Callable[[Trace], Any]] = {
    "torch.nn.functional.scaled_dot_product_attention": _torch_attention,
}
