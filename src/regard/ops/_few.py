"""One query each of many batch entries, as decoding asks: torch's batched products.

A kernel that packs keys has nothing to gain from them here. What the products cannot be trusted
with (numbers that are not finite, rows that see nothing) shows in the output, and the kernel
computes it anew.
"""

from __future__ import annotations

from math import inf
from typing import Any

import torch

from regard.ops._problem import Problem

Tensor = Any
MANY = 256  # queries from which on the products are quicker than the kernel
FEW_KEYS = 512  # up to which they are


def are_single(q: Tensor) -> bool:
    """Whether each head of each batch entry has one query, and there are many of them."""
    return q.dim() > 1 and q.shape[-2] == 1 and q.numel() >= MANY * q.shape[-1] > 0


def suits(problem: Problem) -> bool:
    """Whether a mask or a bias is all that hides keys, and products are quicker than the kernel."""
    if problem.dtype not in ("float32", "float64") or problem.softcap or problem.causal:
        return False
    if not are_single(problem.q) or not 0 < problem.keys <= FEW_KEYS:
        return False
    others = (problem.past_k, problem.q_segments, problem.lengths, problem.sinks)
    unbounded = problem.left < 0 and problem.right < 0
    return unbounded and all(each is None for each in others)


def solve(problem: Problem) -> Tensor | None:
    """The output, if it is one that products can find."""
    batch, heads, queries, _ = problem.scores_shape
    shared = batch * problem.k.shape[1]
    q = problem.q.reshape(shared, -1, problem.q.shape[3])
    scores = _scores(problem, q, problem.k.flatten(0, 1).mT)
    if problem.mask is not None:
        scores.masked_fill_(~problem.mask.reshape(scores.shape), -inf)
    output = torch.bmm(torch.softmax(scores, dim=-1), problem.v.flatten(0, 1))
    # What is finite has a finite sum, but for numbers so large that the kernel may have them.
    if not output.sum().isfinite():
        return None
    return output.view(batch, heads, queries, problem.v.shape[3])


def _scores(problem: Problem, q: Tensor, k: Tensor) -> Tensor:
    if problem.bias is None:
        return torch.bmm(q * problem.scale, k)
    bias = problem.bias.reshape(len(q), q.shape[1], -1)
    return torch.baddbmm(bias, q, k, alpha=problem.scale)
