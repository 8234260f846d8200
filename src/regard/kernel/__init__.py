"""The compiled part of regard: whether it is here, and which instruction sets it found."""

from dataclasses import dataclass

__all__ = ["KernelReport", "report"]


@dataclass(frozen=True)
class KernelReport:
    """What is known about the C++ extension; `reason` says it in one sentence."""

    extension: bool
    instruction_sets: tuple[str, ...]
    reason: str


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
    return KernelReport(True, found, f"C++ extension found; this CPU has {listed}")


def _why_missing(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError):
        cause = "was not compiled when regard was installed"
    else:
        cause = f"is installed but does not load ({error})"
    return (
        f"no C++ extension: it {cause}; results stay the same, but the instruction sets of "
        "this CPU are unknown; install a C++17 compiler, then reinstall regard"
    )
