"""Pasted assignments from end to end: every kind against plain NumPy, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard import AssignmentError, OptionError
from regard.exercises import Solution, library_names, read_exercise, solve
from regard.exercises._draft import Said, exercise_from, to_toml
from regard.exercises._library import library_text, parse_exercise

Array = NDArray[np.float64]
RNG = np.random.default_rng(7)
N, M, D_MODEL, D_Y, D_K, D_V = 3, 5, 2, 7, 4, 6


def drawn(*shape: int) -> Array:
    return np.asarray(RNG.integers(-9, 10, shape) / 10)


X, Y = drawn(N, D_MODEL), drawn(M, D_Y)
WQ, WK, WV = drawn(D_MODEL, D_K), drawn(D_MODEL, D_K), drawn(D_MODEL, D_V)
YK, YV = drawn(D_Y, D_K), drawn(D_Y, D_V)
BQ, BK, BV = drawn(D_K), drawn(D_K), drawn(D_V)
Q, K, V = drawn(N, D_K), drawn(M, D_K), drawn(M, D_V)
FUTURE = np.triu(np.full((N, N), -np.inf), 1)
HIDDEN = np.array([[0, -np.inf, 0], [0, 0, 0], [-np.inf, 0, 0]])
SCALED = "Compute scaled dot-product attention.\n"
PLAIN = "Compute attention without scaling.\n"


def written(**arrays: Array) -> str:
    """As NumPy code."""
    texts = {name: str(array.tolist()).replace("-inf", "-np.inf") for name, array in arrays.items()}
    return "".join(f"{name} = np.array({text})\n" for name, text in texts.items())


def attended(q: Array, k: Array, v: Array, scale: float = 1, mask: Any = 0) -> Array:
    scores = q @ k.T * scale + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)


def heads_of(x: Array, count: int, scale: float) -> Array:
    parts = (np.split(matrix, count, axis=1) for matrix in (WQ, WK, WV))
    return np.hstack([attended(x @ q, x @ k, x @ v, scale) for q, k, v in zip(*parts, strict=True)])


def solved(text: str, **said: Any) -> Solution:
    return Solution("a.md", exercise_from(text, "a.md", Said(**said)))


WEIGHTS = written(X=X, W_Q=WQ, W_K=WK, W_V=WV)
CROSS = "Cross-attention to an encoder.\n" + written(X=X, Y=Y, W_Q=WQ, W_K=YK, W_V=YV)
HALVES = "".join(
    written(**{f"W{role}_{head}": part})
    for role, matrix in (("q", WQ), ("k", WK), ("v", WV))
    for head, part in enumerate(np.split(matrix, 2, axis=1), 1)
)
ROOT, HALF = D_K**-0.5, (D_K / 2) ** -0.5
ENDS: list[tuple[str, str, Mapping[str, Any], Array, str]] = [
    ("dot-product", written(s=Q[0], h=K), {}, attended(Q[:1], K, K)[0], "a set is its values"),
    ("dot-product", SCALED + written(s=Q[0], h=K), {}, attended(Q[:1], K, K, ROOT)[0], "stated"),
    ("dot-product", PLAIN + written(q=Q[0], k_1=K[0], k_2=K[1], v_1=V[0], v_2=V[1]), {},
     attended(Q[:1], K[:2], V[:2])[0], "one query, keys and values one by one"),
    ("dot-product", written(q=Q[0], K=K, V=V), {"scale": "sqrt"},
     attended(Q[:1], K, V, ROOT)[0], "one query and matrices"),
    ("attention", PLAIN + written(q_1=Q[0], q_2=Q[1], K=K, V=V), {}, attended(Q[:2], K, V),
     "several queries"),
    ("attention", SCALED + written(Q=Q, K=K, V=V), {}, attended(Q, K, V, ROOT), "matrices"),
    ("attention", PLAIN + written(Q=Q, K=K[:3], V=V[:3], M=HIDDEN), {},
     attended(Q, K[:3], V[:3], mask=HIDDEN), "a mask"),
    ("attention", PLAIN + "2 heads.\n" + written(Q=Q, K=K, V=V), {"heads": 1}, attended(Q, K, V),
     "said to be of one head"),
    ("self-attention", SCALED + WEIGHTS, {}, attended(X @ WQ, X @ WK, X @ WV, ROOT), "plain"),
    ("self-attention", SCALED + WEIGHTS + written(b_Q=BQ, b_K=BK, b_V=BV), {},
     attended(X @ WQ + BQ, X @ WK + BK, X @ WV + BV, ROOT), "biases"),
    ("self-attention", PLAIN + "It is causal.\n" + WEIGHTS, {},
     attended(X @ WQ, X @ WK, X @ WV, mask=FUTURE), "causal in words"),
    ("self-attention", PLAIN + "It is causal.\n" + WEIGHTS + written(mask=FUTURE), {},
     attended(X @ WQ, X @ WK, X @ WV, mask=FUTURE), "causal in words and as a mask"),
    ("self-attention", PLAIN + WEIGHTS + written(attn_mask=HIDDEN), {},
     attended(X @ WQ, X @ WK, X @ WV, mask=HIDDEN), "a mask by its name in code"),
    ("cross-attention", SCALED + CROSS, {}, attended(X @ WQ, Y @ YK, Y @ YV, ROOT), "plain"),
    ("cross-attention", PLAIN + CROSS + written(b_Q=BQ, b_K=BK, b_V=BV), {},
     attended(X @ WQ + BQ, Y @ YK + BK, Y @ YV + BV), "biases"),
    ("cross-attention", SCALED + CROSS + "Use 2 heads.", {}, np.hstack([
        attended(X @ q, Y @ k, Y @ v, HALF)
        for q, k, v in zip(*(np.split(w, 2, axis=1) for w in (WQ, YK, YV)), strict=True)
    ]), "heads"),
    ("multi-head", SCALED + "Use 2 heads.\n" + WEIGHTS, {}, heads_of(X, 2, HALF), "by columns"),
    ("multi-head", SCALED + WEIGHTS, {"heads": 2}, heads_of(X, 2, HALF), "heads said"),
    ("multi-head", SCALED + written(X=X) + HALVES, {}, heads_of(X, 2, HALF), "by head"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "said", "expected", "reason"), ENDS, ids=[f"{r[0]}: {r[4]}" for r in ENDS]
)
def test_every_kind_from_end_to_end(
    kind: str, text: str, said: Mapping[str, Any], expected: Array, reason: str
) -> None:
    solution = solved(text, **said)
    trace = solution.trace
    assert trace.run.graph.kind == kind
    last = np.asarray(trace[trace.steps[-1]].value, dtype=float)
    np.testing.assert_allclose(last, expected, rtol=1e-12, atol=1e-12)
    assert solution.to_text(level="result")
    draft = read_exercise(to_toml(solution.exercise), "draft.toml")
    again = Solution("draft", draft).trace
    np.testing.assert_array_equal(again[again.steps[-1]].value, trace[trace.steps[-1]].value)


def test_queries_keys_and_values_of_each_head_are_worked_head_by_head() -> None:
    text = PLAIN + written(Q_1=Q, K_1=K, V_1=V, Q_2=-Q, K_2=K, V_2=V)
    traces = list(solved(text).traces.values())
    for trace, q in zip(traces, (Q, -Q), strict=True):
        np.testing.assert_allclose(trace["context"].value, attended(q, K, V))
    assert [asked.title for asked in solved(text).exercise.asked] == ["Head 1", "Head 2"]


def test_one_head_with_a_number_is_one_head() -> None:
    text = PLAIN + written(X=X, W_Q_1=WQ, W_K_1=WK, W_V_1=WV)
    context = solved(text).trace["context"].value
    np.testing.assert_allclose(context, attended(X @ WQ, X @ WK, X @ WV))


def test_a_causal_mask_may_be_made_by_a_program_when_words_say_so() -> None:
    text = PLAIN + "Causal attention.\n" + WEIGHTS + "mask = torch.triu(torch.ones(3, 3))\n"
    solution = solved(text)
    np.testing.assert_allclose(
        solution.trace["context"].value, attended(X @ WQ, X @ WK, X @ WV, mask=FUTURE)
    )
    notes = dict(solution.exercise.understood)[""]
    assert any(note.startswith("line 7: ") and "not used" in note for note in notes)


def test_what_has_no_role_is_told() -> None:
    notes = dict(solved(PLAIN + WEIGHTS + written(expected=X)).exercise.understood)[""]
    assert 'line 6: "expected" (3 x 2) not used: its name has no known role.' in notes


REFUSED = [
    (PLAIN + WEIGHTS + written(M=np.tril(np.ones((N, N)))), {},
     r"a.md: the mask 'M' \(line 6\) holds only 0 and 1, .* may look there or .* -inf where it may"
     r" not .in an exercise file also true and false", "a mask of 0 and 1"),
    (PLAIN + WEIGHTS + written(M=X), {}, "mask 'M' .* other numbers than 0 and -inf", "no mask"),
    (PLAIN + "Causal attention.\n" + WEIGHTS + written(M=HIDDEN), {},
     "causal and gives a mask that lets", "causal and another mask"),
    (PLAIN + WEIGHTS + "mask = np.triu(np.ones((3, 3)))", {}, "line 6: the mask .* no matrix",
     "a mask that a program makes"),
    (PLAIN + "Causal.\n" + WEIGHTS + "mask = [[True, False, True]] * 3", {}, "line 7: the mask",
     "a mask of truth values"),
    (PLAIN + "No masking.\n" + WEIGHTS + "mask = make_mask()", {}, "line 7: the mask",
     "a mask that a program makes, and words that rule it out"),
    (PLAIN + WEIGHTS + written(Y=X), {}, r"'Y' \(line 6\) was read as the input that is attended "
     "to, which self-attention does not use: take it out", "a second input"),
    (PLAIN + WEIGHTS + written(P=X), {}, "'P' .* changes the attention in a way not understood",
     "positions"),
    (PLAIN + WEIGHTS + written(Q=Q), {}, "'Q' .line 6. was read as the queries, which self-attent",
     "queries beside their weights"),
    (PLAIN + written(s=Q[0], h=K, k_1=K[0]), {}, "'h' .* and 'k_1' .* both mean", "two sets"),
    (PLAIN + written(X=X, W_Q=WQ) + HALVES, {}, "'W_Q' .* and 'Wq_1' .* both mean", "WQ twice"),
    (PLAIN + written(K=K, V=V, Q=Q, Q_1=Q), {}, "'Q' .* and 'Q_1' .* both", "Q twice"),
    (PLAIN + written(X=X) + HALVES.replace("Wk_2", "C"), {},
     "make no attention computation.*; the heads do not all .* head 2 has no WK", "no WK"),
    (PLAIN + "2 heads.\n" + written(Q=Q, K=K, V=V), {}, "its own columns of them.*pass --heads 1",
     "heads without X"),
    (PLAIN + written(Q=Q, K=K, V=V), {"heads": 3}, "are given for 3 heads without X", "said heads"),
    (PLAIN + WEIGHTS, {"heads": 3}, "a.md: multi-head: .*not divisible by 3", "heads do not fit"),
    (PLAIN + written(X=X) + HALVES, {"heads": 3}, "matrices for 2 heads, but 3 heads", "heads"),
    (PLAIN + "4 heads.\n" + written(X=X) + HALVES, {}, "for 2 heads, but 4 heads", "some heads"),
    (PLAIN + "Multi-head attention.\n" + CROSS + written(W_O=YV), {}, "pass --heads N",
     "multi-head cross-attention with no number"),
    (PLAIN + "Causal attention.\n" + written(s=Q[0], h=K), {}, "a.md: .*causal=True", "one query"),
    (PLAIN + "Causal attention.\n" + written(Q=Q, K=K, V=V), {}, "a.md: .*3 queries and 5 keys",
     "causal for different sizes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said", "message", "reason"), REFUSED, ids=[r[3] for r in REFUSED]
)
def test_what_could_be_solved_wrongly_is_refused(
    text: str, said: Mapping[str, Any], message: str, reason: str
) -> None:
    with pytest.raises(AssignmentError, match=message):
        solved(text, **said)


# ---- what is said of exercises -------------------------------------------------------------------


@pytest.mark.parametrize("said", [{"scale": 1}, {"heads": 2}, {"causal": "top-left"}])
def test_an_exercise_file_takes_nothing_said(said: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=rf"is an exercise, and {next(iter(said))} .*\[options\]"):
        solve("unscaled-self-attention", **said)
    path = tmp_path / "a.toml"
    path.write_text(library_text("unscaled-self-attention"), encoding="utf-8")
    with pytest.raises(OptionError, match="can only be said of a pasted"):
        solve(str(path), **said)
    with pytest.raises(OptionError, match="standard input"):
        parse_exercise(path.read_text(encoding="utf-8"), "standard input", Said(**said))


@pytest.mark.parametrize("name", library_names())
def test_the_draft_of_an_exercise_is_its_file(name: str) -> None:
    assert to_toml(solve(name).exercise) == library_text(name)
