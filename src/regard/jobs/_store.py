"""Finished records on disk: one file each, written whole, so that a killed run loses none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard._errors import FileError
from regard._files import write_atomically
from regard.jobs._piece import Task


class Store:
    """A folder of records by the keys of their tasks."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"jobs: the folder {str(folder)!r} cannot be made: {error.strerror}"
            ) from error

    def _path(self, task: Task) -> Path:
        return self._folder / f"{task.key}.json"

    def read(self, task: Task) -> dict[str, Any] | None:
        """What was kept of this task: {"record": …}; None when nothing was."""
        path = self._path(task)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return {"record": kept["record"]}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise FileError(
                f"jobs: {str(path)!r} is not a record that regard wrote ({error}); delete it, "
                "and the piece is worked on again"
            ) from error

    def write(self, task: Task, record: Any) -> None:
        facts = {"function": task.function, "piece": json.loads(task.text), "seed": task.seed}
        write_atomically(self._path(task), json.dumps({**facts, "record": record}, indent=1))
