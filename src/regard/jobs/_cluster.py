"""Pieces of work on a Dask cluster, which gives the work of a lost worker to another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from regard._errors import JobError, MissingExtraError
from regard.jobs._piece import Answer, Task, failed, perform

PATIENCE = "10s"  # for a cluster to answer
WORKERS_PATIENCE = 60  # seconds for its first worker to come


def on_cluster(tasks: Mapping[str, Task], address: str) -> Iterator[tuple[str, Answer]]:
    """Each answer as soon as it is there."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("work on a cluster", "dask", "distributed") from error
    with _client(distributed, address) as client, client.as_current():
        _wait_for_workers(client, address)
        running = {
            key: client.submit(perform, *task.work, key=f"regard-{key}", pure=True)
            for key, task in tasks.items()
        }
        keys = {future.key: key for key, future in running.items()}
        for future in distributed.as_completed(running.values()):
            yield keys[future.key], _answer(distributed, future)


def _client(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise JobError(
            f"jobs: no Dask cluster answers at {address!r} ({error}); start one with "
            "`dask scheduler` and `dask worker tcp://HOST:8786`, and pass the scheduler's address"
        ) from error


def _wait_for_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_PATIENCE)
    except TimeoutError as error:
        raise JobError(
            f"jobs: no worker came to the cluster at {address!r} in {WORKERS_PATIENCE} seconds; "
            f"start some with `dask worker {address}`"
        ) from error


def _answer(distributed: Any, future: Any) -> Answer:
    if future.status == "finished":
        answer: Answer = future.result()
        return answer
    if future.status == "cancelled":
        raise JobError(
            "jobs: the cluster is gone; a folder would keep what is finished for another run"
        )
    error = future.exception()
    if isinstance(error, distributed.KilledWorker):
        return failed("WorkerDied", "every worker that was given this piece died")
    return failed(type(error).__name__, str(error))
