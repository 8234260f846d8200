"""What a token may see, the cache, places, the loss, and options that are refused."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from regard import OptionError, SizeLimitError  # noqa: E402
from regard.model import Cache, Config, Transformer, _loss, loss, predicting  # noqa: E402

from .conftest import SIZES, small  # noqa: E402


def changed_rows(model: Any, tokens: Any, at: int, **how: Any) -> list[int]:
    """The tokens whose logits change when the token at a place does, in the first entry."""
    other = tokens.clone()
    other[0, at] = (other[0, at] + 1) % 50
    with torch.no_grad():
        difference = (model(tokens, **how) - model(other, **how)).abs().amax(-1)
    assert not difference[1:].any(), "another batch entry changed"
    return difference[0].gt(1e-9).nonzero().flatten().tolist()


def test_without_a_prefix_nothing_sees_the_future(shape: str, tokens: Any) -> None:
    assert changed_rows(small(shape), tokens, 5) == list(range(5, 17))


def test_the_source_sees_itself_and_nothing_of_the_target(shape: str, tokens: Any) -> None:
    model, prefix = small(shape), torch.tensor([7, 4, 11])
    assert changed_rows(model, tokens, 5, prefix=prefix) == list(range(17))
    assert changed_rows(model, tokens, 7, prefix=prefix) == list(range(7, 17))


def test_a_prefix_of_nothing_is_causal(tokens: Any) -> None:
    model = small()
    torch.testing.assert_close(model(tokens, prefix=torch.zeros(3).long()), model(tokens))


@pytest.fixture(params=["kernel", "products"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which tokens that say what they may see are attended for."""
    if request.param == "products":
        monkeypatch.setattr("regard.model._transformer.has_kernel", lambda *given: False)


@torch.no_grad()
def seeing(model: Any, tokens: Any, seen: Any, places: Any) -> Any:
    cache = Cache(model.config, *tokens.shape, dtype=torch.float64)
    return model(tokens, seen=seen.expand(3, -1, -1).contiguous(), places=places, cache=cache)


@pytest.mark.usefixtures("way")
def test_what_is_seen_says_the_same_as_a_prefix(tokens: Any) -> None:
    model, prefix = small("llama, grouped"), torch.tensor([7, 4, 11])
    at = torch.arange(17)
    seen = (at <= at[:, None]) | (at < prefix[:, None, None])
    found = seeing(model, tokens, seen, at.expand(3, -1))
    torch.testing.assert_close(found, model(tokens, prefix=prefix))


def test_the_cache_changes_nothing(shape: str, tokens: Any) -> None:
    model, prefix = small(shape), torch.tensor([7, 4, 6])
    cache = Cache(model.config, 3, 17, dtype=torch.float64)
    with torch.no_grad():
        parts = [model(tokens[:, :7], prefix=prefix, cache=cache)]
        parts += [model(tokens[:, i : i + 2], cache=cache) for i in range(7, 17, 2)]
        torch.testing.assert_close(torch.cat(parts, 1), model(tokens, prefix=prefix))


def test_a_cache_that_keeps_some_rows(tokens: Any) -> None:
    model = small("llama, grouped")
    cache = Cache(model.config, 3, 17, dtype=torch.float64)
    with torch.no_grad():
        model(tokens[:, :9], cache=cache)
        cache.keep(torch.tensor([1, 2]))
        rest = model(tokens[1:, 9:], cache=cache)
        torch.testing.assert_close(rest, model(tokens)[1:, 9:])


@pytest.mark.usefixtures("way")
def test_tokens_may_stand_anywhere(shape: str, tokens: Any) -> None:
    """With places of its own and what each sees, an order of the tokens means nothing."""
    model, order = small(shape), torch.randperm(17)
    causal = torch.ones(17, 17).tril().bool()
    found = seeing(model, tokens[:, order], causal[order][:, order], order.expand(3, -1))
    torch.testing.assert_close(found, model(tokens)[:, order])


def test_too_many_tokens_are_refused() -> None:
    model, tokens = small(), torch.ones(1, 44).long()
    with pytest.raises(SizeLimitError, match="44 tokens are more than the 43"):
        model(tokens)
    with pytest.raises(SizeLimitError, match="9 tokens after 0 do not fit into 8"):
        model(tokens[:, :9], cache=Cache(model.config, 1, 8, dtype=torch.float64))


def test_which_tokens_predict() -> None:
    tokens = torch.tensor([[1, 20, 21, 2, 30, 3, 0], [1, 22, 2, 31, 32, 33, 3]])
    sources, lengths = torch.tensor([4, 3]), torch.tensor([6, 7])
    places, labels = predicting(tokens, sources, lengths)
    assert places.tolist() == [3, 4, 9, 10, 11, 12]
    assert labels.tolist() == [30, 3, 31, 32, 33, 3]
    places, labels = predicting(tokens, sources, lengths, with_source=True)
    assert labels.tolist() == [20, 21, 2, 30, 3, 22, 2, 31, 32, 33, 3]


def test_the_loss_of_knowing_nothing(tokens: Any) -> None:
    """With an output of zeros every token has the same chance."""
    model = small()
    with torch.no_grad():
        model.embedding.weight.zero_()
    found = predicting(tokens, torch.tensor([7, 4, 11]), torch.tensor([17, 15, 13]))
    assert loss(model, tokens, *found).item() == pytest.approx(log(53))


def test_the_loss_asks_of_the_target_alone(tokens: Any) -> None:
    """It equals the logits' own cross-entropy, written out for one batch entry."""
    model, sources = small(), torch.tensor([7, 4, 11])
    places, labels = predicting(tokens[:1], sources[:1], torch.tensor([15]))
    logits = model(tokens[:1], prefix=sources[:1])[0]
    by_hand = -torch.stack(
        [torch.log_softmax(logits[i], 0)[tokens[0, i + 1]] for i in range(6, 14)]
    )
    found = loss(model, tokens[:1], places, labels, prefix=sources[:1], reduction="sum")
    torch.testing.assert_close(found.double(), by_hand.sum(), rtol=1e-6, atol=0)


def test_gradients_reach_every_weight(shape: str, tokens: Any) -> None:
    model, sources = small(shape), torch.tensor([7, 4, 11])
    places, labels = predicting(tokens, sources, torch.tensor([17, 15, 13]))
    loss(model, tokens, places, labels, prefix=sources).backward()
    assert all(weight.grad.any() for weight in model.parameters())


def test_dropout_acts_in_training_alone(tokens: Any) -> None:
    model = small(dropout=0.5)
    torch.testing.assert_close(model(tokens), model(tokens))
    assert (model.train()(tokens) - model(tokens)).abs().max() > 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "rsm"}, "`norm` must be one of 'rms', 'layer', but 'rsm'.*did you mean 'rms'"),
        ({"heads": 4, "kv_heads": 3}, "4 query heads cannot share 3 key heads"),
        ({"head_dim": 7}, "`head_dim` must be even to be rotated, but is 7"),
        ({"width": 0}, "`width` must be a whole number of at least 1, but 0"),
        ({"dropout": 1.5}, "`dropout` must be at least 0 and below 1, but is 1.5"),
        ({"end": 53}, "`end` must be the number of a token, below 53, but 53"),
        ({"kvheads": 2}, "no option 'kvheads' of a model: did you mean 'kv_heads'"),
        ({"shape": "lama"}, "`shape` must be one of .*did you mean 'llama'"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    said = {**SIZES, **options}
    with pytest.raises(OptionError, match=message):
        Config.shaped(said.pop("shape", "llama"), **said)


def test_a_config_needs_its_vocabulary() -> None:
    with pytest.raises(OptionError, match="needs `vocabulary`"):
        Config.read({"width": 8})


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("lower", [False, True])
def test_the_loss_in_parts_is_torchs(
    smoothing: float, lower: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over 23 rows, five at a time, far from and near to certainty."""
    monkeypatch.setattr(_loss, "ROWS", 5)
    torch.manual_seed(1)
    hidden = (torch.randn(23, 7) * torch.logspace(-1, 2, 23)[:, None]).requires_grad_()
    weight, labels = torch.randn(13, 7, requires_grad=True), torch.randint(0, 13, (23,))
    with torch.autocast("cpu", torch.bfloat16, enabled=lower):
        found = _loss._CrossEntropy.apply(hidden, weight, labels, smoothing)
        logits = torch.nn.functional.linear(hidden, weight).float()
    wanted = torch.nn.functional.cross_entropy(
        logits, labels, label_smoothing=smoothing, reduction="sum"
    )
    torch.testing.assert_close(found, wanted)
    given = (hidden, weight)
    share = 0.02 if lower else 1e-6
    for one, other in zip(
        *(torch.autograd.grad(3 * each, given) for each in (found, wanted)), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=share, atol=share * float(other.abs().max()))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_block_is_compiled_once_for_all_lengths(dropout: float) -> None:
    """Dropout and attention included, without a break and without compiling anew."""
    model = Transformer(Config.shaped("llama", **{**SIZES, "dropout": dropout})).train()
    torch._dynamo.reset()
    options = {"dynamic": True, "fullgraph": True, "backend": "aot_eager"}
    compiled = torch.compile(model.blocks[0].forward, **options)
    for many, length in ((3, 17), (5, 11), (2, 7)):
        text = torch.randint(4, 53, (many, length))
        x, turns = model._placed(text, None, 0)
        x = x.detach().requires_grad_()
        seen = {"prefix": torch.full((many,), 5), "causal": True}
        with torch._dynamo.config.patch(error_on_recompile=True):
            found = compiled(x, turns, None, 0, seen)
            if not dropout:  # a compiler may draw in another order
                torch.testing.assert_close(found, model.blocks[0](x, turns, None, 0, seen))
            found.sum().backward()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")  # torch's own
def test_compiled_as_a_whole(tokens: Any) -> None:
    """torch.compile finds no reason to break the graph, and computes the same."""
    model, sources = small(), torch.tensor([7, 4, 11])
    places, labels = predicting(tokens, sources, torch.tensor([17, 15, 13]))
    compiled = torch.compile(loss, dynamic=True, fullgraph=True)
    for many in (3, 2):
        how = {"prefix": sources[:many]}
        kept = places < many * 17
        given = (model, tokens[:many], places[kept], labels[kept])
        torch.testing.assert_close(compiled(*given, **how), loss(*given, **how))


def test_the_default_shape_is_as_large_as_is_said() -> None:
    """2·8/3 as many hidden coordinates as width, in whole blocks of 64."""
    assert Config(vocabulary=5000).hidden == 704
    model = Transformer(Config(vocabulary=5000, layers=1))
    assert sum(each.numel() for each in model.parameters()) == (
        5000 * 256 + 4 * 256 * 256 + 3 * 256 * 704 + 3 * 256
    )
