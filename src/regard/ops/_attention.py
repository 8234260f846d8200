"""Exact attention for arrays of NumPy and tensors of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard._errors import OptionError
from regard.ops import _paths
from regard.ops._arguments import Posed, pose
from regard.ops._arrays import is_tensor
from regard.ops._inspection import Inspect, Inspection


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any = None,
    bias: Any = None,
    causal: Any = False,
    window: Any = None,
    prefix: Any = None,
    segments: Any = None,
    scale: Any = "sqrt",
    softcap: Any = None,
    sinks: Any = None,
    lengths: Any = None,
    past: Any = None,
    layout: Any = "head-token",
    inspect: Inspect | None = None,
) -> Any:
    """softmax(q kᵀ · scale) v, for every head of every batch entry.

    q is (…batch, heads, queries, d_k), k (…batch, kv_heads, keys, d_k) and v (…batch, kv_heads,
    keys, d_v); with two axes there are no heads. All are arrays of NumPy, or all tensors of
    torch, of one type: float16, bfloat16, float32 or float64; lists and whole numbers are
    float64. The output has the type of q. Several query heads may share a key head.

    A hidden key or value never reaches the output, even if it is no number; a query for which
    every key is hidden gets 0.

    mask: True where a query may see a key; (…batch, heads, queries, keys), where axes of size 1
        and missing axes in front stand for all.
    bias: is added to the scores, shaped as a mask; −∞ hides.
    causal: a query sees no key after its own place. True asks for as many queries as (new) keys;
        "top-left" places the first query at the first key, "bottom-right" the last at the last, a
        whole number (or an array of one for each batch entry) the first query at that key.
    window: how many keys a query sees on each side of its place, one number or (left, right); −1
        is no bound. Without `causal` the last query stands at the last key.
    prefix: how many first keys every query sees; what follows is causal.
    segments: numbers of the tokens, (…batch, tokens), or a tuple of those of the queries and
        those of the keys; a query sees the keys with its own number.
    scale: "sqrt" for 1/√d_k, or a number that the scores are multiplied by.
    softcap: scores become softcap · tanh(score / softcap), before `bias`.
    sinks: a score for each head that takes part in the softmax and has no value.
    lengths: how many keys of each batch entry there really are, the past included.
    past: (k, v) of earlier tokens, which stand before k and v.
    layout: "head-token", or "token-head" when q, k, v and the output have their tokens first.
    inspect: what to tell about the weights; the result is then (output, Inspection).

    >>> import numpy as np
    >>> attention(np.zeros((1, 2)), np.ones((4, 2)), np.array([[1.0], [2.0], [3.0], [6.0]]))
    array([[3.]])
    """
    if bias is prefix is segments is softcap is sinks is lengths is past is inspect is None:
        output = _plain(q, k, v, mask, causal, window, scale, layout)
        if output is not None:
            return output
    posed = pose(
        q, k, v, mask=mask, bias=bias, causal=causal, window=window, prefix=prefix,
        segments=segments, scale=scale, softcap=softcap, sinks=sinks, lengths=lengths, past=past,
        layout=layout,
    )  # fmt: skip
    return solved(posed, inspect)


def _plain(*call: Any) -> Any:
    """The output, if checking and describing the call would take longer than computing it."""
    if isinstance(call[0], np.ndarray):
        return _paths.CHOSEN.plain(*call)
    if is_tensor(call[0]):
        from regard.ops import _torch

        return _torch.plain(*call)
    return None


def solved(posed: Posed, inspect: Inspect | None) -> Any:
    """The output of a posed problem, and what was asked about its weights."""
    if inspect is not None and not isinstance(inspect, Inspect):
        raise OptionError(
            "`inspect` must be a regard.Inspect, such as Inspect(top=3), but "
            f"{inspect!r} was passed"
        )
    if posed.is_torch:
        from regard.ops import _torch

        output, log_sum_exp, answers = _torch.solve(posed.problem, inspect)
    else:
        posed.problem.check_counts()
        output, log_sum_exp = _paths.CHOSEN.forward(posed.problem)
        answers = {}
        if inspect is not None:
            answers = _paths.CHOSEN.inspect(posed.problem, log_sum_exp, inspect)
    if inspect is None:
        return posed.output(output)
    told = {name: posed.leading(each) for name, each in answers.items() if each is not None}
    return posed.output(output), Inspection(posed.leading(log_sum_exp), **told)
