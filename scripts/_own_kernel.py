"""Builds the extension by hand into a copy of the package, and runs tests with that copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = Path("src/regard/kernel")
COMMON = ("_native.cpp", "cpu.cpp", "peaks.cpp", "scratch.cpp", "threads.cpp")
# In a package installed for development, which would otherwise be found first.
RUN = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_edit")]
sys.path.insert(0, sys.argv.pop(1))
import regard.kernel._native as native
assert native.__file__.startswith(sys.path[0]), native.__file__
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


class OwnKernel:
    """A copy of the sources in `folder`, which may be changed, compiled and tested."""

    def __init__(self, folder: Path, flags: list[str], sets: dict[str, list[str]]) -> None:
        self.folder, self.sets = folder, sets
        self.package = folder / "src"
        shutil.copytree(ROOT / "src", self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for stale in (self.package / "regard/kernel").glob("_native*.so"):
            stale.unlink()
        tools = folder / "tools"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tools)]
        subprocess.run([*install, "nanobind"], check=True, cwd=ROOT)
        self.nanobind = tools / "nanobind"
        includes = (
            self.nanobind / "include",
            self.nanobind / "ext/robin_map/include",
            sysconfig.get_path("include"),
        )
        self.flags = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", *flags]
        self.flags += [f"-I{each}" for each in includes]
        self.flags += [f"-DREGARD_{name.upper()}" for name in sets if name != "plain"]
        self.objects = folder / "objects"
        self.objects.mkdir()

    def compile(self, *sources: str) -> None:
        """Compile these files of the kernel, or all of them, and link the extension."""
        kernels = [f"isa_{name}.cpp" for name in self.sets]
        chosen = sources or (*COMMON, *kernels, "nb_combined.cpp")
        for source in chosen:
            place = self.folder / KERNEL / source
            place = place if place.exists() else self.nanobind / "src" / source
            own = self.sets.get(source.removeprefix("isa_").removesuffix(".cpp"), [])
            self._run(*self.flags, *own, "-c", str(place), "-o", str(self.objects / f"{source}.o"))
        name = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
        objects = map(str, sorted(self.objects.iterdir()))
        self._run(*self.flags, "-shared", *objects, "-o", str(self.folder / KERNEL / name))

    def _run(self, *arguments: str) -> None:
        subprocess.run([os.environ.get("CXX", "g++"), *arguments], check=True, cwd=ROOT)

    def test(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", RUN, str(self.package), "-q", "-p", "no:cacheprovider"]
        return subprocess.run(
            [*command, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
