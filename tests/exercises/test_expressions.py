"""Formulas in exercise files: their values, their print, and everything that is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._errors import OptionError
from regard.exercises._expressions import FUNCTIONS, LONGEST, evaluate, parse, written
from regard.graph.notation import Equation, Symbol
from regard.show._format import NumberFormat
from regard.show._plain import Plain

MU = np.array([[2.0, 3.0], [5.0, 7.0], [11.0, 13.0]])
NAMES: dict[str, Any] = {"beta": 4.0, "a": 1.0, "b": 3.0, "mu": MU, "β": 4.0, "x": np.zeros(5)}

VALUES = [
    ("2 + 3*4", 14),
    ("-2**2", -4),
    ("1e-3/2", 0.0005),
    ("+beta", 4),
    ("β/8", 0.5),
    ("mu[1]", [2, 3]),
    ("mu[b, 2]", 13),
    ("mu[a] + mu[b]", [13, 16]),
    ("beta*(mu[a] + mu[b])", [52, 64]),
    ("mu @ mu[1]", [13, 31, 61]),
    ("mu[1] @ mu[2]", 31),
    ("norm(mu[a] - mu[2])", 5),
    ("sqrt(16)", 4),
    ("exp(0) + log(1)", 1),
    ("sum(mu)", 41),
    ("max(mu[2])", 7),
    ("min(mu)", 2),
    ("abs(-3)", 3),
    ("rows(mu[1], beta)", [[2, 3], [4, 4]]),
    ("join(1, mu[1], ones(2))", [1, 2, 3, 1, 1]),
    ("ones((beta + sqrt(beta))/2)", [1, 1, 1]),
    ("transpose(mu)", [[2, 5, 11], [3, 7, 13]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: Any) -> None:
    assert np.array_equal(evaluate(text, NAMES), value)


def test_every_function_has_a_case() -> None:
    assert all(any(f"{name}(" in text for text, _ in VALUES) for name in FUNCTIONS)


REFUSED = [
    ("__import__('os').system('true')", "uses the function"),
    ("__import__('os')", "uses the function '__import__'"),
    ("__builtins__", "uses the name '__builtins__'"),
    ("open('f')", "uses the function 'open'"),
    ("mu.T", "uses Attribute"),
    ("mu.__class__", "uses Attribute"),
    ("().__class__.__mro__", "uses Attribute"),
    ("(lambda: 1)()", "uses the function"),
    ("exp(*mu)", "uses Starred"),
    ("sum(mu, axis=0)", "uses keywords"),
    ("[i for i in mu]", "uses ListComp"),
    ("{1: 2}", "uses Dict"),
    ("[1, 2]", "uses List"),
    ("'text'", "uses 'text'"),
    ("f'{beta}'", "uses JoinedStr"),
    ("b'1'", "uses b'1'"),
    ("1j", "uses 1j"),
    ("True", "uses True"),
    ("None", "uses None"),
    ("...", "uses Ellipsis"),
    ("(x := 1)", "uses NamedExpr"),
    ("1 if beta else 2", "uses IfExp"),
    ("beta and 1", "uses BoolOp"),
    ("beta < 1", "uses Compare"),
    ("5 // 2", "uses FloorDiv"),
    ("5 % 2", "uses Mod"),
    ("1 << 99999", "uses LShift"),
    ("~1", "uses Invert"),
    ("not 1", "uses Not"),
    ("mu[1:2]", "uses Slice"),
    ("await beta", "uses Await"),
    ("9**9**9**9", "has a power above 64"),
    ("beta**1e9", "has a power above 64"),
    ("10**-99", "has a power above 64"),
    ("1e308*10 @ 2", "has no value"),
    ("1" + "0" * 400, "has no value: int too large"),
    ("ones(1e9)", "ones takes a whole number up to 100000"),
    ("ones(0.5)", "ones takes a whole number"),
    ("ones(-1)", "ones takes a whole number"),
    ("join(ones(90000), ones(90000))", "makes more than 100000 numbers"),
    ("(1, 2)", "holds a list"),
    ("mu[4]", "place 4 .counted from 1. of an array of shape .3, 2."),
    ("mu[0]", "place 0"),
    ("mu[1, 1, 1]", "place 1, 1, 1"),
    ("mu[1e400]", "has no value"),
    ("mu + mu[1] @ mu", "has no value"),
    ("gamma", "uses 'gamma', which is not defined: known: beta"),
    ("betta*2", "uses 'betta', which is not defined: did you mean 'beta'"),
    ("sqrt", "uses 'sqrt', which is not defined"),
    ("sqrt()", "has no value"),
    ("", "cannot be read"),
    ("1 +", "cannot be read"),
    ("beta; mu", "cannot be read"),
    ("import os", "cannot be read"),
    ("\0", "cannot be read"),
    ("1\n2", "cannot be read"),
    ("-" * 200 + "1", "nested more than 40 deep"),
    ("(" * 150 + "1" + ")" * 150 + "*(", "cannot be read"),
    ("+".join(["1"] * 60), "nested more than 40 deep"),
    ("(" * 240 + "1" + ")" * 240, "cannot be read"),
    ("n" * (LONGEST + 1), f"has {LONGEST + 1} characters; {LONGEST} is the most"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:20] for text, _ in REFUSED])
def test_everything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        evaluate(text, NAMES)


@given(st.text(alphabet="mubeta0123456789+-*/@()[],._ '\"\\\nλ:=<>{}", max_size=60))
def test_no_text_does_anything_else(text: str) -> None:
    with suppress(OptionError):
        assert np.asarray(evaluate(text, NAMES)).dtype == np.float64


def test_infinities_and_nan_are_values() -> None:
    assert math.isinf(evaluate("1e308*10", {}))
    assert math.isnan(evaluate("x[1]/x[1]", NAMES))


PRINTED = [
    ("beta*(mu[a] + mu[b])", "β (μ_a + μ_b)"),
    ("sqrt(d_k)", "√d_k"),
    ("exp(-g_i)", "exp(−g_i)"),
    ("exp(beta)/(2*exp(beta) + n - 2)", "exp(β)/(2 exp(β) + n − 2)"),
    ("n_q*n_k*(d_k - 1)", "n_q n_k (d_k − 1)"),
    ("weights[1, a]", "A_{1,a}"),
    ("x**2*3", "x^2 · 3"),
    ("q_1 @ transpose(K)", "q₁ Kᵀ"),
    ("n_q = n_k", "n_q = n_k"),
    ("(c[1] + c[2])/2", "(c₁ + c₂)/2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_print(text: str, printed: str) -> None:
    writer = Plain(NumberFormat(), inline=True)
    assert writer.text(written(text, {"weights": Symbol("A")})) == printed


def test_parts_of_an_equation() -> None:
    math = written("a = b = c")
    assert isinstance(math, Equation)
    assert len(math.sides) == 3


def test_names_are_listed_without_functions() -> None:
    assert parse("beta*sqrt(mu[a] @ mu[b])").names == ("beta", "mu", "a", "b")


@pytest.mark.parametrize(
    "text",
    ["rows(c, r)", "c + r", "c @ r", "join(" + ", ".join(["c"] * 20) + ")", "transpose(r) * r"],
)
def test_nothing_large_is_made_before_it_is_refused(text: str) -> None:
    """Ten thousand million numbers would take 80 gigabytes."""
    names = {"c": np.broadcast_to(0.0, (90_000, 1)), "r": np.broadcast_to(0.0, (1, 90_000))}
    with pytest.raises(OptionError, match="makes more than 100000 numbers"):
        evaluate(text, names)


@pytest.mark.parametrize("place", ["1.7", "0.5 + 0.7", "K", "0/0"])
def test_places_are_whole_numbers(place: str) -> None:
    with pytest.raises(OptionError, match=r"places are whole numbers|has no value"):
        evaluate(f"K[{place}]", {"K": np.eye(2)})


def test_a_place_may_be_computed() -> None:
    assert evaluate("v[1 + 1]", {"v": np.array([3, 5])}) == 5
