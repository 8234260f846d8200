"""What a computation takes: exact counts as formulas and as numbers, and the memory it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard._errors import OptionError
from regard._options import one_of, positive_integer
from regard.graph.graph import Graph
from regard.graph.operation import Cost, entries
from regard.graph.polynomial import Polynomial

CONVENTIONS = {
    "schoolbook": "a product of rows of d numbers takes d multiplications and d − 1 additions; "
    "softmax takes its exponentials, sums and divisions",
    "stable": "as schoolbook, and finding and subtracting the largest score of each row, "
    "as float64 does it",
}


class StepCost(NamedTuple):
    """What one step takes, and the bytes of its result."""

    step: str
    counts: Cost
    bytes: Polynomial


@dataclass(frozen=True)
class CostTable:
    """The cost of each step of a graph under a named convention."""

    graph: Graph
    convention: str
    rows: tuple[StepCost, ...]

    @property
    def total(self) -> Cost:
        return sum((row.counts for row in self.rows), Cost())

    @property
    def operations(self) -> Polynomial:
        """Multiplications, additions and divisions together."""
        total = self.total
        return total.multiplications + total.additions + total.divisions

    def row(self, step: str) -> StepCost:
        self.graph.step(step)
        return next(row for row in self.rows if row.step == step)

    def number(self, formula: Polynomial, **sizes: int) -> int:
        """A formula at the sizes of this computation, some of them changed."""
        return formula.evaluate({**self.graph.sizes, **sizes})

    @property
    def unfused_bytes(self) -> Polynomial:
        """Every step's result kept in memory."""
        return sum((row.bytes for row in self.rows), Polynomial())

    @property
    def fused_bytes(self) -> Polynomial:
        """No query-by-key matrix is kept; each query keeps a running maximum and a sum."""
        kept = [row.bytes for row in self.rows if not self._is_map(row.step)]
        running = [row.bytes for row in self.rows if row.step == "sums"]
        return sum([*kept, *running], Polynomial())

    def _is_map(self, step: str) -> bool:
        return {"query", "key"} <= {axis.name for axis in self.graph.axes[step]}

    def growth(self, sizes: Sequence[int], symbols: Sequence[str] = ()) -> list[dict[str, int]]:
        """The totals with n (or n_q and n_k together) at each of these sizes."""
        vary = symbols or [name for name in ("n", "n_q", "n_k") if name in self.graph.sizes]
        for name in vary:
            if name not in self.graph.sizes:
                raise OptionError(
                    f"growth: {name!r} is no size of this {self.graph.kind}; "
                    f"it has {', '.join(self.graph.sizes)}"
                )
        quantities: Mapping[str, Polynomial] = {
            **self.total.items(),
            "unfused bytes": self.unfused_bytes,
            "fused bytes": self.fused_bytes,
        }
        table = []
        for size in sizes:
            at = dict.fromkeys(vary, size)
            table.append({"n": size} | {q: self.number(f, **at) for q, f in quantities.items()})
        return table


def count(graph: Graph, convention: str = "schoolbook", itemsize: int = 8) -> CostTable:
    """Count every step; `itemsize` is the bytes of one number (float64 has 8)."""
    one_of("convention", convention, CONVENTIONS)
    positive_integer("itemsize", itemsize)
    rows = []
    for step in graph.worked_steps:
        operands = (graph.axes[name] for name in step.operands)
        counts = step.operation.cost(convention, *operands)
        rows.append(StepCost(step.name, counts, entries(graph.axes[step.name]) * itemsize))
    return CostTable(graph, convention, tuple(rows))
