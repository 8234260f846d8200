"""Beam search against exhaustive search, `transformers`, itself without a cache and one by one."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from regard import OptionError, SizeLimitError  # noqa: E402
from regard.model import Config, Transformer, save  # noqa: E402
from regard.translation.decoding import Hypothesis, Search, search  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(params=["kernel", "products"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel's step, and without it as on other devices."""
    if request.param == "products":
        for room in ("regard.model._transformer", "regard.translation.decoding"):
            monkeypatch.setattr(f"{room}.has_kernel", lambda *given: False)


def small(**options: Any) -> Any:
    sizes = {"vocabulary": 11, "width": 14, "layers": 2, "heads": 2, "head_dim": 6, "hidden": 17,
             "longest": 61, "kv_heads": 1}  # fmt: skip
    torch.manual_seed(5)
    model = Transformer(Config(**sizes | options)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn_like(weight)
    return model


def some_sources(many: int, longest: int = 9) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, longest, (many,), generator=generator).tolist()
    return [torch.randint(4, 11, (n,), generator=generator).tolist() for n in lengths]


def log_probabilities(model: Any, source: list[int], target: list[int]) -> Any:
    """What the model gives each token of a target and its end, read as a whole, without cache."""
    row = [model.config.begin, *source, model.config.separator]
    prefix = torch.tensor([len(row)]) if model.config.source_mask == "prefix" else None
    with torch.no_grad():
        logits = model(torch.tensor([row + target]), prefix=prefix)[0, len(row) - 1 :]
    return torch.log_softmax(logits, -1)


def exhaustive(model: Any, source: list[int], how: Search) -> list[Hypothesis]:
    """Every translation of up to `longest` tokens, the end counted, by its score."""
    end = model.config.end
    words = [token for token in range(model.config.vocabulary) if token > end]
    found = []
    for many in range(how.longest + 1):
        for target in product(words, repeat=many):
            row = log_probabilities(model, source, list(target))
            total = float(sum(row[i, token] for i, token in enumerate(target)))
            complete = many < how.longest
            total += float(row[many, end]) if complete else 0.0
            score = total / (many + complete) ** how.length_penalty
            found.append(Hypothesis(list(target), score, complete))
    return sorted(found, key=lambda each: -each.score)


@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.0])
def test_a_wide_beam_is_an_exhaustive_search(penalty: float) -> None:
    model = small(vocabulary=8)
    how = Search(beam=64, best=5, longest=3, length_penalty=penalty, stop="sure")
    for source, found in zip([[4, 6], [7], []], search(model, [[4, 6], [7], []], how), strict=True):
        wanted = exhaustive(model, source, how)[:5]
        assert [each.tokens for each in found] == [each.tokens for each in wanted]
        assert [each.complete for each in found] == [each.complete for each in wanted]
        scores = [each.score for each in found]
        assert scores == pytest.approx([each.score for each in wanted], rel=1e-5)


def plain_beam(model: Any, source: list[int], beam: int, longest: int) -> list[Hypothesis]:
    """Beam search as textbooks write it: lists, no batch, no cache; it stops at the limit."""
    end, live, done = model.config.end, [([], 0.0)], []
    for many in range(1, longest + 1):
        grown = []
        for tokens, total in live:
            row = log_probabilities(model, source, tokens)[-1]
            row[[model.config.pad, model.config.begin, model.config.separator]] = -torch.inf
            grown += [([*tokens, token], total + float(each)) for token, each in enumerate(row)]
        grown.sort(key=lambda each: -each[1])
        ended = [each for each in grown[:beam] if each[0][-1] == end]
        done += [Hypothesis(tokens[:-1], total / many, True) for tokens, total in ended]
        live = [each for each in grown[: 2 * beam] if each[0][-1] != end][:beam]
    done += [Hypothesis(tokens, total / longest, False) for tokens, total in live]
    return sorted(done, key=lambda each: -each.score)[:beam]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("mask", ["prefix", "causal"])
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_batch_and_cache_change_nothing(beam: int, mask: str) -> None:
    model, sources = small(source_mask=mask), some_sources(13)
    how = Search(beam=beam, best=beam, longest=7, stop="sure")
    for source, found in zip(sources, search(model, sources, how), strict=True):
        wanted = plain_beam(model, source, beam, 7)
        assert [each.tokens for each in found] == [each.tokens for each in wanted]
        scores = [each.score for each in found]
        assert scores == pytest.approx([each.score for each in wanted], rel=1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "how",
    [
        Search(beam=1),
        Search(beam=4, best=3),
        Search(beam=3, stop="first"),
        Search(beam=3, best=3, stop="sure", length_penalty=0.6),
    ],
)
def test_batching_equals_one_by_one(how: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches large and small, where sentences end at different steps."""
    model, sources = small(), some_sources(29)
    alone = [search(model, [source], how)[0] for source in sources]
    for at_once in (320, 20):
        monkeypatch.setattr("regard.translation.decoding.AT_ONCE", at_once)
        together = search(model, sources, how)
        assert [[each.tokens for each in one] for one in together] == [
            [each.tokens for each in one] for one in alone
        ]
    assert len({len(one[0].tokens) for one in alone}) > 3, "too alike to test anything"


@pytest.fixture
def threads() -> Any:
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("threads")
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread searches batches of its own, and all of them together give the same."""
    model, sources, how = small(), some_sources(53), Search(beam=3, best=3)
    together = search(model, sources, how)
    assert torch.get_num_threads() == 3
    monkeypatch.setattr("regard.translation.decoding.MOST_WORKERS", 1)
    assert search(model, sources, how) == together


@pytest.mark.usefixtures("threads")
def test_what_fails_in_a_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(beams: Any) -> None:
        raise MemoryError("no room for it")

    monkeypatch.setattr("regard.translation.decoding._Beams.run", fail)
    with pytest.raises(MemoryError, match="no room for it"):
        search(small(), some_sources(53), Search())
    assert torch.get_num_threads() == 3


def test_greedy_takes_the_likeliest_token() -> None:
    model = small()
    for source, (found,) in zip(
        some_sources(11), search(model, some_sources(11), Search(beam=1)), strict=True
    ):
        tokens: list[int] = []
        while len(tokens) < 2 * len(source) + 20:
            row = log_probabilities(model, source, tokens)[-1]
            row[[0, 1, 2]] = -torch.inf
            if row.argmax() == model.config.end:
                break
            tokens.append(int(row.argmax()))
        assert found.tokens == tokens


@pytest.mark.parametrize(("stop", "early"), [("likely", False), ("first", True), ("sure", "never")])
def test_the_same_as_transformers(stop: str, early: bool | str, tmp_path: Any) -> None:
    """Three ways of stopping, beam and greedy, against `generate` of the same checkpoint."""
    transformers = pytest.importorskip("transformers")
    model = small(source_mask="causal")
    save(tmp_path, model)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float64)
    for source in some_sources(7):
        row = torch.tensor([[1, *source, 2]])
        for beam in (1, 4):
            how = Search(beam=beam, best=beam, longest=13, stop=stop)
            (found,) = search(model, [source], how)
            options = {"num_beams": beam, "num_return_sequences": beam, "early_stopping": early}
            wanted = theirs.generate(
                row, attention_mask=torch.ones_like(row), max_new_tokens=13, do_sample=False,
                suppress_tokens=[0, 1, 2], **options if beam > 1 else {},
            )[:, row.shape[1] :]  # fmt: skip
            assert [each.tokens for each in found] == [
                [token for token in each.tolist() if token not in (0, 3)] for each in wanted
            ]


def test_a_translation_that_does_not_end_is_told() -> None:
    model = small()
    with torch.no_grad():
        model.embedding.weight[3] = 0
    (found,) = search(model, [[4, 5]], Search(beam=1, longest=6))
    assert len(found[0].tokens) == 6
    assert not found[0].complete


def test_no_source_longer_than_the_places_allow() -> None:
    model = small()
    assert search(model, [[4] * 29], Search(beam=2))
    with pytest.raises(SizeLimitError, match=r"source 1 has 30 tokens, but .* 61 places allow 29"):
        search(model, [[4], [4] * 30], Search(beam=2))


def test_nothing_to_translate() -> None:
    assert search(small(), [], Search()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "`beam` must be a whole number of at least 1"),
        ({"beam": 2, "best": 3}, r"`best` must be at most `beam` \(2\), but is 3"),
        ({"stop": "fist"}, "`stop` must be one of .*did you mean 'first'"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Search(**options)


def test_every_candidate_counts() -> None:
    """The exhaustive search of these tests looks at as many translations as there are."""
    how = Search(beam=1, longest=2)
    assert len(exhaustive(small(vocabulary=8), [4], how)) == sum(prod([4] * n) for n in range(3))
