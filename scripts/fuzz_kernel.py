"""Fuzzes the binding and every kernel of this CPU under AddressSanitizer and UBSan.

    python scripts/fuzz_kernel.py          a minute or two
    python scripts/fuzz_kernel.py 5000     so many examples for each test

Needs g++ with its sanitizers. Exit code 1 when anything was found, which is printed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from _own_kernel import ROOT, OwnKernel

SETS = {
    "plain": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"],
}
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
            "-fno-sanitize=vptr", "-fno-omit-frame-pointer"]  # fmt: skip
TESTS = ("tests/ops/test_fuzz.py", "tests/ops/test_kernel_edges.py")


def runtime(name: str) -> str:
    command = ["g++", f"-print-file-name={name}.so"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(examples: str = "300") -> int:
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".mutants-") as folder:
        kernel = OwnKernel(Path(folder) / "copy", SANITIZE, SETS)
        kernel.compile()
        finished = kernel.test(
            *TESTS,
            "-s",
            LD_PRELOAD=f"{runtime('libasan')} {runtime('libubsan')} {runtime('libstdc++')}",
            ASAN_OPTIONS="detect_leaks=0",
            UBSAN_OPTIONS="print_stacktrace=1",
            REGARD_FUZZ_EXAMPLES=examples,
        )
    print(finished.stdout[-8000:], finished.stderr[-8000:], sep="\n")
    return 1 if finished.returncode else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
