"""Doing all pieces: what is on disk is not done again, the rest goes where it was asked to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard._errors import JobError, OptionError
from regard._options import is_integer, positive_integer
from regard.jobs._piece import Answer, Failure, Function, Task, task
from regard.jobs._progress import progress
from regard.jobs._store import Store


@dataclass(frozen=True)
class Outcome:
    """What came of a piece: its record, or why there is none."""

    piece: dict[str, Any]
    seed: int
    record: Any = None
    failure: Failure | None = None


def run_jobs(
    function: Function,
    pieces: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    workers: int | str = 1,
    cluster: str | None = None,
    folder: str | Path | None = None,
    keep_going: bool = False,
    title: str = "",
    called: Callable[[dict[str, Any]], str] | None = None,
) -> list[Outcome]:
    """Call `function(piece, seed)` for every piece; the outcomes in the order of the pieces.

    function: stands on its own in a module; takes and returns what JSON can hold.
    seed: each piece gets a seed of its own, made from this one and from the piece, so that the
        outcomes are the same wherever and in whatever order the pieces are worked on.
    workers: how many processes of this machine, or "all" for one on each core; 1 is this process.
    cluster: the address of a Dask scheduler, tcp://…, which takes the place of `workers`.
    folder: keeps each finished record; what is there already is not worked on again.
    keep_going: a piece that fails becomes an Outcome with a Failure; otherwise the first stops
        everything with a JobError. Failures are not kept in the folder.
    title: of the progress bar; without one there is none.
    called: what messages call a piece, instead of its JSON.
    """
    if not is_integer(seed) or seed < 0:
        raise OptionError(f"`seed` must be a whole number of at least 0, but {seed!r} was passed")
    cores = _cores(workers, cluster)
    tasks = [task(function, piece, int(seed)) for piece in pieces]
    store = Store(folder) if folder is not None else None
    answers: dict[str, Answer] = {}
    for each in tasks:
        if store and (kept := store.read(each)):
            answers[each.key] = kept
    todo = {each.key: each for each in tasks if each.key not in answers}
    with progress(title, len(tasks)) as advance, closing(_answers(todo, cores, cluster)) as coming:
        advance(len(tasks) - len(todo))
        for key, answer in coming:
            answers[key] = answer
            if store and "record" in answer:
                store.write(todo[key], answer["record"])
            if "failure" in answer and not keep_going:
                failure = Failure(**answer["failure"])
                text = todo[key].text
                piece = called(json.loads(text)) if called else f"the piece {text}"
                raise JobError(f"{title or 'jobs'}: {piece} failed: {failure}")
            advance(1)
    return [_outcome(each, answers[each.key]) for each in tasks]


def _cores(workers: int | str, cluster: str | None) -> int:
    if cluster is not None and workers != 1:
        raise OptionError(
            f"jobs: `workers` ({workers!r}) are processes of this machine and `cluster` "
            f"({cluster!r}) is another place to work; pass one of them"
        )
    if workers == "all":
        return len(os.sched_getaffinity(0))
    if isinstance(workers, str):
        raise OptionError(f"`workers` must be a whole number or 'all', but {workers!r} was passed")
    return positive_integer("workers", workers)


def _answers(
    todo: Mapping[str, Task], cores: int, cluster: str | None
) -> Generator[tuple[str, Answer], None, None]:
    if not todo:
        return
    if cluster is not None:
        from regard.jobs._cluster import on_cluster

        yield from on_cluster(todo, cluster)
        return
    from regard.jobs._cores import here, on_cores

    yield from here(todo) if cores == 1 else on_cores(todo, cores)


def _outcome(task: Task, answer: Answer) -> Outcome:
    failure = Failure(**answer["failure"]) if "failure" in answer else None
    return Outcome(json.loads(task.text), task.seed, answer.get("record"), failure)
