"""Breaks the kernel on purpose, one place at a time, and sees the tests go red.

    python scripts/kernel_mutants.py            all of them
    python scripts/kernel_mutants.py causal     those whose description has the word

Everything happens in a temporary folder; the sources here stay as they are. A mutant that no test
notices is printed with what was changed, and the exit code is 1.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _own_kernel import KERNEL, ROOT, OwnKernel

TESTS = ("-x", "--no-header", "-k", "mutants or same_as_the_operator",
         "tests/ops/test_kernel_edges.py", "tests/ops/test_step.py")  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    what: str
    file: str
    right: str
    wrong: str


MUTANTS = [
    Mutant("tile edge: the last rows of a product are left out", "tile.hpp",
           "if (i + size > rows) return;", "if (i + size >= rows) return;"),
    Mutant("rescale: the output is not rescaled when a larger score is met", "forward.hpp",
           "V::store(output + i, V::mul(V::load(output + i), factor));", ""),
    Mutant("rescale: the sum is not rescaled", "forward.hpp",
           "V::mul(V::load(sums + c * L), factor)", "V::load(sums + c * L)"),
    Mutant("parts of the keys are merged with the wrong factor", "forward.hpp",
           "V::fma(V::load(more), right,", "V::fma(V::load(more), left,"),
    Mutant("a sink counts once for each part of the keys", "forward.hpp",
           "p.sinks && first == 0", "p.sinks"),
    Mutant("hidden values that are not finite are not looked for", "forward.hpp",
           "if (panel_.ever_hid && !is_finite()) walk(first, true);", ""),
    Mutant("causal: a query does not see its own key", "panel.hpp",
           "std::max(at + 1, prefix)", "std::max(at, prefix)"),
    Mutant("prefix is forgotten", "panel.hpp",
           "std::max(at + 1, prefix)", "at + 1"),
    Mutant("window: one key too few on the left", "panel.hpp",
           "at - p.left)", "at - p.left + 1)"),
    Mutant("window: one key too few on the right", "panel.hpp",
           "at + p.right + 1", "at + p.right"),
    Mutant("lengths: one key too many", "panel.hpp",
           "p.lengths[place.batch])", "p.lengths[place.batch] + 1)"),
    Mutant("lengths of the first batch entry for all", "panel.hpp",
           "p.lengths[place.batch]", "p.lengths[0]"),
    Mutant("segments: a key whose number no query has is seen", "panel.hpp",
           "which < known ? members[which] : 0;", "which < known ? members[which] : ~Bits{0};"),
    Mutant("mask: bits of neighbouring keys are swapped", "panel.hpp",
           "live[j + i] &= words[i];", "live[j + i] &= words[i ^ 1];"),
    Mutant("tiles that end where a query's keys end count as full", "panel.hpp",
           "hides = max_low_ > begin || min_high_ < end;", "hides = max_low_ > begin;"),
    Mutant("tiles that begin before a query's keys count as full", "panel.hpp",
           "hides = max_low_ > begin || min_high_ < end;", "hides = min_high_ < end;"),
    Mutant("vectors of which one query sees a key count as full", "panel.hpp",
           "if ((by_all >> c * L & of_vector) == of_vector) continue;",
           "if ((by_all >> c * L & of_vector) != 0) continue;"),
    Mutant("bias is added in the wrong unit", "panel.hpp",
           "V::fma(extra, unit, V::load(score))", "V::add(extra, V::load(score))"),
    Mutant("a bias of −∞ hides nothing", "panel.hpp",
           "live[j] &= ~(bits << c * L);", ""),
    Mutant("a block of the past goes on into the new keys", "panel.hpp",
           "if (begin < problem.n_past) end = std::min(end, problem.n_past);", ""),
    Mutant("bfloat16 is cut off and not rounded", "storage.hpp",
           "bits + 0x7fffu + (bits >> 16 & 1u)", "bits"),
    Mutant("gradient: the mean is not taken off", "backward.hpp",
           "V::sub(V::load(d_scores_ + i), V::load(inner_ + c * L))", "V::load(d_scores_ + i)"),
    Mutant("gradient: softcap's slope is wrong", "backward.hpp",
           "V::sub(V::set(1), V::mul(size, size))", "V::sub(V::set(1), size)"),
    Mutant("gradient of the keys without the scale", "backward.hpp",
           "chunks.of_each, size, static_cast<T>(p.scale));", "chunks.of_each, size, T{1});"),
    Mutant("gradient: a hidden weight meets a query that is no number", "backward.hpp",
           "if (panel_.hides) weight =", "if (false) weight ="),
    Mutant("step: the last key is not looked at", "step.hpp",
           "key < step_.filled + step_.tokens; ++key",
           "key < step_.filled + step_.tokens - 1; ++key"),
    Mutant("step: a new key is written at the place before", "step.hpp",
           "const Index place = step_.filled + token;",
           "const Index place = step_.filled + token - 1;"),
    Mutant("step: the second half of a vector turns the wrong way", "step.hpp",
           "high * cos[i + half] + low * sin[i + half]",
           "high * cos[i + half] - low * sin[i + half]"),
    Mutant("step: every query head reads the first key head", "step.hpp",
           "shared = head / group_;", "shared = 0;"),
    Mutant("inspection: of equal keys the later one is named", "inspect.hpp",
           "scores[at - 1] < score", "scores[at - 1] <= score"),
    Mutant("inspection: what the last queries gave is not counted", "inspect.hpp",
           "for (; lane < last; ++lane) to", "for (; lane < last - 1; ++lane) to"),
    Mutant("inspection: entropy forgets its sign", "inspect.hpp",
           "V::set(-static_cast<T>(LN_2))", "V::set(static_cast<T>(LN_2))"),
]  # fmt: skip


def survives(kernel: OwnKernel, mutant: Mutant) -> bool:
    place = kernel.folder / KERNEL / mutant.file
    right = place.read_text(encoding="utf-8")
    if mutant.right not in right:
        sys.exit(f"{mutant.file} has changed: update the mutant {mutant.what!r}")
    place.write_text(right.replace(mutant.right, mutant.wrong), encoding="utf-8")
    try:
        kernel.compile("isa_plain.cpp")
        return kernel.test(*TESTS).returncode == 0
    finally:
        place.write_text(right, encoding="utf-8")


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.what for word in words)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".mutants-") as folder:
        kernel = OwnKernel(Path(folder) / "copy", ["-O1"], {"plain": []})
        kernel.compile()
        healthy = kernel.test(*TESTS)
        if healthy.returncode != 0:
            print(healthy.stdout, healthy.stderr)
            sys.exit("the tests fail without any mutant")
        print(f"healthy kernel: green after {time.perf_counter() - start:.0f} s")
        alive = []
        for mutant in chosen:
            lives = survives(kernel, mutant)
            print(f"{'ALIVE' if lives else 'red  '}  {mutant.what}", flush=True)
            alive += [mutant] * lives
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants were noticed, "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
