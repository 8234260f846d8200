import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import regard
from regard import kernel

pytestmark = pytest.mark.skipif(
    not kernel.report().extension, reason="regard was installed without its C++ extension"
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    regard.set_threads(None)


def operands(seed: int, queries: int = 130, keys: int = 1100) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(2, 3, n, 7)) for n in (queries, keys, keys)]


def test_the_number_is_told() -> None:
    for number in (1, 5):
        regard.set_threads(number)
        assert kernel.report().threads == number
    regard.set_threads(None)
    assert kernel.report().reason.endswith(f"up to {kernel.report().threads} threads") or (
        kernel.report().threads == 1
    )


@pytest.mark.parametrize("queries", [1, 130])
def test_any_number_gives_the_same_answer(queries: int) -> None:
    given = operands(3, queries)
    regard.set_threads(1)
    alone = regard.attention(*given)
    for number in (2, 3, 64):
        regard.set_threads(number)
        np.testing.assert_allclose(regard.attention(*given), alone, rtol=0, atol=1e-14)


def test_many_threads_may_call_at_once() -> None:
    tasks = [operands(seed, 70, 90) for seed in range(16)]
    want = [regard.attention(*given) for given in tasks]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for have, each in zip(
                pool.map(lambda t: regard.attention(*t), tasks), want, strict=True
            ):
                np.testing.assert_array_equal(have, each)


def test_tensors_use_as_many_threads_as_torch() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    given = [torch.from_numpy(each) for each in operands(5)]
    alone = regard.attention(*given)
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            np.testing.assert_allclose(regard.attention(*given), alone, rtol=0, atol=1e-14)
            assert kernel.report().threads == number
        regard.set_threads(2)
        assert kernel.report().threads == 2
    finally:
        torch.set_num_threads(before)


def test_tensors_in_another_thread_use_as_many() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    given = [torch.from_numpy(each) for each in operands(5)]

    def used() -> int:
        regard.attention(*given)
        return kernel.report().threads

    try:
        torch.set_num_threads(3)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(used).result() == 3
    finally:
        torch.set_num_threads(before)


FORKING = """
    import os, sys, torch, regard
    from regard import kernel
    torch.set_num_threads(2)
    q, k, v = torch.ones(3, 2, 4, 200, 64)
    {before}
    child = os.fork()
    if child == 0:
        out = regard.attention(q, k, v).numpy()  # torch itself would wait for ever
        own = kernel.report().threads == 2
        torch.set_num_threads(1)
        alone = kernel.report().threads == 1
        os._exit(0 if own and alone and (out == 1).all() else 1)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as Linux forks")
@pytest.mark.parametrize("before", ["regard.attention(q, k, v)", "torch.ones(2_000_000).exp()"])
def test_a_fork_has_threads_of_its_own(before: str) -> None:
    pytest.importorskip("torch")
    code = textwrap.dedent(FORKING).format(before=before)
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2", 10**6])
def test_no_number_of_threads(number: Any) -> None:
    with pytest.raises(regard.OptionError, match="number"):
        regard.set_threads(number)


def test_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "regard.kernel._native", None)
        with pytest.raises(regard.OptionError, match="OPENBLAS_NUM_THREADS"):
            regard.set_threads(2)
