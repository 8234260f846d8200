"""Names in print: how a symbol's letters, digits and signs are told apart, and Greek letters."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

WORD = 3  # from so many letters on, letters are a word and stand upright

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "varphi",
    "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda",
    "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Υ": "Upsilon", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
# A name spelled out is the letter: alpha, and both shapes of epsilon and phi.
SPELLED = {name: letter for letter, name in GREEK.items()} | {"epsilon": "ε", "phi": "φ"}


class Token(NamedTuple):
    kind: Literal["letter", "word", "digits", "sign", "space"]
    text: str


def tokens(name: str) -> list[Token]:
    """The parts of a name or an index: "head 2", "i,j", "(2)", "key"."""
    found = re.findall(r"[^\W\d_]+|\d+|\s+|.", name)
    return [token for text in found for token in _tokens(text)]


def _tokens(text: str) -> list[Token]:
    if text.isspace():
        return [Token("space", " ")]
    if text.isdigit() and text.isascii():
        return [Token("digits", text)]
    if text in SPELLED:
        return [Token("letter", SPELLED[text])]
    if text.isalpha():
        if len(text) >= WORD:
            return [Token("word", text)]
        return [Token("letter", letter) for letter in text]
    return [Token("sign", text)]
