"""Wrong programs as students write them: each mistake is named, from the numbers alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from regard.exercises import load_exercise, read_exercise
from regard.grading import Grader, Limits, Submission
from regard.grading._sandbox import Isolation

SINGLE = """
import numpy as np

def self_attention(X, Wq, Wk, Wv):
    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    d_k = K.shape[-1]
    scores = Q @ K.T
    scores = scores / np.sqrt(d_k)
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ V, weights

def multi_head_attention(X, Wq, Wk, Wv, H):
    n, d = len(X), Wq.shape[1] // H
    Q = (X @ Wq).reshape(n, H, d).transpose(1, 0, 2)
    K = (X @ Wk).reshape(n, H, d).transpose(1, 0, 2)
    V = (X @ Wv).reshape(n, H, d).transpose(1, 0, 2)
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(d)
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights @ V).transpose(1, 0, 2).reshape(n, H * d), weights
"""
MASKED = """
import numpy as np

def attend(X, Wq, Wk, Wv):
    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    scores = Q @ K.T / np.sqrt(K.shape[1])
    hidden = np.triu(np.ones(scores.shape, dtype=bool), 1)
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights, weights @ V
"""
CAUSAL = (Path(__file__).with_name("programs") / "causal.toml").read_text(encoding="utf-8")
BOTH = CAUSAL.replace('["context"]', '["weights", "context"]')

WRONG = [
    # program, what stands there, what is written instead, the title that names it
    (SINGLE, "    scores = scores / np.sqrt(d_k)\n", "", "not divided by √d_k"),
    (SINGLE, "np.sqrt(d_k)", "d_k", "divided by d_k instead of √d_k"),
    (SINGLE, "scores / np.sqrt(d_k)", "scores * np.sqrt(d_k)", "multiplied by √d_k"),
    (SINGLE, "np.sqrt(d_k)", "np.sqrt(len(X))", "root of the number of tokens"),
    (SINGLE, "axis=1, keep", "axis=0, keep", "over the columns instead of the rows"),
    (SINGLE, "weights.sum(axis=1, keepdims=True)", "weights.sum()", "over the whole matrix"),
    (SINGLE, "    weights = np.exp(scores - scores.max())\n    weights = weights / "
     "weights.sum(axis=1, keepdims=True)\n", "    weights = scores\n", "There is no softmax"),
    (SINGLE, "np.exp(scores - scores.max())", "scores", "without taking exponentials"),
    (SINGLE, "scores = Q @ K.T", "scores = K @ Q.T", "K Qᵀ instead of Q Kᵀ"),
    (SINGLE, "Q, K, V = X @ Wq, X @ Wk", "K, Q, V = X @ Wq, X @ Wk", "W_Q and W_K are exchanged"),
    (SINGLE, "X @ Wv\n    d_k", "X\n    d_k", "X stands for V"),
    (SINGLE, "X @ Wk, X @ Wv\n    d_k", "X @ Wk, X @ Wk\n    d_k", "another"),
    (SINGLE, "X @ Wq, X @ Wk, X @ Wv\n    d_k", "X @ Wq.T, X @ Wk, X @ Wv\n    d_k",
     "A weight matrix is transposed"),
    (SINGLE, "return weights @ V, weights\n\ndef", "return weights.T @ V, weights\n\ndef",
     "The weights are transposed before"),
    (SINGLE, "    Q = (X @ Wq).reshape(n, H, d).transpose(1, 0, 2)\n"
     "    K = (X @ Wk).reshape(n, H, d).transpose(1, 0, 2)\n"
     "    V = (X @ Wv).reshape(n, H, d).transpose(1, 0, 2)\n",
     "    Q, K, V = ((X @ W).reshape(H, n, d) for W in (Wq, Wk, Wv))\n",
     "reshaped without moving the head axis"),
    (SINGLE, "(weights @ V).transpose(1, 0, 2).reshape", "(weights @ V).reshape",
     "reshaped together without moving"),
    (SINGLE, "weights.sum(axis=-1, keepdims=True)", "weights.sum(axis=0, keepdims=True)",
     "over the heads instead of the keys"),
    (SINGLE, "np.sqrt(d)", "np.sqrt(H * d)", "width of the whole model"),
    (SINGLE, "(weights @ V).transpose(1, 0, 2)", "(weights @ V)[::-1].transpose(1, 0, 2)",
     "wrong order"),
    (MASKED, "    scores = np.where(hidden, -np.inf, scores)\n", "", "The mask is not applied"),
    (MASKED, "hidden, -np.inf, scores", "~hidden, -np.inf, scores", "The mask is inverted"),
    (MASKED, "np.triu(np.ones(scores.shape, dtype=bool), 1)",
     "np.tril(np.ones(scores.shape, dtype=bool), -1)", "The mask is transposed"),
    (MASKED, "dtype=bool), 1)", "dtype=bool), 2)", "see the next one"),
    (MASKED, "np.exp(scores)\n", "np.exp(scores) + 0 * 1\n", None),
]  # fmt: skip


@cache
def graders() -> dict[str, Grader]:
    return {
        SINGLE: Grader(load_exercise("numpy-multi-head")),
        MASKED: Grader(read_exercise(BOTH, "causal.toml")),
    }


@pytest.mark.parametrize(("program", "right", "wrong", "title"), WRONG)
def test_a_mistake_is_named_from_the_numbers(
    program: str, right: str, wrong: str, title: str | None, bubblewrap: Isolation
) -> None:
    import re

    assert right in program
    written = Submission("it", "it.py", program.replace(right, wrong, 1).encode())
    grade = graders()[program].grade(written, bubblewrap, Limits(seconds=20))
    if title is None:
        assert grade.points == grade.of
        return
    assert grade.points < grade.of, grade
    said = "\n".join(item.message for item in grade.items)
    assert re.search(title, said), said
