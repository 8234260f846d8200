"""Every path against the oracle where tiles begin and end, in every type and memory layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.paths import NUMPY_PATHS, PATHS, inspected, on_path, path_named

import regard
from regard.ops import _numpy
from regard.ops._arguments import pose

SIZES = (1, 5, 63, 64, 65, 127, 257, 513)
BATCH, HEADS, KV_HEADS, D_K, D_V = 2, 6, 3, 7, 11
Rng = np.random.Generator
TYPES = ("float64", "float32", "float16", "bfloat16")


def options_for(case: str, rng: Rng, queries: int, keys: int) -> dict[str, Any]:
    """One way to use the operator, for so many queries and keys."""
    scores = (BATCH, HEADS, queries, keys)
    ids = np.sort(rng.integers(0, 4, (BATCH, queries))), np.sort(rng.integers(0, 4, (BATCH, keys)))
    some = rng.integers(0, keys + 1, BATCH)
    return {
        "plain": {},
        "top-left": {"causal": "top-left"},
        "bottom-right": {"causal": "bottom-right"},
        "offsets": {"causal": rng.integers(-queries, keys, BATCH)},
        "window": {"window": (keys // 3, keys // 5)},
        "narrow causal window": {"window": (2, -1), "causal": "bottom-right"},
        "prefix": {"prefix": some, "causal": "top-left"},
        "lengths": {"lengths": some},
        "segments": {"segments": ids},
        "mask": {"mask": rng.random(scores) < 0.5},
        "mask of keys": {"mask": rng.random((BATCH, 1, 1, keys)) < 0.5},
        "bias": {"bias": rng.normal(size=(HEADS, queries, keys))},
        "softcap and sinks": {"softcap": 1.2, "sinks": rng.normal(size=HEADS)},
        "all": {"causal": "bottom-right", "window": (keys // 2, 3), "prefix": some,
                "lengths": some, "segments": ids, "softcap": 2.0, "scale": 0.5,
                "sinks": rng.normal(size=HEADS), "mask": rng.random((queries, keys)) < 0.8,
                "bias": rng.normal(size=(BATCH, 1, 1, keys))},
    }[case]  # fmt: skip


CASES = (
    "plain", "top-left", "bottom-right", "offsets", "window", "narrow causal window", "prefix",
    "lengths", "segments", "mask", "mask of keys", "bias", "softcap and sinks", "all",
)  # fmt: skip


def operands(rng: Rng, queries: int, keys: int, dtype: Any = np.float64) -> list[Any]:
    shapes = ((HEADS, queries, D_K), (KV_HEADS, keys, D_K), (KV_HEADS, keys, D_V))
    return [rng.normal(size=(BATCH, *shape)).astype(dtype) for shape in shapes]


def type_named(name: str) -> Any:
    return pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else np.dtype(name)


def pairs(case: str, dtype: str) -> Iterator[tuple[int, int]]:
    """How many queries and keys: all cases together meet every pair of sizes.

    Half precision is read and written like the others, and computed as float32 is.
    """
    sizes = SIZES if dtype in ("float64", "float32") else SIZES[:6]
    shift = CASES.index(case) + 3 * TYPES.index(dtype)
    for place, queries in enumerate(sizes):
        yield queries, sizes[(5 * place + shift) % len(sizes)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_output_inspection_and_gradients(
    case: str,
    dtype: str,
    rng: Rng,
    same: Callable[..., None],
    same_inspection: Callable[..., None],
) -> None:
    own = type_named(dtype)
    for queries, keys in pairs(case, dtype):
        posed = pose(*operands(rng, queries, keys, own), **options_for(case, rng, queries, keys))
        problem, reference = posed.problem, _numpy.REFERENCE
        exact = problem.in_float64()
        asked = regard.Inspect(top=4, entropy=True, received=True, rows=(0, -1, queries // 2))
        want, expected = inspected(posed, exact, asked, reference)
        d_output = rng.normal(size=problem.output_shape)
        d_output = _numpy.narrowed(d_output.astype(problem.real), dtype)
        d_exact = _numpy.widened(d_output, dtype).astype(float)
        slopes = reference.backward(exact, *reference.forward(exact), d_exact, with_bias=True)
        for name in NUMPY_PATHS:
            where = f"{name}, {queries}×{keys}"
            with on_path(name):
                path = path_named(name)
                output, log_sum_exp = path.forward(problem)
                have, seen = inspected(posed, problem, asked, path)
                found = path.backward(problem, output, log_sum_exp, d_output, with_bias=True)
            assert have.dtype == own
            same(have, want, dtype, where)
            same_inspection(seen, expected, problem.real, where)
            for letter, a, b in zip(found._fields, found, slopes, strict=True):
                if b is not None:
                    a = a if letter in ("bias", "sinks") else _numpy.widened(a, dtype)
                    same(a, b, dtype, f"d_{letter}, {where}", of_terms=queries)


@pytest.mark.parametrize("case", CASES)
def test_tensors(
    case: str, rng: Rng, oracle: Callable[..., Any], same: Callable[..., None],
    same_inspection: Callable[..., None],
) -> None:  # fmt: skip
    pytest.importorskip("torch")
    asked = regard.Inspect(top=3, entropy=True, received=True, rows=(-1,))
    for place, dtype in enumerate(TYPES):
        own = type_named(dtype)
        queries, keys = ((5, 67), (67, 5), (63, 131), (127, 65))[place]
        given = operands(rng, queries, keys, own)
        options = options_for(case, rng, queries, keys)
        want, expected = oracle(*given, asked, **options)
        real = np.float64 if dtype == "float64" else np.float32
        for name in PATHS[-2:]:
            with on_path(name) as attend:
                have, seen = attend(*given, inspect=asked, **options)
                alone = attend(*given, **options)
            assert have.dtype == alone.dtype == own
            same(have, want, dtype, f"{name}, {dtype}")
            same(alone, want, dtype, f"{name}, {dtype}, without inspection")
            same_inspection(seen, expected, real, f"{name}, {dtype}")


def strided(array: Any) -> Any:
    """The same numbers, every second of a larger array, backwards along the tokens."""
    larger = np.full((*array.shape[:-2], array.shape[-2] * 2, array.shape[-1] * 3), np.nan)
    view = larger[..., ::-2, ::3]
    view[...] = array
    return view


MEMORY: dict[str, Callable[[Any], Any]] = {
    "strided": strided,
    "transposed": lambda array: np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2),
    "tokens first": lambda array: np.ascontiguousarray(array.swapaxes(-3, -2)).swapaxes(-3, -2),
    "other bytes": lambda array: array.astype(array.dtype.newbyteorder()),
    "read-only": lambda array: np.broadcast_to(array, array.shape),
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("memory", MEMORY)
def test_memory_layouts(
    memory: str, rng: Rng, attend: Callable[..., Any], same: Callable[..., None]
) -> None:
    given = operands(rng, 17, 67)
    bias = rng.normal(size=(BATCH, HEADS, 17, 67))
    arranged = [MEMORY[memory](array) for array in given]
    output = attend(*arranged, bias=MEMORY[memory](bias), causal="bottom-right")
    same(output, attend(*given, bias=bias, causal="bottom-right"))


def test_unaligned_memory(rng: Rng, attend: Callable[..., Any], same: Callable[..., None]) -> None:
    given = operands(rng, 5, 7)
    packed = np.zeros(given[0].shape, np.dtype([("tag", "i1"), ("q", "f8")]))
    packed["q"] = given[0]
    same(attend(packed["q"], *given[1:]), attend(*given))


@pytest.mark.parametrize(
    ("queries", "keys"),
    [(0, 5), (5, 0), (0, 0)],
)
def test_empty_token_axes(queries: int, keys: int, rng: Rng, attend: Callable[..., Any]) -> None:
    asked = regard.Inspect(top=2, entropy=True, received=True)
    output, seen = attend(*operands(rng, queries, keys), inspect=asked)
    assert output.shape == (BATCH, HEADS, queries, D_V)
    assert not output.any()
    assert np.isneginf(seen.log_sum_exp).all()
    assert (seen.top_keys == -1).all()
    assert not seen.received.any()
    assert not seen.entropy.any()


@pytest.mark.parametrize("shape", ["batch", "heads", "d_v"])
def test_other_empty_axes(shape: str, rng: Rng, attend: Callable[..., Any]) -> None:
    batch, heads, d_v = (0 if shape == name else 2 for name in ("batch", "heads", "d_v"))
    q, k, v = (
        rng.normal(size=(batch, heads, tokens, dim)) for tokens, dim in ((3, 5), (7, 5), (7, d_v))
    )
    assert attend(q, k, v, causal="top-left", mask=np.ones(7, bool)).shape == (batch, heads, 3, d_v)


def test_no_coordinates_and_a_scale_of_ones_own(attend: Callable[..., Any]) -> None:
    v = np.array([[1.0], [2.0], [6.0]])
    assert attend(np.ones((2, 0)), np.ones((3, 0)), v, scale=1).tolist() == [[3.0], [3.0]]
