"""A tidy table: a row for each measurement, a column for each variable."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard._errors import MissingExtraError, OptionError, did_you_mean
from regard._files import write_atomically

ENDINGS = (".csv", ".parquet")
Cell = bool | int | float | str | None


class Table:
    """Columns of plain values, all of one length; `table["name"]` is one as an array."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [{name: _plain(value) for name, value in row.items()} for row in rows]
        self.names = tuple(dict.fromkeys(name for row in self._rows for name in row))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter([{name: row.get(name) for name in self.names} for row in self._rows])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.to_csv() == other.to_csv()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.names)}>"

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise OptionError(f"table: no column {name!r}: {did_you_mean(name, self.names)}")
        return np.array([row.get(name) for row in self._rows])

    def where(self, **wanted: Cell) -> Table:
        """The rows in which these columns have these values."""
        return Table(
            row for row in self if all(row[name] == value for name, value in wanted.items())
        )

    def to_csv(self) -> str:
        """Numbers are written so that reading them gives the same numbers."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        return text.getvalue()

    def save(self, path: str | Path) -> None:
        """Write CSV or Parquet, after the file's ending."""
        if check_ending(path) == ".csv":
            write_atomically(path, self.to_csv())
            return
        pyarrow, parquet = _parquet()
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(list(self)), buffer)
        write_atomically(path, buffer.getvalue())


def check_ending(path: str | Path) -> str:
    """The ending of a file that a table can be saved as."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"a table is saved as {', '.join(ENDINGS)}, but {str(path)!r} was passed")
    if ending == ".parquet":
        _parquet()
    return ending


def _parquet() -> tuple[Any, Any]:
    """pyarrow and its Parquet, or what to install."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("a Parquet file", "parquet", "pyarrow") from error
    return pyarrow, parquet


def _plain(value: Any) -> Cell:
    """A value of Python's own: NumPy's numbers print otherwise."""
    plain: Cell = value.item() if isinstance(value, np.generic) else value
    return plain
