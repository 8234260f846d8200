"""Rules for a program's text: each is kept by one program and broken by another."""

from __future__ import annotations

import pytest

from regard.exercises._exercise import CodeRules
from regard.grading._rules import broken_rules

RULES = CodeRules(
    imports=("torch", "torch.nn", "torch.nn.functional"),
    calls=("torch.matmul", "F.softmax"),
    seed=42,
)
KEPT = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(42)
weights = F.softmax(torch.matmul(torch.ones(2, 3), torch.ones(3, 2)), dim=-1)
"""


@pytest.mark.parametrize(
    "program",
    [
        KEPT,
        KEPT.replace("manual_seed(42)", "random.manual_seed(42)"),
        KEPT.replace("torch.manual_seed(42)", "SEED = 42\ntorch.manual_seed(SEED)"),
        KEPT.replace("import torch\n", "import torch as T\n").replace("torch.m", "T.m"),
        KEPT.replace("F.softmax", "nn.functional.softmax"),
        KEPT.replace("import torch\n", "import torch\nfrom torch import matmul as mm\n").replace(
            "torch.matmul", "mm"
        ),
        "from __future__ import annotations\n" + KEPT,
    ],
)
def test_rules_are_kept_in_other_words_too(program: str) -> None:
    assert broken_rules(program, RULES) == []


@pytest.mark.parametrize(
    ("change", "to", "rule"),
    [
        ("torch import nn", "torch.optim import SGD", "line 4 imports torch.optim; only torch, "),
        ("from torch import nn", "import os, sys", "line 4 imports sys"),
        ("from torch import nn", "from . import other", "line 4 imports ."),
        ("from torch import nn", "__import__('os')", "line 4 calls __import__"),
        ("torch.matmul(torch.ones(2, 3), torch.ones(3, 2))", "torch.ones(2, 3) @ torch.ones(3, 2)",
         "torch.matmul is never called (line 7 uses @ instead)"),
        ("F.softmax", "torch.softmax",
         "F.softmax is never called (torch.softmax is another function)"),
        ("42", "43", "line 6 sets the seed to 43; it must stay 42"),
        ("torch.manual_seed(42)", "", "the seed 42 is never set"),
        ("(42)", "(torch.seed())", "line 6 sets the seed to torch.seed(); it must stay 42"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_told(change: str, to: str, rule: str) -> None:
    assert change in KEPT
    broken = broken_rules(KEPT.replace(change, to), RULES)
    assert any(rule in each for each in broken), broken


@pytest.mark.parametrize("program", ["def (", "x = " + "(" * 5000, "\0"])
def test_a_program_without_sense_breaks_no_rule(program: str) -> None:
    assert broken_rules(program, RULES) == []


def test_without_rules_none_is_broken() -> None:
    assert broken_rules("import os", None) == []
    assert broken_rules("import os", CodeRules()) == []
