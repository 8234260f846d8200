"""Names as people write them, and the one name that each of them means."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GROUP = r"\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]*\})*\})*\}"
# As the base of a name: {\mathbf W}_Q is one, a line of JSON is none.
_SHORT_GROUP = r"\{(?:[^{}\[\]\n]|\{[^{}\n]*\}){1,40}\}"
_STYLE = (
    r"\\(?:mathbf|boldsymbol|bm|pmb|mathrm|mathit|mathsf|mathcal|mathbb|mathtt|textbf|textit|textrm"
    r"|textsf|texttt|text|operatorname|vec|hat|tilde|bar|widehat|underline|rm|bf)"
)
_SCRIPT = (
    rf"(?:\s*[_^]\s*(?:{_GROUP}|{_STYLE}\s*{_GROUP}|\\[A-Za-z]+|\([\w ]+\)|\[[\w ]+\]"
    r"|[A-Za-z0-9*⊤])|'|ᵀ)"
)
_BASE = (
    rf"(?:{_STYLE}\s*(?:{_GROUP}|[A-Za-z](?![A-Za-z]))|{_SHORT_GROUP}|\\[A-Za-z]+"
    r"|[A-Za-z][A-Za-z0-9]*)"
)
_IDENTIFIER = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
SYMBOL = rf"(?:{_BASE}{_SCRIPT}*|{_IDENTIFIER})"

_TRANSPOSED = re.compile(
    r"\^\s*(?:\{\s*(?:\\top|\\intercal|\\mathsf\s*\{?T\}?|\\mathrm\s*\{?T\}?|\\text\s*\{T\}|[T⊤])\s*\}"
    r"|\\top\b|\\intercal\b|T(?![A-Za-z])|⊤)|ᵀ|(?<=\w)'$"
)
_ROLES = {
    "q": "Q", "query": "Q", "queries": "Q",
    "k": "K", "key": "K", "keys": "K",
    "v": "V", "value": "V", "values": "V",
    "o": "O", "out": "O", "output": "O",
}  # fmt: skip
_WEIGHTS = frozenset({"w", "weight", "weights", "proj", "projection"})
_BIASES = frozenset({"b", "bias"})
_FILLERS = frozenset({"head", "heads", "matrix", "mat", "vector"})
_INPUTS = frozenset({"x", "input", "inputs", "embedding", "embeddings", "tokens"})
_MASKS = frozenset({"attention", "attn", "causal", "pad", "padding"})
# In a cross-attention the queries come from this side, keys and values from the other.
_OTHER_SIDE = frozenset({"enc", "encoder", "kv", "memory", "mem", "source", "src"})
_THIS_SIDE = frozenset({"dec", "decoder", "q", "query", "target", "tgt"})

DESCRIPTIONS = {
    "X": "the input", "Y": "the input that is attended to", "M": "the mask",
    "Q": "the queries", "K": "the keys", "V": "the values",
    "WQ": "the query weights", "WK": "the key weights", "WV": "the value weights",
    "WO": "the output weights",
    "bQ": "the query bias", "bK": "the key bias", "bV": "the value bias", "bO": "the output bias",
    "s": "the source vector", "h": "the set of vectors",
    "q": "the query vector", "k": "the key vectors", "v": "the value vectors",
}  # fmt: skip
VECTORS = frozenset({"s", "h", "q", "k", "v", "bQ", "bK", "bV", "bO"})
PER_HEAD = frozenset({"WQ", "WK", "WV", "WO", "bQ", "bK", "bV", "bO", "Q", "K", "V"})


@dataclass(frozen=True)
class Name:
    """What a written name means: a canonical symbol, and the number that it carries."""

    symbol: str
    index: int | None = None
    transposed: bool = False

    @property
    def known(self) -> bool:
        """Whether the symbol has a role in an attention computation."""
        return self.symbol in DESCRIPTIONS


def understand(written: str) -> Name:
    """The meaning of a name such as ``W_{0^Q}``, ``w_query`` or ``\\mathbf{h}_1``."""
    bare = written.strip().rsplit(".", 1)[-1] if re.fullmatch(_IDENTIFIER, written) else written
    upright, turns = _TRANSPOSED.subn("", bare)
    pieces = _pieces(upright)
    numbers = [int(piece) for piece in pieces if piece.isdigit()]
    words = [piece for piece in pieces if not piece.isdigit()]
    if len(words) > 1:
        words = [word for word in words if word.lower() not in _FILLERS] or words
    # The h of W_{h_1}^Q counts heads; in W_h it would be the name.
    if numbers and len(words) > 2 and "h" in words[1:]:
        words.remove("h")
    symbol = _symbol(words) if len(numbers) < 2 else None
    if symbol is None:
        return Name(_unknown(upright), transposed=turns > 0)
    return Name(symbol, numbers[0] if numbers else None, turns > 0)


def _pieces(written: str) -> list[str]:
    """The words and numbers of a name; ``Wq`` and ``bV`` are two words, ``WQ1`` has a number."""
    unstyled = re.sub(rf"{_STYLE}(?![A-Za-z])", " ", written)
    pieces = re.findall(r"[A-Za-z]+|\d+", unstyled)
    return [
        part
        for piece in pieces
        for part in (piece if re.fullmatch(r"[WwBb][QKVOqkvo]", piece) else [piece])
    ]


def _symbol(words: list[str]) -> str | None:
    lowered = [word.lower() for word in words]
    roles = [_ROLES[word] for word in lowered if word in _ROLES]
    rest = [word for word in lowered if word not in _ROLES]
    if len(roles) == 1 and rest and set(rest) <= _WEIGHTS:
        return "W" + roles[0]
    if len(roles) == 1 and rest and set(rest) <= {*_BIASES, *_WEIGHTS}:
        return "b" + roles[0]
    if len(words) == 1:
        return _single(words[0])
    if "mask" in lowered or (words[:1] == ["M"] and words[1] in _MASKS):
        return "M"
    return _side(lowered)


def _single(word: str) -> str | None:
    if word in {"Q", "K", "V", "X", "Y", "M", "s", "h", "q", "k", "v"}:
        return word
    role = _ROLES.get(word.lower())
    if role is not None and role != "O" and len(word) > 1:
        return role.lower()
    if word.lower() in _INPUTS:
        return "X"
    return {"H": "h", "memory": "Y", "encoder": "Y", "mask": "M"}.get(word)


def _side(words: list[str]) -> str | None:
    """Which of the two inputs of a cross-attention is meant."""
    if len(words) != 2 or words[0] not in {*_INPUTS, "h", "encoder", "decoder"}:
        return None
    if words[0] == "encoder" or words[1] in _OTHER_SIDE:
        return "Y"
    return "X" if words[0] == "decoder" or words[1] in _THIS_SIDE else None


def _unknown(written: str) -> str:
    if re.fullmatch(r"\w+", written.strip()):
        return written.strip()
    unstyled = re.sub(rf"{_STYLE}(?![A-Za-z])", " ", written)
    return "_".join(re.findall(r"[A-Za-z0-9]+", unstyled)) or written.strip()
