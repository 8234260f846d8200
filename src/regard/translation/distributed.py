"""Several processes for one run: started by torchrun, one batch shared among them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from regard._errors import JobError


@dataclass(frozen=True)
class Place:
    """Which process this is, of how many."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @property
    def first(self) -> bool:
        return self.rank == 0


def join() -> Place:
    """The processes that torchrun started find each other; alone, nothing happens."""
    if "RANK" not in os.environ:
        return Place()
    place = Place(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
    if place.world > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return place


def leave(place: Place) -> None:
    if place.world > 1 and dist.is_initialized():
        dist.destroy_process_group()


def total(value: float, place: Place, device: Any) -> float:
    """The sum over all processes."""
    if place.world == 1:
        return value
    held = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(held)
    return float(held)


def wait(place: Place) -> None:
    if place.world > 1:
        dist.barrier()


@contextmanager
def together(place: Place, folder: object) -> Iterator[None]:
    """Leave the others in the end; say it in a sentence when one of them has gone."""
    try:
        yield
    except RuntimeError as error:
        if place.world == 1 or not _of_the_connection(error):
            raise
        raise JobError(
            f"train: another process of this run has ended, so that process {place.rank} of "
            f"{place.world} cannot go on; once the cause is mended: regard train --resume {folder}"
        ) from error
    finally:
        leave(place)


def _of_the_connection(error: RuntimeError) -> bool:
    told = str(error).lower()
    return isinstance(error, dist.DistError) or any(
        word in told for word in ("gloo", "nccl", "connection")
    )
