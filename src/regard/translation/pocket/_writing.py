"""French spelling between words (de le → du, je aime → j'aime), English a and an."""

from __future__ import annotations

import re

# Articles contract with what stands before them; pronouns, written le_, la_ and les_, do not.
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ELIDED = {"je": "j'", "le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'", "me": "m'",
          "te": "t'", "se": "s'"}  # fmt: skip
VOWEL = re.compile(r"[aàâeéèêiîoôuûœh]|y$", re.IGNORECASE)
NOT_ELIDED = ("huit", "onze", "Hugo")
AN = re.compile(r"\ba(?= (?:[aeio]|u(?!se|ni)|hour))", re.IGNORECASE)


def begins_with_vowel(word: str) -> bool:
    return VOWEL.match(word) is not None and word not in NOT_ELIDED


def french(words: list[str]) -> str:
    """One sentence from its words; each article `le` or `les` after `de` or `à` contracts."""
    out: list[str] = []
    flat = [part for word in words for part in word.split()]
    for i, word in enumerate(flat):
        following = flat[i + 1] if i + 1 < len(flat) else ""
        if (
            out
            and (out[-1], word) in CONTRACTED
            and not (word == "le" and begins_with_vowel(following))
        ):
            out[-1] = CONTRACTED[out[-1], word]
        else:
            out.append(word)
    out = [word.rstrip("_") for word in out]
    text = ""
    for word, following in zip(out, [*out[1:], ""], strict=True):
        elided = word in ELIDED and following and begins_with_vowel(following)
        text += ELIDED[word] if elided else word + " "
    return _sentence(text)


def english(words: list[str]) -> str:
    return _sentence(AN.sub(lambda found: found[0] + "n", " ".join(filter(None, words))) + " ")


def _sentence(text: str) -> str:
    """A capital letter at the start, points and commas after their word."""
    text = re.sub(r" (?=[.,])", "", text.strip())
    return text[0].upper() + text[1:]
