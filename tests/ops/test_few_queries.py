"""Single queries, without gradient: batched products, or the kernel where they cannot be trusted."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import regard  # noqa: E402
from regard.ops import _few  # noqa: E402


def operands(queries: int = 1, keys: int = 11, dtype: Any = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(2)

    def drawn(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    mask = torch.rand(5, 1, queries, keys, generator=generator) > 0.4
    return drawn(5, 6, queries, 7), drawn(5, 2, keys, 7), drawn(5, 2, keys, 13), mask


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the products' answer was taken, for each call."""
    told: list[bool] = []
    solve = _few.solve

    def watched(problem: Any) -> Any:
        output = solve(problem)
        told.append(output is not None)
        return output

    monkeypatch.setattr(_few, "solve", watched)
    monkeypatch.setattr(_few, "MANY", 30)
    return told


def by_kernel(*given: Any, **options: Any) -> Any:
    """The kernel answers as soon as anything is asked about the weights."""
    return regard.attention(*given, inspect=regard.Inspect(), **options)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_as_the_kernel(dtype: Any, taken: list[bool]) -> None:
    *given, mask = operands(dtype=dtype)
    close = {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 1e-12}
    bias = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -torch.inf) + mask * 0.7
    several = ({"mask": mask}, {"mask": mask, "scale": 0.3}, {"bias": bias, "scale": 0.3})
    for options in several:
        found = regard.attention(*given, **options)
        torch.testing.assert_close(found, by_kernel(*given, **options), **close)
    assert taken == [True] * len(several)


def test_what_is_hidden_never_leaks(taken: list[bool]) -> None:
    q, k, v, mask = operands()
    mask[..., 4], mask[2] = False, False
    want = by_kernel(q, k, v, mask=mask)
    k[:, :, 4], v[:, :, 4] = torch.nan, torch.inf
    found = regard.attention(q, k, v, mask=mask)
    torch.testing.assert_close(found, want)
    assert not found[2].any()
    assert taken == [False]


@pytest.mark.parametrize(
    "options",
    [{"causal": 8}, {"lengths": 4}, {"softcap": 2.0}, {"window": 1}],
)
def test_other_options_are_the_kernels(options: dict[str, Any], taken: list[bool]) -> None:
    q, k, v, _ = operands()
    regard.attention(q, k, v, **options)
    assert taken == []


def test_gradients_and_half_precision_are_the_kernels(taken: list[bool]) -> None:
    q, k, v, mask = operands()
    regard.attention(q.requires_grad_(), k, v, mask=mask).sum().backward()
    regard.attention(*operands(dtype=torch.bfloat16)[:3])
    regard.attention(*operands(queries=2)[:3])
    regard.attention(*(each[:4] for each in operands()[:3]))
    regard.attention(*operands(keys=600)[:3])
    assert taken == []
