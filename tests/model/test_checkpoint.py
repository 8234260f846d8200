"""Checkpoints and Hugging Face: the same logits both ways, and folders that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
transformers = pytest.importorskip("transformers")

from regard import CheckpointError, FileError  # noqa: E402
from regard.model import from_transformers, load, save  # noqa: E402

from .conftest import SHAPES, SIZES, small  # noqa: E402

FAMILIES = {
    "llama": "llama",
    "llama, grouped": "llama",
    "llama, untied, biased": "llama",
    "gpt2": "gpt2",
}


def same(ours: Any, theirs: Any, family: str = "gpt2") -> None:
    """Equal to rounding: their Llama turns and norms in float32, whatever its type is."""
    atol = 1e-4 if family == "llama" else 1e-9
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


@pytest.mark.parametrize("mask", ["causal", "mixed"])
@pytest.mark.parametrize(("shape", "family"), FAMILIES.items())
def test_transformers_loads_ours_unchanged(
    shape: str, family: str, mask: str, tokens: Any, tmp_path: Path
) -> None:
    model = small(shape, source_mask=mask)
    save(tmp_path / "checkpoint", model)
    theirs, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "checkpoint", dtype=torch.float64, output_loading_info=True
    )
    assert not any(report.values())
    assert theirs.config.model_type == family
    with torch.no_grad():
        same(theirs(tokens).logits, model(tokens), family)


@pytest.mark.parametrize("shape", ["llama, grouped", "gpt2"])
def test_a_prefix_model_says_that_it_is_none_of_theirs(
    shape: str, tokens: Any, tmp_path: Path
) -> None:
    """Nothing loads it as causal by accident; with its mask the numbers are the same."""
    model, prefix = small(shape), torch.tensor([7, 4, 11])
    save(tmp_path / "checkpoint", model)
    with pytest.raises(ValueError, match="model type `regard`"):
        transformers.AutoConfig.from_pretrained(tmp_path / "checkpoint")
    path = tmp_path / "checkpoint" / "config.json"
    path.write_text(path.read_text().replace('"regard"', f'"{FAMILIES[shape]}"', 1))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "checkpoint", dtype=torch.float64
    )
    at = torch.arange(17)
    seen = (at <= at[:, None]) | (at < prefix[:, None, None])
    with torch.no_grad():
        logits = theirs(tokens, attention_mask=seen[:, None]).logits
        same(logits, model(tokens, prefix=prefix), FAMILIES[shape])


def test_every_shape_comes_back(shape: str, tokens: Any, tmp_path: Path) -> None:
    model = small(shape, dropout=0.25, separator=5)
    save(tmp_path / "checkpoint", model)
    read = load(tmp_path / "checkpoint", dtype=torch.float64)
    assert read.config == model.config
    assert not read.training
    with torch.no_grad():
        same(read(tokens), model(tokens))


def of_theirs(family: str, **options: Any) -> Any:
    torch.manual_seed(13)
    words = {"bos_token_id": 1, "eos_token_id": 3, "pad_token_id": 0, "vocab_size": 53, **options}
    if family == "llama":
        sizes = {"hidden_size": 30, "intermediate_size": 37, "num_hidden_layers": 2,
                 "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 14}  # fmt: skip
        config = transformers.LlamaConfig(**sizes | words, initializer_range=0.3)
        return transformers.LlamaForCausalLM(config).double().eval()
    sizes = {"n_embd": 20, "n_layer": 2, "n_head": 5, "n_positions": 43, "n_inner": 37}
    config = transformers.GPT2Config(**sizes | words, initializer_range=0.3)
    return transformers.GPT2LMHeadModel(config).double().eval()


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("llama", {"tie_word_embeddings": True}),
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
        ("gpt2", {}),
        ("gpt2", {"activation_function": "gelu"}),
    ],
)
def test_ours_loads_theirs(
    family: str, options: dict[str, Any], tokens: Any, tmp_path: Path
) -> None:
    theirs = of_theirs(family, **options)
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with torch.no_grad():
        logits = theirs(tokens).logits
        same(load(tmp_path, dtype=torch.float64)(tokens), logits, family)
        same(from_transformers(theirs)(tokens), logits, family)


def test_gpt2_without_its_outer_name(tokens: Any, tmp_path: Path) -> None:
    """As the first GPT-2 was published: no `transformer.`, and masks among the weights."""
    from safetensors.torch import save_file

    theirs = of_theirs("gpt2")
    theirs.save_pretrained(tmp_path)
    bare = {
        name.removeprefix("transformer."): each.contiguous().clone()
        for name, each in theirs.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file({**bare, "h.0.attn.bias": torch.ones(1, 1, 43, 43)}, tmp_path / "model.safetensors")
    with torch.no_grad():
        same(load(tmp_path, dtype=torch.float64)(tokens), theirs(tokens).logits)


def test_what_a_folder_holds(tmp_path: Path) -> None:
    save(tmp_path, small(), generation={"num_beams": 5}, files={"recipe.toml": "seed = 3\n"})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "generation_config.json", "model.safetensors", "recipe.toml"}
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation == {"bos_token_id": 1, "eos_token_id": 3, "pad_token_id": 0, "num_beams": 5}
    assert json.loads((tmp_path / "config.json").read_text())["regard"]["source_mask"] == "prefix"


def test_saving_again_keeps_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    save(tmp_path, small())
    save(tmp_path, small(source_mask="mixed"))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert load(tmp_path).config.source_mask == "mixed"


def test_a_save_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, small())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileError, match="cannot be written"):
        save(tmp_path, small(seed := "gpt2"), files={f"no/{seed}": "folder"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_random_state_is_left_alone(tmp_path: Path) -> None:
    save(tmp_path, small())
    before = torch.get_rng_state()
    load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def damaged(folder: Path, words: dict[str, Any] | None = None, cut: int = 0) -> None:
    save(folder, small(source_mask="causal"))
    path = folder / "config.json"
    if words:
        path.write_text(json.dumps(json.loads(path.read_text()) | words))
    if cut:
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-cut])


OWN = {**SIZES, "source_mask": "causal"}


@pytest.mark.parametrize(
    ("words", "cut", "message"),
    [
        ({}, 5, r"'.*model.safetensors' is damaged"),
        (
            {"regard": OWN | {"hidden": 41}},
            0,
            r"is \(74, 21\), but .* asks for \(82, 21\)",
        ),
        (
            {"regard": OWN | {"layers": 3}},
            0,
            "there is no tensor 'layers.2.input_",
        ),
        ({"regard": OWN | {"layers": 1}}, 0, "no place for its tensor 'layers.1"),
        ({"regard": OWN | {"depth": 1}}, 0, "no option 'depth' of a model"),
        ({"regard": OWN | {"norm_place": "after"}}, 0, "there is no tensor"),
    ],
)
def test_folders_that_are_refused(
    words: dict[str, Any], cut: int, message: str, tmp_path: Path
) -> None:
    damaged(tmp_path, words, cut)
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"model_type": "bert"}, "model type is 'bert', but regard reads llama, gpt2, regard"),
        ({"model_type": "llama"}, "json does not say 'num_attention_heads'"),
        (
            {"model_type": "llama", "hidden_act": "relu"},
            "hidden_act is 'relu', but regard's models have 'silu' or 'swish'",
        ),
        (
            {"model_type": "llama", "rope_scaling": {"rope_type": "llama3"}},
            "rope_type is 'llama3', but regard's models have 'default'",
        ),
    ],
)
def test_configs_of_others_that_are_refused(
    words: dict[str, Any], message: str, tmp_path: Path
) -> None:
    damaged(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(words))
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no folder '.*nowhere'"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"is none, for its config.json cannot be read"):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no model.safetensors .*could run code"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="is no JSON"):
        load(tmp_path)


def test_every_family_is_tried_here() -> None:
    assert set(FAMILIES) < set(SHAPES)


def gguf_file(path: Path, theirs: Any) -> None:
    """A Llama as llama.cpp writes it: its names, and rotary pairs that stand side by side."""
    gguf = pytest.importorskip("gguf")
    config = theirs.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"t{i}" for i in range(config.vocab_size)])
    writer.add_token_scores([0.0] * config.vocab_size)
    writer.add_token_types([1] * config.vocab_size)
    names = {
        "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm", "model.layers": "blk",
    }  # fmt: skip
    for name, tensor in theirs.state_dict().items():
        if "q_proj" in name or "k_proj" in name:
            halves = tensor.unflatten(0, (-1, 2, config.head_dim // 2))
            tensor = halves.transpose(1, 2).flatten(0, 2)
        for long, short in names.items():
            name = name.replace(long, short)
        writer.add_tensor(name, tensor.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_gguf(tokens: Any, tmp_path: Path) -> None:
    theirs = of_theirs("llama", num_attention_heads=5, num_key_value_heads=5, head_dim=6)
    gguf_file(tmp_path / "small.gguf", theirs)
    model = load(tmp_path / "small.gguf")
    with torch.no_grad():
        torch.testing.assert_close(
            model(tokens), theirs(tokens).logits.float(), rtol=1e-4, atol=1e-5
        )
    with pytest.raises(FileError, match="there is no file"):
        load(tmp_path / "other.gguf")


def gpt2_file(path: Path, theirs: Any) -> None:
    """A GPT-2 as llama.cpp writes it: its names, and matrices with their outputs first."""
    gguf = pytest.importorskip("gguf")
    config = theirs.config
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(config.n_positions)
    writer.add_embedding_length(config.n_embd)
    writer.add_block_count(config.n_layer)
    writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
    writer.add_head_count(config.n_head)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    names = {
        "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
        "transformer.ln_f": "output_norm", "transformer.h": "blk", "attn.c_attn": "attn_qkv",
        "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
        "ln_1": "attn_norm", "ln_2": "ffn_norm",
    }  # fmt: skip
    for name, tensor in theirs.state_dict().items():
        if name == "lm_head.weight":  # the embedding once more
            continue
        turned = tensor.mT if ".c_" in name and tensor.dim() == 2 else tensor
        for long, short in names.items():
            name = name.replace(long, short)
        writer.add_tensor(name, turned.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gpt2_of_gguf(tokens: Any, tmp_path: Path) -> None:
    theirs = of_theirs("gpt2")
    gpt2_file(tmp_path / "small.gguf", theirs)
    model = load(tmp_path / "small.gguf")
    with torch.no_grad():
        torch.testing.assert_close(
            model(tokens), theirs(tokens).logits.float(), rtol=1e-4, atol=1e-5
        )
