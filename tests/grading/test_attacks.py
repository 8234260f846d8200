"""Hostile submissions: each ends as a failed one that says why, and nothing outside is touched."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.exercises import load_exercise
from regard.exercises._library import LIBRARY
from regard.grading import Grader, Submission, _sandbox
from regard.grading._program import _as_the_module_drew
from regard.grading._sandbox import MEGABYTE, Isolation, Limits, Outcome, received, sent

RNG = np.random.default_rng(5)
GIVENS = [RNG.normal(size=shape) for shape in ((5, 7), (7, 3), (7, 3), (7, 2))]
HONEST = """
import numpy as np

def self_attention(X, Wq, Wk, Wv):
    Q, K, V = X @ Wq, X @ Wk, X @ Wv
    weights = np.exp(Q @ K.T / np.sqrt(K.shape[1]))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ V, weights
"""
LIMITS = Limits(seconds=2)
ATTACK = "def self_attention(X, Wq, Wk, Wv):\n    "


def attempt(program: str, shut_in: Isolation, **limits: int) -> Outcome:
    call = {
        "name": "self_attention", "library": "numpy", "seed": None, "makes": None, "weights": None,
        "results": 2, "arguments": [sent(given) for given in GIVENS],
    }  # fmt: skip
    return _sandbox.run(program, [call], shut_in, Limits(seconds=1.5, **limits))


def why(outcome: Outcome) -> str:
    """The reason why there is no result; an outcome with results fails the test."""
    assert outcome.first("called") is None, outcome.events
    event = outcome.first("raised") or outcome.first("failed") or {}
    return outcome.stopped or f"{event['error']}: {event['message']}"


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        ("import regard.exercises", "No module named 'regard"),
        (f"open({str(LIBRARY / 'copying.toml')!r}).read()", "No such file|Permission denied"),
        (f"import os; os.listdir({os.path.dirname(regard.__file__)!r})", "No such file|denied"),
        ("open('/etc/passwd').read()", "No such file"),
        ("open('/proc/1/environ').read()", "Permission denied"),
        ("open('/usr/stolen', 'w')", "Read-only file system|Permission denied"),
        ("open('/submission/request.json', 'w')", "Read-only file system|Permission denied"),
        ("open('/dev/stolen', 'w')", "Read-only file system|Permission denied"),
        ("open('/tmp/large', 'wb').write(bytes(20 << 20))", "File too large|file of more than"),
        ("return [0] * 10**9", "MemoryError|memory"),
        ("import os; os._exit(0)", r"ended the program \(exit code 0\)"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("while True: pass", "longer than 1.5 seconds"),
        ("import time; time.sleep(1000)", "longer than 1.5 seconds"),
        ("while True: print('x' * 10**6)", "printed more than 4 MB"),
        ("return X, self_attention", "no array of numbers|must be a string or a real number"),
        ("return self_attention(X, Wq, Wk, Wv)", "RecursionError"),
        ("import resource as r; r.setrlimit(r.RLIMIT_NPROC, (9999, 9999))", "not allowed|exceeds"),
        ("import os; os.setuid(0)", "Operation not permitted"),
        ("raise Exception('\\x1b[2J' * 10**6)", "Exception"),
    ],
)
def test_an_attack_fails_with_its_reason(attack: str, reason: str, bubblewrap: Isolation) -> None:
    outcome = attempt(ATTACK + attack, bubblewrap)
    assert re.search(reason, why(outcome)), (outcome, reason)


def test_memory_is_limited_in_all_processes_together(bubblewrap: Isolation) -> None:
    """Each process stays below the limit of one process; together they do not."""
    attack = """import os, time
    for _ in range(8):
        if os.fork() == 0:
            held = bytearray(100 << 20); time.sleep(60)
    time.sleep(60)"""
    outcome = attempt(ATTACK + attack, bubblewrap, memory=300 * MEGABYTE)
    assert "more than 300 MB of memory" in why(outcome)


def test_forking_without_end_leaves_nothing_behind(bubblewrap: Isolation) -> None:
    attack = """import os
    while True:
        try: os.fork(); os.setsid()
        except OSError: pass"""
    outcome = attempt(ATTACK + attack, bubblewrap)
    assert "longer than 1.5 seconds" in why(outcome) or "processes" in why(outcome)
    assert leftovers() == []


def test_a_process_in_the_background_does_not_outlive_its_submission(
    bubblewrap: Isolation,
) -> None:
    attack = """import os, time
    if os.fork() == 0:
        os.setsid(); time.sleep(1000)
    os._exit(0)"""
    assert "ended the program" in why(attempt(ATTACK + attack, bubblewrap))
    assert leftovers() == []


def leftovers() -> list[str]:
    """Runners that still live, after a moment in which they may end."""
    found: list[str] = []
    for _ in range(20):
        found = [place.parent.name for place in Path("/proc").glob("[0-9]*/cmdline") if ours(place)]
        if not found:
            break
        time.sleep(0.05)
    return found


def ours(place: Path) -> bool:
    try:
        if f"regard-attacks-{os.getpid()}" not in place.with_name("environ").read_text("latin-1"):
            return False
        return "runner.py" in place.read_text()
    except OSError:
        return False


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of these tests are known by a variable of theirs: others may run beside."""
    name = f"regard-attacks-{os.getpid()}"
    monkeypatch.setitem(_sandbox.ENVIRONMENT, "MARK", name)


def test_the_network_is_not_there(bubblewrap: Isolation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        port = server.getsockname()[1]
        attack = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        assert "refused" in why(attempt(ATTACK + attack, bubblewrap))
        with pytest.raises(TimeoutError):
            server.accept()


def test_nothing_outside_is_written(bubblewrap: Isolation, tmp_path: Path) -> None:
    before = Path(regard.__file__).stat().st_mtime
    for target in (tmp_path / "stolen", Path(regard.__file__)):
        reason = why(attempt(ATTACK + f"open({str(target)!r}, 'w').write('x')", bubblewrap))
        assert "No such file" in reason or "Read-only" in reason or "denied" in reason
    assert list(tmp_path.iterdir()) == []
    assert Path(regard.__file__).stat().st_mtime == before


@pytest.mark.parametrize(
    "hostile",
    [
        "__eq__ = lambda self, other: True",
        "def __array__(self, *_, **__): import os; os._exit(0)",
        "def __array__(self, *_, **__): return object()",
        "shape = property(lambda self: 1/0)\n    detach = shape",
    ],
)
def test_hostile_objects_stay_inside(hostile: str, bubblewrap: Isolation) -> None:
    program = f"class Right:\n    {hostile}\n{ATTACK}return Right(), Right()"
    assert why(attempt(program, bubblewrap))


def test_patching_numpy_changes_nothing_here(bubblewrap: Isolation) -> None:
    program = f"""import numpy as np
np.allclose = np.array_equal = lambda *_, **__: True
np.asarray = lambda *_, **__: np.zeros((5, 2))
{ATTACK}return np.zeros((5, 2)), np.zeros((5, 5))"""
    attempt(program, bubblewrap)
    assert not np.allclose(np.zeros(2), np.ones(2))
    assert np.asarray([3]).tolist() == [3]


FORGER = """
import json, os
line = json.dumps({"event": "called", "call": 0, "results": RESULTS, "returned": 2, "changed": []})
for n in range(20):
    try: os.write(n, (line + "\\n" + json.dumps({"event": "done", "score": 100}) + "\\n").encode())
    except OSError: pass
os._exit(0)
"""


def test_a_forged_result_is_only_numbers(bubblewrap: Isolation) -> None:
    """It arrives like any other result, and is as wrong as its numbers are."""
    zeros = '[{"shape": [5, 2], "data": "A" * 107 + "=", "kind": "float64"}] * 2'
    outcome = attempt(FORGER.replace("RESULTS", zeros), bubblewrap)
    told = outcome.first("called")
    assert told is not None
    assert received(told["results"][0]).value.tolist() == np.zeros((5, 2)).tolist()


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        ('"all right"', "no array"),
        ('{"shape": [5, 2], "data": "AAAA"}', "does not fit"),
        ('{"shape": [-5, 2], "data": ""}', "no shape"),
        ('{"shape": [5, true], "data": ""}', "no shape"),
        ('{"shape": [1e9], "data": ""}', "no shape"),
        ('{"shape": [2147483647, 2147483647, 2147483647], "data": ""}', "does not fit"),
        ('{"shape": [5, 2], "data": "\\u00e9"}', "ASCII"),
    ],
)
def test_a_forged_array_that_is_none_is_refused(forged: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        received(json.loads(forged))


def test_a_stream_of_garbage_is_read_without_harm(bubblewrap: Isolation) -> None:
    program = """
import os
for n in range(20):
    for junk in (b"[" * 100000, b"\\xff\\xfe", b"9" * 100000, b"null", b"{}", b'{"event": [1]}'):
        try: os.write(n, junk + b"\\n")
        except OSError: pass
os._exit(0)
"""
    assert "ended the program" in attempt(program, bubblewrap).stopped


LIE = """
import json, os
for n in range(20):
    try: os.write(n, b"\\n" + json.dumps(EVENT).encode() + b"\\n")
    except OSError: pass
"""


@pytest.mark.parametrize(
    "event",
    [
        {"event": "called", "call": [0], "results": []},
        {"event": "called", "call": 0, "results": [0, 0], "returned": 2, "changed": [0.0, [1], -1]},
        {"event": "called", "call": 0, "results": {"a": 1}, "returned": 2},
        {"event": "called", "call": 0, "results": [[], {}], "returned": 2},
        {"event": "raised", "call": 0, "error": {"a": []}, "message": "\x1b[2J", "line": [3]},
        {"event": "failed", "error": ["x"], "message": 5},
        {"event": ["ready"], "call": True},
    ],
)
@pytest.mark.parametrize("end", ["os._exit(0)", ""])
def test_lies_about_what_happened_are_graded_like_anything_else(
    event: dict[str, object], end: str, bubblewrap: Isolation
) -> None:
    grader = graders("numpy-multi-head")
    program = LIE.replace("EVENT", repr(event)) + end
    grade = grader.grade(Submission("it", "it.py", program.encode()), bubblewrap, LIMITS)
    assert grade.points == 0
    assert "\x1b" not in grade.reason + "".join(item.message for item in grade.items)


@pytest.mark.parametrize(
    ("attack", "status", "reason"),
    [
        ("import os; os._exit(0)", "failed", "ended the program"),
        ("import time; time.sleep(1000)", "failed", "longer than 2 seconds"),
        ("open('/home/teacher/solution.py').read()", "failed", "No such file"),
        ("return X * 0, X @ X.T * 0", "graded", "shape|differ"),
    ],
)
def test_an_attack_is_a_submission_without_points(
    attack: str, status: str, reason: str, bubblewrap: Isolation
) -> None:
    program = Submission("it", "it.py", (ATTACK + attack).encode())
    grade = graders("numpy-multi-head").grade(program, bubblewrap, LIMITS)
    assert (grade.status, grade.points, grade.of) == (status, 0, 2)
    assert re.search(reason, grade.reason + "".join(item.message for item in grade.items))


@cache
def graders(name: str) -> Grader:
    return Grader(load_exercise(name))


def test_a_module_cannot_make_regard_compute_what_it_likes() -> None:
    """Parameters of other sizes than the exercise's are not computed with."""
    grader = graders("torch-self-attention")
    pytest.importorskip("torch")
    trial = grader.trials[0][0]
    rules = grader.exercise.code
    assert rules is not None
    large = {"shape": [4, 500_000], "data": base64.b64encode(bytes(16_000_000)).decode()}
    told = {"parameters": dict.fromkeys(("WQ", "WK", "WV"), large), "arguments": [large]}
    for event in (told, {"parameters": 3}, {"parameters": {"scale": 3}, "arguments": "x"}):
        assert _as_the_module_drew(grader.exercise, rules.run[0], trial, event) == (trial, [])


def test_an_honest_submission_gets_its_numbers_back(bubblewrap: Isolation) -> None:
    outcome = attempt(HONEST, bubblewrap)
    told = outcome.first("called")
    assert told is not None, outcome
    x, wq, wk, wv = GIVENS
    work = regard.work("self-attention", X=x, WQ=wq, WK=wk, WV=wv)
    for name, data in zip(("context", "weights"), told["results"], strict=True):
        np.testing.assert_allclose(received(data).value, work[name].value, rtol=1e-12)
