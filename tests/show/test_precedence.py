"""Parentheses, in every format, where a formula would otherwise say something else."""

from __future__ import annotations

import numpy as np
import pytest

from regard.graph.notation import (
    Call,
    Fraction,
    Math,
    Matrix,
    Negative,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Symbol,
    Transposed,
    dot,
)
from regard.show._format import NumberFormat
from regard.show._plain import Plain
from regard.show.latex import math_to_latex

a, b, c = Symbol("a"), Symbol("b"), Symbol("c")
TABLE = [
    (Product((Sum((a, b)), c)), "(a + b) c", "(a + b) c"),
    (Sum((a, Product((b, c)))), "a + b c", "a + b c"),
    (dot(np.array([0.8, -0.4]), np.array([0.6, 0.1])), "0.8·0.6 + (−0.4)·0.1",
     r"0.8 \cdot 0.6 + (-0.4) \cdot 0.1"),
    (dot(np.array([-0.5]), np.array([-0.2])), "(−0.5)·(−0.2)", r"(-0.5) \cdot (-0.2)"),
    (Power(Fraction(a, b), Number(2)), "(a/b)^2", r"{\left(\frac{a}{b}\right)}^{2}"),
    (Power(Number(-2), Number(2)), "(−2)^2", "{(-2)}^{2}"),
    (Power(Power(a, b), c), "(a^b)^c", "{({a}^{b})}^{c}"),
    (Power(Symbol("e"), Sum((a, Negative(b)))), "e^(a − b)", "{e}^{a - b}"),
    (Power(Symbol("e"), Fraction(a, b)), "e^(a/b)", "{e}^{a/b}"),
    (Call("exp", (Sum((a, b)),)), "exp(a + b)", r"\exp(a + b)"),
    (Transposed(Product((a, b))), "(a b)ᵀ", r"{(a b)}^{\top}"),
    (Product((a, Transposed(Symbol("W", "K", "(2)")))), "a W_K⁽²⁾ᵀ", r"a W_{K}^{(2)\top}"),
    (Power(Symbol("W", "", "(2)"), Number(2)), "(W⁽²⁾)^2", "{(W^{(2)})}^{2}"),
    (Negative(Sum((a, b))), "−(a + b)", "-(a + b)"),
    (Sum((a, Negative(Sum((b, Negative(c)))))), "a − (b − c)", "a - (b - c)"),
    (Sum((a, Number(-2))), "a + (−2)", "a + (-2)"),
    (Sum((Number(-2), a)), "−2 + a", "-2 + a"),
    (Sum((a, Negative(Number(-2)))), "a − (−2)", "a - (-2)"),
    (Fraction(Sum((a, b)), Product((b, c))), "(a + b)/(b c)", r"\frac{a + b}{b c}"),
    (Fraction(a, Fraction(b, c)), "a/(b/c)", r"a / \frac{b}{c}"),
    (Product((Fraction(a, b), c)), "(a/b) c", r"\frac{a}{b} c"),
    (Root(Sum((a, b))), "√(a + b)", r"\sqrt{a + b}"),
    (Fraction(a, Root(Symbol("d", "k"))), "a/√d_k", r"\frac{a}{\sqrt{d_{k}}}"),
    (Product((Product((a, b), "⊙"), c)), "(a ⊙ b) c", r"(a \odot b) c"),
    (Product((Number(2), Number(3))), "2·3", r"2 \cdot 3"),
    (Product((Number(2), a)), "2a", "2 a"),
    (Power(Number(1.7e-62), Number(2)), "1.7e-62^2", r"{(1.7 \cdot 10^{-62})}^{2}"),
    (Product((Number(1.7e-62), Number(0.5)), "·"), "1.7e-62·0.5", r"1.7 \cdot 10^{-62} \cdot 0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("math", "text", "latex"), TABLE)
def test_parentheses(math: Math, text: str, latex: str) -> None:
    assert Plain(NumberFormat()).text(math) == text
    assert math_to_latex(math, NumberFormat()) == latex


def test_a_tall_matrix_is_transposed_at_its_top() -> None:
    lines = Plain(NumberFormat()).text(Transposed(Matrix(np.array([[1, 2], [3, 4]])))).split("\n")
    assert lines == ["⎡1  2⎤ᵀ", "⎣3  4⎦"]


def test_a_vector_is_a_row() -> None:
    assert Plain(NumberFormat()).text(Matrix(np.array([1.0, 0.5, -2.0]))) == "(1.0, 0.5, −2.0)"
