"""The attention function that transformers calls when a model's implementation is "regard"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from regard._errors import MissingExtraError, OptionError
from regard.ops import Inspect, Inspection, attention, conventions

NAME = "regard"


@dataclass
class _Looking:
    """What is asked of every attention in a model, and the answers by layer."""

    asked: Inspect
    seen: dict[int, list[Inspection]] = field(default_factory=dict)


_looking: ContextVar[_Looking | None] = ContextVar("looking", default=None)


def enable() -> None:
    """Make `attn_implementation="regard"` valid in transformers, for every model.

    Models are made or switched with transformers' own words: from_pretrained(…,
    attn_implementation="regard") or model.set_attn_implementation("regard").
    """
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError as error:
        raise MissingExtraError("regard.hf.enable", "hf", "transformers") from error
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def inspecting(asked: Inspect) -> Iterator[dict[int, list[Inspection]]]:
    """What the attentions of a model saw within the block: by layer, one answer for each call.

    The weights are never held whole, unlike with transformers' output_attentions.
    """
    if not isinstance(asked, Inspect):
        raise OptionError(
            f"inspecting takes a regard.Inspect, such as Inspect(top=3), but {asked!r} was passed"
        )
    looking = _Looking(asked)
    token = _looking.set(looking)
    try:
        yield looking.seen
    finally:
        _looking.reset(token)


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Any = None,
    softcap: float | None = None,
    s_aux: Any = None,
    **_: Any,
) -> tuple[Any, None]:
    """(batch, heads, tokens, dim) in, (batch, tokens, heads, dim) out, as transformers asks.

    There is no mask where a causal module begins, also when its cache has room behind the tokens.
    Windows come as masks; what else is passed says to other implementations what a mask says here.
    """
    if dropout:
        raise OptionError(
            f'attn_implementation="regard" has no dropout, but the model asks for {dropout}: set '
            "its config's attention dropout to 0, or call model.eval()"
        )
    options = conventions.torch(attention_mask)
    if position_bias is not None:
        options["bias"] = options["bias"] + position_bias if "bias" in options else position_bias
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is None and is_causal and query.shape[-2] > 1:
        options["causal"] = "top-left"
    looking = _looking.get()
    answer = attention(
        query,
        key,
        value,
        scale="sqrt" if scaling is None else scaling,
        softcap=softcap,
        sinks=s_aux,
        inspect=None if looking is None else looking.asked,
        **options,
    )
    if looking is None:
        return answer.transpose(1, 2), None
    output, seen = answer
    layer = getattr(module, "layer_idx", None)
    looking.seen.setdefault(-1 if layer is None else layer, []).append(seen)
    return output.transpose(1, 2), None
