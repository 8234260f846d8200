"""Wrong submissions as people write them, in plain NumPy: each is diagnosed.

Nothing here comes from the catalogue's own rewrites. Every case is a short program with one bug
(the last ones with two), and what a teacher would call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import regard
from regard.checking import Key, Verdict, check
from regard.show.trace import Trace

Arrays = dict[str, Any]
N, D, H = 6, 6, 3  # as many tokens as columns: the bugs below then run without an error
rng = np.random.default_rng(11)
X = rng.normal(size=(N, D)).round(1)
WQ, WK, WV, WO = rng.normal(size=(4, D, D)).round(1)
BIAS = rng.normal(size=(3, D)).round(1)
Q, K = rng.normal(size=(2, 4, 5)).round(1)
V = rng.normal(size=(4, 7)).round(1)
K2, V2 = rng.normal(size=(7, 5)).round(1), rng.normal(size=(7, 3)).round(1)
LONGER = np.triu(np.ones((4, 4)), 1).astype(bool)  # what a causal mask hides


def softmax(scores: Any, axis: int = -1) -> Any:
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def self_attention() -> Trace:
    return regard.work("self-attention", X=X, WQ=WQ, WK=WK, WV=WV)


def many_heads() -> Trace:
    return regard.work("multi-head", X=X, WQ=WQ, WK=WK, WV=WV, WO=WO, heads=H)


def causal() -> Trace:
    return regard.work("attention", Q=Q, K=K, V=V, causal=True)


def padded() -> Trace:
    return regard.work("attention", Q=Q, K=K, V=V, lengths=np.array(3))


# ---- one bug each ----------------------------------------------------------------------------


def scale_forgotten() -> Arrays:
    weights = softmax((X @ WQ) @ (X @ WK).T)
    return {"weights": weights, "context": weights @ (X @ WV)}


def divided_by_d() -> Arrays:
    return {"context": softmax((X @ WQ) @ (X @ WK).T / D) @ (X @ WV)}


def softmax_over_dim_0() -> Arrays:
    weights = softmax((X @ WQ) @ (X @ WK).T / np.sqrt(D), axis=0)
    return {"weights": weights, "context": weights @ (X @ WV)}


def softmax_of_all() -> Arrays:
    exponentials = np.exp((X @ WQ) @ (X @ WK).T / np.sqrt(D))
    return {"context": exponentials / exponentials.sum() @ (X @ WV)}


def sum_forgotten() -> Arrays:
    return {"context": np.exp((X @ WQ) @ (X @ WK).T / np.sqrt(D)) @ (X @ WV)}


def key_not_transposed() -> Arrays:
    return {"context": softmax((X @ WQ) @ (X @ WK) / np.sqrt(D)) @ (X @ WV)}


def like_a_linear_layer() -> Arrays:
    q, k, v = X @ WQ.T, X @ WK.T, X @ WV.T
    return {"Q": q, "context": softmax(q @ k.T / np.sqrt(D)) @ v}


def values_are_tokens() -> Arrays:
    return {"context": softmax((X @ WQ) @ (X @ WK).T / np.sqrt(D)) @ X}


def softmax_then_scale() -> Arrays:
    return {"weights": softmax((X @ WQ) @ (X @ WK).T) / np.sqrt(D)}


def reshaped_without_transpose() -> Arrays:
    q, k, v = (np.reshape(X @ w, (H, N, D // H)) for w in (WQ, WK, WV))
    context = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(D // H)) @ v
    return {"output": context.transpose(1, 0, 2).reshape(N, D) @ WO}


def split_heads(matrix: Any) -> Any:
    return np.stack(np.split(matrix, H, axis=1))


def heads(scale: float = np.sqrt(D // H)) -> Any:
    q, k, v = (split_heads(X @ w) for w in (WQ, WK, WV))
    return softmax(q @ k.transpose(0, 2, 1) / scale) @ v


def not_moved_back() -> Arrays:
    return {"output": heads().reshape(N, D) @ WO}


def last_head_first() -> Arrays:
    return {"merged": np.concatenate(list(heads())[::-1], axis=1)}


def output_matrix_forgotten() -> Arrays:
    return {"output": np.concatenate(list(heads()), axis=1)}


def output_matrix_transposed() -> Arrays:
    return {"output": np.concatenate(list(heads()), axis=1) @ WO.T}


def scaled_by_model_width() -> Arrays:
    return {"output": np.concatenate(list(heads(np.sqrt(D))), axis=1) @ WO}


def heads_split_by_rows() -> Arrays:
    q, k, v = (np.stack(np.split(X @ w, H, axis=0)) for w in (WQ, WK, WV))
    context = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(D)) @ v
    return {"merged": np.concatenate(list(context), axis=0)}


def causal_scores() -> Any:
    return Q @ K.T / np.sqrt(5)


def mask_multiplied() -> Arrays:
    return {"context": softmax(np.where(LONGER, 0, causal_scores())) @ V}


def mask_after() -> Arrays:
    return {"weights": np.where(LONGER, 0, softmax(causal_scores()))}


def mask_of_the_past() -> Arrays:
    return {"weights": softmax(np.where(LONGER.T, -1e9, causal_scores()))}


def mask_with_diagonal_1() -> Arrays:
    scores = np.where(np.triu(np.ones((4, 4)), 2) == 1, -np.inf, causal_scores())
    return {"context": softmax(scores) @ V}


def mask_left_out() -> Arrays:
    return {"context": softmax(causal_scores()) @ V}


def padded_rows() -> Arrays:
    scores = causal_scores()
    scores[3:] = -1e9
    return {"context": softmax(scores) @ V}


def queries_and_keys_swapped() -> Arrays:
    q, k = X @ WK, X @ WQ
    return {"Q": q, "K": k, "context": softmax(q @ k.T / np.sqrt(D)) @ (X @ WV)}


SUBMISSIONS: list[tuple[Callable[[], Trace], Callable[[], Arrays], str]] = [
    (self_attention, scale_forgotten, "no-scale"),
    (self_attention, divided_by_d, "scale-by-size"),
    (self_attention, softmax_over_dim_0, "softmax-over-columns"),
    (self_attention, softmax_of_all, "softmax-over-everything"),
    (self_attention, sum_forgotten, "not-normalised"),
    (self_attention, key_not_transposed, "keys-not-transposed"),
    (self_attention, like_a_linear_layer, "weight-matrix-transposed"),
    (self_attention, values_are_tokens, "values-not-projected"),
    (self_attention, softmax_then_scale, "softmax-before-scale"),
    (self_attention, queries_and_keys_swapped, "queries-keys-swapped"),
    (many_heads, reshaped_without_transpose, "heads-by-view"),
    (many_heads, not_moved_back, "heads-merged-by-view"),
    (many_heads, last_head_first, "heads-reversed"),
    (many_heads, output_matrix_forgotten, "output-projection-forgotten"),
    (many_heads, output_matrix_transposed, "output-projection-transposed"),
    (many_heads, scaled_by_model_width, "scale-by-model-width"),
    (many_heads, heads_split_by_rows, "heads-by-rows"),
    (causal, mask_multiplied, "mask-finite"),
    (causal, mask_after, "mask-after-softmax"),
    (causal, mask_of_the_past, "mask-transposed"),
    (causal, mask_with_diagonal_1, "causal-sees-next"),
    (causal, mask_left_out, "mask-forgotten"),
    (padded, padded_rows, "queries-padded"),
]


def named(report: regard.Report) -> set[str]:
    return {w for f in report.findings for words in f.mistakes for w in words}


@pytest.mark.parametrize(
    ("work", "submission", "word"), SUBMISSIONS, ids=[case[1].__name__ for case in SUBMISSIONS]
)
def test_a_wrong_submission_is_diagnosed(
    work: Callable[[], Trace], submission: Callable[[], Arrays], word: str
) -> None:
    trace = work()
    for decimals in (None, 3):
        answers = submission()
        if decimals:
            answers = {name: value.round(decimals) for name, value in answers.items()}
        report = check(trace, answers)
        first = next(f for f in report.findings if f.verdict == Verdict.MISTAKE)
        assert (word,) in first.mistakes
        assert len(first.mistakes) <= 2  # ties are told as such, and there are few
        assert not report.is_right


@pytest.mark.parametrize(
    ("work", "submission", "word"), SUBMISSIONS, ids=[case[1].__name__ for case in SUBMISSIONS]
)
def test_no_mistake_is_named_where_there_is_none(
    work: Callable[[], Trace], submission: Callable[[], Arrays], word: str
) -> None:
    trace = work()
    right = {name: trace[name].value for name in submission()}
    assert not named(check(trace, right))
    noise = {name: value + rng.normal(size=value.shape) for name, value in right.items()}
    assert not named(check(trace, noise))


def two_at_once() -> Arrays:
    weights = softmax((X @ WQ) @ (X @ WK).T, axis=0)  # neither scaled nor over the keys
    return {"context": weights @ (X @ WV)}


def view_and_no_output_matrix() -> Arrays:
    q, k, v = (np.reshape(X @ w, (H, N, D // H)) for w in (WQ, WK, WV))
    context = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(D // H)) @ v
    return {"output": context.transpose(1, 0, 2).reshape(N, D)}


@pytest.mark.parametrize(
    ("work", "submission", "words"),
    [
        (self_attention, two_at_once, {"no-scale", "softmax-over-columns"}),
        (many_heads, view_and_no_output_matrix, {"heads-by-view", "output-projection-forgotten"}),
    ],
)
def test_two_bugs_are_named_together(
    work: Callable[[], Trace], submission: Callable[[], Arrays], words: set[str]
) -> None:
    (finding,) = check(work(), submission()).findings
    assert words in map(set, finding.mistakes)


def test_one_key_serves_many_answers() -> None:
    key = Key(many_heads().run)
    wrong = regard.checking.read_answer("output", output_matrix_forgotten()["output"])
    for _ in range(2):
        judgement = key.judge({"output": wrong})["output"]
        assert judgement.causes[0][0].mistake.word == "output-projection-forgotten"
