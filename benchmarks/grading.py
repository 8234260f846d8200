"""How long it takes to grade 1,000 answer files on two cores.

The baseline runs the exercise's solution once for each file, in one process: the least that any
grader could do that computes anything. Half of the answers are right; the others hold a known
mistake or one wrong number, which is what naming mistakes takes its time for.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from _measure import interleaved_medians, print_ratios

from regard.exercises import load_exercise
from regard.exercises._compute import trace_of
from regard.grading import found_submissions, grade_class
from regard.mistakes import CATALOGUE, commit_all

FILES, RUNS, CORES = 1000, 3, 2
EXERCISE = "unscaled-self-attention"
STEPS = ("Q", "K", "V", "scores", "weights", "context")
BASELINE = "the solution once a file"


def write_answers(folder: Path) -> None:
    """Answers with two to four decimals, as people give them."""
    rng = np.random.default_rng(0)
    run = trace_of(load_exercise(EXERCISE).variants["main"], {}).run
    wrong = [committed.values for _, committed in commit_all(run, CATALOGUE)]
    for number in range(FILES):
        values = {step: run.values[step] for step in STEPS}
        luck = rng.random()
        if luck < 0.35:
            made = wrong[rng.integers(len(wrong))]
            values |= {s: made[s] for s in STEPS if s in made and np.isfinite(made[s]).all()}
        elif luck < 0.5:
            slipped = values["scores"].copy()
            slipped.flat[rng.integers(slipped.size)] += rng.choice([-1, 0.1, 0.5])
            values["scores"] = slipped
        decimals = int(rng.integers(2, 5))
        lines = [f"{step} = {np.round(value, decimals).tolist()}" for step, value in values.items()]
        (folder / f"s{number:04d}.toml").write_text("\n".join(lines) + "\n")


def solutions() -> None:
    variant = load_exercise(EXERCISE).variants["main"]
    for _ in range(FILES):
        trace_of(variant, {})


def main() -> None:
    """Grade the files, each of which must come out as graded."""
    with tempfile.TemporaryDirectory() as folder:
        write_answers(Path(folder))
        exercise, submissions = load_exercise(EXERCISE), found_submissions([folder])

        def grading() -> None:
            grades = grade_class(exercise, submissions, workers=CORES)
            assert [grade.status for grade in grades] == ["graded"] * FILES

        contestants = {BASELINE: solutions, f"graded on {CORES} cores": grading}
        medians = interleaved_medians(contestants, RUNS)
    print_ratios(medians, BASELINE, RUNS)
    if medians[f"graded on {CORES} cores"] > 60:
        sys.exit(f"{FILES} files took more than 60 s")


if __name__ == "__main__":
    main()
