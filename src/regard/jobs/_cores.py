"""Pieces of work on this machine: here, or on several worker processes.

A worker is a Python of its own that answers lines of JSON. Nothing is forked and the user's script
is not imported again, so neither threads nor a missing `if __name__ == "__main__":` matter; and
when a worker dies, it is known which piece killed it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from queue import SimpleQueue

from regard.jobs._piece import Answer, Task, failed, perform

SERVE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from regard.jobs._cores import serve; serve()"
)
# Many workers with many threads each would only wait for one another.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("MKL", "OMP", "OPENBLAS")}


def here(tasks: Mapping[str, Task]) -> Iterator[tuple[str, Answer]]:
    for key, task in tasks.items():
        yield key, perform(*task.work)


def on_cores(tasks: Mapping[str, Task], cores: int) -> Iterator[tuple[str, Answer]]:
    """Each answer as soon as it is there."""
    workers = [_Worker() for _ in range(min(cores, len(tasks)))]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def answered(task: Task) -> Answer:
        worker = idle.get()
        try:
            return worker.answer(task)
        finally:
            idle.put(worker)

    try:
        with ThreadPoolExecutor(len(workers)) as threads:
            running = {threads.submit(answered, task): key for key, task in tasks.items()}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            finally:  # when nobody wants the rest, the threads must not wait for it
                threads.shutdown(wait=False, cancel_futures=True)
                for worker in workers:
                    worker.kill()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that works on one piece at a time; a dead one is replaced for the next piece."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def answer(self, task: Task) -> Answer:
        process = self._process = self._process or _started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(task.work) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line.endswith("\n"):
            answer: Answer = json.loads(line)
            return answer
        how = _end(process.wait())
        self.stop()
        return failed("WorkerDied", f"the worker process {how} while it worked on this")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError), self._process:
                self._process = None


def _started() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **ONE_THREAD},
    )


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by {signal.Signals(-code).name}"


def serve() -> None:
    """Answer each line of work; what the work itself reads or prints is kept apart from that."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the one who gave the work
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    for line in questions:
        answers.write(json.dumps(perform(*json.loads(line))) + "\n")
        answers.flush()
