"""How long the contestants take to start, against importing NumPy alone."""

import sys
from pathlib import Path

from _measure import command, interleaved_medians, print_ratios

RUNS = 15
BASELINE = "import numpy"


def main() -> None:
    """Time each command in a new process."""
    regard = str(Path(sys.executable).with_name("regard"))
    contestants = {
        "pass": command(sys.executable, "-c", "pass"),
        BASELINE: command(sys.executable, "-c", "import numpy"),
        "regard --help": command(regard, "--help"),
        "regard solve": command(regard, "solve", "unscaled-self-attention"),
    }
    interleaved_medians(contestants, runs=1)  # writes bytecode, fills the disk cache
    print_ratios(interleaved_medians(contestants, RUNS), BASELINE, RUNS)


if __name__ == "__main__":
    main()
