"""What a computation takes, shown: a table of formulas and numbers, its growth, its memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard._errors import OptionError
from regard.graph import cost
from regard.graph.construction import OPTION_NAMES
from regard.graph.cost import CONVENTIONS, CostTable
from regard.graph.polynomial import Polynomial
from regard.graph.sizes import count_graph, sizes_of
from regard.show.document import Block, Document, Heading, Paragraph, Prose, Table
from regard.show.shown import Shown

SCHEMA = "regard-cost"
VERSION = 1


@dataclass(frozen=True)
class Costs(CostTable, Shown):
    """The counts of a computation; `sized` tells whether its sizes are known as numbers."""

    sized: bool = True
    growing: tuple[int, ...] = ()

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        blocks: list[Block] = [Paragraph((f"Counted: {CONVENTIONS[self.convention]}.",))]
        if self.sized:
            sizes = ", ".join(f"{name} = {size}" for name, size in self.graph.sizes.items())
            blocks.append(Paragraph((f"Sizes: {sizes}.",)))
        blocks += [self._table(only), *self._memory()]
        if self.growing:
            blocks += [Heading("Growth with the number of tokens", 2), self._growth()]
        return Document(f"Cost of {self.graph.kind}", tuple(blocks))

    def _table(self, only: tuple[str, ...]) -> Table:
        header = ("step", "operation", "formula", *(("number",) if self.sized else ()))
        rows: list[tuple[Prose, ...]] = []
        counted = [(row.step, row.counts) for row in self.rows if not only or row.step in only]
        for name, counts in [*counted, *([] if only else [("total", self.total)])]:
            for operation, formula in counts.items().items():
                if formula.terms:
                    rows.append(self._row(name, operation, formula))
        return Table(tuple((word,) for word in header), tuple(rows))

    def _row(self, *cells: Any) -> tuple[Prose, ...]:
        *words, formula = cells
        prose: list[Prose] = [(word,) for word in words]
        prose.append((formula.notation(),))
        if self.sized:
            prose.append((f"{self.number(formula):,}",))
        return tuple(prose)

    def _memory(self) -> list[Block]:
        """Results in bytes, with every step kept and with the maps never stored."""
        header = ("memory for results", "bytes", *(("number",) if self.sized else ()))
        rows = (
            self._row("every step kept (unfused)", self.unfused_bytes),
            self._row("maps never stored (fused)", self.fused_bytes),
        )
        return [Heading("Memory", 2), Table(tuple((word,) for word in header), rows)]

    def _growth(self) -> Table:
        table = self.growth(self.growing)
        columns = [name for name in table[0] if any(row[name] for row in table)]
        rows = tuple(tuple((f"{row[name]:,}",) for name in columns) for row in table)
        return Table(tuple((name,) for name in columns), rows)

    def growth(self, sizes: Sequence[int], symbols: Sequence[str] = ()) -> list[dict[str, int]]:
        """The totals with n (or n_q and n_k together) at each of these sizes."""
        if sizes and not self.sized:
            names = ", ".join(f"{name}=…" for name in self.graph.sizes)
            raise OptionError(f"count: growth needs the other sizes as numbers: give {names}")
        return super().growth(sizes, symbols)

    def figure(self, sizes: Sequence[int] = ()) -> Any:
        """A plot of operations and memory against the number of tokens (matplotlib)."""
        from regard.show.figures import growth_figure

        return growth_figure(self, sizes or self.growing or (64, 128, 256, 512, 1024, 2048, 4096))

    def to_json(self) -> str:
        """The table as data: formulas as text, numbers where sizes are known."""
        data = {
            "schema": SCHEMA,
            "version": VERSION,
            "kind": self.graph.kind,
            "convention": self.convention,
            "sizes": dict(self.graph.sizes) if self.sized else None,
            "steps": [
                {"step": row.step, **self._data(row.counts.items()), "bytes": self._both(row.bytes)}
                for row in self.rows
            ],
            "total": self._data(self.total.items()),
            "unfused_bytes": self._both(self.unfused_bytes),
            "fused_bytes": self._both(self.fused_bytes),
            "growth": self.growth(self.growing),
        }
        return json.dumps(data, ensure_ascii=False, indent=1)

    def _data(self, counts: Any) -> dict[str, Any]:
        return {name: self._both(formula) for name, formula in counts.items() if formula.terms}

    def _both(self, formula: Polynomial) -> dict[str, Any]:
        number = {"number": self.number(formula)} if self.sized else {}
        return {"formula": str(formula), **number}


def count(
    kind: str, *, convention: str = "schoolbook", itemsize: int = 8, **sizes_and_options: Any
) -> Costs:
    """Count a kind of computation without its numbers.

    >>> str(count("attention").row("scores").counts.additions)
    'n_q·n_k·(d_k - 1)'
    >>> costs = count("attention", n_q=2, n_k=3, d_k=2, d_v=3)
    >>> costs.number(costs.total.multiplications)
    30

    Without sizes there are formulas alone; with some, all are needed (n, d_model, h, …).
    """
    options = {k: v for k, v in sizes_and_options.items() if k in OPTION_NAMES}
    sizes = {k: v for k, v in sizes_and_options.items() if k not in OPTION_NAMES}
    graph = count_graph(kind, sizes, **options)
    missing = [name for name in sizes_of(kind) if name not in sizes]
    if sizes and missing:
        raise OptionError(f"count: {kind} also needs the sizes {', '.join(missing)}")
    table = cost.count(graph, convention, itemsize)
    return Costs(table.graph, table.convention, table.rows, sized=bool(sizes))
