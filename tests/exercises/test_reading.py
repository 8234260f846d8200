"""Reading assignments: every layout, every option, the errors, and the course documents."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import _errors
from regard.exercises.reading import (
    Found,
    Reading,
    ReadingError,
    read_assignment,
    read_matrices,
    split_exercises,
)

ASSIGNMENTS = Path(__file__).parent / "assignments"
SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the course documents are not here")


def exact(text: str) -> list[list[Any]]:
    """Rows from a compact spelling: "1 1/2; -inf 0.3" is [[1, 1/2], [-∞, 3/10]]."""
    return [[number(entry) for entry in row.split()] for row in text.split(";")]


def number(text: str) -> Fraction | float:
    return float(text) if "inf" in text else Fraction(text)


def by_name(reading: Reading) -> dict[str, list[Any]]:
    """The values of what was found, head matrices as WQ[0]."""
    return {
        one.name if one.head is None else f"{one.name}[{one.head}]": one.values
        for one in reading.found
    }


def only(text: str) -> Found:
    found = read_matrices(text)
    assert len(found) == 1, found
    return found[0]


def read_sample(name: str) -> Reading:
    return read_assignment((ASSIGNMENTS / name).read_text(encoding="utf-8"))


def seed(start: str) -> str:
    return next(SEEDS.glob(f"{start}*")).read_text(encoding="utf-8")


# ---- whole assignments, one for each layout -------------------------------------------------


def test_latex_with_two_heads() -> None:
    reading = read_sample("two_heads.md")
    assert by_name(reading) == {
        "X": exact("1 -1/2 0 2 .25; 0 1 -1 3/4 3; 2 2 -1 0 1"),
        "WQ[0]": exact("1 0; 0 1; 1 1; 0 0; 2 -1"),
        "WK[0]": exact("0 1; 1 0; 1 1; 0 3; 0 -1"),
        "WV[0]": exact("1 6; 2 7; 3 8; 4 9; 5 10"),
        "WQ[1]": exact("0.1 0.2; 0.3 0.4; 0.5 0.6; 0.7 0.8; 0.9 1"),
        "WK[1]": exact("0 1; 1 0; 1 1; 0 3; 0 -1"),  # set equal to the first head's
        "WV[1]": exact("1 1; 1 2; 1 3; 1 4; 1 5"),
    }
    assert (reading.kind, reading.scale, reading.heads) == ("multi-head", True, (2,))
    assert {one.layout for one in reading.found} == {"latex"}
    assert [one.line for one in reading.found] == [3, 14, 15, 16, 17, 18, 19]
    assert 'line 16: "\\mathbf{W}_V^{(1)}" (5 x 2) read as the value weights of head 1.' in (
        reading.notes
    )


def test_torch_session_with_cross_attention() -> None:
    reading = read_sample("cross_torch.md")
    assert by_name(reading) == {
        "X": exact("1 0.5 -2; 0 0.001 4"),
        "Y": exact("1 2 3; 4 5 6; 7 8 9; 1 0 1; 0 2 0"),
        "WQ": exact("1 0 0; 0 1 0; 0 0 1"),
        "WK": exact("1 4; 2 5; 3 6"),
        "WV": exact("1 4; 2 5; 3 6"),
    }
    assert (reading.kind, reading.scale, reading.causal) == ("cross-attention", False, False)
    assert {one.layout for one in reading.found} == {"torch"}


def test_matlab_with_comments_and_continued_lines() -> None:
    (title, body), (_, other) = split_exercises((ASSIGNMENTS / "octave.md").read_text())
    reading = read_assignment(body)
    assert title == "Question 1 (Octave)"
    assert by_name(reading) == {
        "X": exact("1 2 -3; 1/2 1/4 7"),
        "WQ": exact("1 0; 0 1; 1 1"),
        "WK": exact("1 0; 0 1; 1 1"),
        "WV": exact("-1 2 5 -inf 7; 1 1 1 1 1; 2 3 5 7 11"),
    }
    assert (reading.kind, reading.scale, reading.heads) == ("self-attention", False, ())
    assert reading.causal is True
    assert {one.layout for one in reading.found} == {"matlab"}
    assert read_assignment(other).heads == (3,)


def test_tables_with_headers_labels_and_a_solution() -> None:
    reading = read_sample("tables.md")
    assert by_name(reading) == {
        "Q": exact("1 2; 0.5 -3"),
        "K": exact("2 1; 1 1; 0 1"),
        "V": exact("1 2 -2 4 5; 1 1 2 0 0; 0 1 -1 1/3 0.01"),
    }
    assert [one.layout for one in reading.found] == ["markdown", "csv", "csv"]
    assert reading.kind == "attention"
    assert "line 25: a solution up to line 27; nothing in it was read." in reading.notes


# ---- names ----------------------------------------------------------------------------------

NAMES = [
    ("W_Q", "WQ", None, "subscript"),
    ("W_{Q}", "WQ", None, "braced subscript"),
    ("W^Q", "WQ", None, "superscript"),
    ("W^{(1)}_Q", "WQ", 0, "head above, role below"),
    ("W_Q^{(2)}", "WQ", 0, "a head alone is the first, whatever its number"),
    ("W_{0^Q}", "WQ", 0, "a superscript that recognition put into the subscript"),
    ("W_0^Q", "WQ", 0, "head below, role above"),
    ("W^Q_0", "WQ", 0, "role above, head below"),
    ("W_{Q,1}", "WQ", 0, "role and head in one subscript"),
    ("W_{Q_1}", "WQ", 0, "subscript of a subscript"),
    (r"W_Q^{(\text{head } 1)}", "WQ", 0, "the word head beside its number"),
    (r"\mathbf{W}_{\text{query}}", "WQ", None, "words in LaTeX"),
    (r"\boldsymbol{K}", "K", None, "bold"),
    (r"\mathbf{W_V}", "WV", None, "bold around the whole name"),
    (r"\mathbf{W}^{\mathrm{O}}", "WO", None, "upright letters"),
    ("W_o", "WO", None, "small o"),
    ("Wq", "WQ", None, "as in code"),
    ("wk", "WK", None, "small letters in code"),
    ("W_v", "WV", None, "underscore in code"),
    ("WQ", "WQ", None, "two capitals"),
    ("w_query", "WQ", None, "a word in code"),
    ("self.W_key", "WK", None, "an attribute"),
    ("q_proj", "WQ", None, "a projection"),
    ("value_weights", "WV", None, "words in code"),
    ("wq_head1", "WQ", 0, "head in the name"),
    ("Wk_1", "WK", 0, "number after the name"),
    ("W_out", "WO", None, "output written out"),
    ("K_0", "K", 0, "keys of one head"),
    ("X", "X", None, "the input"),
    ("x", "X", None, "a small x that is a matrix"),
    ("embeddings", "X", None, "the input in a word"),
    ("H", "h", None, "hidden states in a matrix"),
    ("queries", "Q", None, "a word for Q"),
    ("k", "K", None, "a small k that is a matrix"),
    ("memory", "Y", None, "the other side of a cross-attention"),
    ("X_{enc}", "Y", None, "the encoder's side"),
    ("M", "M", None, "a mask"),
    (r"\mathbf{C}", "C", None, "no role: kept under its own name"),
    ("W_1", "W_1", None, "a layer of the feed-forward network"),
    (r"W^{(1)}_{Q,2}", "W_1_Q_2", None, "two numbers: no head can be told"),
]


@pytest.mark.parametrize(("written", "name", "head", "reason"), NAMES)
def test_names(written: str, name: str, head: int | None, reason: str) -> None:
    in_latex = (
        rf"Given $\quad {written} = \begin{{pmatrix}} 1 & 2 & 3 \\ 5 & 7 & 11 \end{{pmatrix}}$."
    )
    in_code = f"{written} = [[1, 2, 3], [5, 7, 11]]"
    texts = [in_latex] if "\\" in written or "{" in written else [in_code, in_latex]
    for text in texts:
        found = only(text)
        assert (found.name, found.head, found.written) == (name, head, written), reason
        assert found.values == exact("1 2 3; 5 7 11"), reason


VECTOR_NAMES = [
    (r"$\mathbf{s} = (1, 2, 1)^\top$", "s", "the source vector"),
    ("q = np.array([1, 2, 1])", "q", "one query in code"),
    ("q = np.array([[1, 2, 1]])", "q", "one query as a row"),
    ("s = [1; 2; 1];", "s", "a column in MATLAB"),
    (r"$s = \begin{bmatrix} 1 \\ 2 \\ 1 \end{bmatrix}$", "s", "a column in LaTeX"),
    (r"$s = \begin{bmatrix} 1 & 2 & 1 \end{bmatrix}^{\top}$", "s", "a turned row"),
    (r"$\mathbf{b}_Q = (1, 2, 1)$", "bQ", "a bias"),
    ("bias_k = [1, 2, 1]", "bK", "a bias in words"),
    (r"$\mathbf{s}^\top = \left( 1, 2, 1 \right)$", "s", "the name turned instead"),
]


@pytest.mark.parametrize(("text", "name", "reason"), VECTOR_NAMES)
def test_vectors_are_flat(text: str, name: str, reason: str) -> None:
    found = only(text)
    assert (found.name, found.values) == (name, [1, 2, 1]), reason


# ---- what is a given, and what is not --------------------------------------------------------

X23 = r"\begin{bmatrix} 1 & 2 & 3 \\ 5 & 7 & 11 \end{bmatrix}"
ROWS = exact("1 2 3; 5 7 11")
GIVENS = [
    (f"$X = {X23}$", {"X": ROWS}, "plain"),
    (f"$X = {X23}^T$", {"X": exact("1 5; 2 7; 3 11")}, "transpose after it"),
    (f"$K^\\top = {X23}$", {"K": exact("1 5; 2 7; 3 11")}, "transpose of the name"),
    (f"$X = 2{X23}$", {"X": exact("2 4 6; 10 14 22")}, "a factor before it"),
    (f"$X = \\frac{{1}}{{2}} {X23}$", {"X": exact("1/2 1 3/2; 5/2 7/2 11/2")}, "a half of it"),
    (f"$X \\in \\mathbb{{R}}^{{2 \\times 3}} = {X23}$", {"X": ROWS}, "its space told first"),
    (f"$X := {X23}, \\quad W_Q = {X23}$", {"X": ROWS, "WQ": ROWS}, "a chain of two"),
    (f"\\[ X = {X23} \\qquad W_Q = {X23} \\]", {"X": ROWS, "WQ": ROWS}, "no comma between"),
    (f"$Q = K = {X23}$", {"Q": ROWS, "K": ROWS}, "two names for one matrix"),
    (f"$X = {X23}$, $Q = K = X$", {"X": ROWS, "Q": ROWS, "K": ROWS}, "set equal to a given"),
    (f"$$C \\approx {X23}$$", {}, "an approximation"),
    (f"$Q = X W_Q = {X23}$", {}, "the result of a formula"),
    (f"$X = {X23} {X23}$", {}, "a product"),
    (f"$X = {X23} \\cdot W$", {}, "a product with a name"),
    (f"$QK^\\top = {X23}$", {"QK": exact("1 5; 2 7; 3 11")}, "no role, so it cannot disturb"),
    (f"$X = {X23}$ as above. Later $X = 2{X23}$.", {"X": ROWS}, "the first one is kept"),
    (f"The embedding matrix X is as follows:\n\n$${X23}$$", {"X": ROWS}, "introduced by symbol"),
    (f"The query weights are $${X23}$$", {"WQ": ROWS}, "introduced in words"),
    (f"Compute the matrix Q:\n\n$${X23}$$", {}, "asked for, not given"),
    (f"The resulting keys K are:\n\n$${X23}$$", {}, "a result"),
    ("X = [[1, 2, 3], [5, 7, 11]]  # tokens", {"X": ROWS}, "code with a comment"),
    ("X: np.ndarray = np.array([[1, 2, 3], [5, 7, 11]])", {"X": ROWS}, "annotated code"),
    ("attention(q=[[1, 2, 3], [5, 7, 11]])", {"Q": ROWS}, "a keyword with a role"),
    ("plt.figure(figsize=(5, 3))", {}, "a keyword without a role"),
    ("x = torch.randn(size=(2, 3)); shape = (2, 3)", {}, "sizes"),
    ("Q, K = [[1, 2, 3], [5, 7, 11]], [[2, 3], [5, 7]]",
     {"Q": ROWS, "K": exact("2 3; 5 7")}, "unpacked"),
    ("X = np.array([[1, 2, 3], [5, 7, 11]]) @ W", {}, "a product in code"),
    ("X = np.array([[1, 2, 3], [5, 7, 11]])[0]", {}, "indexed in code"),
    ("X = [[ 1.   2.   3. ]\n     [ 5.   7.  11. ]]", {"X": ROWS}, "printed, but assigned"),
    ("X\n[[ 1.   2.   3. ]\n [ 5.   7.  11. ]]", {"X": ROWS}, "printed below its bare name"),
    ("Output:\n[[ 1.   2.   3. ]\n [ 5.   7.  11. ]]", {}, "printed output"),
    ("The keys K are now:\n[[ 1.   2.   3. ]\n [ 5.   7.  11. ]]", {}, "printed after a sentence"),
    ("X\n[[9 9]\n [9 9]]\n\nX = [[1, 2, 3], [5, 7, 11]]", {"X": ROWS}, "assignment beats print"),
    ("X = [[1, 2, 3], [5, 7, 11]]\nX = X[[1, 0], :]", {"X": ROWS}, "computed anew"),
    ('{"X": [[1, 2, 3], [5, 7, 11]], "WQ": [[2]]}', {"X": ROWS, "WQ": [[2]]}, "JSON"),
    ("**X** = [[1, 2, 3], [5, 7, 11]]", {"X": ROWS}, "bold name"),
    ("- `X` = [[1, 2, 3], [5, 7, 11]]", {"X": ROWS}, "name as code"),
    (r"$X\_1 = [[1, 2, 3], [5, 7, 11]]$", {"X1": ROWS}, "an escaped underscore"),
    ("X = np.arange(2, 8).reshape(2, -1)", {"X": exact("2 3 4; 5 6 7")}, "counted numbers"),
    ("Wq = np.eye(2)\nWk = torch.ones(1, 3)\nWv = np.zeros((1, 2))",
     {"WQ": exact("1 0; 0 1"), "WK": exact("1 1 1"), "WV": exact("0 0")}, "standard arrays"),
    ("X = np.random.randn(3, 4)", {}, "random numbers"),
    (r"$R = \begin{pmatrix} \cos t & -\sin t \\ \sin t & \cos t \end{pmatrix}$", {}, "symbols"),
    (r"$X = \begin{pmatrix} 1 & \cdots & 3 \end{pmatrix}$", {}, "dots"),
    (r"$M = \begin{pmatrix} 0 & -\infty & +\infty \end{pmatrix}$",
     {"M": [[0, -math.inf, math.inf]]}, "infinities in LaTeX"),
    ("M = np.array([[0, -np.inf], [0, float('-inf')]])",
     {"M": [[0, -math.inf], [0, -math.inf]]}, "infinities in code"),
    ("M = [0 −∞; 0 0]", {"M": [[0, -math.inf], [0, 0]]}, "infinities as signs"),
    ("h_1 = (1, 2)^T, h_3 = (5, 7)^T and h_2 = (3, 4)^T",
     {"h": exact("1 2; 3 4; 5 7")}, "a set in the order of its numbers"),
    ("h₁ = (1, 2)ᵀ, h₂ = (3, −4)ᵀ", {"h": exact("1 2; 3 -4")}, "small raised signs"),
    ("x_1 = [1, 2], x_2 = [3, 4]", {"X": exact("1 2; 3 4")}, "tokens one by one"),
    ("Q = [1, 2, 3]", {"Q": [[1, 2, 3]]}, "a flat matrix is one row"),
    ("𝐗 = [[1, 2, 3], [5, 7, 11]]", {"X": ROWS}, "a bold letter of its own"),
    ("X =\n1, 2, 3\n5, 7, 11\n\nWQ:\n2\t3\n5\t7", {"X": ROWS, "WQ": exact("2 3; 5 7")}, "CSV"),
    ("X:\ntoken;a;b;c\nthe;1;2;3\ncat;5;7;11", {"X": ROWS}, "labels and semicolons"),
    ("X:\n1 2 3\n5 7 11\nCompute Q.", {"X": ROWS}, "spaces, up to the prose"),
    ("X:\n\n| 1 | 2 | 3 |\n|---|---|---|\n| 5 | 7 | 11 |", {"X": ROWS}, "numbers in the header"),
    ("X:\n\n|   | 0 | 1 | 2 |\n|---|---|---|---|\n| 0 | 1 | 2 | 3 |\n| 1 | 5 | 7 | 11 |",
     {"X": ROWS}, "numbered rows and columns"),
    ("X:\n\n| | | |\n|--|--|--|\n| 1 | 2 | 3 |\n| 5 | 7 | 11 |", {"X": ROWS}, "empty header"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "reason"), GIVENS, ids=[row[2] for row in GIVENS])
def test_givens(text: str, expected: dict[str, list[Any]], reason: str) -> None:
    assert by_name(read_assignment(text)) == expected, reason


def test_what_was_left_out_is_told() -> None:
    notes = read_assignment(
        "X = [[1, 2], [3, 4]]\nX = [[1, 2], [3, 5]]\nX = X[[1, 0], :]\nWq = np.random.rand(2, 2)\n"
        "$Q = X W_q = [[5, 7], [11, 13]]$\n$V = [[1, 2]] \\cdot A$\n[[1. 2.]\n [3. 4.]]\n"
    ).notes
    assert notes == (
        'line 1: "X" (2 x 2) read as the input.',
        'line 2: "X" (2 x 2) differs from the one on line 1, which is kept.',
        'line 3: "X = X[[1, 0], :]" computes anew what line 1 gives, which is kept.',
        'line 4: "Wq" holds random numbers that the text does not show.',
        'line 5: the array after "W_q" ends a calculation: a result, not a given.',
        'line 6: the array after "V" is part of a formula and was not read as a given.',
        "line 7: an array that has no name was not read.",
        "X is given, WQ, WK and WV are not: the kind of computation stays open.",
    )


def test_decimals_are_exact_in_every_layout() -> None:
    digits = "0.10000000000000000000000000000001"
    for text in (
        f"$X = \\begin{{bmatrix}} {digits} & 1 \\end{{bmatrix}}$",
        f"X = np.array([[{digits}, 1]])",
        f"X = [{digits} 1];",
        f"X:\n{digits},1",
        f"X:\n\n| a | b |\n|---|---|\n| {digits} | 1 |",
    ):
        assert only(text).values == [[Fraction(digits), 1]]


# ---- heads, kinds, options --------------------------------------------------------------------


def weights(name: str) -> str:
    return f"${name} = [2 3; 5 7]$. "


def test_heads_told_by_the_words_before() -> None:
    text = "X = [1 1]. "
    for ordinal, value in (("first", 2), ("second", 3)):
        text += f"The {ordinal} head: " + ", ".join(f"$W_{r} = [{value}; 1]$" for r in "QKV") + ". "
    reading = read_assignment(text)
    assert by_name(reading)["WK[0]"] == exact("2; 1")
    assert by_name(reading)["WK[1]"] == exact("3; 1")
    assert (reading.kind, reading.heads) == ("multi-head", (2,))


def test_heads_numbered_from_zero_or_one_come_out_in_order() -> None:
    for first, second in ((0, 1), (1, 2), (4, 7)):
        text = "".join(weights(f"W_{r}^{{({i})}}") for i in (second, first) for r in "QKV")
        assert [one.head for one in read_matrices(text)] == [1, 1, 1, 0, 0, 0]


def test_a_head_that_lacks_a_matrix_is_named() -> None:
    text = "X = [1 1]" + "".join(map(weights, ("W^1_Q", "W^1_K", "W^1_V", "W^2_Q", "W^2_V")))
    reading = read_assignment(text)
    assert reading.kind is None
    assert "the heads do not all have their matrices: head 2 has no WK." in reading.notes


X_AND_WEIGHTS = "X = [1 1]; " + "".join(map(weights, ("W_Q", "W_K", "W_V")))
QKV = "".join(map(weights, "QKV"))
KINDS = [
    ("s = (1, 2), h_1 = (1, 2), h_2 = (3, 4)", "dot-product", "source vector and a set"),
    (
        "q = (1, 2), k_1 = (1, 2), v_1 = (3, 4)",
        "dot-product",
        "a query, keys and values one by one",
    ),
    ("q_1 = (1, 2), q_2 = (0, 1), k_1 = (1, 2), v_1 = (3, 4)", "attention", "several queries"),
    (QKV, "attention", "Q, K and V"),
    (QKV + "Use 2 heads.", "multi-head", "Q, K and V in heads"),
    (X_AND_WEIGHTS, "self-attention", "one triple"),
    (X_AND_WEIGHTS + "Use H = 2.", "multi-head", "one triple and a number of heads"),
    (X_AND_WEIGHTS + "Multi-head attention. W_O = [2 3]", "multi-head", "output weights as well"),
    (X_AND_WEIGHTS + "Y = [3 5] comes from the encoder.", "cross-attention", "a second input"),
    (X_AND_WEIGHTS + "Y = [3 5] is expected.", "self-attention", "Y without a second side"),
    (QKV + "s = (1, 2), h = [[1, 2]]", None, "two exercises at once"),
    (weights("Q") + weights("K"), None, "no values"),
    ("What is attention?", None, "nothing given"),
]


@pytest.mark.parametrize(("text", "kind", "reason"), KINDS, ids=[row[2] for row in KINDS])
def test_kinds(text: str, kind: str | None, reason: str) -> None:
    assert read_assignment(text).kind == kind, reason


SCALES = [
    ("attention without scaling", False),
    ("Do not scale the scores.", False),
    ("use the unscaled scores", False),
    ("skip dividing by $\\sqrt{d_k}$", False),
    ("You may omit the scaling factor $1/\\sqrt{d_k}$.", False),
    ("The scores are not scaled.", False),
    ("Don't divide by the square root of d_k.", False),
    ("softmax(QK^T / \\sqrt{d_k}) V, but here without the scaling", False),
    ("F.scaled_dot_product_attention(q, k, v, scale=1.0)", False),
    ("softmax$\\left(\\frac{QK^T}{\\sqrt{d_{k}}}\\right)$", True),
    ("\\sqrt d", True),
    ("scores / np.sqrt(d_k)", True),
    ("scores / math.sqrt(q.shape[-1])", True),
    ("scores / √d_k", True),
    ("scores * d_k ** -0.5", True),
    ("scaled dot-product attention", True),
    ("divide by the square root of the key dimension", True),
    ("Why is there a $\\sqrt{d_k}$ in the formula?", None),
    ("What happens without scaling?", None),
    ("compute the attention", None),
    ("the vector has length \\sqrt{2}", None),
]


@pytest.mark.parametrize(("text", "scale"), SCALES)
def test_scale(text: str, scale: bool | None) -> None:
    assert read_assignment(text).scale is scale


def test_a_contradiction_about_scaling_is_told() -> None:
    notes = read_assignment("softmax(QK^T/\\sqrt{d_k})\n\nDo not scale the scores.").notes
    assert 'line 3: "Do not scale the scores" read as: no scaling.' in notes
    assert any(note.startswith('line 1: "\\sqrt{d_k}" read as: scaling, which') for note in notes)


HEADS = [
    ("H = 3", (3,)),
    ("for $H = 1$ and then $H=4$.", (1, 4)),
    ("num_heads=8, n_heads: 8", (8,)),
    ("we use two attention heads", (2,)),
    ("a 4-headed attention", (4,)),
    ("The number of heads is 6.", (6,)),
    ("$h = 2$ heads", (2,)),
    ("heads 1 and 2 differ", ()),
    ("Head 3\nHead 4", ()),
    ("a single attention head", ()),
    ("H = 2.5", ()),
    ("$W_H = 3$", ()),
]


@pytest.mark.parametrize(("text", "heads"), HEADS)
def test_head_counts(text: str, heads: tuple[int, ...]) -> None:
    assert read_assignment(text).heads == heads


CAUSAL = [
    ("Use causal attention.", True),
    ("masked self-attention", True),
    ("with a look-ahead mask", True),
    ("is_causal=True", True),
    ("is_causal=False", False),
    ("Attention is bidirectional.", False),
    ("Apply no causal mask.", False),
    ("non-causal attention", False),
    ("Why is a causal mask needed?", None),
    ("a decoder-only Transformer", None),
]


@pytest.mark.parametrize(("text", "causal"), CAUSAL)
def test_causal(text: str, causal: bool | None) -> None:
    assert read_assignment(text).causal is causal


# ---- errors ------------------------------------------------------------------------------------

ERRORS = [
    (r"\n\n$X = \begin{bmatrix} 1 & 2 \\ 3 & 4 & 5 \end{bmatrix}$",
     "line 3: matrix X: row 2 has 3 numbers, row 1 has 2. Give every row the same count."),
    (r"$X = \begin{bmatrix} 1 & 2 \\\n3 & 4o \end{bmatrix}$",
     'line 2: matrix X: "4o" is not a number that can be read exactly'),
    (r"$X = \begin{bmatrix} 1 & 2 \\ 3 & \end{bmatrix}$", "matrix X: an empty entry is not"),
    (r"$W_Q = \begin{bmatrix} 1 & 2 \\ 3 & 4 $",
     r"matrix W_Q: \begin{bmatrix} is never closed. Write \end{bmatrix} after it."),
    ("Wq = np.array([[1, 2],\n  [3]])", "line 1: matrix Wq: row 2 has 1 number, row 1 has 2"),
    ("Wq = np.array([[1, 2],\n  [3, y]])", 'line 2: matrix Wq: "y" is not a number'),
    ("Wq = [[1, 2], [3, 4x]]", 'matrix Wq: "4x" is not a number'),
    ("X = np.array([[1, 2], [3, 4]", 'matrix X: the bracket "(" opened here is never closed'),
    ("X = [1 2\n 3 4 5];", "line 2: matrix X: row 2 has 3 numbers, row 1 has 2"),
    ("X = [1 2; 3 1/0];", 'matrix X: "1/0" is not a number'),
    ("X:\n1,2\n3,4,5", "line 3: matrix X: row 2 has 3 numbers, row 1 has 2"),
    ("X:\n1,2\n3,abc", 'line 3: matrix X: "abc" is not a number'),
    ("X:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |", "line 6: matrix X: row 2 has 1 number, row 1"),
    ("K = [[[1, 2], [3, 4]], [[5, 6], [7]]]", "part 2, row 2 has 1 number, part 2, row 1 has 2"),
    ("h_1 = (1, 2), h_3 = (5, 7)", "line 1: vectors h: h_2 is missing before h_3"),
    ("h_1 = (1, 2),\nh_2 = (5, 7, 11)", "line 2: vectors h: h_2 has 3 numbers, h_1 has 2"),
    ("X = [[1, 1e999999]]", '"1e999999" is not a number that can be read exactly'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors_name_the_line_the_matrix_and_the_fault(text: str, message: str) -> None:
    with pytest.raises(ReadingError) as caught:
        read_assignment(text.replace("\\n", "\n"))
    assert message in str(caught.value)
    assert caught.value.line == int(str(caught.value).split()[1].rstrip(":"))


def test_an_error_is_one_of_regard_and_survives_pickling() -> None:
    error = ReadingError(7, "matrix X: no", "Write yes")
    assert isinstance(error, ValueError)
    assert isinstance(error, _errors.RegardError)
    assert str(pickle.loads(pickle.dumps(error))) == "line 7: matrix X: no. Write yes."


def test_a_broken_array_without_a_role_stops_nothing() -> None:
    reading = read_assignment("sizes_of_heads = [[1, 2], [3]]\nX = [[1, 2]]")
    assert by_name(reading) == {"X": [[1, 2]]}
    assert any('"sizes_of_heads" was not read: row 2 has 1' in note for note in reading.notes)


# ---- cutting a text into exercises ---------------------------------------------------------------

SPLITS = [
    ("## Exercise 1 - Dots\na\n**Exercise 2 - Heads**\nb",
     ["Exercise 1 - Dots", "Exercise 2 - Heads"], "headings and bold lines"),
    ("Question 1: [3 points]\na\nQuestion 2: [4 points]\nb",
     ["Question 1: [3 points]", "Question 2: [4 points]"], "plain lines"),
    ("### Problem 1\na\n#### Problem 2\nb", ["Problem 1", "Problem 2"], "unequal levels"),
    ("1. Compute Q.\n2. Consider K.", ["1. Compute Q.", "2. Consider K."], "bare numbers"),
    ("1. Linear maps\n2. Attention", [""], "numbers that ask for nothing"),
    ("X = [[1, 2]]\n1. Compute Q.\n2. Compute K.", [""], "questions about one given"),
    ("## Exercise 1\na\n# Solutions\n## Exercise 1\nb", ["Exercise 1"], "repeated in solutions"),
    ("As Exercise 1 showed, nothing.", [""], "mentioned in a sentence"),
    ("Exercise 1 showed that\nx", [""], "a sentence at the start of a line"),
    ("nothing here", [""], "no heading"),
    (r"**Exercise 1.** Let $Q = \begin{bmatrix} 1 & 2 \end{bmatrix}$.", ["Exercise 1. Let …"],
     "a matrix on the line of the heading"),
    ("Exercise 1: the $d_k$ of K", ["Exercise 1: the $d_k$ of K"], "a formula in the heading"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "titles", "reason"), SPLITS, ids=[row[2] for row in SPLITS])
def test_split(text: str, titles: list[str], reason: str) -> None:
    assert [title for title, _ in split_exercises(text)] == titles, reason


def test_bodies_keep_their_lines_and_what_is_given_for_all() -> None:
    text = "X = [[1, 2]]\n\n## Problem 1\nQ = [[3, 5]]\n\n## Problem 2\nK = [[7, 11]]\n"
    (_, first), (_, second) = split_exercises(text)
    assert [(one.name, one.line) for one in read_matrices(first)] == [("X", 1), ("Q", 4)]
    assert [(one.name, one.line) for one in read_matrices(second)] == [("X", 1), ("K", 7)]


def test_solutions_end_with_the_next_exercise_or_section() -> None:
    for heading in ("### Solution", "**Solution**", "Solution:", "\\textbf{Solution}"):
        text = f"## Exercise 1\nQ = [[1]]\n{heading}\nK = [[2]]\n## Exercise 2\nV = [[3]]"
        assert by_name(read_assignment(text)) == {"Q": [[1]], "V": [[3]]}, heading
    text = "\\begin{solution} K = [[2]] \\end{solution}\nV = [[3]]"
    assert by_name(read_assignment(text)) == {"V": [[3]]}
    assert by_name(read_assignment("Solutions are due on Monday.\nV = [[3]]")) == {"V": [[3]]}


# ---- any matrix, in any layout, comes back -------------------------------------------------------

decimals = st.decimals(-(10**6), 10**6, allow_nan=False, allow_infinity=False, places=4)
fractions = st.fractions(-99, 99, max_denominator=97)
entries = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    decimals.map(lambda value: f"{value:f}"),
    fractions.map(lambda value: f"{value.numerator}/{value.denominator}"),
    st.sampled_from(["1.", "-0.", ".5", "-.25", "4.9e-07", "1E+3", "+2"]),
)
matrices = st.tuples(st.integers(1, 7), st.integers(2, 5)).flatmap(
    lambda size: st.lists(
        st.lists(entries, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


def as_latex(rows: list[list[str]], environment: str = "bmatrix") -> str:
    spec = "{" + "r" * len(rows[0]) + "}" if environment == "array" else ""
    body = " \\\\[2pt]\n ".join(" & ".join(map(latex_entry, row)) for row in rows)
    return f"$$X = \\begin{{{environment}}}{spec} {body} \\end{{{environment}}}.$$"


def latex_entry(entry: str) -> str:
    if "/" not in entry:
        return entry
    above, below = entry.lstrip("-").split("/")
    return ("-" if entry.startswith("-") else "") + f"\\frac{{{above}}}{{{below}}}"


def as_numpy(rows: list[list[str]]) -> str:
    return (
        "X = np.array([" + ",\n   ".join(f"[{', '.join(row)}]" for row in rows) + "], dtype=float)"
    )


def as_table(rows: list[list[str]]) -> str:
    lines = [f"| t{place} | " + " | ".join(row) + " |" for place, row in enumerate(rows)]
    header = "| |" + "".join(f" d{place} |" for place in range(len(rows[0])))
    return "\n".join(["The input X:", "", header, "|---|" + "---|" * len(rows[0]), *lines])


LAYOUTS = {
    "latex": as_latex,
    "latex array": lambda rows: as_latex(rows, "array"),
    "latex small": lambda rows: as_latex(rows, "psmallmatrix"),
    "latex sized": lambda rows: as_latex(rows, "matrix").replace("= ", "= \\left( ").replace(
        "}.$$", "} \\right)$$"),
    "numpy": as_numpy,
    "numpy list": lambda rows: "X = [" + ", ".join(f"[{','.join(row)}]" for row in rows) + "]",
    "torch": lambda rows: as_numpy(rows).replace("np.array", "torch.tensor") + ".double()",
    "numpy printed": lambda rows: "X = [" + "\n ".join(f"[{'  '.join(r)}]" for r in rows) + "]",
    "matlab": lambda rows: "X = [" + "; ".join(" ".join(row) for row in rows) + "];",
    "matlab lines": lambda rows: "X = [\n" + "\n".join(", ".join(row) for row in rows) + "\n]",
    "csv": lambda rows: "X:\n" + "\n".join(",".join(row) for row in rows),
    "csv spaces": lambda rows: "X =\n" + "\n".join("  ".join(row) for row in rows),
    "markdown": as_table,
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@given(rows=matrices)
def test_round_trip(layout: str, rows: list[list[str]]) -> None:
    text = LAYOUTS[layout](rows)
    found = only(f"Some words first.\n\n{text}\n\nCompute the scores.\n")
    assert found.name == "X"
    assert found.values == [[Fraction(entry) for entry in row] for row in rows]
    if layout != "matlab lines":  # a flat list between commas is a list in both languages
        assert found.layout == layout.split()[0]


def check_reading(text: str) -> None:
    """Read a text of any kind: what may go wrong is a ReadingError on a line that exists."""
    try:
        reading = read_assignment(text)
    except ReadingError as error:
        last_line, line = text.count("\n") + 1, error.line
    else:
        last_line, line = 1, 1
        assert all(note.endswith(".") for note in reading.notes)
        assert all(one.values for one in reading.found)
    assert 1 <= line <= last_line


@given(st.text(alphabet="XQWk_^{}[]()=:|&\\,;\n \t123.-+/'$#*`<abe", max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    check_reading(text)


PIECES = [
    *("X = ", " = ", "is ", ": ", "\n", "\n\n", "$", "-", "W_{0^Q}", "h_1", "x_2"),
    *("\\begin{bmatrix}", "\\end{bmatrix}", "1 & 2", "\\\\", "^T", "\\frac{1}{0}", "(1, 2)"),
    *(
        "np.array(",
        ")",
        "[[1, 2], ",
        "[3, 4]]",
        ".T",
        ".reshape(3)",
        "[1 2; 3 4]",
        "\\pmatrix{1 & 2}",
    ),
    *("| 1 | 2 |\n", "|---|---|\n", "## Exercise 1\n", "### Solution\n", "first head "),
]


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_no_mixture_of_pieces_breaks_the_reader(pieces: list[str]) -> None:
    for _, body in split_exercises("".join(pieces)):
        check_reading(body)


# ---- the course documents ------------------------------------------------------------------------


@needs_seeds
def test_document_000() -> None:
    exercise, other = split_exercises(seed("000"))
    reading = read_assignment(exercise[1])
    assert by_name(reading) == {
        "X": exact("0.8 -0.4; 1.2 0.3; -0.5 1.1"),
        "WQ": exact("0.6 -0.2; 0.1 0.5"),
        "WK": exact("-0.3 0.7; 0.4 0.9"),
        "WV": exact("1.0 -0.5; 0.2 0.8"),
    }
    assert (reading.kind, reading.scale, reading.heads) == ("self-attention", False, ())
    assert 'line 32: "Do not scale the scores" read as: no scaling.' in reading.notes
    assert [one.line for one in reading.found] == [22, 26, 26, 26]
    assert other[0].startswith("2. You will implement")
    assert read_assignment(other[1]).found == ()
    assert by_name(read_assignment(seed("000"))) == by_name(reading)


@needs_seeds
def test_document_001() -> None:
    ((title, body),) = split_exercises(seed("001"))
    reading = read_assignment(body)
    assert title == "Question 1: [0 points]"
    assert by_name(reading) == {
        "X": exact("1 2 3 4; 5 6 7 8"),
        "WQ[0]": exact("0.1 0.2 0.3; 0.4 0.5 0.6; 0.7 0.8 0.9; 1.0 1.1 1.2"),
        "WK[0]": exact("0.3 0.2 0.1; 0.6 0.5 0.4; 0.9 0.8 0.7; 1.2 1.1 1.0"),
        "WV[0]": exact("0.7 0.8 0.9; 0.4 0.5 0.6; 0.1 0.2 0.3; 1.3 1.4 1.5"),
        "WQ[1]": exact("0.2 0.3 0.4; 0.5 0.6 0.7; 0.8 0.9 1.0; 1.1 1.2 1.3"),
        "WK[1]": exact("0.4 0.3 0.2; 0.7 0.6 0.5; 1.0 0.9 0.8; 1.3 1.2 1.1"),
        "WV[1]": exact("0.9 1.0 1.1; 0.6 0.7 0.8; 0.3 0.4 0.5; 1.4 1.5 1.6"),
        "WO": exact(
            "0.1 0.2 0.3 0.4; 0.5 0.6 0.7 0.8; 0.9 1.0 1.1 1.2;"
            "1.3 1.4 1.5 1.6; 1.7 1.8 1.9 2.0; 2.1 2.2 2.3 2.4"
        ),
    }
    assert (reading.kind, reading.scale, reading.heads) == ("multi-head", True, (2,))
    assert 'line 48: "W_{0^Q}" (4 x 3) read as the query weights of head 1.' in reading.notes


@needs_seeds
def test_document_002() -> None:
    first, second, third = split_exercises(seed("002"))
    assert [first[0], second[0], third[0]] == [
        "Exercise 1 - Dot-Product Attention",
        "Exercise 2 - Attention in Transformers",
        "Exercise 3 - Scaled Dot-Product Attention by Hand",
    ]
    dots = read_assignment(first[1])
    assert by_name(dots) == {"h": exact("1 2 3; 1 2 1; 0 1 -1"), "s": [1, 2, 1]}
    assert (dots.kind, dots.scale) == ("dot-product", None)
    assert read_assignment(second[1]).found == ()
    by_hand = read_assignment(third[1])
    assert by_name(by_hand) == {
        "Q": exact("1 2; 3 1"),
        "K": exact("2 1; 1 1; 0 1"),
        "V": exact("1 2 -2; 1 1 2; 0 1 -1"),
    }
    assert (by_hand.kind, by_hand.scale, by_hand.heads) == ("attention", True, ())
    assert read_assignment(seed("002")).kind is None


@needs_seeds
def test_document_003_gives_no_numbers() -> None:
    parts = split_exercises(seed("003"))
    assert [title[:9] for title, _ in parts] == [f"Problem {place}" for place in (1, 2, 3, 4)]
    assert all(read_matrices(body) == () for _, body in parts)


@needs_seeds
def test_document_004() -> None:
    ((_, body),) = split_exercises(seed("004"))
    reading = read_assignment(body)
    assert by_name(reading) == {
        "X": exact(
            "0.7 -0.8 -1.2 -1 0 -0.3; 2.7 0.1 1.6 1.8 1.5 0.3; 0.1 2.6 -0.1 -1.3 -0.5 -0.7;"
            "1.1 1.5 1 -0.5 0.4 0.4; -0.7 -0.7 0.7 -1.5 -0.8 1"
        ),
        "WQ": exact(
            "-1.7 1.6 0.9 -0.5 0.4 -1; -0.4 1 -0.3 1 0.5 1.1; 0.4 -0.9 -1 0.5 -1.4 0;"
            "0.3 1.4 -1.2 0.2 0.1 1.6; -0.8 0.8 -0.7 -1.3 0.3 0.8; 1.1 0.3 -1.5 -2.3 2.2 -0.7"
        ),
        "WK": exact(
            "0.3 -0.4 -1.3 0.3 -1.7 1.1; -2.3 -1.1 0.6 -1.2 2.2 0.3; 1.1 -0.4 -0.5 1.9 -1.1 -1.2;"
            "-0.4 1 -1.7 0 -3.3 -1.4; -0.9 -1.1 -1 1.4 1.3 1.2; -0.7 0.4 0.4 -1.4 -0.2 -0.5"
        ),
        "WV": exact(
            "-0.1 0.7 1 -0.1 1.6 0.9; 0.4 -1 -0.7 -0.6 -0.9 -0.1; -0.4 0.5 -1.4 0.1 0.6 0.4;"
            "1.4 -1.3 -1.3 -0.6 1.6 -0.2; -0.4 -0.6 -1.4 -1 0.4 -0.8; 0.2 0.5 0.4 -0.5 1.4 2.3"
        ),
    }
    assert (reading.kind, reading.scale, reading.heads) == ("multi-head", True, (1, 3))
    assert (
        'line 291: "X = X[[1,0,2,3,4],:]" computes anew what line 55 gives, which is kept.'
        in reading.notes
    )


def test_every_sample_is_read() -> None:
    samples = sorted(ASSIGNMENTS.glob("*.md"))
    kinds = {path.stem: read_assignment(path.read_text(encoding="utf-8")).kind for path in samples}
    assert kinds == {
        "cross_torch": "cross-attention",
        "octave": "multi-head",  # read whole, its second question speaks of three heads
        "tables": "attention",
        "two_heads": "multi-head",
    }


def test_products_of_layouts_in_one_text() -> None:
    rows = [["1", "-2"], ["3", "5"]]
    for first, second in product(LAYOUTS, repeat=2):
        text = LAYOUTS[first](rows) + "\n\n" + LAYOUTS[second](rows).replace("X", "Q", 1)
        assert {one.name for one in read_matrices(text)} == {"X", "Q"}, (first, second)
