"""The tokenizer: whatever goes in comes out, with dropout too."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tokenizers")

from regard import FileError, OptionError
from regard.translation import pocket
from regard.translation.tokenizer import SPECIAL, Tokenizer

TEXTS = [text for pair in pocket.pairs("train", 500) for text in pair]
TOKENIZER = Tokenizer.trained(TEXTS, 700)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_any_text_comes_back(text: str) -> None:
    rows = TOKENIZER.encode([text])
    assert TOKENIZER.decode(rows) == [text]
    assert all(token >= len(SPECIAL) for token in rows[0])
    dropped = TOKENIZER.encode_dropping([text], 0.3, Random(1))
    assert TOKENIZER.decode(dropped) == [text]


@pytest.mark.parametrize("text", ["", " ", "  a ", "<pad>", "<0x41>", "▁", "L'œuf 🥚\n\t", "日本"])
def test_texts_that_look_like_tokens_come_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode([text])) == [text]


def test_without_dropping_the_merges_give_what_the_library_gives() -> None:
    texts = [fr for fr, _ in pocket.pairs("val", 200)]
    assert TOKENIZER.encode_dropping(texts, 0.0, Random(1)) == TOKENIZER.encode(texts)


def test_dropping_varies_words_and_depends_on_the_seed_alone() -> None:
    word = TEXTS[0]
    ways = {tuple(TOKENIZER.encode_dropping([word], 0.3, Random(n), seed=5)[0]) for n in range(20)}
    assert len(ways) > 3
    again = Tokenizer.trained(TEXTS, 700)
    assert again.encode_dropping(TEXTS[:50], 0.3, Random(2), 5) == TOKENIZER.encode_dropping(
        TEXTS[:50], 0.3, Random(2), 5
    )


def test_it_is_saved_and_read(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer.json")
    read = Tokenizer.read(tmp_path / "tokenizer.json")
    assert read.encode(TEXTS) == TOKENIZER.encode(TEXTS)
    assert read.decode(read.encode(["<end> of it"])) == ["<end> of it"]


def test_a_damaged_file_and_too_small_a_vocabulary_are_errors(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(FileError, match=r"tokenizer\.json"):
        Tokenizer.read(tmp_path / "tokenizer.json")
    with pytest.raises(OptionError, match="at least 261, but is 100"):
        Tokenizer.trained(TEXTS, 100)
