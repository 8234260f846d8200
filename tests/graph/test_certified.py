"""Certified numbers: every digit proven, checked against decimals, differences and float64."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from regard._errors import NumberError, OptionError
from regard.graph.builders import build
from regard.graph.gradient import backward
from regard.graph.graph import Graph
from regard.graph.numbers import numbers_named, read_given
from regard.graph.run import Run, run

flint = pytest.importorskip("flint")
certified_numbers = pytest.importorskip("regard.graph.certified", exc_type=ImportError)
Certified, precision = certified_numbers.Certified, certified_numbers.precision

Computation = tuple[str, dict[str, Any], dict[str, Any]]
Givens = Mapping[str, np.ndarray[Any, Any]]


def prepared(kind: str, options: dict[str, Any], givens: dict[str, Any]) -> tuple[Graph, Givens]:
    read = {name: read_given(name, value) for name, value in givens.items()}
    return build(kind, {name: value.shape for name, value in read.items()}, **options), read


def attention(digits: int = 15, scale: Any = 1, mask: Any = None, **givens: Any) -> Run:
    masked = givens if mask is None else givens | {"mask": mask}
    return run(*prepared("attention", {"scale": scale}, masked), Certified(digits))


def bounds(ball: Any) -> tuple[Fraction, Fraction]:
    """The ends of a ball as fractions."""
    middle, radius = (
        int(part.man_exp()[0]) * Fraction(2) ** int(part.man_exp()[1])
        for part in (ball.mid(), ball.rad())
    )
    return middle - radius, middle + radius


def proves(ball: Any, value: Fraction, digits: int) -> bool:
    """Whether the ball lies around `value`, which is known to 10^-digits, and is that narrow."""
    error = abs(value) * Fraction(1, 10**digits)
    low, high = bounds(ball)
    return value - error <= low <= high <= value + error


# ---- a computation of its own, in decimals -------------------------------------------------


def decimal_weights(scores: list[Fraction], squared_scale: int) -> list[Fraction]:
    """softmax(scores / √squared_scale) to 80 digits."""
    with localcontext(prec=80):
        root = Decimal(squared_scale).sqrt()
        powers = [(Decimal(s.numerator) / Decimal(s.denominator) / root).exp() for s in scores]
        return [Fraction(power / sum(powers)) for power in powers]


def tens(first: int, *rows: int) -> list[list[Fraction]]:
    """Rows of three neighbouring tenths; each row starts at `first` and so many tenths more."""
    return [[Fraction(first + row + column, 10) for column in range(3)] for row in rows]


THINKING_MACHINE = [[1, 2, 3, 4], [5, 6, 7, 8]]
QUERY_WEIGHTS = tens(1, 0, 3, 6, 9)
KEY_WEIGHTS = [row[::-1] for row in QUERY_WEIGHTS]


def product(a: Any, b: Any) -> Any:
    return [
        [sum(x * y for x, y in zip(r, c, strict=True)) for c in zip(*b, strict=True)] for r in a
    ]


def test_weights_that_float64_prints_as_0_and_1() -> None:
    """Two tokens and four columns, as in a well-known class exercise."""
    givens = {
        "X": THINKING_MACHINE,
        "WQ": np.array(QUERY_WEIGHTS),
        "WK": np.array(KEY_WEIGHTS),
        "WV": np.array(QUERY_WEIGHTS),
    }
    weights = run(*prepared("self-attention", {}, givens), Certified(30)).values["weights"]
    queries, keys = product(THINKING_MACHINE, QUERY_WEIGHTS), product(THINKING_MACHINE, KEY_WEIGHTS)
    scores = product(queries, list(zip(*keys, strict=True)))
    for row, expected in zip(weights, (decimal_weights(s, 3) for s in scores), strict=True):
        assert all(proves(*pair, 30) for pair in zip(row, expected, strict=True))
    assert [flint.arb.str(ball, 2, radius=False) for ball in weights[:, 0]] == [
        "1.7e-62",
        "1.4e-142",
    ]


def test_very_small_weights_keep_their_digits() -> None:
    """Far below what float64 can hold."""
    weights = attention(Q=[[1]], K=[[0], [-(10**6)]], V=[[0], [1]]).values["weights"]
    with localcontext(prec=60):
        expected = Decimal(-(10**6)).exp()
    assert proves(weights[0, 1], Fraction(expected), 18)


# ---- as many digits as asked for -----------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 15, 100, 1000])
def test_every_entry_has_the_digits_asked_for(digits: int) -> None:
    values = attention(digits, "sqrt", Q=[["1/3", 2]], K=[[1, 0.7], [3, -1]], V=[[1, 5], [2, 3]])
    for array in values.values.values():
        for ball in array.flat:
            low, high = bounds(ball)
            assert (high - low) * 10**digits <= abs(low)


@pytest.mark.parametrize(
    ("digits", "lost", "reason"),
    [
        (15, 200, "the first attempt knows no digit"),
        (100, 40, "the first attempt knows a part of the digits"),
    ],
)
def test_precision_rises_when_digits_cancel(digits: int, lost: int, reason: str) -> None:
    """10^lost/3 − 10^lost/3 + 1/7."""
    third = Fraction(10**lost, 3)
    scores = attention(digits, Q=[[third, third, "1/7"]], K=[[1, -1, 1]], V=[[1]]).values["scores"]
    assert proves(scores[0, 0], Fraction(1, 7), digits), reason


def test_floats_are_the_decimals_they_print_as() -> None:
    scores = attention(30, Q=[[0.1, 0.7]], K=[[1, 1]], V=[[1]]).values["scores"]
    assert proves(scores[0, 0], Fraction(4, 5), 30)


def test_what_cancels_to_zero_is_bounded_far_below_float64() -> None:
    scores = attention(Q=[["1/3", "1/3"]], K=[[1, -1]], V=[[1]]).values["scores"]
    low, high = bounds(scores[0, 0])
    assert low <= 0 <= high
    assert high - low < Fraction(1, 10**320)


def test_replaced_values_keep_their_digits() -> None:
    first = attention(50, Q=[[1]], K=[[1], [0]], V=[["1/3"], [1]])
    again = first.replace(weights=[["1/3", "2/3"]])
    assert proves(again.values["context"][0, 0], Fraction(7, 9), 50)


def test_what_was_known_is_computed_again_when_it_has_too_few_digits() -> None:
    """Both weights are 1/2; the new values cancel all but 1/2 · 1."""
    first = attention(Q=[["1/3"]], K=[[1], [1]], V=[[1], [2]])
    again = first.replace(V=[[10**300], [1 - 10**300]])
    assert proves(again.values["context"][0, 0], Fraction(1, 2), 15)


@pytest.mark.parametrize("digits", [0, -3, 2.5, 10_001])
def test_digits_are_checked(digits: Any) -> None:
    with pytest.raises(OptionError, match=f"`digits`.*{digits}"):
        numbers_named("certified", digits)


# ---- masks, and what is no number ----------------------------------------------------------


def test_masked_rows_have_weights_zero_exactly() -> None:
    mask = np.array([[True, False], [False, False]])
    values = attention(Q=[[1], [2]], K=[[1], [3]], V=[[5], [7]], mask=mask).values
    assert [[ball == 0 for ball in row] for row in values["weights"]] == [
        [False, True],
        [True, True],
    ]
    assert proves(values["context"][0, 0], Fraction(5), 15)
    assert values["context"][1, 0] == 0
    assert Certified().is_masked(values["masked"]).tolist() == [[False, True], [True, True]]


def test_nan_is_refused_by_name() -> None:
    with pytest.raises(NumberError, match="K: certified numbers know no NaN"):
        attention(Q=[[1]], K=[[np.nan]], V=[[1]])


def test_plus_infinity_is_refused_by_name() -> None:
    with pytest.raises(NumberError, match="V: certified numbers know no \\+∞"):
        attention(Q=[[1]], K=[[1]], V=[[np.inf]])


def test_an_infinite_query_is_no_certified_score() -> None:
    with pytest.raises(NumberError, match=r"scores\[0, 1\] is no number that can be certified"):
        attention(Q=[[-np.inf]], K=[[1], [0]], V=[[1], [1]])


def test_zero_over_zero_names_the_step() -> None:
    one = [[1, 0], [0, 1]]
    givens = dict.fromkeys(("WQ", "WK", "WV", "WO", "W1", "W2"), one)
    block = prepared("decoder-block", {"heads": 1, "eps": 0}, {"X": [[1, 1]], **givens})
    with pytest.raises(NumberError, match=r"norm_1\w*\[0, 0\] is no number"):
        run(*block, Certified())


# ---- one precision for the whole process ---------------------------------------------------


def test_the_precision_of_flint_is_left_as_it_was() -> None:
    with precision(77):
        attention(40, Q=[[1]], K=[[1]], V=[["1/3"]])
        with pytest.raises(NumberError):
            attention(40, Q=[[-np.inf]], K=[[0]], V=[[1]])
        assert flint.ctx.prec == 77


def test_a_thread_waits_for_its_turn() -> None:
    before, seen = flint.ctx.prec, []
    entered, may_leave = Event(), Event()

    def hold() -> None:
        with precision(200):
            entered.set()
            may_leave.wait()
            seen.append(flint.ctx.prec)

    def come_later() -> None:
        with precision(300):
            seen.append(flint.ctx.prec)

    first, second = Thread(target=hold), Thread(target=come_later)
    first.start()
    entered.wait()
    second.start()
    second.join(0.05)
    may_leave.set()
    first.join()
    second.join()
    assert seen == [200, 300]
    assert flint.ctx.prec == before


# ---- the backward pass ---------------------------------------------------------------------

rng = np.random.default_rng(11)


def sixty_fourths(*shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(-64, 65, shape) / 64


CAUSAL: Computation = (
    "attention",
    {"causal": True},
    {"Q": sixty_fourths(3, 2), "K": sixty_fourths(3, 2), "V": sixty_fourths(3, 5)},
)
BLOCK: Computation = (
    "decoder-block",
    {"heads": 1, "causal": True},
    {"X": sixty_fourths(2, 3), "gamma_1": sixty_fourths(3), "beta_2": sixty_fourths(3)}
    | {name: sixty_fourths(3, 3) for name in ("WQ", "WK", "WV", "WO")}
    | {"W1": sixty_fourths(3, 2), "b1": sixty_fourths(2), "W2": sixty_fourths(2, 3)},
)
SWIGLU: Computation = (
    "decoder-block",
    {"heads": 1, "norm": "rms", "feed_forward": "swiglu", "positions": "rotary"},
    {"X": sixty_fourths(2, 3), "WQ": sixty_fourths(3, 2), "WK": sixty_fourths(3, 2)}
    | {"WV": sixty_fourths(3, 5), "WO": sixty_fourths(5, 3)}
    | {"WG": sixty_fourths(3, 2), "WU": sixty_fourths(3, 2), "WD": sixty_fourths(2, 3)},
)
COMPUTATIONS = {"causal attention": CAUSAL, "GELU block": BLOCK, "SwiGLU block": SWIGLU}


class Loss:
    """The sum of an output, weighted by a fixed seed, as a function of what is given."""

    def __init__(self, computation: Computation) -> None:
        self.graph, self.givens = prepared(*computation)
        self.output = self.graph.steps[-1].name
        shape = run(self.graph, self.givens).values[self.output].shape
        self.seed = np.arange(1, 1 + np.prod(shape)).reshape(shape) / 8

    def gradients(self, numbers: str) -> Run:
        graph = backward(self.graph, self.output, tuple(self.givens))
        givens = {**self.givens, f"d_{self.output}": self.seed}
        return run(graph, givens, numbers_named(numbers, 60))

    def at(self, name: str, place: tuple[int, ...], step: Fraction) -> Any:
        moved = np.array([Fraction(x) for x in self.givens[name].flat], dtype=object)
        moved = moved.reshape(self.givens[name].shape)
        moved[place] += step
        output = run(self.graph, {**self.givens, name: moved}, Certified(60)).values[self.output]
        return sum(
            (
                flint.arb(weight) * ball
                for weight, ball in zip(self.seed.flat, output.flat, strict=True)
            ),
            flint.arb(0),
        )

    def difference(self, name: str, place: tuple[int, ...], step: Fraction) -> Any:
        """The central difference, whose error is about step² times the third derivative."""
        double = flint.arb(flint.fmpq(2 * step.numerator, step.denominator))
        return (self.at(name, place, step) - self.at(name, place, -step)) / double


@pytest.mark.parametrize("computation", COMPUTATIONS)
def test_gradients_are_the_limits_of_proven_differences(computation: str) -> None:
    """The error of a difference with h = 10^-16 is proven to be below 10^6 h²."""
    loss = Loss(COMPUTATIONS[computation])
    gradients = loss.gradients("certified").values
    with precision(400):
        for name, array in loss.givens.items():
            for place in np.ndindex(array.shape):
                difference = loss.difference(name, place, Fraction(1, 10**16))
                error = abs(difference - gradients[f"d_{name}"][place])
                assert error < flint.arb(10) ** -26, f"d_{name}{place}: off by {error}"


def test_the_error_of_a_difference_falls_with_the_square_of_the_step() -> None:
    loss = Loss(CAUSAL)
    exact = loss.gradients("certified").values["d_Q"][2, 1]
    with precision(400):
        coarse, fine = (
            loss.difference("Q", (2, 1), Fraction(1, 10**power)) - exact for power in (8, 9)
        )
        assert 99.9 < coarse / fine < 100.1


@pytest.mark.parametrize("computation", COMPUTATIONS)
def test_float64_gradients_are_the_certified_ones_rounded(computation: str) -> None:
    """To eleven digits of the largest entry: the norms of nearly equal rows lose some."""
    loss = Loss(COMPUTATIONS[computation])
    in_float, certified = (loss.gradients(word).values for word in ("float64", "certified"))
    for name in loss.givens:
        near = np.vectorize(float)(certified[f"d_{name}"])
        largest = abs(near).max()
        np.testing.assert_allclose(in_float[f"d_{name}"], near, rtol=0, atol=1e-11 * largest)
