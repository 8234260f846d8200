"""Heads of live models: the steps against the model's own numbers, within the stated bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import regard  # noqa: E402
from regard import NumberError, OptionError  # noqa: E402
from regard.hf import open_head  # noqa: E402
from regard.model import Config, Transformer, save  # noqa: E402

torch.set_num_threads(1)
SOURCE = [5, 9, 17, 4, 30, 11, 8]
TOKENS = {"bos_token_id": 1, "eos_token_id": 3, "pad_token_id": 0, "vocab_size": 53}


def ours(shape: str = "llama", **options: Any) -> Any:
    torch.manual_seed(17)
    sizes = {"vocabulary": 53, "width": 30, "layers": 2, "heads": 6, "head_dim": 14, "hidden": 37,
             "longest": 43}  # fmt: skip
    model = Transformer(Config.shaped(shape, **sizes | options)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return model


def theirs(kind: str) -> Any:
    torch.manual_seed(19)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            n_embd=20, n_layer=2, n_head=5, n_positions=43, initializer_range=0.3, **TOKENS
        )
        return transformers.GPT2LMHeadModel(config).eval()
    if kind == "t5":
        config = transformers.T5Config(
            d_model=20, d_kv=7, d_ff=37, num_layers=2, num_heads=3, decoder_start_token_id=0,
            **TOKENS,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config).eval()
    elif kind in ("bart", "marian"):
        named = {"bart": transformers.BartConfig, "marian": transformers.MarianConfig}[kind]
        config = named(
            d_model=20, encoder_layers=2, decoder_layers=2, encoder_attention_heads=5,
            decoder_attention_heads=5, encoder_ffn_dim=37, decoder_ffn_dim=37,
            max_position_embeddings=43, decoder_start_token_id=2, forced_eos_token_id=None,
            init_std=0.3, **TOKENS,
        )  # fmt: skip
        models = {
            "bart": transformers.BartForConditionalGeneration,
            "marian": transformers.MarianMTModel,
        }
        model = models[kind](config).eval()
    else:
        config_type = getattr(transformers, f"{kind}Config")
        config = config_type(
            hidden_size=30, intermediate_size=37, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, head_dim=14, initializer_range=0.3, **TOKENS,
        )  # fmt: skip
        model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    return model


@pytest.mark.parametrize("mask", ["prefix", "causal"])
@pytest.mark.parametrize("shape", ["llama", "vaswani", "gpt2"])
def test_heads_of_ours(shape: str, mask: str) -> None:
    options = {"kv_heads": 2} if shape == "llama" else {}
    model = ours(shape, source_mask=mask, **options)
    for head in (1, 4, 6):
        trace = open_head(model, SOURCE, layer=2, head=head, target=[21, 22])
        assert trace["weights"].shape == (11, 11)
        future = trace["weights"].value[0, 1:]
        assert bool(future.any()) == (mask == "prefix")
        assert f"layer 2, head {head}" in trace.title


def test_the_heads_together_are_the_output() -> None:
    """Each head's share, through its rows of the output matrix, adds up to what the layer says."""
    model = ours(kv_heads=3)
    said = []
    handle = model.blocks[1].attention.register_forward_hook(lambda *each: said.append(each[2]))
    shares = [open_head(model, SOURCE, layer=2, head=n + 1)["output"].value for n in range(6)]
    handle.remove()
    np.testing.assert_allclose(sum(shares), said[0][0].numpy(), atol=1e-4)


@pytest.mark.parametrize("kind", ["Llama", "Mistral", "gpt2"])
def test_heads_of_their_causal_models(kind: str) -> None:
    model = theirs(kind)
    for layer, head in ((1, 1), (2, 5)):
        trace = open_head(model, SOURCE, layer=layer, head=head)
        assert not np.triu(trace["weights"].value, 1).any()
    assert ("Q_rotated" in trace) == (kind != "gpt2")


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("kind", ["t5", "bart", "marian"])
def test_heads_of_their_encoder_decoder_models(kind: str, part: str) -> None:
    trace = open_head(theirs(kind), SOURCE, layer=2, head=3, target=[21, 22], part=part)
    shapes = {"encoder": (7, 7), "decoder": (3, 3), "cross": (3, 7)}
    assert trace["weights"].shape == shapes[part]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_bound_follows_the_type(dtype: Any) -> None:
    """Real differences stay within it, and it is not so wide that anything would."""
    open_head(ours().to(dtype), SOURCE)
    open_head(theirs("Llama").to(dtype), SOURCE)


def test_a_small_change_of_the_weights_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight of a thousand changed by a thousandth, between the run and the steps."""
    from regard.hf import _layouts

    of_head = _layouts.Layout.of_head

    def changed(self: Any, head: int) -> Any:
        given = of_head(self, head)
        given["WV"] = given["WV"].clone()
        given["WV"][3, 5] += 1e-3
        return given

    monkeypatch.setattr(_layouts.Layout, "of_head", changed)
    with pytest.raises(NumberError, match="something else than standard attention"):
        open_head(ours(), SOURCE)


def test_attention_that_is_not_standard_is_refused() -> None:
    """Qwen3 norms its queries and keys, which the steps know nothing of."""
    with pytest.raises(NumberError, match="Qwen3ForCausalLM computes something else"):
        open_head(theirs("Qwen3"), SOURCE)


def test_the_steps_are_a_trace_like_any_other() -> None:
    trace = open_head(ours(), SOURCE, layer=1, head=2)
    assert isinstance(trace, regard.Trace)
    assert trace.cost().rows
    changed = trace.replace(scaled=0 * trace["scaled"].value)
    visible = trace["weights"].value[-1] > 0
    assert changed["weights"].value[-1][visible] == pytest.approx(1 / visible.sum())
    assert "Layer" in trace.to_text() or "layer 1, head 2" in trace.to_text()


def test_from_a_folder_with_its_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(["a", "b", "c", "d", "le", "chat", "dort"])}
    inside = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="a"))
    inside.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    save(tmp_path, ours(), files={"tokenizer.json": inside.to_str()})
    from_folder = open_head(tmp_path, "le chat dort")
    wanted = open_head(ours(), [4, 5, 6])
    np.testing.assert_array_equal(from_folder["weights"].value, wanted["weights"].value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layer": 3}, "`layer` is counted from 1 to 2, but 3"),
        ({"head": 0}, "`head` is counted from 1 to 6, but 0"),
        ({"text": "chat"}, "a text needs its tokenizer"),
        ({"part": "corss"}, "`part` must be one of .*did you mean 'cross'"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        open_head(ours(), **{"text": SOURCE, **given})


def test_a_causal_model_has_no_encoder() -> None:
    with pytest.raises(OptionError, match="has no encoder attention"):
        open_head(theirs("gpt2"), SOURCE, part="encoder")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ([], "there is no token to look at"),
        (None, "a text is a string or the numbers of its tokens, .* but None was passed"),
        ([1.5, 2], r"one after another, but \[1.5, 2\] was passed"),
        ([[1, 2], [3, 4]], "one after another"),
        ([1, -1], "tokens are numbered from 0 to .*, but one is -1"),
        ([1, 10**6], "but one is 1000000"),
    ],
)
@pytest.mark.parametrize("kind", ["ours", "gpt2"])
def test_texts_that_are_none(kind: str, text: Any, message: str) -> None:
    model = ours() if kind == "ours" else theirs(kind)
    with pytest.raises(OptionError, match=message):
        open_head(model, text)


def test_more_tokens_than_places() -> None:
    model = theirs("gpt2")
    places = model.config.n_positions
    with pytest.raises(OptionError, match=f"cannot read these {places + 1} tokens"):
        open_head(model, [1] * (places + 1))


@pytest.mark.parametrize("model", [None, {}, 5, torch.nn.Linear(3, 3)])
def test_models_that_are_none(model: Any) -> None:
    with pytest.raises(OptionError, match=f"but a {type(model).__name__} was passed"):
        open_head(model, [1, 2])


def test_a_model_that_is_being_trained() -> None:
    with pytest.raises(NumberError, match=r"with dropout: call model.eval\(\)"):
        open_head(theirs("gpt2").train(), SOURCE)


def test_ours_has_no_other_parts() -> None:
    with pytest.raises(OptionError, match="a Transformer has no cross attention"):
        open_head(ours(), SOURCE, part="cross")
