import platform
import sys
from pathlib import Path

import pytest

from regard import kernel

CPUINFO = Path("/proc/cpuinfo")
X86_SETS = (
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
)

needs_extension = pytest.mark.skipif(
    not kernel.report().extension, reason="regard was installed without its C++ extension"
)


def flags_in_cpuinfo() -> set[str]:
    for line in CPUINFO.read_text(encoding="ascii").splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


@needs_extension
@pytest.mark.skipif(
    platform.machine() != "x86_64" or not CPUINFO.exists(),
    reason="compares with the flags that Linux lists on x86",
)
def test_instruction_sets_are_those_that_linux_lists() -> None:
    flags = flags_in_cpuinfo()
    expected = tuple(name for name in X86_SETS if name in flags)
    assert kernel.report().instruction_sets == expected


@needs_extension
@pytest.mark.skipif(
    platform.machine() not in {"aarch64", "arm64"}, reason="every 64-bit Arm CPU has NEON"
)
def test_arm_has_neon() -> None:
    assert kernel.report().instruction_sets == ("neon",)


@needs_extension
def test_the_reason_names_every_instruction_set() -> None:
    report = kernel.report()
    assert report.reason.startswith("C++ extension found; this CPU has ")
    for name in report.instruction_sets:
        assert name in report.reason


@needs_extension
def test_the_reason_names_the_kernel_that_computes() -> None:
    report = kernel.report()
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"} <= set(report.instruction_sets):
        assert report.path == "avx512"
    elif {"avx2", "fma", "f16c"} <= set(report.instruction_sets):
        assert report.path == "avx2"
    else:
        assert report.path == "plain"
    assert f"the {report.path} kernel computes attention" in report.reason


def test_without_the_extension_it_says_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regard.kernel._native", None)
    report = kernel.report()
    assert (report.extension, report.instruction_sets, report.path) == (False, (), "numpy")
    assert report.reason.startswith("no C++ extension: it was not compiled when regard was")
    assert "install a C++17 compiler, then reinstall regard" in report.reason


def test_an_extension_that_does_not_load_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class BrokenFinder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "regard.kernel._native":
                raise ImportError("undefined symbol: PyUnicode_New", name=name)

    monkeypatch.delitem(sys.modules, "regard.kernel._native", raising=False)
    monkeypatch.delattr(kernel, "_native", raising=False)
    monkeypatch.setattr(sys, "meta_path", [BrokenFinder(), *sys.meta_path])
    report = kernel.report()
    assert not report.extension
    assert "does not load (undefined symbol: PyUnicode_New)" in report.reason
