"""Checkpoints: folders as Hugging Face has them.

A model that may run causally and has the shape of a family is written as one of that family, and
`transformers` loads it unchanged. Any other has the model type "regard": its weights mean nothing
without the mask, or the shape, that `config.json` tells under "regard".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regard._errors import CheckpointError, MissingExtraError, OptionError
from regard._files import write_folder
from regard.model._config import Config
from regard.model._families import FAMILIES, Family, Tensors, config_from, family_of, words_of
from regard.model._gguf import read_gguf
from regard.model._transformer import Transformer

OWN_TYPE = "regard"
BEST = "best"
CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"
INDEX = WEIGHTS + ".index.json"
TOKENIZER = "tokenizer.json"


def save(
    folder: str | Path,
    model: Transformer,
    *,
    generation: Mapping[str, Any] | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> None:
    """Write a checkpoint, whole or not at all; `files` are more of it, such as its recipe.

    `generation` adds words to `generation_config.json`, such as num_beams.
    """
    config = model.config
    family = family_of(config)
    tensors = {name: each.detach().cpu() for name, each in model.state_dict().items()}
    tensors = tensors if family is None else family.tensors_of(config, tensors)
    tokens = {"bos": config.begin, "eos": config.end, "pad": config.pad}
    how = {f"{name}_token_id": token for name, token in tokens.items()} | dict(generation or {})
    dtype = str(model.embedding.weight.dtype).removeprefix("torch.")
    content: dict[str, str | bytes] = {
        CONFIG: _json(_words(config, family) | {"dtype": dtype}),
        GENERATION: _json(how),
        WEIGHTS: _safetensors().save(tensors, metadata={"format": "pt"}),
        **(files or {}),
    }
    if TOKENIZER in content:
        content.setdefault("tokenizer_config.json", _json(_tokenizer_words(content, config)))
    write_folder(folder, content)


def _words(config: Config, family: Family | None) -> dict[str, Any]:
    own: dict[str, Any] = {"model_type": OWN_TYPE, "regard": config.written()}
    if family is None:
        return own
    words = words_of(family, config) | own
    if config.source_mask == "prefix":
        return words
    return words | {"model_type": family.model_type, "architectures": [family.architecture]}


def _tokenizer_words(content: Mapping[str, str | bytes], config: Config) -> dict[str, Any]:
    """What `transformers` asks about a tokenizer besides the tokenizer itself."""
    added = json.loads(content[TOKENIZER]).get("added_tokens", [])
    texts = {token["id"]: token["content"] for token in added}
    special = {"bos_token": config.begin, "eos_token": config.end, "pad_token": config.pad}
    named = {name: texts[token] for name, token in special.items() if token in texts}
    words = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.longest}
    return words | {"clean_up_tokenization_spaces": False} | named


def _json(words: Mapping[str, Any]) -> str:
    return json.dumps(words, indent=2, ensure_ascii=False) + "\n"


def load(path: str | Path, dtype: Any = None) -> Transformer:
    """A model from a checkpoint of ours, a Llama or a GPT-2 of Hugging Face, or a GGUF file.

    It is ready to translate (`eval`), in float32 if no type of torch is named.
    """
    path = Path(path)
    if path.suffix == ".gguf":
        words, theirs = read_gguf(path)
    else:
        words, theirs = read_words(path), _read_tensors(path)
    try:
        return _assembled(words, theirs, dtype or torch.float32)
    except (CheckpointError, OptionError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def from_transformers(model: Any) -> Transformer:
    """A Llama or GPT-2 of `transformers` as one of ours; what it holds is copied."""
    words = model.config.to_dict()
    theirs = {name: each.detach().clone() for name, each in model.state_dict().items()}
    return _assembled(words, theirs, model.dtype)


def _assembled(words: Mapping[str, Any], theirs: Tensors, dtype: Any) -> Transformer:
    kind = words.get("model_type")
    if "regard" in words:
        config = Config.read(words["regard"])
        family = family_of(config)
    elif kind in FAMILIES:
        config, family = config_from(words), FAMILIES[kind]
    else:
        known = ", ".join((*FAMILIES, OWN_TYPE))
        raise CheckpointError(f"checkpoint: its model type is {kind!r}, but regard reads {known}")
    with torch.device("meta"):
        wanted = Transformer(config).state_dict()
    tensors = theirs if family is None else family.tensors_from(config, theirs, wanted)
    _check_shapes(tensors, wanted)
    return Transformer.holding(config, {name: tensors[name].to(dtype) for name in wanted})


def _check_shapes(tensors: Tensors, wanted: Tensors) -> None:
    if tensors.keys() != wanted.keys():
        differing = sorted(tensors.keys() ^ wanted.keys())
        what = "there is no tensor" if differing[0] in wanted else "nothing is known of the tensor"
        raise CheckpointError(f"checkpoint: {what} {differing[0]!r}")
    for name, tensor in tensors.items():
        have, want = tuple(tensor.shape), tuple(wanted[name].shape)
        if have != want:
            raise CheckpointError(f"checkpoint: {name} is {have}, but config.json asks for {want}")


def best_of(path: str | Path) -> Path:
    """The best checkpoint of a run's folder; any other folder is one itself."""
    folder = Path(path)
    return folder / BEST if (folder / BEST).is_dir() else folder


def read_words(folder: Path) -> dict[str, Any]:
    """What `config.json` says."""
    if folder.is_file():
        raise CheckpointError(
            f"checkpoint: {str(folder)!r} is a file: pass the folder that it is in"
        )
    if not folder.is_dir():
        raise CheckpointError(f"checkpoint: there is no folder {str(folder)!r}")
    path = folder / CONFIG
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(
            f"checkpoint: {str(folder)!r} is none, for its {CONFIG} cannot be read: "
            f"{error.strerror}"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"checkpoint: {str(path)!r} is no JSON: {error}") from error
    if not isinstance(words, dict):
        raise CheckpointError(f"checkpoint: {str(path)!r} must hold an object")
    return words


def _read_tensors(folder: Path) -> Tensors:
    names = [WEIGHTS]
    if (folder / INDEX).exists():
        placed = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        names = sorted(set(placed.values()))
    elif not (folder / WEIGHTS).exists():
        raise CheckpointError(
            f"checkpoint: {str(folder)!r} has no {WEIGHTS} (weights that were pickled are not "
            "read: they could run code)"
        )
    tensors: Tensors = {}
    for name in names:
        try:
            tensors |= _safetensors().load_file(folder / name)
        except Exception as error:
            raise CheckpointError(
                f"checkpoint: {str(folder / name)!r} is damaged: {error}"
            ) from error
    return tensors


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ModuleNotFoundError as error:
        raise MissingExtraError("a checkpoint", "translate", "safetensors") from error
    return safetensors
