"""Which device, which numbers, compiled or not: chosen once, with the reason."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard._errors import OptionError
from regard.translation.recipes import Recipe

# Compiling costs about a minute; below so many updates it does not earn that back.
COMPILE_FROM_UPDATES = 1500
AMPERE = (8, 0)


@dataclass(frozen=True)
class Machine:
    """What a run computes on, and why."""

    device: Any
    dtype: Any
    compiled: bool
    reasons: tuple[str, ...]

    @property
    def scaled(self) -> bool:
        """float16 has so few exponents that small gradients would vanish unscaled."""
        return bool(self.dtype == torch.float16)

    def autocast(self) -> Any:
        lower = self.dtype != torch.float32
        return torch.autocast(self.device.type, self.dtype, enabled=lower)


def choose(recipe: Recipe, updates: int, local_rank: int = 0) -> Machine:
    """The machine for a run of so many updates."""
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    dtype, why = _precision(recipe.precision, device)
    compiled, why_compiled = _compiled(recipe.compile, device, updates)
    return Machine(device, dtype, compiled, (f"{device.type}", why, why_compiled))


def _precision(wanted: str, device: Any) -> tuple[Any, str]:
    if wanted != "auto":
        if wanted == "float16" and device.type == "cpu":
            raise OptionError("`precision`: float16 needs a GPU; on a CPU take bfloat16 or float32")
        return getattr(torch, wanted), f"{wanted}: as asked"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        if torch.cuda.get_device_capability(device) >= AMPERE:
            return torch.bfloat16, f"bfloat16: {name} computes with it"
        return torch.float16, f"float16 with loss scaling: {name} would only emulate bfloat16"
    found = [flag for flag in ("amx_bf16", "avx512_bf16") if flag in _cpu_flags()]
    if found:
        return torch.bfloat16, f"bfloat16: this CPU computes with it ({found[0]})"
    return torch.float32, "float32: this CPU would only emulate bfloat16"


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {*next((line for line in text.splitlines() if line.startswith("flags")), "").split()}


def _compiled(wanted: str, device: Any, updates: int) -> tuple[bool, str]:
    if wanted == "yes" and device.type == "cpu" and not _compilers():
        raise OptionError(
            "`compile`: on a CPU it takes a C++ compiler (g++ or clang++), none is here"
        )
    if wanted != "auto":
        return wanted == "yes", "compiled: as asked" if wanted == "yes" else "eager: as asked"
    if device.type == "cpu":
        return False, "eager: on a CPU, compiled blocks are no quicker (--compile yes to try)"
    if updates < COMPILE_FROM_UPDATES:
        few = f"{updates:,} updates are too few to earn back compiling"
        return False, f"eager: {few} ({COMPILE_FROM_UPDATES:,})"
    return True, f"compiled: {updates:,} updates earn it back ({COMPILE_FROM_UPDATES:,} would)"


def _compilers() -> list[str]:
    return [found for name in ("g++", "clang++") if (found := shutil.which(name))]
