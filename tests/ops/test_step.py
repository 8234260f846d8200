"""A step of decoding by the kernel, against the operator on what each token may see."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import regard  # noqa: E402
from regard.ops import _kernel  # noqa: E402
from regard.ops.step import has_kernel, step  # noqa: E402

pytestmark = pytest.mark.skipif(not _kernel.AVAILABLE, reason="there is no C++ extension here")
BATCH, TOKENS, FILLED, PLACES = 5, 3, 7, 13
CLOSE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def posed(heads: int, shared: int, dim: int, dtype: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(4)

    def drawn(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    seen = torch.rand(BATCH, TOKENS, PLACES, generator=generator) > 0.4
    own = torch.arange(TOKENS)
    seen[:, own, FILLED + own] = True
    angles = torch.rand(BATCH, TOKENS, dim // 2, generator=generator).double() * 6
    cos, sin = (torch.cat([each, each], -1) for each in (angles.cos(), angles.sin()))
    sin[..., : dim // 2] *= -1
    return {
        "wide": drawn(BATCH, TOKENS, heads + 2 * shared, dim),
        "keys": drawn(BATCH, shared, PLACES, dim),
        "values": drawn(BATCH, shared, PLACES, dim),
        "turns": torch.stack([cos, sin]),
        "seen": seen,
    }


def wanted(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The same by the operator in float64: its output, and the keys and values afterwards."""
    wide, keys, values = (given[name].double() for name in ("wide", "keys", "values"))
    shared = keys.shape[1]
    qk, v = wide.split((wide.shape[2] - shared, shared), 2)
    if given["turns"] is not None:
        cos, sin = given["turns"].unsqueeze(-2)
        qk = qk * cos + qk.roll(qk.shape[-1] // 2, -1) * sin
    q, k = qk.split((qk.shape[2] - shared, shared), 2)
    keys[:, :, FILLED : FILLED + TOKENS] = k.transpose(1, 2)
    values[:, :, FILLED : FILLED + TOKENS] = v.transpose(1, 2)
    after = FILLED + TOKENS
    output = regard.attention(
        q.transpose(1, 2), keys[:, :, :after], values[:, :, :after],
        mask=given["seen"][:, None, :, :after],
    )  # fmt: skip
    return output.transpose(1, 2), keys, values


@pytest.fixture(params=_kernel.native.kernels() if _kernel.AVAILABLE else [])
def isa(request: Any) -> Any:
    before = _kernel.native.kernel()
    _kernel.native.use_kernel(request.param)
    yield request.param
    _kernel.native.use_kernel(before)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize(("heads", "shared", "dim"), [(4, 2, 64), (3, 3, 6), (6, 1, 22)])
@pytest.mark.parametrize("turned", [True, False])
def test_the_same_as_the_operator(
    heads: int, shared: int, dim: int, dtype: Any, turned: bool
) -> None:
    given = posed(heads, shared, dim, dtype)
    given["turns"] = given["turns"] if turned else None
    want = wanted(given)
    out = step(filled=FILLED, **given)
    for found, each in zip((out, given["keys"], given["values"]), want, strict=True):
        torch.testing.assert_close(found.double(), each, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def test_what_is_not_seen_is_not_read() -> None:
    given = posed(4, 2, 6, torch.float32)
    want = step(filled=FILLED, **given)
    hidden = ~given["seen"].any(1)
    assert hidden[:, :FILLED].any()
    given["keys"].masked_fill_(hidden[:, None, :, None], torch.nan)
    given["values"].masked_fill_(hidden[:, None, :, None], inf)
    torch.testing.assert_close(step(filled=FILLED, **given), want)


def test_a_part_of_a_larger_cache() -> None:
    """Keys and values lie as the cache of a model has them, with gaps between entries."""
    given = posed(4, 2, 6, torch.float32)
    want = step(filled=FILLED, **given)
    held = torch.zeros(2, BATCH + 1, 2, PLACES, 6)
    for number, name in enumerate(("keys", "values")):
        held[number, :BATCH] = given[name]
        given[name] = held[number, :BATCH]
    torch.testing.assert_close(step(filled=FILLED, **given), want)


def test_places_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="keys: too few places"):
        step(filled=PLACES - TOKENS + 1, **posed(4, 2, 6, torch.float32))


def test_where_there_is_a_kernel() -> None:
    cpu = torch.device("cpu")
    assert has_kernel(cpu, torch.bfloat16)
    assert not has_kernel(torch.device("meta"), torch.bfloat16)
    assert not has_kernel(cpu, torch.complex64)
