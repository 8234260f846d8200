"""Counts against the course's formulas, against counting by hand in loops, and at their totals."""

from typing import Any

import numpy as np
import pytest

import regard
from regard.graph.cost import count
from regard.graph.polynomial import Polynomial
from regard.graph.sizes import GIVENS, count_graph

RECTANGULAR = {"n_q": 3, "n_k": 5, "d_k": 2, "d_v": 7}

# Course document 002, exercise 2 (c): step, operation, formula.
COURSE = [
    ("scores", "multiplications", "n_q n_k d_k"),
    ("scores", "additions", "n_q n_k (d_k - 1)"),
    ("scaled", "divisions", "n_q n_k"),
    ("weights", "divisions", "n_q n_k"),
    ("sums", "additions", "n_q (n_k - 1)"),
    ("context", "multiplications", "n_q d_v n_k"),
    ("context", "additions", "n_q d_v (n_k - 1)"),
]


@pytest.mark.parametrize(("step", "operation", "formula"), COURSE)
def test_the_default_convention_counts_as_the_course_does(
    step: str, operation: str, formula: str
) -> None:
    table = count(count_graph("attention", {}))
    assert table.row(step).counts.items()[operation] == Polynomial.parse(formula)


def test_the_course_names_every_operation_but_exp() -> None:
    """Nothing is counted that the course does not count, except exp, which it leaves out."""
    table = count(count_graph("attention", {}))
    counted = {
        (row.step, operation): formula
        for row in table.rows
        for operation, formula in row.counts.items().items()
        if formula.terms
    }
    assert counted.pop(("exp", "exponentials")) == Polynomial.parse("n_q n_k")
    assert set(counted) == {(step, operation) for step, operation, _ in COURSE}


class Counted:
    """A number that counts the multiplications, additions and divisions made with it."""

    counts: dict[str, int]

    def __init__(self, value: float) -> None:
        self.value = value

    def _with(self, other: Any, name: str, value: float) -> "Counted":
        Counted.counts[name] = Counted.counts.get(name, 0) + 1
        return Counted(value)

    def __mul__(self, other: Any) -> "Counted":
        return self._with(other, "multiplications", self.value * getattr(other, "value", other))

    def __add__(self, other: Any) -> "Counted":
        return self._with(other, "additions", self.value + getattr(other, "value", other))

    def __truediv__(self, other: Any) -> "Counted":
        return self._with(other, "divisions", self.value / getattr(other, "value", other))


def by_hand(q: Any, k: Any, v: Any) -> dict[str, int]:
    """Scaled dot-product attention in plain loops over counting numbers."""
    Counted.counts = {}
    for row in q:
        scores = [_dot(row, key) / float(len(row)) ** 0.5 for key in k]
        exponentials = [Counted(float(np.exp(score.value))) for score in scores]
        total = exponentials[0]
        for other in exponentials[1:]:
            total = total + other
        weights = [exponential / total for exponential in exponentials]
        for column in zip(*v, strict=True):
            _dot(weights, column)
    return Counted.counts


def _dot(left: Any, right: Any) -> Counted:
    products = [a * b for a, b in zip(left, right, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    assert isinstance(total, Counted)
    return total


def test_the_numbers_are_those_of_counting_every_operation_in_loops() -> None:
    rng = np.random.default_rng(0)
    sizes = {"Q": (3, 2), "K": (5, 2), "V": (5, 7)}
    arrays = [
        [[Counted(value) for value in row] for row in rng.normal(size=shape)]
        for shape in sizes.values()
    ]
    table = count(count_graph("attention", RECTANGULAR))
    totals = {name: table.number(formula) for name, formula in table.total.items().items()}
    counted = by_hand(*arrays)
    assert {name: totals[name] for name in counted} == counted
    assert totals["exponentials"] == 3 * 5


def test_the_stable_convention_adds_finding_and_subtracting_the_largest() -> None:
    graph = count_graph("attention", RECTANGULAR)
    plain, stable = (count(graph, convention).row("exp").counts for convention in
                     ("schoolbook", "stable"))  # fmt: skip
    assert plain.comparisons == Polynomial()
    assert stable.comparisons == Polynomial.parse("n_q (n_k - 1)")
    assert stable.additions == Polynomial.parse("n_q n_k")


def test_bytes_are_those_of_the_arrays() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 5, 6)), rng.normal(size=(3, 6, 6))
    trace = regard.work("multi-head", X=x, WQ=w[0], WK=w[1], WV=w[2], heads=3, causal=True)
    costs = trace.cost()
    for name in trace.steps:
        assert costs.number(costs.row(name).bytes) == trace[name].value.nbytes, name
    every = sum(trace[name].value.nbytes for name in trace.steps)
    assert costs.number(costs.unfused_bytes) == every
    maps = sum(trace[n].value.nbytes for n in ("mask_causal", "scores", "scaled", "masked", "exp",
                                               "weights"))  # fmt: skip
    assert costs.number(costs.fused_bytes) == every - maps + trace["sums"].value.nbytes


def test_growth_is_quadratic_unfused_and_linear_fused() -> None:
    costs = regard.work("attention", Q=np.eye(2), K=np.eye(2), V=np.eye(2)).cost()
    small, large = costs.growth([1000, 10000])
    assert large["multiplications"] == 100 * small["multiplications"]
    assert 99 < large["unfused bytes"] / small["unfused bytes"] <= 100
    assert large["fused bytes"] == 10 * small["fused bytes"]


def test_heads_of_a_fixed_width_cost_the_same_however_many() -> None:
    """Course document 004: one head of width d costs what h heads of width d/h cost."""
    totals = [
        count(count_graph("multi-head", {"n": 5, "d_model": 6, "h": h, "d_k": d, "d_v": d}))
        for h, d in ((1, 6), (3, 2))
    ]
    one, three = (table.number(table.total.multiplications) for table in totals)
    assert one == three


@pytest.mark.parametrize("kind", GIVENS)
def test_every_kind_can_be_counted_without_numbers(kind: str) -> None:
    table = count(count_graph(kind, {}))
    assert table.total.multiplications.terms
    assert set(table.total.multiplications.symbols) <= set(table.graph.sizes)


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        ("attention", {"n_x": 3}, "no size or option 'n_x'.*did you mean 'n_"),
        ("attention", {"casual": True}, "no size or option 'casual': did you mean 'causal'"),
        ("attention", {"bogus": 1}, "no size or option 'bogus': known: d_k, .*scale, causal"),
        ("attention", {"n_q": 0}, "n_q must be at least 1, but 0"),
        ("atention", {}, "did you mean 'attention'"),
    ],
)
def test_a_size_that_is_none_is_refused(kind: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(regard.OptionError, match=message):
        count_graph(kind, sizes)


def test_an_unknown_convention_and_growth_symbol_are_refused() -> None:
    graph = count_graph("attention", {})
    with pytest.raises(regard.OptionError, match=r"'stabel'.*did you mean 'stable'"):
        count(graph, "stabel")
    with pytest.raises(regard.OptionError, match="'n' is no size of this attention"):
        count(graph).growth([4], symbols=["n"])
