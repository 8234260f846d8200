"""Masks of other libraries mean to regard what they mean there: compared with the libraries.

JAX and MLX are compared where they are installed; what docs/explanation/masks.md says of
flash-attn, which runs on GPUs alone, is from its documentation.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import regard
from regard import conventions

BATCH, HEADS, DIM = 2, 3, 5
SHAPES = [(7, 7), (7, 11), (11, 7)]
RNG = np.random.default_rng(11)


def operands(queries: int, keys: int) -> list[Any]:
    return [RNG.normal(size=(BATCH, HEADS, n, DIM)) for n in (queries, keys, keys)]


def masks(queries: int, keys: int) -> list[Any]:
    """Of booleans and of numbers; every query sees a key."""
    shapes = [(queries, keys), (HEADS, queries, keys), (BATCH, 1, 1, keys)]
    booleans = [RNG.random(shape) < 0.6 for shape in shapes]
    for each in booleans:
        each[..., 0] = True
    return [*booleans, *(RNG.normal(size=shape) for shape in shapes)]


def close(have: Any, want: Any) -> None:
    np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("queries", "keys"), SHAPES)
def test_torch(queries: int, keys: int) -> None:
    torch = pytest.importorskip("torch")
    attend = torch.nn.functional.scaled_dot_product_attention
    given = list(map(torch.from_numpy, operands(queries, keys)))
    for mask in [None, *map(torch.from_numpy, masks(queries, keys))]:
        for is_causal in (False, mask is None):  # torch refuses both in most of its kernels
            theirs = {"attn_mask": mask, "is_causal": is_causal}
            close(regard.attention(*given, **conventions.torch(**theirs)), attend(*given, **theirs))


def test_torch_gives_queries_that_see_nothing_0_too() -> None:
    torch = pytest.importorskip("torch")
    given = list(map(torch.from_numpy, operands(7, 11)))
    for mask in (torch.zeros(7, 11).bool(), torch.full((7, 11), -torch.inf).double()):
        want = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=mask)
        have = regard.attention(*given, **conventions.torch(mask))
        assert not want.any()
        assert not have.any()


@pytest.mark.parametrize("padding", [None, "boolean", "added"])
def test_torch_module(padding: str | None) -> None:
    torch = pytest.importorskip("torch")
    width, tokens = HEADS * DIM, 7
    module = torch.nn.MultiheadAttention(width, HEADS, batch_first=True, dtype=torch.float64)
    x = torch.randn(BATCH, tokens, width, dtype=torch.float64)
    weights = [part.T for part in module.in_proj_weight.chunk(3)]
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    added = torch.randn(BATCH * HEADS, tokens, tokens, dtype=torch.float64)
    key_padding = torch.arange(tokens) >= torch.tensor([[tokens], [4]])
    if padding == "added":
        key_padding = torch.zeros(BATCH, tokens).double().masked_fill(key_padding, -torch.inf)
    for mask in (None, hidden, added):
        if mask is added and padding == "boolean":
            continue  # torch itself deprecates a pair of different types
        if mask is hidden and padding == "added":
            continue
        theirs = {"attn_mask": mask, "key_padding_mask": key_padding if padding else None}
        want, _ = module(x, x, x, need_weights=False, **theirs)
        options = conventions.torch_module(**theirs, heads=HEADS)
        have = regard.multi_head_attention(
            x, *weights, module.out_proj.weight.T, heads=HEADS, **options
        )
        close(have.detach(), want.detach())


@pytest.mark.parametrize(("queries", "keys"), SHAPES)
def test_jax(queries: int, keys: int) -> None:
    jax = pytest.importorskip("jax")
    given = [each.swapaxes(1, 2).astype("f4") for each in operands(queries, keys)]
    boolean = RNG.random((BATCH, HEADS, queries, keys)) < 0.7
    boolean[..., 0] = True
    lengths = np.array([keys - 2, 3])
    cases: list[dict[str, Any]] = [
        {},
        {"is_causal": True},
        {"mask": boolean},
        {"bias": RNG.normal(size=(HEADS, queries, keys)).astype("f4")},
        {"key_value_seq_lengths": lengths},
        {"query_seq_lengths": np.array([2, queries]), "key_value_seq_lengths": lengths},
        {"query_seq_lengths": np.array([2, queries]), "mask": boolean},
    ]
    if queries <= keys:  # otherwise the last windows hold no key, for which JAX has no 0
        cases += [
            {"local_window_size": 2},
            {"local_window_size": (1, 3)},
            {"local_window_size": (3, 2), "is_causal": True},
        ]
    for theirs in cases:
        options = conventions.jax(**theirs, queries=queries, keys=keys)
        want = jax.nn.dot_product_attention(*given, **theirs)
        np.testing.assert_allclose(
            regard.attention(*given, **options), want, rtol=2e-5, atol=2e-5, err_msg=str(theirs)
        )


@pytest.mark.parametrize(("queries", "keys"), SHAPES)
def test_mlx(queries: int, keys: int) -> None:
    mx = pytest.importorskip("mlx.core")
    given = [each.astype("f4") for each in operands(queries, keys)]
    for mask in [None, "causal", *masks(queries, keys)]:
        passed = mask if mask is None or isinstance(mask, str) else mx.array(mask)
        want = mx.fast.scaled_dot_product_attention(
            *map(mx.array, given), scale=DIM**-0.5, mask=passed
        )
        have = regard.attention(*given, **conventions.mlx(mask))
        first = max(0, queries - keys) if isinstance(mask, str) else 0  # see nothing before
        np.testing.assert_allclose(
            have[..., first:, :], np.array(want)[..., first:, :], rtol=2e-5, atol=2e-5
        )


def test_flash_attn_on_the_examples_of_its_documentation() -> None:
    """Which keys are kept for 2 queries and 5 keys, and for 5 queries and 2 keys."""
    kept = {(2, 5): ["11110", "11111"], (5, 2): ["00", "00", "00", "10", "11"]}
    for (queries, keys), rows in kept.items():
        q, k, v = (RNG.normal(size=(BATCH, n, HEADS, DIM)) for n in (queries, keys, keys))
        mask = np.array([[letter == "1" for letter in row] for row in rows])
        want = regard.attention(q, k, v, mask=mask, layout="token-head")
        close(regard.attention(q, k, v, **conventions.flash_attn(causal=True)), want)


def test_flash_attn_window() -> None:
    """Query i sees keys i + keys − queries − left to i + keys − queries + right."""
    q, k, v = (RNG.normal(size=(BATCH, n, HEADS, DIM)) for n in (3, 7, 7))
    i, j = np.ogrid[:3, :7]
    mask = (j >= i + 4 - 2) & (j <= i + 4 + 1)
    want = regard.attention(q, k, v, mask=mask, layout="token-head")
    close(regard.attention(q, k, v, **conventions.flash_attn(window_size=(2, 1))), want)


def test_flash_attn_packed_sequences() -> None:
    ends = [0, 3, 4, 9]
    q, k, v = (RNG.normal(size=(9, HEADS, DIM)) for _ in range(3))
    options = conventions.flash_attn(causal=True, cu_seqlens_q=ends, cu_seqlens_k=ends)
    have = regard.attention(q, k, v, **options)
    for start, end in itertools.pairwise(ends):
        part = slice(start, end)
        alone = regard.attention(q[part], k[part], v[part], causal=True, layout="token-head")
        close(have[part], alone)


WRONG = [
    (lambda: conventions.flash_attn(causal=True, cu_seqlens_q=[0, 2], cu_seqlens_k=[0, 3]),
     "their own diagonal"),
    (lambda: conventions.flash_attn(cu_seqlens_q=[0, 2]), "pass both"),
    (lambda: conventions.mlx("casual"), "'causal', not 'casual'"),
    (lambda: conventions.jax(local_window_size=2), "pass `keys`, because there is a window"),
    (lambda: conventions.jax(query_seq_lengths=[2]), "pass `queries`"),
    (lambda: conventions.torch_module(np.ones((4, 3, 3), bool)), "pass `heads`"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_messages(call: Any, message: str) -> None:
    with pytest.raises(regard.OptionError, match=message):
        call()
