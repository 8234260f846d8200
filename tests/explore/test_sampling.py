"""Sampling: seeded, the same on any number of threads, in law equal to drawing whole keys."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.explore._sampling import NoisyKeys, generator, measure

QUERIES = 3.0 * np.array([[1.0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 2, 0, 0]])
KEYS = NoisyKeys(n=5, d=7, alpha=0.2, tau=0.5)


def exponential(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.exponential(size=(count, 2)) * [1, 3]


def test_moments_and_their_errors() -> None:
    measured = measure(exponential, numbers=2, seed=1, samples=300_001, precision=None, title="")
    assert measured.count == 300_001
    assert np.all(abs(measured.mean - [1, 3]) < 5 * measured.mean_error)
    assert np.all(abs(measured.variance - [1, 9]) < 5 * measured.variance_error)
    # Of an exponential: sd of the mean σ/√n, of the variance σ²√8/√n.
    np.testing.assert_allclose(measured.mean_error, np.array([1, 3]) / 300_001**0.5, rtol=0.02)
    of_variance = np.array([1, 9]) * (8 / 300_001) ** 0.5
    np.testing.assert_allclose(measured.variance_error, of_variance, rtol=0.1)
    assert measured.kept.shape == (100_000, 2)


def test_a_tiny_spread_beside_a_large_mean_keeps_its_digits() -> None:
    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return 1e6 + 1e-4 * rng.standard_normal((count, 1))

    measured = measure(draw, numbers=1, seed=1, samples=200_000, precision=None, title="")
    assert measured.variance[0] == pytest.approx(1e-8, rel=0.02)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results.append(
            measure(exponential, numbers=7, seed=2, samples=100_003, precision=None, title="")
        )
    one, three = results
    np.testing.assert_array_equal(one.kept, three.kept)
    np.testing.assert_array_equal(one.variance, three.variance)


def test_it_stops_at_the_precision_and_the_same_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        measured = measure(
            exponential, numbers=2**8, seed=2, samples=10**7, precision=0.05, title=""
        )
        assert measured.precision <= 0.05
        counts.append(measured.count)
    assert counts[0] == counts[1] < 10**5


def test_products_from_their_joint_law_have_the_moments_of_whole_keys() -> None:
    count = 200_000
    short = KEYS.draw_products(generator(1), count, QUERIES)
    long = KEYS.products_of_keys(generator(2), count, QUERIES)
    assert short.shape == long.shape == (3, count, 5)
    # All products of one sample as a vector: means and covariances, within 5 standard errors.
    flat = [each.transpose(1, 0, 2).reshape(count, -1) for each in (short, long)]
    means = [each.mean(axis=0) for each in flat]
    assert np.all(abs(means[0] - means[1]) < 5 * flat[1].std(axis=0) * (2 / count) ** 0.5)
    centred = [each - each.mean(axis=0) for each in flat]
    covariances = [each.T @ each / count for each in centred]
    squares = [np.einsum("ci,cj->ij", each**2, each**2) / count for each in centred]
    errors = np.sqrt((squares[1] - covariances[1] ** 2) * 2 / count)
    assert np.all(abs(covariances[0] - covariances[1]) < 5 * errors)
    # And both are what the definition says.
    gram = KEYS.alpha * QUERIES @ QUERIES.T
    for key in range(5):
        expected = gram + (KEYS.tau * np.outer(QUERIES[:, 0], QUERIES[:, 0]) if key == 0 else 0)
        found = covariances[0][np.ix_(range(key, 15, 5), range(key, 15, 5))]
        np.testing.assert_allclose(found, expected, atol=5 * errors.max())


def two_samples(first: np.ndarray, second: np.ndarray) -> float:
    """Smirnov's chance that two samples of one law lie so far apart."""
    everything = np.concatenate([first, second])
    ranks = [np.searchsorted(np.sort(each), everything, side="right") / len(each)
             for each in (first, second)]  # fmt: skip
    scaled = abs(ranks[0] - ranks[1]).max() * (len(first) * len(second) / len(everything)) ** 0.5
    terms = np.arange(1, 101)
    return 2 * float(np.sum((-1.0) ** (terms - 1) * np.exp(-2 * (terms * scaled) ** 2)))


def test_products_from_their_joint_law_have_the_law_of_whole_keys() -> None:
    """Along directions that mix queries and keys, and after the softmax."""
    count = 40_000
    short = KEYS.draw_products(generator(3), count, QUERIES)
    long = KEYS.products_of_keys(generator(4), count, QUERIES)
    wrong = NoisyKeys(5, 7, alpha=0.2, tau=0.7).draw_products(generator(3), count, QUERIES)
    mix = np.random.default_rng(5).standard_normal((15, 4))

    def seen(products: np.ndarray) -> np.ndarray:
        weights = np.exp(products)
        weights /= weights.sum(axis=-1, keepdims=True)
        flat = products.transpose(1, 0, 2).reshape(count, -1)
        return np.column_stack([flat @ mix, weights[0, :, 0], weights[:, :, 0].mean(axis=0)])

    for place in range(6):
        assert two_samples(seen(short)[:, place], seen(long)[:, place]) > 1e-6
    assert two_samples(seen(wrong)[:, 4], seen(long)[:, 4]) < 1e-6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux tells")
def test_a_million_samples_of_64_keys_in_64_dimensions_fit_in_a_little_memory() -> None:
    program = (
        "from pathlib import Path; from regard import explore\n"
        "explore.norm_noise(n=64, d=64, samples=1_000_000)\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(finished.stdout) < 500_000  # kilobytes
