"""How long a trace takes: multi-head self-attention of 64 tokens, d_model 64, 8 heads.

The baseline is the same computation as a plain NumPy function that keeps no steps. It is the
least that any tool could take; a trace also validates, keeps every step and knows its formulas.
"""

import numpy as np
from _measure import interleaved_medians, print_ratios
from numpy.typing import NDArray

import regard

RUNS = 15
BASELINE = "plain NumPy, no steps kept"
Array = NDArray[np.float64]
TOKENS, WIDTH, HEADS = 64, 64, 8


def plain_numpy(x: Array, wq: Array, wk: Array, wv: Array, wo: Array) -> Array:
    size = WIDTH // HEADS
    q, k, v = ((x @ w).reshape(TOKENS, HEADS, size).swapaxes(0, 1) for w in (wq, wk, wv))
    scores = q @ k.mT / np.sqrt(size)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v).swapaxes(0, 1).reshape(TOKENS, WIDTH) @ wo


def main() -> None:
    """Time the trace and what it can do against the baseline, which must agree with it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(TOKENS, WIDTH))
    wq, wk, wv, wo = rng.normal(size=(4, WIDTH, WIDTH)) / 8
    trace = regard.work("multi-head", X=x, WQ=wq, WK=wk, WV=wv, WO=wo, heads=HEADS)
    np.testing.assert_allclose(trace["output"].value, plain_numpy(x, wq, wk, wv, wo), atol=1e-10)
    contestants = {
        BASELINE: lambda: plain_numpy(x, wq, wk, wv, wo),
        "regard.work, every step kept": lambda: regard.work(
            "multi-head", X=x, WQ=wq, WK=wk, WV=wv, WO=wo, heads=HEADS
        ),
        "trace.gradient()": lambda: trace.gradient(),
        "trace.to_text()": lambda: trace.to_text(width=100),
        "trace.to_html()": lambda: trace.to_html(),
    }
    print_ratios(interleaved_medians(contestants, RUNS), BASELINE, RUNS)


if __name__ == "__main__":
    main()
