"""Small models of every shape, with a different prime for each axis."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from regard.model import Config, Transformer  # noqa: E402

torch.set_num_threads(1)

SIZES: dict[str, Any] = {
    "vocabulary": 53, "width": 21, "layers": 2, "heads": 3, "head_dim": 14, "hidden": 37,
    "longest": 43,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, narrow": {"width": 20},
    "llama, grouped": {"width": 30, "heads": 6, "kv_heads": 2},
    "llama, untied, biased": {"tied": False, "bias": True},
    "gpt2": {"shape": "gpt2", "width": 20, "heads": 5, "head_dim": 4},
    "vaswani": {"shape": "vaswani"},
    "between": {"norm": "layer", "positions": "rotary", "feed_forward": "gelu"},
}


def small(shape: str = "llama", **options: Any) -> Any:
    """A model whose numbers are all different from 0 and 1, in float64."""
    said = {**SIZES, **SHAPES[shape], **options}
    torch.manual_seed(7)
    model = Transformer(Config.shaped(said.pop("shape", "llama"), **said)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return model


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tokens() -> Any:
    generator = torch.Generator().manual_seed(11)
    return torch.randint(4, 53, (3, 17), generator=generator)
