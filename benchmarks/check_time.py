"""How long it takes to check one answer against every mistake and every pair of mistakes.

The worst case: a wrong answer that nothing explains, so that all of them are tried. The baseline
is solving the exercise once; each answer gets a key of its own, nothing is kept between them.
The goal is 0.3 s for every exercise of the library.
"""

import numpy as np
from _measure import interleaved_medians, print_ratios

import regard
from regard.checking import Key, Verdict, checker_for, read_answer

RUNS = 5
GOAL = 0.3
BASELINE = "solving numpy-multi-head, three heads"


def unexplained(exercise: str, variant: str, step: str):
    """A check of the last step asked for, with numbers that no mistake gives."""
    run = checker_for(exercise).trace(variant).run
    noise = np.random.default_rng(0).normal(size=run.values[step].shape)
    answer = read_answer(step, run.values[step] + noise)

    def check() -> None:
        judgement = Key(run).judge({step: answer})[step]
        assert judgement.verdict == Verdict.WRONG

    return check


def main() -> None:
    """Time the check of the last step of every exercise that asks for steps."""
    contestants = {
        BASELINE: lambda: regard.solve("numpy-multi-head").traces["three-heads"],
    }
    for name in regard.library_names():
        checker = checker_for(name)
        for variant in checker.exercise.variants:
            if steps := checker.asked_in(variant):
                contestants[f"{name}, {variant}: {steps[-1]}"] = unexplained(
                    name, variant, steps[-1]
                )
    medians = interleaved_medians(contestants, RUNS)
    slowest = max(seconds for name, seconds in medians.items() if name != BASELINE)
    print(f"slowest check: {slowest:.3f} s; the goal is {GOAL} s")
    print_ratios(medians, BASELINE, RUNS)


if __name__ == "__main__":
    main()
