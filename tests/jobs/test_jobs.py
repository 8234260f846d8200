"""The same pieces give the same outcomes on one core, on several and on a cluster."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from regard import FileError, JobError, OptionError
from regard.explore import sweep
from regard.jobs import run_jobs

HERE = Path(__file__).parent


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(HERE))
    return import_module("work_to_do")


def numbers(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"n": n, **more} for n in range(count)]


def test_the_outcome_depends_on_the_seed_and_the_piece_alone(work: Any) -> None:
    here = run_jobs(work.drawn, numbers(7), seed=11)
    assert [outcome.record["n"] for outcome in here] == list(range(7))
    assert len({outcome.record["draw"] for outcome in here}) == 7
    assert run_jobs(work.drawn, numbers(7), seed=11, workers=2) == here
    assert run_jobs(work.drawn, numbers(7)[::-1], seed=11) == here[::-1]
    assert run_jobs(work.drawn, [{"n": 5}], seed=11) == [here[5]]
    other = run_jobs(work.drawn, numbers(7), seed=12)
    assert all(a.record["draw"] != b.record["draw"] for a, b in zip(here, other, strict=True))


def test_records_are_what_json_brings_back(work: Any) -> None:
    (outcome,) = run_jobs(work.drawn, [{"n": (1, 2)}])
    assert outcome.record["n"] == [1, 2]
    assert outcome.piece == {"n": [1, 2]}
    assert outcome.record["inf"] == math.inf


def test_nothing_to_do_is_done() -> None:
    assert run_jobs(json.dumps, [], workers=2) == []


def test_all_cores_is_a_number_of_workers(work: Any) -> None:
    assert len(run_jobs(work.drawn, numbers(2), workers="all")) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_piece_stops_everything_unless_asked_otherwise(work: Any, workers: int) -> None:
    with pytest.raises(JobError, match=r'the piece \{"n": 3\} failed: ValueError: three is'):
        run_jobs(work.failing, numbers(5), workers=workers)
    outcomes = run_jobs(work.failing, numbers(5), workers=workers, keep_going=True)
    assert [outcome.record for outcome in outcomes] == [0, 1, 2, None, 4]
    failure = outcomes[3].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("ValueError", "three is refused")
    assert "work_to_do.py" in failure.traceback


def test_a_piece_that_kills_its_worker_is_found_and_the_rest_is_done(work: Any) -> None:
    outcomes = run_jobs(work.failing, numbers(9), workers=2, keep_going=True)
    failures = {outcome.piece["n"]: str(outcome.failure) for outcome in outcomes if outcome.failure}
    assert (
        failures[5] == "WorkerDied: the worker process was ended by SIGKILL while it worked on this"
    )
    assert set(failures) == {3, 5}
    assert [outcome.record for outcome in outcomes if not outcome.failure] == [0, 1, 2, 4, 6, 7, 8]


def test_what_the_work_prints_and_reads_is_kept_apart(work: Any) -> None:
    outcomes = run_jobs(work.talkative, numbers(4), workers=2)
    assert [outcome.record for outcome in outcomes] == [""] * 4


def test_a_record_that_is_no_json_fails_its_piece(work: Any) -> None:
    (outcome,) = run_jobs(work.unspeakable, [{}], keep_going=True)
    assert "set is not JSON serializable" in str(outcome.failure)


def test_finished_records_are_not_worked_on_again(work: Any, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    pieces = numbers(5, file=str(file))
    folder = tmp_path / "kept" / "here"
    run_jobs(work.noted, pieces[:3], folder=folder)
    assert [o.record for o in run_jobs(work.noted, pieces, folder=folder)] == [0, 1, 2, 3, 4]
    assert file.read_text().split() == ["0", "1", "2", "3", "4"]
    run_jobs(work.noted, pieces, folder=folder, seed=1)  # another seed is other work
    assert len(file.read_text().split()) == 10
    for record in folder.iterdir():
        record.write_text('{"record"', encoding="utf-8")
    with pytest.raises(FileError, match="is not a record that regard wrote"):
        run_jobs(work.noted, pieces, folder=folder)


def test_failures_are_tried_again(work: Any, tmp_path: Path) -> None:
    run_jobs(work.failing, numbers(5), folder=tmp_path, keep_going=True)
    assert len(list(tmp_path.iterdir())) == 4
    with pytest.raises(JobError, match="three is refused"):
        run_jobs(work.failing, numbers(5), folder=tmp_path)


def test_a_killed_run_is_taken_up_again(work: Any, tmp_path: Path) -> None:
    pieces = numbers(30, seconds=0.05)
    program = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import work_to_do\n"
        "from regard.jobs import run_jobs\n"  # no `if __name__ == '__main__'`: none is needed
        f"run_jobs(work_to_do.drawn, {pieces!r}, seed=3, workers=2, folder={str(tmp_path)!r})"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as running:
        wait_for(lambda: len(list(tmp_path.glob("[!.]*.json"))) >= 3)
        running.kill()
    done = len(list(tmp_path.glob("[!.]*.json")))
    assert 3 <= done < 30
    resumed = run_jobs(work.drawn, pieces, seed=3, folder=tmp_path)
    assert resumed == run_jobs(work.drawn, numbers(30, seconds=0.05), seed=3, workers=4)


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "`workers` must be a whole number of at least 1, but 0"),
        ({"workers": "many"}, "`workers` must be a whole number or 'all', but 'many'"),
        ({"workers": 2, "cluster": "tcp://a:1"}, "pass one of them"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0, but -1"),
    ],
)
def test_options_that_make_no_sense(work: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        run_jobs(work.drawn, numbers(2), **options)


def test_what_cannot_travel_is_refused(work: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be found by other processes"):
        run_jobs(lambda piece, seed: None, numbers(1))
    with pytest.raises(OptionError, match="a piece of work must be JSON"):
        run_jobs(work.drawn, [{"n": object()}])
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        run_jobs(work.drawn, numbers(1), folder=tmp_path / "file")


# ---- on a cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own on this machine."""
    pytest.importorskip("distributed")
    facts = tmp_path / "scheduler.json"
    known = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    }
    common = ["--scheduler-file", str(facts), "--no-dashboard"]
    with ExitStack() as stack:

        def start(program: str, *options: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", f"distributed.cli.{program}", *common, *options]
            process = stack.enter_context(subprocess.Popen(command, env=known))
            stack.callback(process.kill)
            return process

        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        wait_for(facts.exists)
        single = ("--no-nanny", "--nthreads", "1", "--local-directory", str(tmp_path))
        workers = [start("dask_worker", *single) for _ in range(2)]
        yield json.loads(facts.read_text())["address"], workers


def test_a_worker_killed_in_mid_sweep_changes_nothing(
    work: Any,
    tmp_path: Path,
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, workers = cluster
    folder, grid = tmp_path / "records", {"beta": range(1, 41)}

    done: list[int] = []

    def kill_one() -> None:
        wait_for(lambda: folder.exists() and len(list(folder.glob("[!.]*.json"))) >= 8)
        workers[0].send_signal(signal.SIGKILL)
        done.append(len(list(folder.glob("[!.]*.json"))))

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    swept = sweep("norm-noise", grid, seed=5, samples=40_000, cluster=address, folder=folder)
    killer.join()
    assert workers[0].wait() == -signal.SIGKILL
    assert done[0] < 40
    assert swept.table == sweep("norm-noise", grid, seed=5, samples=40_000).table
    failing = run_jobs(work.failing, numbers(5), cluster=address, keep_going=True)
    assert [outcome.record for outcome in failing] == [0, 1, 2, None, 4]
    workers[1].kill()
    workers[1].wait()
    monkeypatch.setattr("regard.jobs._cluster.WORKERS_PATIENCE", 1)
    with pytest.raises(JobError, match="no worker came to the cluster at 'tcp://127"):
        run_jobs(work.drawn, numbers(2), cluster=address)


def test_a_cluster_that_is_not_there_is_named(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("regard.jobs._cluster.PATIENCE", "0.2s")
    with pytest.raises(JobError, match="no Dask cluster answers at 'tcp://127"):
        run_jobs(work.drawn, numbers(2), cluster="tcp://127.0.0.1:9")
