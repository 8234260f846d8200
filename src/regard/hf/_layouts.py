"""Where attention layers keep their matrices, and how to cut one head out of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regard._errors import OptionError

Tensor = Any
APART = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("q", "k", "v", "o"),
)
TOGETHER = (("wqkv", "wo"), ("c_attn", "c_proj"))


@dataclass(frozen=True)
class Layout:
    """One attention layer: its matrices, inputs first, and how many heads share them."""

    module: Any
    output: Any
    part: str
    heads: int
    head_dim: int
    wide: dict[str, tuple[Tensor, Tensor | None]]  # Q, K, V: the matrix of all heads, its bias
    scale: Any
    relative: bool

    def of_head(self, head: int) -> dict[str, Tensor]:
        """The matrices and biases of one head; fewer key heads are shared by neighbours."""
        dim, given = self.head_dim, {}
        for letter, (matrix, bias) in self.wide.items():
            share = self.heads // (matrix.shape[1] // dim)
            at = slice(head // share * dim, (head // share + 1) * dim)
            given[f"W{letter}"] = matrix[:, at]
            if bias is not None:
                given[f"b{letter}"] = bias[at]
        given["WO"] = _matrix(self.output)[head * dim : (head + 1) * dim]
        return given


def layouts(model: Any, heads: int) -> list[Layout]:
    """The attention layers of a model, in its order."""
    return list(_found(model, heads))


def _found(model: Any, heads: int) -> Iterator[Layout]:
    for name, module in model.named_modules():
        children = dict(module.named_children())
        apart = next((names for names in APART if set(names) <= children.keys()), None)
        together = next((names for names in TOGETHER if set(names) <= children.keys()), None)
        if apart is not None:
            inputs = [children[each] for each in apart[:3]]
            wide = [(_matrix(each), _bias(each)) for each in inputs]
            output = children[apart[3]]
        elif together is not None:
            joined = children[together[0]]
            output = children[together[1]]
            wide = _parted(_matrix(joined), _bias(joined), _matrix(output).shape[0])
        else:
            continue
        many = int(getattr(module, "num_heads", getattr(module, "n_heads", heads)))
        dim = _matrix(output).shape[0] // many
        yield Layout(
            module, output, _part(name), many, dim, dict(zip("QKV", wide, strict=True)),
            _scale(module), hasattr(module, "has_relative_attention_bias"),
        )  # fmt: skip


def _matrix(module: Any) -> Tensor:
    """Inputs first, as formulas have it; only a Conv1D of transformers keeps it so."""
    weight = getattr(module, "weight", None)
    if weight is None or weight.dim() != 2:
        raise OptionError(f"open_head: {type(module).__name__} is no matrix (a quantised model?)")
    return weight if type(module).__name__ == "Conv1D" else weight.mT


def _bias(module: Any) -> Tensor | None:
    return getattr(module, "bias", None)


def _parted(matrix: Tensor, bias: Tensor | None, width: int) -> list[tuple[Tensor, Tensor | None]]:
    """Queries as wide as what comes out; keys and values share the rest evenly."""
    rest = (matrix.shape[1] - width) // 2
    sizes = (width, rest, rest)
    matrices = matrix.split(sizes, dim=1)
    biases = (None,) * 3 if bias is None else bias.split(sizes)
    return list(zip(matrices, biases, strict=True))


def _part(name: str) -> str:
    if "EncDecAttention" in name or "encoder_attn" in name or "cross" in name.lower():
        return "cross"
    return "encoder" if "encoder" in name.split(".") else "decoder"


def _scale(module: Any) -> Any:
    """T5 does not scale; the others say by what, or take the root."""
    if hasattr(module, "has_relative_attention_bias"):
        return 1
    said = getattr(module, "scaling", None)
    return float(said) if isinstance(said, (int, float)) else "sqrt"
