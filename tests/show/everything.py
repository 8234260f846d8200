"""A document by hand with every kind of block, every class of mathematics, every kind of number."""

from __future__ import annotations

from fractions import Fraction as Ratio

import numpy as np

from regard.graph.notation import (
    Call,
    Equation,
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
    Words,
    dot,
)
from regard.show.document import (
    Block,
    Code,
    Display,
    Document,
    Heading,
    Note,
    Paragraph,
    Table,
)

X = np.array([[0.8, -0.4], [1.2, 0.3], [-0.5, 1.1]])
WQ = np.array([[0.6, -0.2], [0.1, 0.5]])
WK = np.array([[-0.3, 0.7], [0.4, 0.9]])
Q, K = X @ WQ, X @ WK
SCORES = Q @ K.T
SCALED = SCORES / np.sqrt(2)
WEIGHTS = np.exp(SCALED) / np.exp(SCALED).sum(axis=1, keepdims=True)
MASK = np.array([[0.0, -np.inf, -np.inf], [0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]])
STRANGE = np.array([[np.nan, np.inf, -np.inf], [0.25, -0.0, 1 / 3]])
TINY = np.array([[1.0, 1.7e-62], [0.25, 4.0e-14], [-2.5e6, 1 / 3]])
LARGE = np.round(np.sin(np.arange(64.0)[:, None] * 1.7 + np.arange(64.0)) * 3, 6)
WIDE = np.round(np.cos(np.arange(4.0)[:, None] * 2.3 + np.arange(12.0)) * 7, 5)
BIAS = np.round(np.sin(np.arange(5.0)[:, None] * 2.9 + np.arange(9.0)) * 4, 5)
COUNTS = np.array([[1, 2, 3], [40, 50, 60]])
RATIOS = np.array([[Ratio(1, 3), Ratio(-2, 7)], [Ratio(3), Ratio(5, 2)]], dtype=object)
ALLOWED = np.array([[True, False], [True, True]])
SCORED = np.array([[0.5, -np.inf], [2.5, 3.5]])
HIDDEN = np.array([[False, True], [False, False]])
VECTOR = np.array([1.0, 2.0, 2.761594155955765])
LONG_VECTOR = np.arange(30.0)

a, b, c, d = (Symbol(letter) for letter in "abcd")
n = Symbol("n", "q")


def _steps() -> list[Block]:
    symbols = {name: Symbol(name) for name in ("X", "Q", "K", "S", "A")}
    w_q = Symbol("W", "Q")
    scaled = Fraction(Product((symbols["Q"], Transposed(symbols["K"]))), Root(Symbol("d", "k")))
    return [
        Heading("Queries", 2),
        Paragraph(("Each row of ", symbols["Q"], " belongs to one token: ",
                   Equation((symbols["Q"], Product((symbols["X"], w_q)))), ".")),
        Display(Equation((symbols["Q"], Product((symbols["X"], w_q)),
                          Product((Matrix(X), Matrix(WQ))), Matrix(Q)))),
        Heading("One entry written out", 3),
        Display(Equation((Symbol("q", "1,1"), dot(X[0], WQ[:, 0]), Number(0.44)))),
        Heading("Weights", 2),
        Display(Equation((symbols["A"], Call("softmax", (scaled,)),
                          Call("softmax", (Fraction(Matrix(SCORES), Number(2**0.5)),)),
                          Matrix(WEIGHTS)))),
        Note(("Each row is shifted by its maximum ", Number(0.25), " before ", Call("exp", (a,)),
              ": the weights stay the same.")),
    ]  # fmt: skip


def _mathematics() -> list[Math]:
    """Nested as a wrong rule of precedence would show."""
    negative = Number(-0.4)
    return [
        Product((Sum((a, b)), Sum((c, Negative(d))))),
        Sum((Product((Number(0.8), Number(0.6)), "·"), Product((negative, Number(0.1)), "·"))),
        Sum((a, negative, Negative(Sum((b, c))), Negative(negative), Negative(Product((c, d))))),
        Negative(Sum((a, b))),
        Power(Fraction(a, b), Number(2)),
        Power(negative, Number(2)),
        Power(Symbol("e"), Sum((a, Negative(b)))),
        Power(Symbol("W", "Q", "(2)"), Number(2)),
        Call("exp", (Sum((a, b)),)),
        Call("max", (a, Number(-1))),
        Call("sum", (symbol_e := Symbol("E"),), "over key"),
        Transposed(Product((a, b))),
        Product((Symbol("W", "Q", "(2)"), Transposed(Symbol("W", "K", "(2)")))),
        Product((Fraction(a, b), c)),
        Product((Fraction(a, Product((b, c))), Fraction(Sum((a, Number(1))), d)), "·"),
        Fraction(Fraction(a, b), Fraction(c, d)),
        Root(Sum((a, Number(2)))),
        Product((Product((a, b), "⊙"), symbol_e)),
        Product((Number(2), Number(3), n)),
        Product((Words("all heads'"), symbol_e, Words("side by side"))),
        Words("0 where j ≤ i_1, −∞ elsewhere & 50%"),
        Negative(Product((Symbol("S", "", "", "d"), Sum((n, Number(-1)))))),
        Transposed(Matrix(WQ)),
        Product((Matrix(VECTOR), Transposed(Matrix(WQ))), "·"),
        Equation((Symbol("S", "biased"), Sum((Symbol("S"), Symbol("B"))),
                  Sum((Matrix(BIAS), Matrix(BIAS / 3))), Matrix(BIAS + BIAS / 3))),
        Equation((Symbol("A", "wide"), Call("softmax", (Fraction(Matrix(BIAS), Root(Number(2))),)),
                  Fraction(Matrix(BIAS), Matrix(VECTOR)))),
        dot(LARGE[1, :24], LARGE[:24, 2]),
        Sum((Symbol("α", "12"), Symbol("gain", "out"), Symbol("x", "i,j"))),
        Equation((Symbol("p"), Number(1.7e-62), Product((Number(1.7e-62), Number(3.5)), "·"))),
    ]  # fmt: skip


def _numbers() -> list[Block]:
    named = {
        "mask": MASK, "strange": STRANGE, "tiny": TINY, "large": LARGE, "wide": WIDE,
        "counts": COUNTS, "ratios": RATIOS, "allowed": ALLOWED, "v": VECTOR,
        "long": LONG_VECTOR,
    }  # fmt: skip
    masked = Display(Equation((Symbol("masked"), Matrix(SCORED, hidden=HIDDEN))))
    plain = [Display(Equation((Symbol(name), Matrix(array)))) for name, array in named.items()]
    return [*plain, masked]


TABLE = Table(
    header=(("step",), ("shape",), (Symbol("n", "q"), " = 3"), ("remark",)),
    rows=(
        (("scores",), ("3×3",), (Number(12),), ("a product",)),
        (("sums | totals",), ("3",), (Number(-1.25),), ("over ", Symbol("j"))),
        (("weights",), ("3×3",), (Number(1234.5),), ("as $5 & 100% of_it",)),
    ),
)
PROSE = (
    "Not to be read as markup: * _x_ `y` [z](w) <b>&amp;</b> #1 $2 100% {3} ~4 ^5 \\n | "
    "café, naïve, “quoted” – −1 ≤ α → ∞, ℝ, ᵀ, 注意, Łódź, 🙂."
)
DOCUMENT = Document(
    "Attention & its <steps>",
    (
        Paragraph((PROSE,)),
        Heading("Answer (a)", 1),
        *_steps(),
        Heading("Answer (b): 100% of the mathematics", 1),
        *(Display(math) for math in _mathematics()),
        Heading("Answer (c)", 1),
        *_numbers(),
        Paragraph(("The vector ", Matrix(VECTOR), " and the matrix ", Matrix(WQ), " in a line.")),
        TABLE,
        Code("python", "scores = q @ k.T  # `scores` <n_q × n_k>\nprint(f'{scores}\\n', \"--\")\n"),
    ),
)
