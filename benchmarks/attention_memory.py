"""How much memory attention over 32,768 tokens takes beyond its inputs and its output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard import kernel

TOKENS, HEADS, DIM = 32_768, 2, 64
MEGABYTE = 2**20


def main() -> None:
    """Measure each way in a process of its own; the last line is JSON."""
    if len(sys.argv) > 1:
        print(beyond_the_answer(WAYS[sys.argv[1]]))
        return
    threads = kernel.report().threads
    taken = {}
    for name in WAYS if find_spec("torch") else OURS:
        measured = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True)
        taken[name] = float(measured.stdout)
        print(f"{name:24} {taken[name]:8.1f} MB   {taken[name] / threads:8.1f} MB a thread")
    scores = HEADS * TOKENS**2 * 4 / MEGABYTE
    print(f"{'the scores as a matrix':24} {scores:8.1f} MB")
    print(json.dumps({"tokens": TOKENS, "threads": threads, "megabytes": taken, "scores": scores}))


def inspecting(q: Any, k: Any, v: Any) -> Any:
    asked = regard.Inspect(top=8, entropy=True, received=True, rows=[0, q.shape[2] - 1])
    return regard.attention(q, k, v, causal=True, inspect=asked)


def with_torch(attend: Callable[..., Any], backward: bool) -> Callable[..., Any]:
    def call(*arrays: np.ndarray) -> Any:
        import torch

        tensors = [torch.from_numpy(each).requires_grad_(backward) for each in arrays]
        output = attend(*tensors)
        return torch.autograd.grad(output.sum(), tensors) if backward else output

    return call


def sdpa(*tensors: Any) -> Any:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(*tensors)


OURS: dict[str, Callable[..., Any]] = {
    "regard": regard.attention,
    "regard inspecting": inspecting,
}
WAYS = OURS | {
    "regard with gradients": with_torch(regard.attention, backward=True),
    "torch": with_torch(sdpa, backward=False),
    "torch with gradients": with_torch(sdpa, backward=True),
}


def beyond_the_answer(attend: Callable[..., Any]) -> float:
    """Megabytes at the highest point, less those before and those of the answer."""
    rng = np.random.default_rng(5)
    operands = [rng.normal(size=(1, HEADS, TOKENS, DIM)).astype(np.float32) for _ in range(3)]
    attend(*(each[:, :, :256] for each in operands))  # loads libraries, starts threads
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak counts from here
    before = resident("VmRSS")
    answer = attend(*operands)
    return resident("VmHWM") - before - size_of(answer)


def resident(field: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"attention_memory: Linux does not tell {field} here")


def size_of(answer: Any) -> float:
    if isinstance(answer, tuple):
        return sum(map(size_of, answer))
    if isinstance(answer, regard.Inspection):
        return sum(map(size_of, vars(answer).values()))
    return float(getattr(answer, "nbytes", 0)) / MEGABYTE


if __name__ == "__main__":
    main()
