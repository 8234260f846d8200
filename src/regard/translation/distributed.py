"""Several processes for one run: started by torchrun, one batch shared among them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from regard._errors import JobError, OptionError

Tensor = Any


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


def check(place: Place, sharded: bool) -> None:
    """An error where there is nobody to share with."""
    if sharded and place.world == 1:
        raise OptionError(
            "`sharded`: a single process would hold everything; start several "
            "(torchrun --nproc-per-node 2 -m regard train …), or pass --sharded false"
        )


def copied(objective: Any) -> Any:
    """Each process holds all of it, and gradients are averaged."""
    return nn.parallel.DistributedDataParallel(objective)


def sharded(objective: Any, parts: Iterable[Any], place: Place, device: Any, dtype: Any) -> Any:
    """Each process holds its rows of every tensor; a part is whole only while it computes.

    Parts are sent in the numbers that they compute with; gradients are added up in float32.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (place.world,))
    lower = None if dtype == torch.float32 else dtype
    # What enters stays as it is: residuals are float32, and autocast lowers the products.
    policy = MixedPrecisionPolicy(lower, torch.float32, cast_forward_inputs=False)
    for part in parts:
        fully_shard(part, mesh=mesh, mp_policy=policy)
    return fully_shard(objective, mesh=mesh)


def gathered(tensors: Mapping[str, Tensor], place: Place) -> dict[str, Tensor]:
    """Whole and on the CPU in the first process, nothing in the others; all must take part."""
    found = {}
    for name in sorted(tensors):  # in one order everywhere, whatever a file's was
        each = whole(tensors[name])
        if place.first:
            found[name] = each.detach().cpu()
    return found


def whole(tensor: Tensor) -> Tensor:
    """Put together from the shards of all processes, where it is one."""
    return tensor.full_tensor() if _is_shard(tensor) else tensor


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor that all processes have whole, held as another is."""
    if not _is_shard(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    local = tensor.to(like.device)
    return distribute_tensor(local, like.device_mesh, like.placements, src_data_rank=None)


def _is_shard(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


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
