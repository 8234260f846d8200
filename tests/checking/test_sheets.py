"""Reading answers: every format holds the same answers, and none of them is run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard._errors import FileError, OptionError
from regard.checking import check
from regard.cli import main

EXERCISE = "unscaled-self-attention"
Q = [[0.44, -0.36], [0.75, -0.09], [-0.19, 0.65]]
WEIGHTS = [[0.32, 0.25, 0.43], [0.25, 0.26, 0.5], [0.26, 0.45, 0.29]]
CONTEXT = [[0.43, 0.16], [0.36, 0.29], [0.68, -0.03]]


def rows(matrix: list[list[float]], cell: str, row: str) -> str:
    return row.join(cell.join(map(str, line)) for line in matrix)


def latex(matrix: list[list[float]]) -> str:
    return r"\begin{bmatrix} " + rows(matrix, " & ", r" \\ ") + r" \end{bmatrix}"


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, Q=np.array(Q), weights=np.array(WEIGHTS), context=np.array(CONTEXT))
    return buffer.getvalue()


def notebook() -> str:
    cells = [
        {"cell_type": "markdown", "source": [f"(1) $Q = {latex(Q)}$"]},
        {
            "cell_type": "code",
            "source": ["print('Attention weights:'); print(weights)"],
            "outputs": [{"text": ["Attention weights:\n", f"{np.array(WEIGHTS)}\n"]}],
        },
        {
            "cell_type": "code",
            "source": ["print('Self-Attention Output:\\n', context)"],
            "outputs": [{"text": f"Self-Attention Output:\n {np.array(CONTEXT)}\n"}],
        },
    ]
    return json.dumps({"cells": cells, "nbformat": 4})


FORMATS: dict[str, str | bytes] = {
    "a.toml": f"Q = {Q}\nweights = {WEIGHTS}\ncontext = {CONTEXT}\n",
    "labels.toml": f"['(1)']\nQ = {Q}\n['(2)']\nweights = {WEIGHTS}\ncontext = {CONTEXT}\n",
    "a.json": json.dumps({"Q": Q, "weights": WEIGHTS, "context": CONTEXT}),
    "a.npz": npz(),
    "a.ipynb": notebook(),
    "latex.tex": rf"""
        (1) \[ Q = {latex(Q)} \]
        (2) The attention weights are $A = {latex(WEIGHTS)}$, and the output is
        \[ C = {latex(CONTEXT)}. \]""",
    "numpy.py": f"""
q = np.array({Q})
attention_weights = np.array({WEIGHTS})
out = torch.tensor({CONTEXT})""",
    "matlab.m": f"""
Q = [{rows(Q, " ", "; ")}];
A = [{rows(WEIGHTS, ", ", "; ")}];
C = [{rows(CONTEXT, " ", "; ")}]""",
    "tables.md": f"""
Q:

| {rows(Q, " | ", " |" + chr(10) + "| ")} |

Attention weights:

| {rows(WEIGHTS, " | ", " |" + chr(10) + "| ")} |

Context:

| {rows(CONTEXT, " | ", " |" + chr(10) + "| ")} |
""",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_holds_the_same_answers(name: str, tmp_path: Path) -> None:
    content = FORMATS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    report = check(EXERCISE, path)
    found = {f.asked: f.verdict.name for f in report.findings if not f.judgement.is_missing}
    assert found.keys() == {"Q", "weights", "context"}
    assert set(found.values()) <= {"RIGHT", "ROUNDED"}
    assert all(name in finding.read for finding in report.findings if finding.read)


def test_one_array_on_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (str(WEIGHTS), latex(WEIGHTS), rows(WEIGHTS, " ", "\n"), rows(WEIGHTS, ",", "\n")):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["check", EXERCISE, "-", "--step", "weights"]) == 0, capsys.readouterr().out
        assert "right to the 2 decimals given" in capsys.readouterr().out


def test_an_npy_file_answers_one_step(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(WEIGHTS))
    assert check(EXERCISE, tmp_path / "a.npy", step="weights").is_right
    with pytest.raises(FileError, match="say --step"):
        check(EXERCISE, tmp_path / "a.npy")
    with pytest.raises(OptionError, match="did you mean 'weights'"):
        check(EXERCISE, tmp_path / "a.npy", step="weihgts")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npz", b"no zip at all", "cannot be read"),
        ("a.toml", b"Q = [1,", "is no TOML"),
        ("a.json", b"[1, 2]", "must hold an object"),
        ("a.ipynb", b"{}", "it has no cells"),
        ("a.docx", b"", "answers are read from .toml"),
        ("a.md", b"\xff\xfe", "is no UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        check(EXERCISE, tmp_path / name)


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", weights=np.array([print, 1], dtype=object))
    with pytest.raises(FileError, match="without pickle"):
        check(EXERCISE, tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("before", "step"),
    [
        ("$C = A V =", "context"),  # not V
        ("Output $Z = AV \\approx", "context"),
        ("Raw scores $S = QK^T =", "scores"),
        ("$$Q K^{\\top} =", "scores"),
        (r"$$\text{softmax}(S) =", "weights"),
        (r"$A = \text{softmax}(Q K^T / \sqrt{2}) =", "weights"),
        (r"$S = \frac{QK^T}{\sqrt{d_k}} =", "scaled"),  # whatever it is called
        ("With $d_k = 2$ the scores are $S =", "scores"),
        ("$K = X W_K =", "K"),
    ],
)
def test_a_chain_of_formulas_is_named_by_its_beginning(
    before: str, step: str, tmp_path: Path
) -> None:
    work = regard.work(
        "self-attention", X=np.eye(4)[:3], WQ=np.eye(4)[:, :2], WK=np.eye(4)[:, 1:3],
        WV=np.eye(4)[:, 2:],
    )  # fmt: skip
    matrix = latex(work[step].value.round(3).tolist())
    (tmp_path / "a.md").write_text(f"(1) Now\n\n{before} {matrix}$\n", encoding="utf-8")
    found = [
        (finding.step, finding.verdict.name) for finding in check(work, tmp_path / "a.md").findings
    ]
    assert found == [(step, "RIGHT")]


def test_decimal_commas_of_latex_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_text(f"$Q = {latex(Q).replace('.', '{,}')}$", encoding="utf-8")
    assert check(EXERCISE, tmp_path / "a.tex").findings[0].verdict.name == "RIGHT"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "Q =\n\n| | |\n|-|-|\n| 0,5 | 1 |\n| 2 | 3 |\n"),
        ("a.tex", r"$Q = \begin{pmatrix} 0,5 & 1 \\ 2 & 3 \end{pmatrix}$"),
        ("a.csv", "0,5;1,5\n2,5;3,5\n"),
    ],
)
def test_decimal_commas_of_texts_get_a_hint(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = check(EXERCISE, tmp_path / name, step="Q")
    assert "Write decimals with a point, such as 0.25" in report.findings[0].judgement.words


def test_percent_signs_of_texts_get_a_hint(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A = [[32%, 68%], [50%, 50%]]\n", encoding="utf-8")
    report = check(EXERCISE, tmp_path / "a.md", step="weights")
    assert "Write shares of 1, such as 0.25" in report.findings[0].judgement.words


def test_a_sheet_without_names_says_how_to_write_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{Q}", encoding="utf-8")
    told = check(EXERCISE, tmp_path / "a.txt").to_text(width=200)
    assert "Write each answer after its name, as in Q = …" in told


def test_what_was_read_and_where_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Q = [[0.44, x], [1, 2], [3, 4]]\n\nweights = [[1, 2], [3, 4]]\n")
    found = {f.asked: f for f in check(EXERCISE, path).findings}
    assert found["Q"].read == "a.md, line 1"
    assert '"x" is not a number' in found["Q"].judgement.words
    assert found["weights"].read == "a.md, line 3"
    assert "2×2 was read, but 3×3 is wanted" in found["weights"].judgement.words


def test_the_heads_of_a_text_are_put_together() -> None:
    trace = regard.solve("two-head-attention").trace
    one, two = trace["Q"].value.round(1).tolist()
    for names in (("Q_0", "Q_1"), ("Q_1", "Q_2"), ("Q of head 1", "Q of head 2")):
        text = f"(a) {names[0]} = {one}\n{names[1]} = {two}\n"
        report = text_report("two-head-attention", text)
        assert report.findings[0].verdict.name == "RIGHT", names


def text_report(exercise: str, text: str) -> regard.Report:
    from regard.checking import checker_for, parse_sheet

    checker = checker_for(exercise)
    return checker.check(parse_sheet(text, "answers.md", checker.wanted))


def test_printed_heads_of_the_course_notebook() -> None:
    """The printed results of course document 004, (a) and (b), as they stand there."""
    text = """
(a) Implement the self-attention operation

Self-Attention Output:
 [[-0.7 -0.9  0.5  0.1 -5.5 -1.1]
 [-0.4  0.6  0.6 -0.6  2.   0.5]
 [ 0.3 -0.1 -2.4 -1.9  4.9  1.8]
 [-0.7 -0.7  0.4 -0.1 -4.5 -0.7]
 [-2.   3.3  2.1  1.6 -1.3  2.8]]
Self-Attention Matrix:
 [[4.9e-07 4.0e-14 9.9e-01 1.7e-05 6.1e-03]
 [4.8e-01 3.6e-01 1.5e-01 2.1e-02 4.0e-04]
 [1.9e-02 5.8e-01 9.4e-02 2.8e-01 3.2e-02]
 [3.0e-02 1.2e-02 8.5e-01 9.9e-02 1.1e-02]
 [4.7e-04 7.3e-03 1.6e-02 4.0e-02 9.4e-01]]

(b) Implement multi-head attention

Self-Attention Output:
 [[-0.7 -0.9  0.7  0.2 -1.5  2.9]
 [-1.1  0.9 -3.9 -2.9 -3.  -0.5]
 [-0.7 -0.9  1.6  1.2  5.8  1.5]
 [-0.7 -0.7 -3.8 -2.8 -5.1 -0.9]
 [-0.2  0.3  1.   0.2 -1.3  3. ]]
Self-Attention Weights:
Head 1
 [[1.8e-04 1.2e-03 9.5e-01 4.6e-02 2.3e-05]
 [5.1e-01 1.7e-02 3.6e-01 1.0e-02 1.0e-01]
 [6.4e-04 2.5e-03 9.4e-01 5.4e-02 9.7e-05]
 [3.8e-02 2.6e-02 8.4e-01 8.8e-02 1.0e-02]
 [2.6e-02 3.2e-01 4.5e-02 5.3e-01 7.7e-02]]

Head 2
 [[3.1e-05 2.0e-18 9.0e-01 4.8e-07 9.7e-02]
 [6.1e-04 1.0e+00 9.6e-05 8.1e-04 9.0e-07]
 [3.2e-03 1.1e-01 3.8e-04 1.5e-02 8.7e-01]
 [1.0e-02 9.7e-01 2.3e-03 1.8e-02 2.0e-03]
 [1.1e-01 7.5e-04 7.9e-01 4.0e-02 5.4e-02]]

Head 3
 [[3.1e-05 3.9e-05 1.8e-02 3.6e-03 9.8e-01]
 [4.3e-01 4.7e-03 4.9e-01 7.1e-02 6.8e-03]
 [2.3e-01 6.7e-01 2.2e-02 6.3e-02 1.5e-02]
 [1.4e-02 4.5e-05 9.1e-01 2.7e-02 4.4e-02]
 [2.8e-06 3.9e-03 1.0e-04 8.4e-04 1.0e+00]]
"""
    report = text_report("numpy-multi-head", text)
    found = {(f.label, f.asked): f.verdict.name for f in report.findings}
    assert found["(a)", "context"] == "RIGHT"
    assert found["(a)", "weights"] == "RIGHT"
    assert found["(b)", "merged"] == "RIGHT"
    assert found["(b)", "weights"] == "RIGHT"


ANSWERS: dict[str, Any] = {
    "(a)": {"choice": "Row wise", "shape": {"weights": "n_q x n_k", "context": [2, 5]}},
    "(b)": {"choice": "$d_k$"},
    "(c)": {
        "multiplications": r"n_q n_k d_k + n_{q} d_v \cdot n_k",
        "additions": "n_q*n_k*(d_k-1) + n_q*(n_k-1) + n_q*d_v*(n_k-1)",
        "divisions": "2 n_k n_q",
    },
    "(d)": {"mask": np.tril(np.ones((4, 4), dtype=bool))},
}


def test_answers_beyond_numbers() -> None:
    report = check("attention-questions", ANSWERS)
    found = {f.asked: f.verdict.name for f in report.findings if not f.judgement.is_missing}
    assert len(found) == 7
    assert set(found.values()) == {"RIGHT"}


@pytest.mark.parametrize(
    ("label", "answer", "words"),
    [
        ("(a)", {"choice": "column-wise"}, ""),
        ("(a)", {"choice": "both"}, "none of the choices"),
        ("(a)", {"shape": {"context": "d_v × n_q"}}, "Rows and columns are exchanged"),
        ("(a)", {"shape": {"weights": [2, 4, 1]}}, "3 axes were given, not 2"),
        ("(c)", {"divisions": "n_q n_k"}, "leading terms are wrong"),
        ("(c)", {"additions": "n_q n_k (d_k + d_v)"}, "leading terms are right"),
        ("(c)", {"divisions": "2 n_q n_k d_v"}, "does not depend on d_v"),
        ("(c)", {"divisions": "two per score"}, "none of the sizes"),
        ("(d)", {"mask": np.triu(np.ones((4, 4), dtype=bool))}, "transposed"),
        ("(d)", {"mask": ~np.tril(np.ones((4, 4), dtype=bool))}, "hides what should be seen"),
        ("(d)", {"mask": np.tril(np.ones((4, 4)))}, "leave open which of them hides"),
        ("(d)", {"mask": np.tril(np.ones((4, 4), dtype=bool), -1)}, "hides a token from itself"),
    ],
)
def test_wrong_answers_beyond_numbers(label: str, answer: Any, words: str) -> None:
    report = check("attention-questions", {label: answer})
    (finding,) = [f for f in report.findings if not f.judgement.is_missing]
    assert finding.verdict.name in {"WRONG", "SLIP", "UNGRADABLE"}
    assert words in finding.judgement.words


@pytest.mark.parametrize(
    ("exercise", "design", "verdict"),
    [
        ("average-of-two", {"q": "1000*(k[a] + k[b])"}, "RIGHT"),
        ("average-of-two", {"q": "50 (k[b] + k[a])"}, "RIGHT"),
        ("average-of-two", {"q": "k[a] + k[b]"}, "WRONG"),
        ("average-of-two", {"q": "20*(k[1] + k[3])"}, "WRONG"),  # only for these indices
        ("average-of-two", {"q": [20, 0, 0, 20]}, "WRONG"),
        ("average-of-two", {"q": "beta*(key_a + key_b)"}, "UNGRADABLE"),
        ("copying", {"q": "10*k[j]"}, "RIGHT"),
        ("copying", {"q": "10*v[j]"}, "WRONG"),
        ("two-heads-noise", {"q_1": "beta*mu[a]", "q_2": "beta*mu[b]"}, "RIGHT"),
        ("two-heads-noise", {"q_1": "30*mu[b]", "q_2": "30*mu[a]"}, "RIGHT"),
        (
            "two-heads-noise",
            {"q_1": "beta*(mu[a] + mu[b])", "q_2": "beta*(mu[a] + mu[b])"},
            "WRONG",
        ),
        ("two-heads-noise", {"q_1": "beta*mu[a]"}, "UNGRADABLE"),
    ],
)
def test_designed_inputs_are_judged_by_what_they_do(
    exercise: str, design: dict[str, Any], verdict: str
) -> None:
    report = check(exercise, design)
    finding = next(f for f in report.findings if "q" in f.asked)
    assert finding.verdict.name == verdict, finding.judgement.words
