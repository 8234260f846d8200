"""A run's folder: its recipe, its tokenizer, its log, and the states that it can go on from.

recipe.toml  tokenizer.json  log.jsonl  state-00001000.safetensors (and its .sha256)  best/
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard._errors import FileError, MissingExtraError, OptionError
from regard._files import write_atomically
from regard.translation.recipes import Recipe, read_recipe
from regard.translation.tokenizer import Tokenizer

Tensors = dict[str, Any]
RECIPE, TOKENIZER, LOG, BEST = "recipe.toml", "tokenizer.json", "log.jsonl", "best"


@dataclass
class Progress:
    """Where a run stands: updates done, the place in the feed, the scores so far."""

    step: int = 0
    epoch: int = 0
    skip: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float = -1.0
    best_step: int = 0
    stale: int = 0
    last: str = ""


class Run:
    """The folder of one run."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._log: Any = None

    @property
    def started(self) -> bool:
        return (self.folder / RECIPE).is_file()

    def begin(self, recipe: Recipe, tokenizer: Tokenizer) -> None:
        if self.folder.exists() and any(map(_another_s, self.folder.iterdir())):
            raise OptionError(
                f"train: {str(self.folder)!r} is not empty; go on with it (--resume "
                f"{self.folder}) or name another folder (--output)"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"train: {str(self.folder)!r} cannot be made: {error.strerror}"
            ) from error
        tokenizer.save(self.folder / TOKENIZER)
        write_atomically(self.folder / RECIPE, recipe.written())

    def recipe(self) -> Recipe:
        if not self.started:
            raise FileError(f"train: {str(self.folder)!r} is not the folder of a run")
        return read_recipe(str(self.folder / RECIPE))

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.read(self.folder / TOKENIZER)

    # --- The log ----------------------------------------------------------------------------

    def log(self, **facts: Any) -> None:
        """One line, at once on its way to the disk."""
        try:
            if self._log is None:
                self._log = (self.folder / LOG).open("a", encoding="utf-8", buffering=1)
            self._log.write(json.dumps(facts, ensure_ascii=False) + "\n")
        except OSError as error:
            raise FileError(
                f"train: {str(self.folder / LOG)!r} cannot be written: {error.strerror}; once it "
                f"can: regard train --resume {self.folder}"
            ) from error

    def close(self) -> None:
        if self._log is not None:
            with suppress(OSError):  # a line that found no room was told already
                self._log.close()
            self._log = None

    def logged(self) -> Iterator[dict[str, Any]]:
        """What was logged; a last line that was cut off is passed over."""
        path = self.folder / LOG
        if not path.is_file():
            return
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def rewind_log(self, step: int) -> None:
        """Forget what was logged after an update that the run goes on from."""
        kept = [facts for facts in self.logged() if facts.get("step", 0) <= step]
        lines = (json.dumps(facts, ensure_ascii=False) + "\n" for facts in kept)
        write_atomically(self.folder / LOG, "".join(lines))

    # --- States -----------------------------------------------------------------------------

    def save_state(self, tensors: Tensors, progress: Progress, keep: int) -> None:
        """The new state whole on the disk before an old one goes."""
        written = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        meta = {"progress": json.dumps(asdict(progress))}
        content = _safetensors().save(written, metadata=meta)
        path = self.folder / f"state-{progress.step:08}.safetensors"
        try:
            write_atomically(path, content)
            write_atomically(path.with_suffix(".sha256"), hashlib.sha256(content).hexdigest())
        except FileError as error:
            raise FileError(f"{error}; once it can: regard train --resume {self.folder}") from error
        for old in self._states()[keep:]:
            old.unlink(missing_ok=True)
            old.with_suffix(".sha256").unlink(missing_ok=True)

    def _states(self) -> list[Path]:
        """The newest first."""
        return sorted(self.folder.glob("state-*.safetensors"), reverse=True)

    def last_state(self) -> tuple[Tensors, Progress, list[str]] | None:
        """The newest state that is whole, and what was wrong with newer ones."""
        troubles: list[str] = []
        for path in self._states():
            content = path.read_bytes()
            sum_path = path.with_suffix(".sha256")
            told = sum_path.read_text() if sum_path.is_file() else ""
            if hashlib.sha256(content).hexdigest() != told:
                why = "is damaged" if told else "was not finished"
                troubles.append(f"{path.name} {why}; going on from the one before it")
                continue
            tensors = _safetensors().load(content)
            return tensors, Progress(**json.loads(_metadata(content)["progress"])), troubles
        if troubles:
            raise FileError(
                f"train: no state in {str(self.folder)!r} is whole: {'; '.join(troubles)}"
            )
        return None


def _another_s(path: Path) -> bool:
    """Whether it is not what a run that ended before its first update leaves behind."""
    return path.name not in (TOKENIZER, RECIPE) and not path.name.startswith(".")


def _metadata(content: bytes) -> dict[str, str]:
    """The header of a safetensors file: eight bytes of its length, then JSON."""
    length = int.from_bytes(content[:8], "little")
    found: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return found


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "translate", "safetensors") from error
    return safetensors
