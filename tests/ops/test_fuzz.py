"""Arguments as nobody would write them: each call agrees with the definition or is refused.

`python scripts/fuzz_kernel.py` runs these with many more examples, and the extension compiled with
AddressSanitizer and UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.paths import KERNELS, on_path

import regard
from regard.ops import _kernel, _numpy
from regard.ops._arguments import pose

pytestmark = pytest.mark.skipif(not KERNELS, reason="no compiled kernel here")
EXAMPLES = int(os.environ.get("REGARD_FUZZ_EXAMPLES", "60"))
thoroughly = settings(
    max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True
)
TOKENS = st.sampled_from([0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 95, 96, 97, 130, 200])
SMALL = st.sampled_from([0, 1, 2, 3, 7, 8, 9, 16, 17, 33])
TYPES = st.sampled_from(["float64", "float32", "float16"])


@st.composite
def arrays(draw: Any, shape: tuple[int, ...], dtype: str, wild: bool = False) -> Any:
    """Numbers in memory of some kind: strided, backwards, broadcast, unaligned, read-only."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    kind = draw(st.sampled_from(["plain", "steps", "backwards", "turned", "one for all", "odd"]))
    if kind == "one for all":
        return np.broadcast_to(rng.normal(size=shape[-1:]).astype(dtype), shape)
    values = rng.normal(size=shape).astype(dtype)
    if wild and values.size:
        values.flat[rng.integers(values.size)] = draw(st.sampled_from([np.nan, np.inf, 1e4]))
    if kind == "steps":
        larger = np.zeros((*shape[:-2], 3 * shape[-2], 2 * shape[-1]), dtype)
        larger[..., ::3, ::2] = values
        return larger[..., ::3, ::2]
    if kind == "backwards":
        return np.ascontiguousarray(values[..., ::-1, ::-1])[..., ::-1, ::-1]
    if kind == "turned":
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == "odd":
        packed = np.zeros(shape, np.dtype([("tag", "i1"), ("x", dtype)]))
        packed["x"] = values
        return packed["x"]
    return values


@st.composite
def calls(draw: Any) -> dict[str, Any]:
    """Arguments that may not fit together."""
    batch, kv_heads, group = (
        draw(st.integers(0 if draw(st.booleans()) else 1, 3)) for _ in range(3)
    )
    heads = kv_heads * group
    queries, keys, past, d_k, d_v = (draw(each) for each in (TOKENS, TOKENS, TOKENS, SMALL, SMALL))
    past = draw(st.sampled_from([0, past]))
    dtype = draw(TYPES)
    wrong = draw(st.sampled_from([0] * 9 + [1]))
    given: dict[str, Any] = {
        "q": draw(arrays((batch, heads, queries, d_k), dtype, wild=draw(st.booleans()))),
        "k": draw(arrays((batch, kv_heads, keys + wrong, d_k), dtype)),
        "v": draw(arrays((batch, kv_heads, keys, d_v), dtype)),
    }
    if past:
        given["past"] = (draw(arrays((batch, kv_heads, past, d_k), dtype)),
                         draw(arrays((batch, kv_heads, past, d_v), dtype)))  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    total = past + keys
    counts = st.integers(-1 if draw(st.booleans()) else 0, total + 1)
    scores = [size if draw(st.booleans()) else 1 for size in (batch, heads, queries, total)]
    maybe: dict[str, Any] = {
        "causal": st.sampled_from([True, "top-left", "bottom-right", 0, 3, -40, total, 1 << 30]),
        "window": st.tuples(st.integers(-1, 90), st.integers(-1, 90)),
        "prefix": counts,
        "lengths": st.lists(counts, min_size=batch, max_size=batch).map(lambda n: np.array(n, int)),
        "segments": st.just((rng.integers(0, 3, (batch, queries)), rng.integers(0, 3, total))),
        "mask": st.just(rng.random(scores) < 0.7),
        "bias": st.just(np.where(rng.random(scores) < 0.2, -np.inf, 1.5)),
        "sinks": st.just(rng.normal(size=heads)),
        "softcap": st.sampled_from([0.5, 30.0]),
        "scale": st.sampled_from([1, 0, -2.5, 1e30]),
    }
    for name, values in maybe.items():
        if draw(st.integers(0, 4)) == 0:
            given[name] = draw(values)
    return given


@thoroughly
@given(st.sampled_from(KERNELS or ("",)), calls(), st.integers(0, 5))
def test_calls(kernel: str, call: dict[str, Any], top: int) -> None:
    try:
        posed = pose(**call)
        posed.problem.check_counts()
    except regard.RegardError as refused:
        with on_path(kernel) as attend, pytest.raises(type(refused)):
            attend(**call)
        return
    problem = posed.problem
    queries = problem.scores_shape[2]
    asked = regard.Inspect(top=top, entropy=True, received=True, rows=[-1] if queries else [])
    with on_path(kernel) as attend:
        output, seen = attend(**call, inspect=asked)
        path = _kernel.KernelPath()
        joined = problem.with_past_joined(np.concatenate)
        path.backward(joined, *path.forward(joined), np.ones(problem.output_shape, problem.dtype))
    want, log_sum_exp = _numpy.REFERENCE.forward(problem.in_float64())
    close = {"float64": 1e-9, "float32": 1e-3, "float16": 1e-2}[problem.dtype]
    if call.get("scale") != 1e30:  # beyond float32
        have = output.reshape(want.shape).astype(float)
        assert np.array_equal(np.isnan(have), np.isnan(want)) or problem.dtype != "float64"
        both = np.isfinite(have) & np.isfinite(want)
        np.testing.assert_allclose(have[both], want[both], rtol=close, atol=5 * close)
    assert seen.log_sum_exp.shape == posed.leading(log_sum_exp).shape


JUNK = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=9),
    st.builds(
        lambda shape, dtype: np.zeros(shape, dtype),
        st.lists(st.integers(0, 9), max_size=5).map(tuple),
        st.sampled_from(["f8", "f4", "u2", "u1", "i8", "c16", "O", "S3", ">f8"]),
    ),
)


@thoroughly
@given(st.sampled_from(["forward", "backward", "inspect"]), st.data())
def test_the_binding_refuses_junk(entry: str, data: Any) -> None:
    """An argument in the wrong place raises an error of Python's; what fits by chance computes."""
    given = [np.ones((2, 4, n, 8)) for n in (3, 9, 9)]
    problem = pose(*given, causal=2, window=(3, 3), lengths=[4, 9], sinks=np.ones(4)).problem
    out, lse = np.zeros((2, 4, 3, 8)), np.zeros((2, 4, 3))
    results = {
        "forward": [out, lse],
        "backward": [out, lse, out.copy(), out.copy(), given[1].copy(), given[2].copy(), None],
        "inspect": [lse, np.zeros((2, 4, 3, 2)), np.zeros((2, 4, 3, 2), int), lse.copy(),
                    np.zeros((2, 4, 9)), np.zeros((2, 4, 1, 9)), np.zeros(1, int)],
    }  # fmt: skip
    arguments = [*_kernel.arguments(problem), *results[entry]]
    counts = {_kernel.PARTS.index(name) for name in ("lengths", "prefix", "offsets")}
    counts.add(len(arguments) - 1)  # numbers that Python has checked before
    place = data.draw(st.integers(0, len(arguments) - 1).filter(lambda at: at not in counts))
    arguments[place] = data.draw(JUNK)
    if data.draw(st.booleans()):
        del arguments[data.draw(st.integers(0, len(arguments) - 1)) :]
    with contextlib.suppress(TypeError, ValueError, BufferError, RuntimeError, OverflowError):
        getattr(_kernel.native, entry)(*arguments)


def test_the_binding_writes_nothing_that_is_read_only() -> None:
    given = [np.ones((1, 1, n, 2)) for n in (3, 9, 9)]
    out = np.zeros((1, 1, 3, 2))
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match=r"read-only|writable"):
        _kernel.native.forward(*_kernel.arguments(pose(*given).problem), out, None)
