"""Attention on devices other than the CPU: torch's own kernels, made to mean what regard means.

Torch's fused attention knows neither softcap nor sinks, says nothing about its weights, and lets
NaN through a mask; there its matrix products compute, some query rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from regard.ops._inspection import Inspect
from regard.ops._problem import Problem

Tensor = Any
AT_ONCE = 1 << 26  # how many scores are held at a time


class Rows(NamedTuple):
    """Some query rows: what they may see, and what they look at."""

    places: Tensor
    live: Tensor
    weights: Tensor
    log_sum_exp: Tensor


def solve(problem: Problem, wanted: Inspect | None) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Output, log-sum-exp (`None` if nothing was asked) and answers; there is no past here."""
    problem.check_counts()
    problem = _with_every_head(problem)
    if wanted is None and _suits_fused(problem):
        return _fused(problem), None, {}
    batch, heads, queries, keys = problem.scores_shape
    at_once = max(1, AT_ONCE // max(1, batch * heads * keys))
    blocks = [_attend(problem, places) for places in _counted(problem, queries).split(at_once)]
    outputs = [_product(block.weights, block.live, problem.v) for block in blocks]
    output = torch.cat(outputs, dim=2).to(problem.q.dtype)
    log_sum_exp = torch.cat([block.log_sum_exp for block in blocks], dim=2)
    answers = {} if wanted is None else _answers(blocks, wanted, queries)
    return output, log_sum_exp, answers


def _with_every_head(problem: Problem) -> Problem:
    """The same problem with as many key heads as query heads."""
    group = problem.q.shape[1] // max(1, problem.k.shape[1])
    if group == 1:
        return problem
    k, v = (each.repeat_interleave(group, dim=1) for each in (problem.k, problem.v))
    return replace(problem, k=k, v=v)


def _counted(problem: Problem, many: int) -> Tensor:
    return torch.arange(many, device=problem.q.device)


def _suits_fused(problem: Problem) -> bool:
    if problem.softcap or problem.sinks is not None:
        return False
    return not problem.hides or all(map(_is_finite, (problem.q, problem.k, problem.v)))


def _is_finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())


def _fused(problem: Problem) -> Tensor:
    """Torch's fused attention; a row that sees nothing sees all and is then put to 0."""
    operands = (problem.q, problem.k, problem.v)
    if not problem.hides:
        return F.scaled_dot_product_attention(*operands, scale=problem.scale)
    if _is_top_left(problem):
        return F.scaled_dot_product_attention(*operands, is_causal=True, scale=problem.scale)
    *_, queries, keys = problem.scores_shape
    live = problem.live(_counted(problem, queries), _counted(problem, keys))
    sees = live.any(-1, keepdim=True)
    live = live | ~sees
    mask = live if problem.bias is None else problem.bias.masked_fill(~live, -inf)
    mask = mask if problem.bias is None else mask.masked_fill(~sees, 0).to(problem.q.dtype)
    output = F.scaled_dot_product_attention(*operands, attn_mask=mask, scale=problem.scale)
    return output.masked_fill(~sees, 0)


def _is_top_left(problem: Problem) -> bool:
    """Whether it is causal as torch means it, and nothing more is hidden."""
    bare = replace(problem, offsets=None)
    if bare.hides or not problem.causal or problem.prefix is not None:
        return False
    return problem.left < 0 and problem.right < 0 and not any(problem.offsets.tolist())


def _attend(problem: Problem, places: Tensor) -> Rows:
    """Weights by the definition; what is hidden reaches neither them nor their gradients."""
    wide = torch.float64 if problem.dtype == "float64" else torch.float32
    q, k = problem.q[:, :, places].to(wide) * problem.scale, problem.k.to(wide)
    scores = _finite_part(q) @ _finite_part(k).mT
    if not (_is_finite(q) and _is_finite(k)):
        finite = q.isfinite().all(-1)[..., :, None] & k.isfinite().all(-1)[..., None, :]
        scores = torch.where(finite, scores, (q @ k.mT).detach())
    if problem.softcap:
        scores = problem.softcap * torch.tanh(scores / problem.softcap)
    if problem.bias is not None:
        scores = scores + problem.bias[:, :, places]
    live = problem.live(places, _counted(problem, problem.keys)).expand(scores.shape)
    scores = scores.masked_fill(~live, -inf)
    if problem.sinks is not None:
        column = problem.sinks[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : problem.keys].masked_fill(~live, 0)
    return Rows(places, live, weights, torch.logsumexp(scores.detach(), dim=-1))


def _finite_part(vectors: Tensor) -> Tensor:
    """The vectors, those with an entry that is not finite replaced by 0."""
    return vectors.masked_fill(~vectors.isfinite().all(-1, keepdim=True), 0)


def _product(weights: Tensor, live: Tensor, vectors: Tensor) -> Tensor:
    """weights @ vectors without the terms that are not live, where 0 times NaN would be NaN."""
    vectors = vectors.to(weights.dtype)
    finite = _finite_part(vectors)
    total = weights @ finite
    if _is_finite(vectors):
        return total
    wild = ~vectors.isfinite().all(-1).flatten(0, 1).all(0)
    for key in wild.nonzero().flatten().tolist():
        vector = vectors[:, :, key] - finite[:, :, key]
        term = weights[..., key, None] * vector[:, :, None]
        total = total + term.detach().masked_fill(~live[..., key, None], 0)
    return total


def _answers(blocks: Sequence[Rows], wanted: Inspect, queries: int) -> dict[str, Tensor]:
    with torch.no_grad():
        answers = [_answer(block, wanted) for block in blocks]
        told = {name: [answer[name] for answer in answers] for name in answers[0]}
        joined = {name: torch.cat(parts, dim=2) for name, parts in told.items()}
        if wanted.received:
            joined["received"] = torch.stack([block.weights.sum(2) for block in blocks]).sum(0)
        if wanted.rows:
            weights = torch.cat([block.weights for block in blocks], dim=2)
            joined["rows"] = weights[:, :, wanted.row_places(queries)]
    return joined


def _answer(block: Rows, wanted: Inspect) -> dict[str, Tensor]:
    """What is told of each query of a block."""
    answers = {}
    if wanted.top:
        ranked = block.weights.masked_fill(~block.live, -1)
        shown, keys = ranked.sort(dim=-1, descending=True, stable=True)
        lacking = wanted.top - ranked.shape[-1]
        shown, keys = (F.pad(each, (0, lacking), value=-1) for each in (shown, keys))
        answers["top_weights"] = shown.clamp_min(0)
        answers["top_keys"] = keys.masked_fill(shown < 0, -1)
    if wanted.entropy:
        answers["entropy"] = torch.special.entr(block.weights).sum(-1)
    return answers
