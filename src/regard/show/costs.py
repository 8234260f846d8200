"""What a computation takes, shown: a table of formulas and numbers, its growth, its memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.graph.cost import CONVENTIONS, CostTable
from regard.graph.polynomial import Polynomial
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
