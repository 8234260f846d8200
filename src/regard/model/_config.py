"""What a Transformer is made of: sizes, shapes, special tokens, and the mask it is trained for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from regard._errors import OptionError, did_you_mean
from regard._options import is_integer, one_of, positive_integer

CHOICES = {
    "norm": ("rms", "layer"),
    "norm_place": ("before", "after"),
    "positions": ("rotary", "sinusoidal", "learned"),
    "feed_forward": ("swiglu", "gelu", "gelu-tanh", "relu"),
    "source_mask": ("prefix", "causal", "mixed"),
}
SIZES = ("vocabulary", "width", "layers", "heads", "kv_heads", "head_dim", "hidden", "longest")
TOKENS = ("begin", "separator", "end", "pad")
SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "vaswani": {
        "norm": "layer",
        "norm_place": "after",
        "positions": "sinusoidal",
        "feed_forward": "relu",
        "bias": True,
        "scale_embeddings": True,
    },
    "gpt2": {"norm": "layer", "positions": "learned", "feed_forward": "gelu-tanh", "bias": True},
}


@dataclass(frozen=True)
class Config:
    """A decoder-only Transformer; without options it is shaped as Llama is.

    A sequence is `begin` source `separator` target `end`: its prefix is everything up to and with
    the separator. `kv_heads` and `hidden` left at 0 follow from the other sizes.
    """

    vocabulary: int
    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 0
    head_dim: int = 64
    hidden: int = 0
    longest: int = 1024
    norm: str = "rms"
    norm_place: str = "before"
    norm_eps: float = 1e-5
    positions: str = "rotary"
    rotary_base: float = 10000.0
    feed_forward: str = "swiglu"
    bias: bool = False
    tied: bool = True
    scale_embeddings: bool = False
    dropout: float = 0.0
    source_mask: str = "prefix"
    begin: int = 1
    separator: int = 2
    end: int = 3
    pad: int = 0

    def __post_init__(self) -> None:
        for name, value in (("kv_heads", self.heads), ("hidden", self._usual_hidden())):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, value)
        for name in SIZES:
            positive_integer(name, getattr(self, name))
        for name, choices in CHOICES.items():
            one_of(name, getattr(self, name), choices)
        for name in TOKENS:
            self._check_token(name, getattr(self, name))
        if self.heads % self.kv_heads:
            raise OptionError(
                f"`kv_heads`: {self.heads} query heads cannot share {self.kv_heads} key heads "
                "evenly"
            )
        if self.head_dim % 2 and self.positions == "rotary":
            raise OptionError(f"`head_dim` must be even to be rotated, but is {self.head_dim}")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"`dropout` must be at least 0 and below 1, but is {self.dropout}")

    def _usual_hidden(self) -> int:
        """As many weights as two matrices of four times the width have."""
        if self.feed_forward != "swiglu":
            return 4 * self.width
        return -(-8 * self.width // 3 // 64) * 64

    def _check_token(self, name: str, token: object) -> None:
        if not is_integer(token) or not 0 <= token < self.vocabulary:
            raise OptionError(
                f"`{name}` must be the number of a token, below {self.vocabulary}, but "
                f"{token!r} was passed"
            )

    @classmethod
    def shaped(cls, shape: str, **options: Any) -> Config:
        """The shape of "llama", "vaswani" or "gpt2"; options win over what it says."""
        return cls.read({**SHAPES[one_of("shape", shape, SHAPES)], **options})

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Config:
        """From words and values, such as those of a file; an unknown word is an error."""
        if not isinstance(said, Mapping):
            raise OptionError(f"a model is described by words and values, not by {said!r}")
        known = [field.name for field in fields(cls)]
        for name in said:
            if name not in known:
                raise OptionError(f"no option {name!r} of a model: {did_you_mean(name, known)}")
        if "vocabulary" not in said:
            raise OptionError("a model needs `vocabulary`, the number of its tokens")
        return cls(**said)

    def written(self) -> dict[str, Any]:
        return asdict(self)
