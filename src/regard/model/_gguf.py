"""GGUF, the file format of llama.cpp: read as if it were a folder of Hugging Face.

Quantised weights are widened to float32. Its Llamas keep the two coordinates that turn together
side by side, where ours have them half a head apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from regard._errors import CheckpointError, FileError, MissingExtraError
from regard.model._families import FAMILIES, Family, Tensors

KEYS = {
    "llama": {
        "hidden_size": "llama.embedding_length",
        "num_hidden_layers": "llama.block_count",
        "num_attention_heads": "llama.attention.head_count",
        "num_key_value_heads": "llama.attention.head_count_kv",
        "head_dim": "llama.attention.key_length",
        "intermediate_size": "llama.feed_forward_length",
        "max_position_embeddings": "llama.context_length",
        "rms_norm_eps": "llama.attention.layer_norm_rms_epsilon",
        "rope_theta": "llama.rope.freq_base",
    },
    "gpt2": {
        "n_embd": "gpt2.embedding_length",
        "n_layer": "gpt2.block_count",
        "n_head": "gpt2.attention.head_count",
        "n_inner": "gpt2.feed_forward_length",
        "n_positions": "gpt2.context_length",
        "layer_norm_epsilon": "gpt2.attention.layer_norm_epsilon",
    },
}
TOKENS = {
    "bos_token_id": "tokenizer.ggml.bos_token_id",
    "eos_token_id": "tokenizer.ggml.eos_token_id",
    "pad_token_id": "tokenizer.ggml.padding_token_id",
}
TURNED = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}


def read_gguf(path: Path) -> tuple[dict[str, Any], Tensors]:
    """The words of a `config.json`, and the tensors by the names of its family."""
    library, file = _opened(path)
    words, family = _words(path, file)
    short_names = library.get_tensor_name_map(
        getattr(library.MODEL_ARCH, family.model_type.upper()), words[_blocks_word(family)]
    )
    stored = {tensor.name: tensor for tensor in file.tensors}
    tensors = {}
    for name in _names(family, words):
        base, _, kind = name.rpartition(".")
        short = f"{short_names.get_name(base)}.{kind}"
        if short in stored:
            numbers = library.dequantize(stored[short].data, stored[short].tensor_type)
            tensors[name] = _as_theirs(family, name, short, torch.tensor(numbers), words)
    words["vocab_size"] = int(stored["token_embd.weight"].shape[-1])
    words["tie_word_embeddings"] = "lm_head.weight" not in tensors
    words["attention_bias"] = any(name.endswith("q_proj.bias") for name in tensors)
    words["mlp_bias"] = any(name.endswith("up_proj.bias") for name in tensors)
    return words, tensors


def _opened(path: Path) -> tuple[Any, Any]:
    if not path.is_file():
        raise FileError(f"checkpoint: there is no file {str(path)!r}")
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise MissingExtraError("a GGUF file", "hf", "gguf") from error
    try:
        return gguf, gguf.GGUFReader(path)
    except (ValueError, IndexError) as error:
        raise CheckpointError(f"checkpoint: {str(path)!r} is no GGUF file: {error}") from error


def _words(path: Path, file: Any) -> tuple[dict[str, Any], Family]:
    kind = file.fields["general.architecture"].contents()
    if kind not in KEYS:
        raise CheckpointError(
            f"checkpoint: {str(path)!r} holds a {kind!r}, but regard reads {', '.join(KEYS)}"
        )
    said: Mapping[str, str] = KEYS[kind] | TOKENS
    words = {word: file.fields[key].contents() for word, key in said.items() if key in file.fields}
    return {"model_type": kind, **words}, FAMILIES[kind]


def _blocks_word(family: Family) -> str:
    return next(word for word, key in KEYS[family.model_type].items() if "block_count" in key)


def _names(family: Family, words: Mapping[str, Any]) -> Iterator[str]:
    """Every name that a tensor of the family can have."""
    for part, names in family.names.items():
        inside = part.partition(".")[0] in ("norm_1", "norm_2", "attention", "feed_forward")
        places = range(words[_blocks_word(family)]) if inside else (None,)
        for place in places:
            block = "" if place is None else f"{family.blocks}.{place}."
            yield from (f"{block}{name}.{kind}" for name in names for kind in ("weight", "bias"))


def _as_theirs(family: Family, name: str, short: str, tensor: Any, words: Mapping[str, Any]) -> Any:
    part = short.split(".")[-2]
    if family.model_type == "llama" and part in TURNED:
        pairs = tensor.unflatten(0, (words[TURNED[part]], -1, 2))
        return pairs.transpose(1, 2).flatten(0, 2)
    transposed = {each for own in family.transposed for each in family.names[own]}
    turns = name.endswith(".weight") and any(f".{each}." in name for each in transposed)
    return tensor.mT if turns else tensor
