"""Tiny models with random weights give through regard what they give with transformers alone."""

from __future__ import annotations

from typing import Any

import pytest

import regard

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENS = 11


def gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=53, n_positions=64, n_embd=24, n_layer=2, n_head=3, attn_pdrop=0.0
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> Any:
    """Two query heads for each key head."""
    config = transformers.LlamaConfig(
        vocab_size=53, hidden_size=24, intermediate_size=31, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=64,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@pytest.fixture(params=[gpt2, llama])
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    regard.hf.enable()
    made = request.param().eval()
    made.generation_config.pad_token_id = 0
    for parameter in made.parameters():  # so that attention is anything but even
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def both(model: Any, run: Any) -> tuple[Any, Any]:
    """What a model gives by transformers' own code, and by regard."""
    answers = []
    for name in ("eager", "regard"):
        model.set_attn_implementation(name)
        assert model.config._attn_implementation == name
        with torch.no_grad():
            answers.append(run(model))
    return answers[0], answers[1]


def text(batch: int = 2) -> Any:
    return torch.randint(1, 53, (batch, TOKENS), generator=torch.Generator().manual_seed(5))


def close(have: Any, want: Any) -> None:
    torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4)


def test_logits(model: Any) -> None:
    want, have = both(model, lambda model: model(text()).logits)
    assert want.std() > 0.1
    close(have, want)


@pytest.mark.parametrize("side", ["left", "right"])
def test_logits_of_padded_batches(model: Any, side: str) -> None:
    mask = torch.ones(2, TOKENS, dtype=torch.long)
    hidden = slice(None, 4) if side == "left" else slice(-4, None)
    mask[1, hidden] = 0
    want, have = both(model, lambda model: model(text(), attention_mask=mask).logits)
    real = mask.bool()
    close(have[real], want[real])


def test_a_cache_gives_the_logits_of_the_whole_text(model: Any) -> None:
    def in_parts(model: Any) -> Any:
        first = model(text()[:, :6], use_cache=True)
        rest = model(text()[:, 6:], past_key_values=first.past_key_values)
        return torch.cat([first.logits, rest.logits], 1)

    want, have = both(model, in_parts)
    close(have, want)
    with torch.no_grad():
        close(have, model(text()).logits)


def test_generation(model: Any) -> None:
    mask = torch.ones(2, TOKENS, dtype=torch.long)
    mask[1, :3] = 0
    options = {"max_new_tokens": 7, "do_sample": False, "attention_mask": mask}
    want, have = both(model, lambda model: model.generate(text(), **options))
    assert have.shape == (2, TOKENS + 7)
    assert torch.equal(have, want)


def test_a_cache_with_room_left(model: Any) -> None:
    def generate(model: Any) -> Any:
        return model.generate(
            text(), max_new_tokens=5, do_sample=False, cache_implementation="static",
            disable_compile=True,
        )  # fmt: skip

    want, have = both(model, generate)
    assert torch.equal(have, want)


def test_gradients(model: Any) -> None:
    found = []
    for name in ("eager", "regard"):
        model.set_attn_implementation(name)
        loss = model(text(), labels=text()).loss
        found.append(torch.autograd.grad(loss, list(model.parameters())))
    for have, want in zip(*reversed(found), strict=True):
        close(have, want)


def test_inspection_tells_what_output_attentions_tells(model: Any) -> None:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        whole = model(text(), output_attentions=True).attentions
    model.set_attn_implementation("regard")
    asked = regard.Inspect(top=2, entropy=True, received=True, rows=range(TOKENS))
    with regard.hf.inspecting(asked) as seen, torch.no_grad():
        model(text())
    assert list(seen) == [0, 1]
    for layer, weights in enumerate(whole):
        (answer,) = seen[layer]
        close(answer.rows, weights)
        close(answer.received, weights.sum(-2))
        close(answer.top_weights[..., 0], weights.max(-1).values)
        close(answer.entropy, torch.special.entr(weights).sum(-1))


def test_inspection_of_each_step_of_a_generation(model: Any) -> None:
    model.set_attn_implementation("regard")
    with regard.hf.inspecting(regard.Inspect(rows=[-1])) as seen:
        model.generate(text(1), max_new_tokens=3, do_sample=False)
    assert [answer.rows.shape[-1] for answer in seen[1]] == [TOKENS, TOKENS + 1, TOKENS + 2]
    with torch.no_grad(), regard.hf.inspecting(regard.Inspect()) as later:
        pass
    assert later == {}


def test_dropout_is_refused(model: Any) -> None:
    model.set_attn_implementation("regard")
    model.train()
    for module in model.modules():
        if hasattr(module, "attn_dropout"):
            module.attn_dropout.p = 0.1
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.1
    with pytest.raises(regard.OptionError, match=r"no dropout, but the model asks for 0\.1"):
        model(text())


def test_what_is_asked_is_checked() -> None:
    with (
        pytest.raises(regard.OptionError, match=r"takes a regard\.Inspect"),
        regard.hf.inspecting({"top": 3}),  # type: ignore[arg-type]
    ):
        pass


def test_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(regard.MissingExtraError, match=r"pip install 'regard\[hf\]'"):
        regard.hf.enable()
