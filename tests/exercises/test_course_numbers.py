"""Every number that the course documents print, typed from them, against the solved library.

Documents 000 and 001 print no results, and 003 no numbers: there the answers are compared with
computations of their own, written here in plain NumPy.
"""

from __future__ import annotations

import json
import runpy
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.exercises import Solution, solve
from regard.graph.notation import Number
from regard.graph.polynomial import Polynomial
from regard.show.document import Table

Array = NDArray[np.float64]


@cache
def solution(name: str, numbers: str = "float64") -> Solution:
    return solve(name, numbers=numbers)


def value(name: str, step: str, variant: str = "main") -> Array:
    return np.asarray(solution(name).traces[variant][step].value, dtype=float)


@cache
def answers(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(solution(name).to_json())["answers"]
    return found


def answers_of_kind(name: str, word: str) -> list[Any]:
    return [each["answer"] for each in answers(name) if each["asks"] == word]


def softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def numbers(text: str) -> Array:
    """Rows as the documents print them, with or without brackets."""
    rows = text.replace("[", " ").replace("]", " ").strip().splitlines()
    return np.array([[float(word) for word in row.split()] for row in rows])


# ---- 000 ---------------------------------------------------------------------------------------


def test_000_problem_1() -> None:
    x = numbers("0.8 -0.4\n1.2 0.3\n-0.5 1.1")
    q = x @ numbers("0.6 -0.2\n0.1 0.5")
    k = x @ numbers("-0.3 0.7\n0.4 0.9")
    v = x @ numbers("1.0 -0.5\n0.2 0.8")
    expected = {"Q": q, "K": k, "V": v, "scores": q @ k.T, "weights": softmax(q @ k.T)}
    expected["context"] = expected["weights"] @ v
    for step, wanted in expected.items():
        np.testing.assert_allclose(value("unscaled-self-attention", step), wanted, atol=1e-15)


@pytest.mark.parametrize(("variant", "bias"), [("main", False), ("biased", True)])
def test_000_problem_2_against_the_program(variant: str, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    library = files("regard.exercises") / "library"
    program = runpy.run_path(str(library / "torch-self-attention-solution.py"))
    torch.manual_seed(42)
    module = program["SelfAttention"](d_model=4, bias=bias)
    with torch.no_grad():
        output, scores, weights = module(torch.randn(2, 3, 4))
    for step, tensor in (("context", output), ("scores", scores), ("weights", weights)):
        found = value("torch-self-attention", step, variant)
        np.testing.assert_allclose(found, tensor.numpy(), atol=1e-6)
    assert value("torch-self-attention", "scores", variant).shape == (2, 3, 3)
    assert value("torch-self-attention", "weights", variant).shape == (2, 3, 3)


def test_000_problem_2_against_a_plain_module() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(42)
    layers = [torch.nn.Linear(4, 4, bias=False) for _ in range(3)]
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        q, k, _ = (layer(x) for layer in layers)
        scores = torch.matmul(q, k.transpose(1, 2))
        weights = torch.nn.functional.softmax(scores, dim=2)
    np.testing.assert_allclose(value("torch-self-attention", "scores"), scores, atol=1e-6)
    np.testing.assert_allclose(value("torch-self-attention", "weights"), weights, atol=1e-6)


# ---- 001 ---------------------------------------------------------------------------------------


def counting(start: int, rows: int, columns: int) -> Array:
    """0.1, 0.2, 0.3, … row by row, which most matrices of 001 are."""
    return (start + np.arange(rows * columns).reshape(rows, columns)) / 10


def test_001_every_step() -> None:
    x = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    heads = [
        (
            counting(1, 4, 3),
            counting(1, 4, 3)[:, ::-1],
            np.array([[0.7, 0.8, 0.9], [0.4, 0.5, 0.6], [0.1, 0.2, 0.3], [1.3, 1.4, 1.5]]),
        ),
        (
            counting(2, 4, 3),
            counting(2, 4, 3)[:, ::-1],
            np.array([[0.9, 1.0, 1.1], [0.6, 0.7, 0.8], [0.3, 0.4, 0.5], [1.4, 1.5, 1.6]]),
        ),
    ]
    contexts = []
    for head, weights in enumerate(heads):
        q, k, v = (x @ matrix for matrix in weights)
        attention = softmax(q @ k.T / np.sqrt(3))
        contexts.append(attention @ v)
        steps = {"Q": q, "K": k, "V": v, "weights": attention, "context": contexts[-1]}
        for step, wanted in steps.items():
            np.testing.assert_allclose(value("two-head-attention", step)[head], wanted, rtol=1e-12)
    z = np.hstack(contexts)
    np.testing.assert_allclose(value("two-head-attention", "merged"), z, rtol=1e-12)
    output = value("two-head-attention", "output")
    np.testing.assert_allclose(output, z @ counting(1, 6, 4), rtol=1e-12)
    np.testing.assert_allclose(output, [[155.96, 169.04, 182.12, 195.20]] * 2, rtol=1e-12)


def test_001_certified_weights_that_print_as_0() -> None:
    pytest.importorskip("flint")
    (certified,) = [a for a in answers_of_kind("two-head-attention", "step") if "weights" in a]
    tiny = [[row[0].lstrip("[").split(" +/-")[0] for row in head] for head in certified["weights"]]
    assert [[f"{float(weight):.1e}" for weight in head] for head in tiny] == [
        ["1.7e-62", "1.4e-142"],
        ["3.7e-81", "3.4e-188"],
    ]
    text = solution("two-head-attention").to_text()
    assert text.index("every digit proven") < text.rindex("1.7e-62") < text.rindex("1.4e-142")


# ---- 002 ---------------------------------------------------------------------------------------

TWO_DECIMALS = [
    ("source-over-vectors", "weights", "0.88 0.12 0.00"),
    ("source-over-vectors", "context", "1.00 2.00 2.76"),
    ("scaled-attention-by-hand", "context", "0.86 1.58 -0.72\n0.99 1.88 -1.56"),
]


@pytest.mark.parametrize(("name", "step", "printed"), TWO_DECIMALS)
def test_002_values(name: str, step: str, printed: str) -> None:
    rows = np.atleast_2d(value(name, step))
    assert [[f"{entry:.2f}" for entry in row] for row in rows] == [
        line.split() for line in printed.splitlines()
    ]


def test_002_exercise_1_dot_products() -> None:
    assert value("source-over-vectors", "scores").tolist() == [8, 6, 1]


def test_002_exercise_2a_axis_and_shapes() -> None:
    assert answers_of_kind("attention-questions", "choice")[0] == "row-wise"
    (shapes,) = answers_of_kind("attention-questions", "shape")
    assert shapes["weights"]["sizes"] == ["n_q", "n_k"]
    assert shapes["context"]["sizes"] == ["n_q", "d_v"]


def test_002_exercise_2b_d() -> None:
    assert answers_of_kind("attention-questions", "choice")[1] == "d_k"


COUNTS = [
    ("$Q @ transpose(K)$", "multiplications", "n_q n_k d_k"),
    ("$Q @ transpose(K)$", "additions", "n_q n_k (d_k - 1)"),
    ("division by $sqrt(d_k)$", "divisions", "n_q n_k"),
    ("softmax", "divisions", "n_q n_k"),
    ("softmax", "additions", "n_q (n_k - 1)"),
    ("weights times $V$", "multiplications", "n_q d_v n_k"),
    ("weights times $V$", "additions", "n_q d_v (n_k - 1)"),
]


def test_002_exercise_2c_counts() -> None:
    (counted,) = answers_of_kind("attention-questions", "formula")
    together = counted.pop("together")
    found = [(w, o, Polynomial.parse(f)) for w, found in counted.items() for o, f in found.items()]
    wanted = [(words, operation, Polynomial.parse(f)) for words, operation, f in COUNTS]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    for operation, formula in together.items():
        parts = [f for _, o, f in wanted if o == operation]
        assert sum(parts, Polynomial()) == Polynomial.parse(formula)


def test_002_exercise_2d_mask() -> None:
    (mask,) = answers_of_kind("attention-questions", "mask")
    inf = "-inf"
    assert mask["shape"] == [4, 4]
    assert mask["values"] == [[0, inf, inf, inf], [0, 0, inf, inf], [0, 0, 0, inf], [0, 0, 0, 0]]
    weights = value("attention-questions", "weights", "masked")
    assert (weights[np.triu_indices(4, 1)] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_002_exercise_3_agrees_with_torch() -> None:
    pytest.importorskip("torch")
    (gap,) = answers_of_kind("scaled-attention-by-hand", "agree")
    assert gap < 1e-12


# ---- 003 ---------------------------------------------------------------------------------------


def tables(name: str) -> list[list[list[Any]]]:
    """The numbers and vectors in the rows of every table of a solution."""
    blocks = solution(name).document().blocks
    shown = [block for block in blocks if isinstance(block, Table)]
    return [[[_plain(cell) for (cell,) in row] for row in table.rows] for table in shown]


def _plain(cell: Any) -> Any:
    return cell.value if isinstance(cell, Number) else cell.values


MU = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
AVERAGE = np.array([2.0, 1.0])  # of the values (4, 0) and (0, 2)
V = np.array([[4.0, 0], [9, 9], [0, 2], [-7, 5]])


def test_003_problem_1_copies() -> None:
    (table,) = tables("copying")
    keys = np.array([[1.0, 0, 1], [0, 2, 1], [1, 1, 0], [-1, 1, 1]])
    values = np.array([[1.0, 0, 0], [2, 3, 1], [0, 1, 4], [5, 5, 5]])
    for gain, gap, weight, formula, c, distance in table:
        scores = keys @ (gain * keys[1])
        gaps = scores[1] - np.delete(scores, 1)
        expected = softmax(scores) @ values
        assert gap == pytest.approx(gaps.min())
        assert weight == pytest.approx(1 / (1 + np.exp(-gaps).sum()))
        assert formula == pytest.approx(weight)
        np.testing.assert_allclose(c, expected)
        assert distance == pytest.approx(np.linalg.norm(expected - [2, 3, 1]))
    assert distance < 1e-6


def test_003_problem_2_averages() -> None:
    (table,) = tables("average-of-two")
    for beta, a, b, formula, c, distance in table:
        weights = softmax(MU @ (beta * (MU[0] + MU[2])))
        np.testing.assert_allclose([a, b], weights[[0, 2]])
        assert formula == pytest.approx(np.exp(beta) / (2 * np.exp(beta) + 4 - 2))
        assert formula == pytest.approx(a)
        np.testing.assert_allclose(c, weights @ V)
        assert distance == pytest.approx(np.linalg.norm(c - AVERAGE))
    assert distance < 1e-7


def test_003_problem_3a_averages() -> None:
    np.testing.assert_allclose(value("single-head-noise", "s"), 20 * (MU[0] + MU[2]))
    (table, _) = tables("single-head-noise")
    distances = [row[-1] for row in table]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-7
    assert [row[0] for row in table][-1] == 0


def one_head(keys: Array) -> Array:
    return np.asarray(softmax(keys @ (20 * (MU[0] + MU[2]))) @ V)


def two_heads(keys: Array) -> Array:
    return np.asarray((softmax(keys @ (20 * MU[0])) + softmax(keys @ (20 * MU[2]))) / 2 @ V)


def longer(t: float) -> Array:
    """The keys with k_a longer by t standard deviations of √½."""
    keys = MU.copy()
    keys[0] *= 1 + t * np.sqrt(0.5)
    return keys


def test_003_problem_3b_swings_between_both_values() -> None:
    (_, table) = tables("single-head-noise")
    for t, length, _, _, c in table:
        assert length == pytest.approx(1 + t / np.sqrt(2))
        np.testing.assert_allclose(c, one_head(longer(t)), atol=1e-12)
    np.testing.assert_allclose(table[0][-1], V[2], atol=1e-5)
    np.testing.assert_allclose(table[-1][-1], V[0], atol=1e-5)


def test_003_problem_4a_averages() -> None:
    np.testing.assert_allclose(value("two-heads-noise", "Q"), [20 * MU[0], 20 * MU[2]])
    (table, _) = tables("two-heads-noise")
    assert all(row[-1] < 1e-6 for row in table[1:])


def test_003_problem_4b_stays_near_the_average() -> None:
    (_, table) = tables("two-heads-noise")
    for t, _, weight, both, single in table:
        np.testing.assert_allclose(both, two_heads(longer(t)), atol=1e-12)
        np.testing.assert_allclose(single, one_head(longer(t)), atol=1e-12)
        assert weight > 0.99
        assert np.abs(both - AVERAGE).max() < 0.05


# ---- 004 ---------------------------------------------------------------------------------------

ONE_HEAD = """
[[-0.7 -0.9  0.5  0.1 -5.5 -1.1]
 [-0.4  0.6  0.6 -0.6  2.   0.5]
 [ 0.3 -0.1 -2.4 -1.9  4.9  1.8]
 [-0.7 -0.7  0.4 -0.1 -4.5 -0.7]
 [-2.   3.3  2.1  1.6 -1.3  2.8]]
"""
ONE_HEAD_WEIGHTS = """
[[4.9e-07 4.0e-14 9.9e-01 1.7e-05 6.1e-03]
 [4.8e-01 3.6e-01 1.5e-01 2.1e-02 4.0e-04]
 [1.9e-02 5.8e-01 9.4e-02 2.8e-01 3.2e-02]
 [3.0e-02 1.2e-02 8.5e-01 9.9e-02 1.1e-02]
 [4.7e-04 7.3e-03 1.6e-02 4.0e-02 9.4e-01]]
"""
THREE_HEADS = """
[[-0.7 -0.9  0.7  0.2 -1.5  2.9]
 [-1.1  0.9 -3.9 -2.9 -3.  -0.5]
 [-0.7 -0.9  1.6  1.2  5.8  1.5]
 [-0.7 -0.7 -3.8 -2.8 -5.1 -0.9]
 [-0.2  0.3  1.   0.2 -1.3  3. ]]
"""
THREE_HEADS_WEIGHTS = [
    """
[[1.8e-04 1.2e-03 9.5e-01 4.6e-02 2.3e-05]
 [5.1e-01 1.7e-02 3.6e-01 1.0e-02 1.0e-01]
 [6.4e-04 2.5e-03 9.4e-01 5.4e-02 9.7e-05]
 [3.8e-02 2.6e-02 8.4e-01 8.8e-02 1.0e-02]
 [2.6e-02 3.2e-01 4.5e-02 5.3e-01 7.7e-02]]
""",
    """
[[3.1e-05 2.0e-18 9.0e-01 4.8e-07 9.7e-02]
 [6.1e-04 1.0e+00 9.6e-05 8.1e-04 9.0e-07]
 [3.2e-03 1.1e-01 3.8e-04 1.5e-02 8.7e-01]
 [1.0e-02 9.7e-01 2.3e-03 1.8e-02 2.0e-03]
 [1.1e-01 7.5e-04 7.9e-01 4.0e-02 5.4e-02]]
""",
    """
[[3.1e-05 3.9e-05 1.8e-02 3.6e-03 9.8e-01]
 [4.3e-01 4.7e-03 4.9e-01 7.1e-02 6.8e-03]
 [2.3e-01 6.7e-01 2.2e-02 6.3e-02 1.5e-02]
 [1.4e-02 4.5e-05 9.1e-01 2.7e-02 4.4e-02]
 [2.8e-06 3.9e-03 1.0e-04 8.4e-04 1.0e+00]]
""",
]
SWAPPED_X = """
[[ 2.7  0.1  1.6  1.8  1.5  0.3]
 [ 0.7 -0.8 -1.2 -1.  -0.  -0.3]
 [ 0.1  2.6 -0.1 -1.3 -0.5 -0.7]
 [ 1.1  1.5  1.  -0.5  0.4  0.4]
 [-0.7 -0.7  0.7 -1.5 -0.8  1. ]]
"""
SWAPPED_ONE_HEAD = """
[[-0.4  0.6  0.6 -0.6  2.   0.5]
 [-0.7 -0.9  0.5  0.1 -5.5 -1.1]
 [ 0.3 -0.1 -2.4 -1.9  4.9  1.8]
 [-0.7 -0.7  0.4 -0.1 -4.5 -0.7]
 [-2.   3.3  2.1  1.6 -1.3  2.8]]
"""
SWAPPED_ONE_HEAD_WEIGHTS = """
[[3.6e-01 4.8e-01 1.5e-01 2.1e-02 4.0e-04]
 [4.0e-14 4.9e-07 9.9e-01 1.7e-05 6.1e-03]
 [5.8e-01 1.9e-02 9.4e-02 2.8e-01 3.2e-02]
 [1.2e-02 3.0e-02 8.5e-01 9.9e-02 1.1e-02]
 [7.3e-03 4.7e-04 1.6e-02 4.0e-02 9.4e-01]]
"""
SWAPPED_THREE_HEADS = """
[[-1.1  0.9 -3.9 -2.9 -3.  -0.5]
 [-0.7 -0.9  0.7  0.2 -1.5  2.9]
 [-0.7 -0.9  1.6  1.2  5.8  1.5]
 [-0.7 -0.7 -3.8 -2.8 -5.1 -0.9]
 [-0.2  0.3  1.   0.2 -1.3  3. ]]
"""
SWAPPED_THREE_HEADS_WEIGHTS = [
    """
[[1.7e-02 5.1e-01 3.6e-01 1.0e-02 1.0e-01]
 [1.2e-03 1.8e-04 9.5e-01 4.6e-02 2.3e-05]
 [2.5e-03 6.4e-04 9.4e-01 5.4e-02 9.7e-05]
 [2.6e-02 3.8e-02 8.4e-01 8.8e-02 1.0e-02]
 [3.2e-01 2.6e-02 4.5e-02 5.3e-01 7.7e-02]]
""",
    """
[[1.0e+00 6.1e-04 9.6e-05 8.1e-04 9.0e-07]
 [2.0e-18 3.1e-05 9.0e-01 4.8e-07 9.7e-02]
 [1.1e-01 3.2e-03 3.8e-04 1.5e-02 8.7e-01]
 [9.7e-01 1.0e-02 2.3e-03 1.8e-02 2.0e-03]
 [7.5e-04 1.1e-01 7.9e-01 4.0e-02 5.4e-02]]
""",
    """
[[4.7e-03 4.3e-01 4.9e-01 7.1e-02 6.8e-03]
 [3.9e-05 3.1e-05 1.8e-02 3.6e-03 9.8e-01]
 [6.7e-01 2.3e-01 2.2e-02 6.3e-02 1.5e-02]
 [4.5e-05 1.4e-02 9.1e-01 2.7e-02 4.4e-02]
 [3.9e-03 2.8e-06 1.0e-04 8.4e-04 1.0e+00]]
""",
]

# The document prints a space too many in the first rows of ONE_HEAD and SWAPPED_ONE_HEAD
# ("[[ -0.7"), and a bracket too many before THREE_HEADS ("[[[-0.7"); NumPy prints neither.
PRINTED = [
    ("main", False, "context", [ONE_HEAD]),
    ("main", False, "weights", [ONE_HEAD_WEIGHTS]),
    ("three-heads", False, "merged", [THREE_HEADS]),
    ("three-heads", False, "weights", THREE_HEADS_WEIGHTS),
    ("main", True, "context", [SWAPPED_ONE_HEAD]),
    ("main", True, "weights", [SWAPPED_ONE_HEAD_WEIGHTS]),
    ("three-heads", True, "merged", [SWAPPED_THREE_HEADS]),
    ("three-heads", True, "weights", SWAPPED_THREE_HEADS_WEIGHTS),
]
CASES = pytest.mark.parametrize(("variant", "swapped", "step", "printed"), PRINTED)


@CASES
def test_004_values(variant: str, swapped: bool, step: str, printed: list[str]) -> None:
    trace = solution("numpy-multi-head").traces[variant]
    if swapped:
        trace = trace.replace(X=trace["X"].value[[1, 0, 2, 3, 4]])
    values = np.asarray(trace[step].value)
    for found, text in zip(values if values.ndim == 3 else [values], printed, strict=True):
        wanted = numbers(text)
        assert wanted.shape == found.shape
        if "e" in text:
            assert [[f"{entry:.1e}" for entry in row] for row in found] == [
                line.strip(" []").split() for line in text.strip().splitlines()
            ]
        np.testing.assert_allclose(found, wanted, rtol=0.06 if "e" in text else 0, atol=0.0501)


@CASES
def test_004_text(variant: str, swapped: bool, step: str, printed: list[str]) -> None:
    """The solution prints each matrix as NumPy does."""
    text = solution("numpy-multi-head").to_text(level="result")
    asked = text.index("(d)") if swapped else 0
    shown = [line.strip() for line in text[asked:].splitlines()]
    for matrix in printed:
        rows = [line.strip() for line in matrix.strip().splitlines()]
        assert any(shown[i : i + 5] == rows for i in range(len(shown))), matrix


def test_004_swapped_input() -> None:
    x = value("numpy-multi-head", "X")
    np.testing.assert_array_equal(x[[1, 0, 2, 3, 4]], numbers(SWAPPED_X))


def test_004_c_the_weights_alone_differ() -> None:
    (compared,) = answers_of_kind("numpy-multi-head", "compare")
    gap = np.abs(numbers(ONE_HEAD) - numbers(THREE_HEADS)).max()
    assert compared["largest difference"]["three heads"] == pytest.approx(gap, abs=0.1)
    assert "the weights alone make the difference" in " ".join(
        solution("numpy-multi-head").to_text().split()
    )


def test_004_d_is_equivariant() -> None:
    for answer in answers_of_kind("numpy-multi-head", "permute"):
        assert answer["verdict"] == "equivariant"
        assert max(answer["differs by"].values()) < 1e-12
