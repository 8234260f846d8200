"""The two families of Hugging Face that regard's models can be written as: llama and gpt2.

A family says which shapes it has, the words of its `config.json`, and how its tensors are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from regard._errors import CheckpointError
from regard.model._config import Config

Tensor = Any
Tensors = dict[str, Tensor]
# What old checkpoints hold beside their weights: masks and angles that follow from the config.
DERIVED = re.compile(r"\.attn\.(masked_)?bias$|rotary_emb\.inv_freq$")
ACTIVATIONS = {"gelu-tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}


@dataclass(frozen=True)
class Family:
    """How one family calls what a model has; several names are one tensor of ours in order."""

    model_type: str
    architecture: str
    blocks: str
    names: Mapping[str, tuple[str, ...]]
    transposed: tuple[str, ...] = ()  # these matrices stand with their inputs first

    def tensors_of(self, config: Config, ours: Tensors) -> Tensors:
        """Our tensors under the family's names."""
        written = {}
        for own in _located(ours, config):
            parts = ours[own.name].split(own.sizes)
            for name, part in zip(self._theirs(own), parts, strict=True):
                turned = part.mT if self._is_transposed(own) else part
                written[name] = turned.contiguous()
        return written

    def tensors_from(self, config: Config, theirs: Tensors, wanted: Tensors) -> Tensors:
        """The tensors that a model of ours has, out of those of the family."""
        theirs = {self._plain(name): each for name, each in theirs.items()}
        read = {}
        for own in _located(wanted, config):
            names = [self._plain(name) for name in self._theirs(own)]
            missing = [name for name in names if name not in theirs]
            if missing:
                raise CheckpointError(f"checkpoint: there is no tensor {missing[0]!r}")
            parts = [theirs.pop(name) for name in names]
            parts = [part.mT if self._is_transposed(own) else part for part in parts]
            read[own.name] = torch.cat(parts) if len(parts) > 1 else parts[0].contiguous()
        if config.tied:
            theirs.pop("lm_head.weight", None)
        left = [name for name in theirs if not DERIVED.search(name)]
        if left:
            raise CheckpointError(
                f"checkpoint: a {self.model_type} has no place for its tensor {left[0]!r}"
            )
        return read

    def _plain(self, name: str) -> str:
        """A name without the outermost module, which some checkpoints leave out."""
        return name.removeprefix(self.blocks.partition(".")[0] + ".")

    def _theirs(self, own: _Located) -> list[str]:
        block = "" if own.block is None else f"{self.blocks}.{own.block}."
        return [f"{block}{name}.{own.kind}" for name in self.names[own.part]]

    def _is_transposed(self, own: _Located) -> bool:
        return own.kind == "weight" and own.part in self.transposed


class _Located(NamedTuple):
    """Where a tensor of ours stands, and how many rows its parts have."""

    name: str
    block: str | None
    part: str
    kind: str
    sizes: list[int]


def _located(names: Tensors, config: Config) -> Iterator[_Located]:
    shared = config.kv_heads * config.head_dim
    for name, tensor in names.items():
        path, _, kind = name.rpartition(".")
        found = re.fullmatch(r"blocks\.(\d+)\.(.+)", path)
        block, part = found.groups() if found else (None, path)
        sizes = [tensor.shape[0]]
        if part == "attention.wqkv" and config.positions != "learned":
            sizes = [config.heads * config.head_dim, shared, shared]
        elif part == "feed_forward.inside" and config.feed_forward == "swiglu":
            sizes = [config.hidden, config.hidden]
        yield _Located(name, block, part, kind, sizes)


LLAMA = Family(
    "llama",
    "LlamaForCausalLM",
    "model.layers",
    {
        "embedding": ("model.embed_tokens",),
        "norm": ("model.norm",),
        "head": ("lm_head",),
        "norm_1": ("input_layernorm",),
        "norm_2": ("post_attention_layernorm",),
        "attention.wqkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.wo": ("self_attn.o_proj",),
        "feed_forward.inside": ("mlp.gate_proj", "mlp.up_proj"),
        "feed_forward.outside": ("mlp.down_proj",),
    },
)
GPT2 = Family(
    "gpt2",
    "GPT2LMHeadModel",
    "transformer.h",
    {
        "embedding": ("transformer.wte",),
        "places": ("transformer.wpe",),
        "norm": ("transformer.ln_f",),
        "head": ("lm_head",),
        "norm_1": ("ln_1",),
        "norm_2": ("ln_2",),
        "attention.wqkv": ("attn.c_attn",),
        "attention.wo": ("attn.c_proj",),
        "feed_forward.inside": ("mlp.c_fc",),
        "feed_forward.outside": ("mlp.c_proj",),
    },
    ("attention.wqkv", "attention.wo", "feed_forward.inside", "feed_forward.outside"),
)
FAMILIES = {family.model_type: family for family in (LLAMA, GPT2)}


def family_of(config: Config) -> Family | None:
    """The family that has models of this shape, whatever they may see."""
    if config.norm_place != "before" or config.scale_embeddings:
        return None
    llama = (config.norm, config.positions, config.feed_forward) == ("rms", "rotary", "swiglu")
    if llama and config.width % config.heads == 0:  # transformers refuses others, without need
        return LLAMA
    gpt2 = (config.norm, config.positions, config.bias) == ("layer", "learned", True)
    even = config.kv_heads == config.heads and config.heads * config.head_dim == config.width
    return GPT2 if gpt2 and even and config.feed_forward in ACTIVATIONS else None


def words_of(family: Family, config: Config) -> dict[str, Any]:
    """The words of the family's `config.json`."""
    common = {
        "vocab_size": config.vocabulary,
        "tie_word_embeddings": config.tied,
        "bos_token_id": config.begin,
        "eos_token_id": config.end,
        "pad_token_id": config.pad,
    }
    if family is LLAMA:
        return common | {
            "hidden_size": config.width,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.kv_heads,
            "head_dim": config.head_dim,
            "intermediate_size": config.hidden,
            "max_position_embeddings": config.longest,
            "rms_norm_eps": config.norm_eps,
            "rope_theta": config.rotary_base,
            "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
            "hidden_act": "silu",
            "attention_bias": config.bias,
            "mlp_bias": config.bias,
        }
    return common | {
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.hidden,
        "n_positions": config.longest,
        "layer_norm_epsilon": config.norm_eps,
        "activation_function": ACTIVATIONS[config.feed_forward],
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "attn_pdrop": 0.0,
    }


def config_from(words: Mapping[str, Any]) -> Config:
    """The config of a checkpoint that others wrote, by the words of its `config.json`."""
    try:
        said = _READERS[words["model_type"]](words)
        return Config.read(said | _tokens(words))
    except KeyError as error:
        raise CheckpointError(f"checkpoint: config.json does not say {error}") from error
    except (AttributeError, TypeError, ZeroDivisionError) as error:
        raise CheckpointError(
            f"checkpoint: config.json is none of a {words['model_type']} ({error})"
        ) from error


def _from_llama(words: Mapping[str, Any]) -> dict[str, Any]:
    rope = words.get("rope_parameters") or words.get("rope_scaling") or {}
    biases = (words.get("attention_bias", False), words.get("mlp_bias", False))
    _refuse_others(
        ("rope_type", rope.get("rope_type", rope.get("type", "default")), ("default",)),
        ("hidden_act", words.get("hidden_act", "silu"), ("silu", "swish")),
        ("attention_bias and mlp_bias", biases, ((True, True), (False, False))),
    )
    heads = words["num_attention_heads"]
    return {
        "vocabulary": words["vocab_size"],
        "width": words["hidden_size"],
        "layers": words["num_hidden_layers"],
        "heads": heads,
        "kv_heads": words.get("num_key_value_heads") or heads,
        "head_dim": words.get("head_dim") or words["hidden_size"] // heads,
        "hidden": words["intermediate_size"],
        "longest": words.get("max_position_embeddings", 2048),
        "norm_eps": words.get("rms_norm_eps", 1e-6),
        "rotary_base": rope.get("rope_theta") or words.get("rope_theta", 10000.0),
        "bias": biases[0],
        "tied": words.get("tie_word_embeddings", False),
    }


def _from_gpt2(words: Mapping[str, Any]) -> dict[str, Any]:
    activations = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    activations["gelu_pytorch_tanh"] = "gelu-tanh"
    activation = words.get("activation_function", "gelu_new")
    _refuse_others(
        ("activation_function", activation, tuple(activations)),
        ("scale_attn_weights", words.get("scale_attn_weights", True), (True,)),
        ("scale_attn_by_inverse_layer_idx", words.get("scale_attn_by_inverse_layer_idx", False),
         (False,)),
    )  # fmt: skip
    width, heads = words["n_embd"], words["n_head"]
    return {
        "vocabulary": words["vocab_size"],
        "width": width,
        "layers": words["n_layer"],
        "heads": heads,
        "head_dim": width // heads,
        "hidden": words.get("n_inner") or 4 * width,
        "longest": words.get("n_positions", 1024),
        "norm": "layer",
        "norm_eps": words.get("layer_norm_epsilon", 1e-5),
        "positions": "learned",
        "feed_forward": activations[activation],
        "bias": True,
        "tied": words.get("tie_word_embeddings", True),
    }


_READERS = {"llama": _from_llama, "gpt2": _from_gpt2}


def _refuse_others(*read: tuple[str, Any, tuple[Any, ...]]) -> None:
    for name, value, accepted in read:
        if value not in accepted:
            known = " or ".join(map(repr, accepted))
            raise CheckpointError(
                f"checkpoint: its {name} is {value!r}, but regard's models have {known}"
            )


def _tokens(words: Mapping[str, Any]) -> dict[str, Any]:
    """Special tokens; what others do not say is the end, and they have no separator."""

    def said(name: str, otherwise: int) -> int:
        value = words.get(f"{name}_token_id")
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, int) and 0 <= value < words["vocab_size"] else otherwise

    end = said("eos", 0)
    tokens = {"begin": said("bos", end), "separator": end, "end": end, "pad": said("pad", end)}
    return {**tokens, "source_mask": "causal"}
