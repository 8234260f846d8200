"""The tokenizer: byte pair encoding, with bytes for what it never saw.

Words keep the blank before them, so that a text is the plain concatenation of its tokens; one
blank is put before the first word and taken away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from regard._errors import FileError, MissingExtraError, OptionError
from regard._files import write_atomically

SPECIAL = ("<pad>", "<begin>", "<separator>", "<end>")
PAD, BEGIN, SEPARATOR, END = range(len(SPECIAL))
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Short words keep their apostrophe (l', I'); otherwise it begins the next word ('s).
WORDS = (
    r" ?\p{L}{1,2}['’](?=\p{L})| ?['’]?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
)
SEGMENTATIONS = 16


class Tokenizer:
    """Text to numbers and back; whatever text goes in comes out again."""

    def __init__(self, inside: Any) -> None:
        self._inside = inside
        # Text that happens to spell a special token is text.
        inside.encode_special_tokens = True
        self._drawn: dict[tuple[str, float, int], list[list[int]]] = {}
        self._merges: dict[tuple[str, str], int] | None = None

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary: int) -> Tokenizer:
        """From texts: `vocabulary` tokens, with the special ones and the 256 bytes."""
        library = _library()
        least = len(SPECIAL) + len(BYTES) + 1
        if vocabulary < least:
            raise OptionError(f"`vocabulary` must be at least {least}, but is {vocabulary}")
        inside = library.Tokenizer(library.models.BPE(byte_fallback=True))
        inside.normalizer = library.normalizers.Prepend(" ")
        inside.pre_tokenizer = library.pre_tokenizers.Split(library.Regex(WORDS), "isolated")
        inside.decoder = library.decoders.Sequence(
            [library.decoders.ByteFallback(), library.decoders.Fuse(),
             library.decoders.Strip(" ", 1, 0)]
        )  # fmt: skip
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=[*SPECIAL, *BYTES], show_progress=False
        )
        inside.train_from_iterator(texts, trainer)
        return cls(inside)

    @classmethod
    def read(cls, path: str | Path) -> Tokenizer:
        library = _library()
        try:
            return cls(library.Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare ones
            raise FileError(f"tokenizer {str(path)!r} cannot be read: {error}") from error

    def save(self, path: str | Path) -> None:
        write_atomically(path, self.written())

    def written(self) -> str:
        text: str = self._inside.to_str(pretty=True)
        return text

    def __len__(self) -> int:
        size: int = self._inside.get_vocab_size()
        return size

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self._inside.encode_batch(list(texts), False)]

    def decode(self, tokens: Iterable[Sequence[int]]) -> list[str]:
        plain = [[token for token in row if token >= len(SPECIAL)] for row in tokens]
        return list(self._inside.decode_batch(plain, skip_special_tokens=False))

    def tokens(self, numbers: Iterable[int]) -> list[str]:
        """How each token is spelled."""
        return [self._inside.id_to_token(number) for number in numbers]

    # --- BPE-dropout ------------------------------------------------------------------------

    def encode_dropping(
        self, texts: Sequence[str], share: float, rng: Random, seed: int = 0
    ) -> list[list[int]]:
        """Like `encode`, but each merge is left out by chance, so that words vary.

        A word has 16 segmentations, drawn when it first comes; they depend on the word and the
        seed alone, which makes a resumed run see what an unbroken one would have seen.
        """
        rows = []
        for text in texts:
            pieces = self._inside.pre_tokenizer.pre_tokenize_str(" " + text) if text else []
            words = (self._segmentations(word, share, seed) for word, _ in pieces)
            rows.append([token for ways in words for token in ways[rng.randrange(len(ways))]])
        return rows

    def _segmentations(self, word: str, share: float, seed: int) -> list[list[int]]:
        found = self._drawn.get((word, share, seed))
        if found is None:
            rng = Random(crc32(word.encode()) + seed)
            found = [self._segmented(word, share, rng) for _ in range(SEGMENTATIONS)]
            self._drawn[word, share, seed] = found
        return found

    def _segmented(self, word: str, share: float, rng: Random) -> list[int]:
        """The merges in their order of rank; each place is passed over with chance `share`."""
        merges = self._ranks()
        parts = list(word)
        while len(parts) > 1:
            ranked = [
                (merges[pair], at)
                for at, pair in enumerate(pairwise(parts))
                if pair in merges and rng.random() >= share
            ]
            if not ranked:
                break
            _, at = min(ranked)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [token for part in parts for token in self._number(part)]

    def _number(self, part: str) -> list[int]:
        token = self._inside.token_to_id(part)
        if token is not None:
            return [token]
        return [self._inside.token_to_id(BYTES[byte]) for byte in part.encode()]

    def _ranks(self) -> dict[tuple[str, str], int]:
        if self._merges is None:
            import json

            listed = json.loads(self._inside.to_str())["model"]["merges"]
            self._merges = {(left, right): rank for rank, (left, right) in enumerate(listed)}
        return self._merges


def _library() -> Any:
    try:
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.normalizers
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ModuleNotFoundError as error:
        raise MissingExtraError("a tokenizer", "translate", "tokenizers") from error
    return tokenizers
