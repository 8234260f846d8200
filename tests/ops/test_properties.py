"""What holds for attention whatever the numbers are, on every path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.paths import NUMPY_PATHS, on_path, path_named

import regard
from regard.ops._arguments import pose

SIZES = st.integers(1, 140)
PATH = st.sampled_from(NUMPY_PATHS)
SEEDS = st.integers(0, 2**32 - 1)
quickly = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def operands(seed: int, queries: int, keys: int, heads: int = 4, kv_heads: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    shapes = ((heads, queries, 5), (kv_heads, keys, 5), (kv_heads, keys, 3))
    return [rng.normal(size=shape) for shape in shapes], rng


def close(have: Any, want: Any) -> None:
    np.testing.assert_allclose(have, want, rtol=1e-11, atol=1e-11)


@quickly
@given(PATH, SEEDS, SIZES, SIZES, st.floats(-3, 3))
def test_weights_sum_to_one(path: str, seed: int, queries: int, keys: int, scale: float) -> None:
    (q, k, v), _ = operands(seed, queries, keys)
    with on_path(path) as attend:
        ones = attend(q, k, np.ones_like(v), scale=scale)
        _, seen = attend(
            q, k, v, scale=scale, inspect=regard.Inspect(top=keys, received=True, rows=[0])
        )
    close(ones, 1)
    close(seen.rows.sum(-1), 1)
    close(seen.top_weights.sum(-1), 1)
    close(seen.received.sum(-1), queries)


@quickly
@given(PATH, SEEDS, SIZES, SIZES)
def test_permutations(path: str, seed: int, queries: int, keys: int) -> None:
    (q, k, v), rng = operands(seed, queries, keys)
    of_queries, of_keys = rng.permutation(queries), rng.permutation(keys)
    with on_path(path) as attend:
        whole = attend(q, k, v)
        close(attend(q[:, of_queries], k[:, of_keys], v[:, of_keys]), whole[:, of_queries])


@quickly
@given(PATH, SEEDS, SIZES, SIZES, st.floats(-300, 300))
def test_a_shift_of_the_scores_changes_nothing(
    path: str, seed: int, queries: int, keys: int, shift: float
) -> None:
    (q, k, v), rng = operands(seed, queries, keys)
    bias = rng.normal(size=(4, queries, keys))
    with on_path(path) as attend:
        a, before = attend(q, k, v, bias=bias, inspect=regard.Inspect())
        b, after = attend(q, k, v, bias=bias + shift, inspect=regard.Inspect())
    close(a, b)
    close(before.log_sum_exp + shift, after.log_sum_exp)


@quickly
@given(PATH, SEEDS, SIZES, st.integers(1, 139))
def test_no_future_reaches_the_past(path: str, seed: int, tokens: int, cut: int) -> None:
    """Certified by a future that is no number."""
    (q, k, v), _ = operands(seed, tokens, tokens)
    with on_path(path) as attend:
        want = attend(q, k, v, causal=True)
        k[:, cut:] = v[:, cut:] = np.nan
        have = attend(q, k, v, causal=True)
    np.testing.assert_array_equal(have[:, :cut], want[:, :cut])
    assert np.isnan(have[:, cut:]).all()


@quickly
@given(PATH, SEEDS, SIZES, SIZES, st.booleans())
def test_shared_key_heads_are_repeated_ones(
    path: str, seed: int, queries: int, keys: int, causal: bool
) -> None:
    (q, k, v), _ = operands(seed, queries, keys, heads=6, kv_heads=2)
    options = {"causal": "bottom-right" if causal else False}
    with on_path(path) as attend:
        repeated = (np.repeat(each, 3, axis=0) for each in (k, v))
        close(attend(q, k, v, **options), attend(q, *repeated, **options))


@quickly
@given(PATH, SEEDS, SIZES, st.integers(2, 140), st.data())
def test_parts_of_the_keys_merge_to_the_whole(
    path: str, seed: int, queries: int, keys: int, data: Any
) -> None:
    (q, k, v), _ = operands(seed, queries, keys)
    cut = data.draw(st.integers(1, keys - 1))
    with on_path(path) as attend:
        whole, of_all = attend(q, k, v, inspect=regard.Inspect())
        parts = [
            attend(q, k[:, part], v[:, part], inspect=regard.Inspect())
            for part in (slice(cut), slice(cut, None))
        ]
    sums = np.stack([seen.log_sum_exp for _, seen in parts])
    close(np.logaddexp.reduce(sums), of_all.log_sum_exp)
    shares = np.exp(sums - of_all.log_sum_exp)[..., None]
    close((shares * np.stack([output for output, _ in parts])).sum(0), whole)


@quickly
@given(PATH, SEEDS, SIZES, SIZES, st.data())
def test_a_past_is_keys_that_came_before(
    path: str, seed: int, queries: int, keys: int, data: Any
) -> None:
    (q, k, v), _ = operands(seed, queries, keys)
    cut = data.draw(st.integers(0, keys))
    with on_path(path) as attend:
        past = k[:, :cut], v[:, :cut]
        have = attend(q, k[:, cut:], v[:, cut:], past=past, causal="bottom-right")
        close(have, attend(q, k, v, causal="bottom-right"))


@quickly
@given(PATH, SEEDS, SIZES, SIZES, st.data())
def test_what_is_read_in_one_go_is_read_rightly(
    path: str, seed: int, queries: int, keys: int, data: Any
) -> None:
    """Masks and windows without another option take a way of their own; `lengths` leaves it."""
    (q, k, v), rng = operands(seed, queries, keys)
    shape = [data.draw(st.sampled_from([1, size])) for size in (4, queries, keys)]
    mask = rng.random(shape[data.draw(st.integers(0, 2)) :]) < 0.7
    turned = np.ascontiguousarray(mask[..., ::-1].T).T[..., ::-1]
    side = st.integers(-1, 150)
    options: dict[str, Any] = {
        "mask": data.draw(st.sampled_from([None, mask, turned])),
        "window": data.draw(st.none() | side | st.tuples(side, side)),
        "causal": queries == keys and data.draw(st.booleans()),
    }
    with on_path(path) as attend:
        close(attend(q, k, v, **options), attend(q, k, v, lengths=keys, **options))


def test_equal_keys_share_evenly(attend: Callable[..., Any]) -> None:
    """Scores of 0 and 1: weights 1/(1+e) and e/(1+e)."""
    q, k = np.array([[1.0, 0.0]]), np.array([[0.0, 5.0], [1.0, -7.0]])
    e = np.e
    close(attend(q, k, np.eye(2), scale=1), [[1 / (1 + e), e / (1 + e)]])


HIDING: dict[str, dict[str, Any]] = {
    "mask": {"mask": np.arange(97) < 90},
    "mask of each query": {"mask": np.tile(np.arange(97) < 90, (71, 1))},
    "bias": {"bias": np.where(np.arange(97) < 90, 0.0, -np.inf)},
    "lengths": {"lengths": 90},
    "causal": {"causal": 19},  # the last of 71 queries stands at key 89
    "window": {"window": (60, 0), "causal": 19},
    "window alone": {"window": (97, -7 + 7), "causal": 19},
    "segments": {"segments": (np.zeros(71, int), (np.arange(97) >= 90).astype(int))},
}


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", HIDING)
def test_what_is_hidden_leaks_nowhere(
    case: str, wild: float, attend: Callable[..., Any], rng: np.random.Generator
) -> None:
    q, k, v = (rng.normal(size=(3, n, 5)) for n in (71, 97, 97))
    asked = regard.Inspect(top=4, entropy=True, received=True, rows=[0, -1])
    want, expected = attend(q, k, v, inspect=asked, **HIDING[case])
    k[:, 90:], v[:, 90:] = wild, wild
    have, seen = attend(q, k, v, inspect=asked, **HIDING[case])
    np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-13)
    for name in ("log_sum_exp", "top_weights", "entropy", "received", "rows"):
        a, b = getattr(seen, name), getattr(expected, name)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)
    assert not seen.received[:, 90:].any()


@pytest.mark.parametrize("where", ["q", "k", "v"])
def test_nan_that_is_seen_stays(
    where: str, attend: Callable[..., Any], rng: np.random.Generator
) -> None:
    arrays = {name: rng.normal(size=(3, n, 5)) for name, n in zip("qkv", (71, 97, 97), strict=True)}
    arrays[where][1, 50, 2] = np.nan
    output = attend(*arrays.values(), causal="bottom-right")
    expected = np.zeros(output.shape, bool)
    if where == "q":
        expected[1, 50] = True
    elif where == "k":
        expected[1, 50 - (97 - 71) :] = True  # queries that see key 50
    else:
        expected[1, 50 - (97 - 71) :, 2] = True
    np.testing.assert_array_equal(np.isnan(output), expected)


@pytest.mark.parametrize("wild", [np.inf, -np.inf, np.nan, 1e300, -1e300])
@pytest.mark.parametrize("where", ["q", "k", "v"])
def test_what_is_not_finite_comes_out_as_in_the_reference(
    where: str, wild: float, attend: Callable[..., Any], oracle: Callable[..., Any],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    arrays = {
        name: rng.normal(size=(2, n, 5)) for name, n in zip("qkv", (67, 101, 101), strict=True)
    }
    arrays[where][1, [5, 66], 2] = wild
    for options in ({}, {"causal": "bottom-right"}, {"softcap": 2.0}):
        have = attend(*arrays.values(), **options)
        want = oracle(*arrays.values(), **options)
        np.testing.assert_array_equal(np.isnan(have), np.isnan(want))
        np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("low", [-1e25, -1e31, -1e100, float(np.finfo(np.float64).min)])
def test_a_low_score_is_still_one(
    low: float, attend: Callable[..., Any], rng: np.random.Generator
) -> None:
    """Libraries mask with the lowest number: a row that has nothing else weighs all keys alike."""
    q, k, v = (rng.normal(size=(2, n, 5)) for n in (67, 101, 101))
    bias = np.zeros((67, 101))
    bias[3], bias[5, 7:] = low, low
    have = attend(q, np.zeros_like(k), v, bias=bias)
    close(have[:, 3], v.mean(1))
    close(have[:, 5], v[:, :7].mean(1))
    close(have[:, 4], v.mean(1))


@pytest.mark.parametrize("size", [30.0, 1e3, 1e5])
def test_large_scores(
    size: float, attend: Callable[..., Any], oracle: Callable[..., Any], rng: np.random.Generator
) -> None:
    """Far beyond where exp overflows; rising along the keys, so that everything is rescaled."""
    q, k, v = (rng.normal(size=(2, n, 5)) for n in (67, 201, 201))
    k = size * np.sort(k, axis=1)
    np.testing.assert_allclose(attend(q, k, v), oracle(q, k, v), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("path", NUMPY_PATHS)
@pytest.mark.parametrize("case", HIDING)
def test_gradients_meet_nothing_hidden(case: str, path: str, rng: np.random.Generator) -> None:
    """Neither a hidden key or value, nor a query that its own key heads' others cannot see."""
    q, k, v = (rng.normal(size=(3, n, 5)) for n in (71, 97, 97))
    d_output = rng.normal(size=(1, 3, 71, 5))
    found = []
    for wild in (0.0, np.nan):
        k[:, 90:], v[:, 90:] = wild, wild
        problem = pose(q, k, v, **HIDING[case]).problem
        with on_path(path):
            forward = path_named(path).forward(problem)
            found.append(path_named(path).backward(problem, *forward, d_output))
    for name, want, have in zip("qkv", *found, strict=False):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("path", NUMPY_PATHS)
def test_gradients_of_a_query_that_is_no_number(path: str, rng: np.random.Generator) -> None:
    """A query in a segment of its own, as rubbish in a padded batch is, spoils that segment."""
    q, k, v = (rng.normal(size=(3, n, 5)) for n in (71, 97, 97))
    q[:, 70] = np.nan
    ids = (np.arange(71) == 70).astype(int), (np.arange(97) >= 90).astype(int)
    problem = pose(q, k, v, segments=ids).problem
    with on_path(path):
        forward = path_named(path).forward(problem)
        found = path_named(path).backward(problem, *forward, np.ones((1, 3, 71, 5)))
    assert np.isnan(found.q[:, :, 70]).all()
    assert np.isfinite(found.q[:, :, :70]).all()
    for each in (found.k, found.v):
        assert np.isnan(each[:, :, 90:]).all()
        assert np.isfinite(each[:, :, :90]).all()
