"""Where a submission runs: a process of its own, shut in, limited, watched and believed nothing."""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard._errors import SandboxError
from regard._options import look_up
from regard.graph.operation import Array

MEGABYTE = 2**20
STARTING = 60  # seconds for Python and its libraries to start, before the submission's own begin
LOOK = 0.05  # seconds between two looks at what runs in the sandbox
STANDSTILL = 1.0  # seconds without a look: the machine stood still, and that does not count
PYTHON = sys.executable
RUNNER = Path(__file__).with_name("_runner.py")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "agg",
    "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}  # fmt: skip
FIRST_USER = 1_600_000_000  # users that nothing else on the machine has
_numbers = count(os.getpid() * 1000)


MOST_ATTEMPTS = 40  # to end all processes of a user, of which some may just be starting others


@dataclass(frozen=True)
class Limits:
    """What a submission may take: seconds on the clock and of the processor, and bytes."""

    seconds: float = 10
    memory: int = 2048 * MEGABYTE
    processes: int = 32
    file: int = 16 * MEGABYTE
    printed: int = 4 * MEGABYTE
    results: int = 64 * MEGABYTE

    def of_process(self) -> dict[str, int]:
        """As the kernel takes them."""
        return {
            "CPU": int(self.seconds) + STARTING, "DATA": self.memory, "NPROC": self.processes,
            "FSIZE": self.file, "NOFILE": 256, "CORE": 0,
        }  # fmt: skip


@dataclass
class Outcome:
    """What came out: the events that the runner told, and why it was stopped, if it was."""

    events: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""
    printed: str = ""

    def first(self, kind: str) -> dict[str, Any] | None:
        return next((event for event in self.events if event.get("event") == kind), None)


# ---- kinds of isolation --------------------------------------------------------------------


class Isolation(ABC):
    """How a process is shut in."""

    name: str
    user: int | None = None  # that the runner becomes

    @abstractmethod
    def command(self, folder: Path, python: Sequence[str]) -> list[str]:
        """The command that runs `python` in `folder`, which the sandbox can read."""

    def limits(self, limits: Limits) -> dict[str, int]:
        """What the process limits itself to before it loads the submission."""
        return limits.of_process()

    def prepare(self, folder: Path) -> None:
        """Before the process starts."""
        folder.chmod(0o755)

    def clean(self, process: subprocess.Popen[bytes]) -> None:
        """After it ended, or instead of that: nothing that it started may live on."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class Bubblewrap(Isolation):
    """No network, the system read-only, nothing else to see, a private /tmp and process list."""

    name = "bubblewrap"

    def __init__(self) -> None:
        self.user = _new_user() if os.getuid() == 0 else None

    def command(self, folder: Path, python: Sequence[str]) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid"]
        words += ["--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        # Root needs no user namespace, which would count its processes as root's: without limit.
        words += (
            ["--unshare-user"]
            if self.user is None
            else ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        )
        size = str(64 * MEGABYTE)
        words += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"]
        words += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--perms", "755"]
        words += ["--dir", "/etc"]
        for place in (*SYSTEM, *SYSTEM_FILES):
            words += ["--ro-bind-try", place, place]
        for place in _python_folders():
            for folder_above in reversed(Path(place).parents[:-1]):
                words += ["--perms", "755", "--dir", str(folder_above)]
            words += ["--ro-bind", place, place]
        words += ["--ro-bind", str(folder), "/submission"]
        for place in _hidden_folders():
            words += ["--perms", "000", "--tmpfs", place]
        words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"]
        return [*words, *python, "/submission/runner.py"]


class OtherUser(Isolation):
    """A user who owns nothing, but reads what everybody may read and has the network."""

    name = "user"

    def __init__(self) -> None:
        self.user = _new_user()

    def command(self, folder: Path, python: Sequence[str]) -> list[str]:
        return [*python, str(folder / "runner.py")]

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        assert self.user is not None
        own = folder / "own"
        own.mkdir()
        os.chown(own, self.user, self.user)

    def clean(self, process: subprocess.Popen[bytes]) -> None:
        super().clean(process)
        assert self.user is not None
        everything = ["/bin/sh", "-c", "kill -KILL -1"]
        for _ in range(MOST_ATTEMPTS):
            subprocess.run(
                everything, user=self.user, group=self.user, extra_groups=[], check=False
            )
            if not any(_living(self.user)):
                return
            time.sleep(LOOK)


class Trusted(Isolation):
    """A process with limits, and nothing else."""

    name = "none"

    def limits(self, limits: Limits) -> dict[str, int]:
        """The kernel would count all processes of the user; those of this one are watched."""
        return {name: value for name, value in limits.of_process().items() if name != "NPROC"}

    def command(self, folder: Path, python: Sequence[str]) -> list[str]:
        return [*python, str(folder / "runner.py")]


KINDS: Mapping[str, type[Isolation]] = {
    kind.name: kind for kind in (Bubblewrap, OtherUser, Trusted)
}


def isolation(name: str = "bubblewrap") -> Isolation:
    """The isolation of this name, once it has been seen to work here."""
    kind = look_up("isolation", name, KINDS)
    trouble = _trouble(name)
    if trouble:
        raise SandboxError(
            f"grade: submissions run shut in, and {trouble}. Install bubblewrap (apt install "
            "bubblewrap) on a machine that allows it, or grade as root with --isolation user, "
            "which shuts in less. Only for programs that you trust as your own: --trust"
        )
    return kind()


@cache
def _trouble(name: str) -> str:
    """Why this isolation does not work here, found out by trying."""
    if name == Trusted.name:
        return ""
    if name == OtherUser.name and os.getuid() != 0:
        return "only root can run them as another user"
    if name == Bubblewrap.name and shutil.which("bwrap") is None:
        return "bubblewrap is not installed here"
    try:
        outcome = run("", [], KINDS[name](), Limits())
    except OSError as error:
        return f"that does not start here: {error}"
    if outcome.first("done"):
        return ""
    said = (outcome.printed.strip() or outcome.stopped).splitlines()[-1]
    words = "bubblewrap" if name == Bubblewrap.name else f"a user that may not read {PYTHON}"
    return f"{words} does not work here ({said})"


def _new_user() -> int:
    return FIRST_USER + next(_numbers) % 100_000_000


@cache
def _python_folders() -> tuple[str, ...]:
    """Python and its packages, as far as the system's own folders do not hold them."""
    places = [Path(sys.prefix), Path(sys.base_prefix), Path(PYTHON).parent, *_packages()]
    system = [Path(place) for place in SYSTEM]
    kept: list[Path] = []
    for place in places:
        if not any(place.is_relative_to(other) for other in (*system, *kept)):
            kept.append(place)
    return tuple(map(str, kept))


@cache
def _packages() -> tuple[Path, ...]:
    """Where numpy, and torch and matplotlib if they are there, are installed."""
    found = []
    for name in ("numpy", "torch", "matplotlib"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parents[1])
    return tuple(dict.fromkeys(found))


def _hidden_folders() -> Iterator[str]:
    """regard itself, which knows the solutions, wherever it or a part of it is installed."""
    packages = {Path(regard.__file__).parent, *(place / "regard" for place in _packages())}
    visible = [Path(place) for place in (*SYSTEM, *_python_folders())]
    for package in sorted(packages):
        if package.exists() and any(package.is_relative_to(place) for place in visible):
            yield str(package)


# ---- running -------------------------------------------------------------------------------


def run(
    program: str,
    calls: Sequence[Mapping[str, Any]],
    shut_in: Isolation,
    limits: Limits,
    imports: Sequence[str] = ("numpy",),
) -> Outcome:
    """Run a program in a sandbox, and make the calls to it."""
    with _folder() as folder:
        request = {
            "limits": shut_in.limits(limits), "user": shut_in.user, "imports": list(imports),
            "path": [str(place) for place in _packages()], "calls": list(calls),
        }  # fmt: skip
        files = {"request.json": json.dumps(request), "submission.py": program}
        shutil.copyfile(RUNNER, folder / "runner.py")
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        shut_in.prepare(folder)
        return _watched(shut_in, folder, limits)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="regard-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watched(shut_in: Isolation, folder: Path, limits: Limits) -> Outcome:
    own = str(folder / "own") if (folder / "own").exists() else "/tmp"
    python = [PYTHON, "-I", "-S"]
    process = subprocess.Popen(
        shut_in.command(folder, python),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "HOME": own, "TMPDIR": own, "MPLCONFIGDIR": own},
        cwd=folder,
        start_new_session=True,
    )
    watch = _Watch(process, limits)
    try:
        stopped = watch.until_the_end()
    finally:
        shut_in.clean(process)
        process.wait()
        watch.close()
    events = watch.events()
    outcome = Outcome(events, stopped, printable(watch.printed.decode("utf-8", "replace")))
    if not stopped and outcome.first("done") is None and outcome.first("failed") is None:
        outcome.stopped = _ending(process.returncode, limits)
    return outcome


class _Watch:
    """Reads what a process says and stops it when it takes too much."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process, self.limits = process, limits
        self.results, self.printed = bytearray(), bytearray()
        self.selector = selectors.DefaultSelector()
        self.selector.register(process.stdout, selectors.EVENT_READ, self.results)
        self.selector.register(process.stderr, selectors.EVENT_READ, self.printed)
        self.looked = time.monotonic()
        self.deadline = self.looked + STARTING
        self.is_ready = False

    def until_the_end(self) -> str:
        """Why it was stopped; "" when it ended by itself."""
        while self.selector.get_map():
            ended = self.process.poll() is not None
            self._read(0 if ended else LOOK)
            if trouble := self._trouble():
                return trouble
            if ended:
                while self._read(0):  # what it said before it ended
                    pass
                return self._trouble()
        while self.process.poll() is None:  # it closed what it could say something by
            time.sleep(LOOK)
            if trouble := self._trouble():
                return trouble
        return ""

    def _read(self, patience: float) -> bool:
        ready = self.selector.select(patience)
        now = time.monotonic()
        if now - self.looked > STANDSTILL:
            self.deadline += now - self.looked
        self.looked = now
        for key, _ in ready:
            chunk = os.read(key.fd, 65536)
            if not chunk:
                self.selector.unregister(key.fileobj)
            key.data.extend(chunk)
        if not self.is_ready and b"\n" in self.results:
            self.is_ready = True
            self.deadline = time.monotonic() + self.limits.seconds
        return bool(ready)

    def _trouble(self) -> str:
        if len(self.printed) > self.limits.printed:
            return f"it printed more than {self.limits.printed // MEGABYTE} MB"
        if len(self.results) > self.limits.results:
            return f"its results take more than {self.limits.results // MEGABYTE} MB"
        if time.monotonic() > self.deadline:
            return self._too_long()
        processes, memory = _taken(self.process.pid)
        if memory > self.limits.memory:
            return f"it took more than {self.limits.memory // MEGABYTE} MB of memory"
        if processes > self.limits.processes:
            return f"it started more than {self.limits.processes} processes"
        return ""

    def _too_long(self) -> str:
        if not self.is_ready:
            return f"Python did not start within {STARTING} seconds"
        return f"it ran longer than {self.limits.seconds:g} seconds"

    def events(self) -> list[dict[str, Any]]:
        """The lines that are JSON objects; the submission may have written anything here."""
        found = []
        for line in bytes(self.results).split(b"\n"):
            with suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    found.append(event)
        return found

    def close(self) -> None:
        self.selector.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def _taken(pid: int) -> tuple[int, int]:
    """How many processes descend from this one, and the memory they hold together, in bytes."""
    processes, memory, waiting = 0, 0, [pid]
    while waiting:
        place = Path("/proc", str(waiting.pop()))
        with suppress(OSError, ValueError, IndexError):
            processes += 1
            memory += int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return processes, memory


def _living(user: int) -> Iterator[int]:
    """The processes of a user that have not ended."""
    for place in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, ValueError, KeyError):
            facts = dict(line.split(":", 1) for line in place.read_text().splitlines())
            if int(facts["Uid"].split()[0]) == user and facts["State"].split()[0] != "Z":
                yield int(place.parent.name)


def _ending(code: int, limits: Limits) -> str:
    """Why a process ended before all calls were answered."""
    signals = {
        signal.SIGXCPU: f"it used more than {limits.seconds:g} seconds of the processor",
        signal.SIGXFSZ: f"it wrote a file of more than {limits.file // MEGABYTE} MB",
        signal.SIGKILL: "it was killed",
        signal.SIGSEGV: "it crashed (segmentation fault)",
    }
    number = -code if code < 0 else code - 128  # as a shell, bubblewrap adds 128
    for known, words in signals.items():
        if number == known:
            return words
    return f"it ended the program (exit code {code}) before its results were there"


# ---- what passes in and out ----------------------------------------------------------------


def sent(value: Any) -> Any:
    """An array as the runner reads it; a number as it is."""
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    array = np.asarray(value, dtype="<f8")
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"shape": list(array.shape), "data": data}


@dataclass(frozen=True)
class Received:
    """An array that came out, and the kind of numbers it says it had there."""

    value: Array
    kind: str


def received(data: Any) -> Received:
    """An array from what may be anything; a ValueError says why it is none."""
    if isinstance(data, (bool, int, float)):
        return Received(np.asarray(float(data)), "float64")
    if not isinstance(data, dict):
        raise ValueError("no array came back")
    shape, text = data.get("shape"), data.get("data")
    if not isinstance(shape, list) or len(shape) > 8 or not isinstance(text, str):
        raise ValueError("what came back is no array")
    if not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise ValueError("what came back has no shape")
    raw = base64.b64decode(text, validate=True)
    if 8 * int(np.prod([float(size) for size in shape])) != len(raw):
        raise ValueError("what came back does not fit its shape")
    return Received(np.frombuffer(raw, dtype="<f8").reshape(shape), printable(data.get("kind"), 20))


def printable(text: Any, most: int = 2000) -> str:
    """Text from a stranger: nothing in it moves a terminal's cursor or fills the screen."""
    kept = "".join(c for c in str(text)[: 4 * most] if c.isprintable() or c == "\n")
    return kept if len(kept) <= most else kept[:most] + " …"
