"""The compiled part of regard: whether it is here, and which instruction sets it found."""

from dataclasses import dataclass

from regard._errors import OptionError
from regard._options import positive_integer

__all__ = ["KernelReport", "report", "set_threads"]

MOST_THREADS = 1024


@dataclass(frozen=True)
class KernelReport:
    """What is known about the C++ extension; `reason` says it in one sentence."""

    extension: bool
    instruction_sets: tuple[str, ...]
    reason: str
    path: str = "numpy"  # who computes attention: numpy, or the kernel of an instruction set
    threads: int = 1


def report() -> KernelReport:
    """Load the C++ extension if it is there, and say what it found or why it is missing.

    Instruction sets bear the names that Linux gives them in `/proc/cpuinfo`; on 64-bit Arm
    there is `neon`.
    """
    try:
        import regard.kernel._native as native
    except ImportError as error:
        return KernelReport(extension=False, instruction_sets=(), reason=_why_missing(error))
    found = tuple(native.instruction_sets())
    listed = ", ".join(found) or "none of the instruction sets it looks for"
    path, threads = native.kernel(), native.threads()
    reason = (
        f"C++ extension found; this CPU has {listed}: the {path} kernel computes attention, "
        f"with up to {threads} thread{'s' * (threads > 1)}"
    )
    return KernelReport(True, found, reason, path, threads)


def set_threads(number: int | None) -> None:
    """Let `regard.attention` use at most so many threads; None for as many as there are cores.

    It counts for the whole process. torch and NumPy keep their own counts.
    """
    wanted = 0 if number is None else positive_integer("number", number)
    try:
        import regard.kernel._native as native
    except ImportError as error:
        raise OptionError(
            "set_threads: there is no C++ extension here, and NumPy counts its threads itself: "
            "set OPENBLAS_NUM_THREADS before Python starts"
        ) from error
    if wanted > MOST_THREADS:
        raise OptionError(f"`number` must be at most {MOST_THREADS}, but {number!r} was passed")
    native.set_threads(wanted)


def _why_missing(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError):
        cause = "was not compiled when regard was installed"
    else:
        cause = f"is installed but does not load ({error})"
    return (
        f"no C++ extension: it {cause}; results stay the same, but attention is computed by "
        "NumPy, several times slower, and the instruction sets of this CPU are unknown; install a "
        "C++17 compiler, then reinstall regard"
    )
