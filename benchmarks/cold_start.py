"""How long the commands take to start, against importing NumPy alone."""

import sys
from pathlib import Path

from _measure import interleaved_medians, print_ratios

RUNS = 15
BASELINE = "import numpy"


def main() -> None:
    """Time each command in a new process."""
    regard = str(Path(sys.executable).with_name("regard"))
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        BASELINE: [sys.executable, "-c", "import numpy"],
        "regard --help": [regard, "--help"],
        "regard solve": [regard, "solve", "unscaled-self-attention"],
    }
    interleaved_medians(commands, runs=1)  # writes bytecode, fills the disk cache
    print_ratios(interleaved_medians(commands, RUNS), BASELINE, RUNS)


if __name__ == "__main__":
    main()
