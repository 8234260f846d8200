"""Programs graded: right ones earn everything, each fault is found and said."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

import regard
from regard.exercises import Exercise, load_exercise, read_exercise
from regard.exercises._library import LIBRARY
from regard.grading import Finding, Grade, Grader, Item, Limits, Submission, isolation
from regard.grading._grade import grade_from
from regard.grading._sandbox import Isolation

LIMITS = Limits(seconds=20)
# As course document 004 computes it.
COURSE = """
import numpy as np

def self_attention(X, Wq, Wk, Wv):
    Q = X @ Wq
    K = X @ Wk
    V = X @ Wv
    scores = Q @ K.T / np.sqrt(K.shape[1])
    exp_scores = np.exp(scores)
    weights = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
    return weights @ V, weights

def multi_head_attention(X, Wq, Wk, Wv, H):
    outputs, maps = [], []
    for idx in np.split(np.arange(Wk.shape[1]), H):
        output, weights = self_attention(X, Wq[:, idx], Wk[:, idx], Wv[:, idx])
        outputs.append(output)
        maps.append(weights)
    return np.concatenate(outputs, axis=1), maps
"""


@cache
def grader(name: str) -> Grader:
    return Grader(load_exercise(name))


def graded(name: str, program: str, shut_in: Isolation) -> Grade:
    return grader(name).grade(Submission("it", "it.py", program.encode()), shut_in, LIMITS)


def graded_by(exercise: Exercise, program: str, shut_in: Isolation) -> Grade:
    return Grader(exercise).grade(Submission("it", "it.py", program.encode()), shut_in, LIMITS)


def found(grade: Grade) -> str:
    return "\n".join(finding.message for finding in grade.findings)


def test_the_program_of_the_course_is_right_and_overflows(bubblewrap: Isolation) -> None:
    grade = graded("numpy-multi-head", COURSE, bubblewrap)
    assert (grade.status, grade.points, grade.of) == ("graded", 2, 2), grade
    assert grade.is_right
    assert "self_attention overflows for scores above 709" in found(grade)


@pytest.mark.parametrize(
    ("change", "to", "points", "says"),
    [
        ("K.shape[1])", "X.shape[1])", 1.5, "fails when d_k is 3 instead of 6"),
        ("    Q = X @ Wq", "    X -= X.mean()\n    Q = X @ Wq", 0, "input X in place"),
        ("    Q = X @ Wq", "    X *= 1.0\n    Q = X @ Wq", 2, None),
        ("    Q = X @ Wq", "    X *= 1 + 1e-12\n    Q = X @ Wq", 1.5, "input X in place"),
        ("np.exp(scores)", "np.exp(scores - scores.max(1, keepdims=True))", 2, None),
        ("return weights @ V, weights", "return weights @ V", 0, "gives 1 results; 2"),
        ("return weights @ V, weights", "return weights, weights @ V", 0, "its shape is 5×5"),
        ("axis=1, keepdims", "axis=1, keepdim", 0, "TypeError.*keepdim.* .line 10."),
        ("def self_attention", "def attention", 0, "no 'self_attention'"),
        ("import numpy", "import nump", 0, "No module named 'nump'"),
        ("def self", "def def self", 0, "SyntaxError"),
    ],
)  # fmt: skip
def test_a_fault_costs_what_it_is_worth(
    change: str, to: str, points: float, says: str | None, bubblewrap: Isolation
) -> None:
    assert change in COURSE
    grade = graded("numpy-multi-head", COURSE.replace(change, to), bubblewrap)
    assert grade.points == points, grade
    words = "\n".join([grade.reason, found(grade), *(item.message for item in grade.items)])
    if says is None:
        assert all(not finding.cost for finding in grade.findings)
    else:
        assert re.search(says, words), words


def test_numbers_that_stand_in_the_program_earn_nothing(bubblewrap: Isolation) -> None:
    work = regard.solve("numpy-multi-head").trace
    program = f"""import numpy as np
def self_attention(X, Wq, Wk, Wv):
    return (np.array({work["context"].value.tolist()!r}),
            np.array({work["weights"].value.tolist()!r}))
"""
    grade = graded("numpy-multi-head", program, bubblewrap)
    assert grade.points == 0
    assert "right on the exercise's numbers, but not on others" in grade.items[0].message


def test_a_state_between_calls_is_found(bubblewrap: Isolation) -> None:
    stateful = COURSE.replace("    Q = X @ Wq", "    seen.append(1)\n    Q = X @ Wq").replace(
        "return weights @ V, weights", "return weights @ V * (1 + (len(seen) == 5)), weights"
    )
    grade = graded(
        "numpy-multi-head", stateful.replace("import", "seen = []\nimport", 1), bubblewrap
    )
    assert "again with the same inputs gives other results" in found(grade)
    assert grade.points == 2 - 0.25


def test_a_program_for_one_length_is_found(bubblewrap: Isolation) -> None:
    fixed = COURSE.replace("scores = Q @ K.T", "scores = (Q @ K.T + np.zeros((5, 5)))")
    grade = graded("numpy-multi-head", fixed, bubblewrap)
    assert "self_attention fails when the number of tokens is 3 instead of 5" in found(grade)
    assert grade.points == 1.5


CAUSAL = (Path(__file__).with_name("programs") / "causal.toml").read_text(encoding="utf-8")
MASKED = """
import numpy as np

def attend(X, Wq, Wk, Wv):
    scores = (X @ Wq) @ (X @ Wk).T / np.sqrt(Wk.shape[1])
    scores = scores + np.triu(np.full(scores.shape, -np.inf), 1)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ (X @ Wv)
"""


def test_looking_ahead_is_found(bubblewrap: Isolation) -> None:
    exercise = read_exercise(CAUSAL, "causal.toml")
    right = graded_by(exercise, MASKED, bubblewrap)
    assert right.is_right
    assert not right.findings
    looking = MASKED.replace("-np.inf), 1)", "-np.inf), 2)")
    grade = graded_by(exercise, looking, bubblewrap)
    assert grade.points == 0
    assert "not causal: context 1 changes when token 2 changes" in found(grade)


# ---- torch ---------------------------------------------------------------------------------

SOLUTION = (LIBRARY / "torch-self-attention-solution.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "to", "points", "says"),
    [
        ("import", "import", 2, None),
        ("bias=False", "bias=True", 2, None),
        ("self.key =", "self.other = nn.Linear(2, 2)\n        self.key =", 2, "judged by its own"),
        ("dim=-1", "dim=1", 4 / 3, "columns instead.*F.softmax.scores, dim=-2"),
        ("dim=-1", "dim=0", 4 / 3, "The softmax is taken over the batch"),
        ("scores = torch", "assert len(x) == 1 or True\n        scores = torch", 2, None),
        ("k.transpose(-2, -1)", "k[:1].transpose(-2, -1)", 4 / 3, "fails only when batch > 1"),
        ("weights = F.softmax(scores, dim=-1)",
         "weights = scores.exp() / scores.exp().sum(-1, keepdim=True)", 2,
         "overflows for scores above 88"),
        ("query = nn.Linear(d_model, d_model", "query = nn.Linear(d_model, 5", 0, "RuntimeError"),
    ],
)  # fmt: skip
def test_a_module_is_judged_by_its_own_parameters(
    change: str, to: str, points: float, says: str | None, bubblewrap: Isolation
) -> None:
    pytest.importorskip("torch")
    assert change in SOLUTION
    grade = graded("torch-self-attention", SOLUTION.replace(change, to, 1), bubblewrap)
    assert grade.points == pytest.approx(points), grade
    words = "\n".join([grade.reason, found(grade), *(item.message for item in grade.items)])
    assert says is None or re.search(says, words), words


def test_weights_that_make_everything_trivial_earn_nothing(bubblewrap: Isolation) -> None:
    """A module that says its weights are 0 is put to the test with others."""
    pytest.importorskip("torch")
    lazy = """
import torch
from torch import nn

class SelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in "qkv")
        for layer in (self.query, self.key, self.value):
            nn.init.zeros_(layer.weight)

    def forward(self, x):
        n = x.shape[1]
        return 0 * x, torch.zeros(len(x), n, n), torch.full((len(x), n, n), 1 / n)
"""
    grade = graded("torch-self-attention", lazy, bubblewrap)
    assert grade.points == 0
    assert "right on the exercise's numbers, but not on others" in grade.items[0].message


def test_rules_are_told_apart_from_the_numbers(bubblewrap: Isolation) -> None:
    pytest.importorskip("torch")
    other = SOLUTION.replace("torch.matmul(weights, v)", "weights @ v").replace(
        "torch.matmul(q, k.transpose(-2, -1))", "q @ k.transpose(-2, -1)"
    )
    grade = graded("torch-self-attention", "import os\n" + other, bubblewrap)
    assert grade.points == 2
    assert not grade.is_right
    assert [rule.partition(";")[0] for rule in grade.rules] == [
        "line 1 imports os", "torch.matmul is never called (line 19 uses @ instead)",
    ]  # fmt: skip


# ---- isolation -----------------------------------------------------------------------------


def test_trusted_programs_run_without_a_sandbox() -> None:
    grade = graded("numpy-multi-head", COURSE, isolation("none"))
    assert grade.points == 2


def test_without_a_sandbox_grading_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.grading import _sandbox

    _sandbox._trouble.cache_clear()
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(regard.SandboxError, match=r"bubblewrap is not installed.*--trust"):
        isolation("bubblewrap")
    monkeypatch.undo()
    _sandbox._trouble.cache_clear()


def test_an_unknown_isolation_is_named() -> None:
    with pytest.raises(regard.OptionError, match=r"'bubblewrap'.*'bublewrap'"):
        isolation("bublewrap")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as another user")
def test_another_user_reads_nothing_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    from regard.grading import _sandbox

    system = Path("/usr/bin/python3")
    if (
        not system.exists()
        or system.resolve().name != f"python3.{__import__('sys').version_info[1]}"
    ):
        pytest.skip("no Python that every user may run")
    monkeypatch.setattr(_sandbox, "PYTHON", str(system))
    _sandbox._trouble.cache_clear()
    secret = Path(tmp_path) / "solution.toml"
    secret.write_text("the solution")
    secret.chmod(0o600)
    shut_in = isolation("user")
    assert graded("numpy-multi-head", COURSE, shut_in).points == 2
    stealing = COURSE.replace("    Q = X", f"    open({str(secret)!r}).read()\n    Q = X")
    grade = graded("numpy-multi-head", stealing, shut_in)
    assert "Permission denied" in grade.reason
    forking = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    program = Submission("it", "it.py", forking.encode())
    assert grader("numpy-multi-head").grade(program, shut_in, Limits(seconds=1)).status == "failed"
    assert shut_in.user is not None
    assert not list(_sandbox._living(shut_in.user))
    _sandbox._trouble.cache_clear()


def test_a_grade_comes_back_from_json() -> None:
    items = (Item("a", 1, 2, "wrong", "m", ("x",)), Item("b", 1, 1, "right"))
    grade = Grade("s", "graded", items, "", (Finding("size", "f", 0.25),), ("r",), "p")
    assert grade_from(json.loads(json.dumps(grade.to_dict()))) == grade
    assert (grade.points, grade.of) == (1.75, 3)
