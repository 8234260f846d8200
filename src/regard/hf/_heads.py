"""A head of a trained model, opened: the worked steps of what it does with a text.

The model runs once. What its attention reads is caught, and every step is computed anew in
float64 from that and from the weights. The head's own context, caught as well, says whether this
is what the model computes: the two may differ by the rounding of the model's numbers, of which
`Bound` gives the most there can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard._errors import NumberError, OptionError
from regard._options import is_integer, one_of
from regard.hf._bound import rounding_bound
from regard.hf._layouts import Layout, layouts
from regard.model import Transformer, best_of, load
from regard.show.trace import Trace, work

Tensor = Any
PARTS = ("decoder", "encoder", "cross")


@dataclass(frozen=True)
class Live:
    """What one attention layer read and computed in a forward pass of one text."""

    layout: Layout
    x: Tensor  # token, model: whose queries
    y: Tensor  # token, model: whose keys and values
    merged: Tensor  # token, heads × dim: the contexts of all heads
    bias: Tensor | None  # head, query, key
    options: Mapping[str, Any]
    dtype: Any


def opened(
    model: Any, text: Any, layer: int, head: int, tokenizer: Any, target: Any, part: str
) -> Trace:
    """What `open_head` gives."""
    one_of("part", part, PARTS)
    model, tokenizer = _with_tokenizer(model, tokenizer)
    many = _vocabulary(model)
    source = _numbers(tokenizer, text, many)
    rest = None if target is None else _numbers(tokenizer, target, many)
    if not source:
        raise OptionError("open_head: there is no token to look at")
    if isinstance(model, Transformer):
        if part != "decoder":
            raise OptionError(
                f"open_head: a Transformer has no {part} attention: it is causal alone"
            )
        live = _of_ours(model, source, rest or [], _counted("layer", layer, model.config.layers))
    else:
        live = _of_transformers(model, source, rest, part, layer)
    heads = live.layout.heads
    trace = _worked(live, _counted("head", head, heads))
    difference, bound = _agreement(trace, live, head - 1)
    name = type(model).__name__
    if not difference <= bound:
        raise NumberError(
            f"open_head: layer {layer} of {name} computes something else than standard attention: "
            f"its context differs by {difference:.2g}, where rounding explains {bound:.2g}"
            + ("; it is being trained, with dropout: call model.eval()" if model.training else "")
        )
    return replace(
        trace,
        title=f"{name}: layer {layer}, head {head} (its own context is within {difference:.1g} "
        f"of these steps; rounding allows {bound:.1g})",
    )


def _counted(name: str, number: int, many: int) -> int:
    """A place counted from 0 out of one counted from 1."""
    if not is_integer(number) or not 1 <= number <= many:
        raise OptionError(
            f"open_head: `{name}` is counted from 1 to {many}, but {number!r} was passed"
        )
    return number - 1


# ---- the text


def _with_tokenizer(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    if isinstance(model, (str, Path)):
        folder = best_of(model)
        if tokenizer is None and (folder / "tokenizer.json").is_file():
            import tokenizers

            tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        return load(folder), tokenizer
    if not isinstance(model, torch.nn.Module) and hasattr(model, "tokenizer"):
        return model.model, tokenizer or model.tokenizer
    return model, tokenizer


def _vocabulary(model: Any) -> int:
    """How many tokens it knows."""
    if isinstance(model, Transformer):
        return model.config.vocabulary
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "get_input_embeddings"):
        raise OptionError(
            "open_head: `model` must be a Transformer of regard, the folder of its checkpoint or "
            f"run, or a model of transformers, but a {type(model).__name__} was passed"
        )
    return int(model.get_input_embeddings().num_embeddings)


def _numbers(tokenizer: Any, text: Any, vocabulary: int) -> list[int]:
    """The numbers of the tokens of a text, all of which the model must know."""
    numbers = np.asarray(_tokens(tokenizer, text))
    if numbers.ndim == 2 and len(numbers) == 1:
        numbers = numbers[0]
    if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
        raise OptionError(
            "open_head: a text is a string or the numbers of its tokens, one after another, but "
            f"{text!r} was passed"
        )
    for number in numbers.tolist():
        if not 0 <= number < vocabulary:
            raise OptionError(
                f"open_head: tokens are numbered from 0 to {vocabulary - 1}, but one is {number}"
            )
    return [int(number) for number in numbers]


def _tokens(tokenizer: Any, text: Any) -> Any:
    """The tokens of a text, without special ones unless its tokenizer adds them."""
    if not isinstance(text, str):
        return text
    if tokenizer is None:
        raise OptionError(
            "open_head: a text needs its tokenizer: pass tokenizer=…, or the numbers of its tokens"
        )
    if callable(tokenizer):  # one of transformers
        return list(tokenizer(text)["input_ids"])
    if hasattr(tokenizer, "encode_batch"):  # one of tokenizers
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    return list(tokenizer.encode([text])[0])


# ---- the forward pass


def _of_ours(model: Transformer, source: list[int], target: list[int], layer: int) -> Live:
    config = model.config
    row = [config.begin, *source, config.separator, *target]
    start = len(source) + 2
    prefix = None if config.source_mask == "causal" else torch.tensor([start])
    attention = model.blocks[layer].attention
    options: dict[str, Any] = {"causal": True}
    if prefix is not None:
        options["prefix"] = start
    if config.positions == "rotary":
        options |= {"positions": "rotary", "rotary_base": config.rotary_base}
    (layout,) = layouts(attention, config.heads)
    with _Caught(layout) as caught, torch.no_grad():
        model.hidden(torch.tensor([row]), prefix=prefix)
    return caught.live(options)


def _of_transformers(
    model: Any, source: list[int], target: list[int] | None, part: str, layer: int
) -> Live:
    config = model.config
    two_sided = bool(getattr(config, "is_encoder_decoder", False))
    if part != "decoder" and not two_sided:
        raise OptionError(
            f"open_head: {type(model).__name__} has no {part} attention: it is causal alone"
        )
    every = layouts(model, _head_count(config))
    chosen = [each for each in every if not two_sided or each.part == part]
    if not chosen:
        raise OptionError(
            f"open_head: no attention of a known layout is in {type(model).__name__} (matrices "
            "q, k, v and o of their own, or one c_attn)"
        )
    layout = chosen[_counted("layer", layer, len(chosen))]
    given: dict[str, Any] = {"input_ids": torch.tensor([source])}
    if two_sided:
        start = [config.decoder_start_token_id, *(target or [])]
        given["decoder_input_ids"] = torch.tensor([start])
    elif target:
        given["input_ids"] = torch.tensor([source + target])
    with _Caught(layout) as caught, torch.no_grad():
        try:
            model(**given, use_cache=False)
        except (IndexError, RuntimeError, ValueError) as error:
            raise OptionError(
                f"open_head: {type(model).__name__} cannot read these {len(source)} tokens: {error}"
            ) from error
    options: dict[str, Any] = {"scale": layout.scale}
    options |= {"causal": True} if part == "decoder" else {}
    rope = getattr(config, "rope_parameters", None) or {}
    if "rope_theta" in rope:
        options |= {"positions": "rotary", "rotary_base": rope["rope_theta"]}
    return caught.live(options)


def _head_count(config: Any) -> int:
    for name in ("num_attention_heads", "n_head", "num_heads"):
        if hasattr(config, name):
            return int(getattr(config, name))
    raise OptionError(f"open_head: {type(config).__name__} does not say how many heads there are")


class _Caught:
    """Hooks on one attention layer: what it reads, and what its output matrix reads."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.x: Tensor = None
        self.y: Tensor = None
        self.merged: Tensor = None
        self.bias: Tensor = None
        self.handles: list[Any] = []

    def __enter__(self) -> _Caught:
        module = self.layout.module
        hooks: Sequence[Callable[..., None]] = (self._read, self._told)
        self.handles = [
            module.register_forward_pre_hook(hooks[0], with_kwargs=True),
            module.register_forward_hook(hooks[1]),
            self.layout.output.register_forward_pre_hook(self._merged),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _read(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.x = given[0] if given else named["hidden_states"]
        others = ("key_value_states", "encoder_hidden_states")
        theirs = [named[name] for name in others if named.get(name) is not None]
        positional = given[1] if len(given) > 1 and self.layout.part == "cross" else None
        self.y = theirs[0] if theirs else self.x if positional is None else positional

    def _told(self, module: Any, given: tuple[Any, ...], output: Any) -> None:
        """T5 adds a bias for distances, which its attention passes on."""
        if self.layout.relative and isinstance(output, tuple):
            scores = [each for each in output if getattr(each, "ndim", 0) == 4]
            self.bias = scores[0][0] if scores else None

    def _merged(self, module: Any, given: tuple[Any, ...]) -> None:
        self.merged = given[0]

    def live(self, options: Mapping[str, Any]) -> Live:
        if self.x is None or self.y is None or self.merged is None:
            raise OptionError("open_head: the forward pass did not come through this layer")
        x, y, merged = (each.detach().flatten(0, -2) for each in (self.x, self.y, self.merged))
        return Live(self.layout, x, y, merged, self.bias, options, x.dtype)


# ---- the steps


def _worked(live: Live, head: int) -> Trace:
    """The head alone, in float64; its share of the output matrix gives its share of the output."""
    givens = {name: _wide(each) for name, each in live.layout.of_head(head).items()}
    if live.y is live.x or live.layout.part != "cross":
        kind, sequences = "self-attention", {"X": _wide(live.x)}
    else:
        kind, sequences = "cross-attention", {"X": _wide(live.x), "Y": _wide(live.y)}
    if live.bias is not None:
        givens["bias"] = _masked_out(_wide(live.bias[head]))
    return work(kind, **sequences, **givens, **live.options)


def _wide(tensor: Tensor) -> Any:
    return tensor.detach().double().cpu().numpy()


def _masked_out(bias: Any) -> Any:
    """Bias and mask come in one; whatever is near the end of its type is hidden."""
    return np.where(bias < -1e9, -np.inf, bias)


def _agreement(trace: Trace, live: Live, head: int) -> tuple[float, float]:
    """How far the model's own context is from the steps, and how far rounding may have put it:

    at the entry that differs most, or at the one that rounding explains least.
    """
    width = live.merged.shape[-1] // live.layout.heads
    own = _wide(live.merged[:, head * width : (head + 1) * width])
    difference = np.abs(trace["context"].value - own)
    bound = rounding_bound(trace, live.dtype)
    beyond = difference - bound
    worst = int(np.argmax(beyond if (beyond > 0).any() else difference))
    return float(difference.flat[worst]), float(bound.flat[worst])
