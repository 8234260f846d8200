"""The autograder for Gradescope: a zip that is uploaded as it is.

Containers there usually forbid the namespaces that bubblewrap needs, so submissions run as another
user who can read neither the grader nor the exercise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import regard
from regard._errors import OptionError
from regard.exercises import Exercise, to_toml
from regard.exercises._exercise import CodeRules
from regard.grading._archive import zipped
from regard.grading._program import rules_of
from regard.grading._sandbox import Limits

SETUP = """#!/usr/bin/env bash
# Runs once, as root, when the image is built: Python and what the submissions may import.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
new_enough='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'
if ! python3 -c "$new_enough" 2>/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \\
        python3 python3-venv ca-certificates
fi
python3 -m venv /opt/regard
/opt/regard/bin/pip install --quiet {packages}
/opt/regard/bin/pip install --quiet rich
# Only root may read the grader and the exercise; submissions run as somebody else.
chown -R root:root "$here"
chmod -R go-rwx "$here"
"""
RUN = """#!/usr/bin/env bash
# Runs for each submission, as root.
set -euo pipefail
autograder="${AUTOGRADER:-/autograder}"
mkdir -p "$autograder/results"
chmod -R go-rwx "$autograder/source" "$autograder/results" "$autograder/submission"
PYTHONPATH="$autograder/source" "${REGARD_PYTHON:-/opt/regard/bin/python}" -m regard grade \\
    "$autograder/source/exercise.toml" "$autograder/submission" --isolation user \\
    --seconds SECONDS --one --format gradescope \\
    --output "$autograder/results/results.json" || [ $? = 1 ]
"""
README = """An autograder for Gradescope, made by regard VERSION for: TITLE

Upload the zip as it is. setup.sh installs Python, PACKAGES; run_autograder grades the one file of a
submission and writes results/results.json.

Submissions run as a user of their own, who can read neither this folder nor the results. That is
weaker than the sandbox in which `regard grade` runs programs elsewhere: the network is open, and
what every user may read can be read. Keep nothing in the image that students may not see.
"""


def autograder(exercise: Exercise, limits: Limits | None = None) -> bytes:
    """The zip, byte for byte the same for the same exercise."""
    rules = rules_of(exercise)
    if not exercise.toml and exercise.files:
        raise OptionError("export: an exercise that names files must come from a .toml file")
    packages = " ".join(_packages(rules))
    run = RUN.replace("SECONDS", f"{(limits or Limits()).seconds:g}")
    readme = README.replace("VERSION", regard.__version__).replace("TITLE", exercise.title)
    files = {
        "setup.sh": SETUP.format(packages=packages),
        "run_autograder": run,
        "README.txt": readme.replace("PACKAGES", packages),
        "exercise.toml": to_toml(exercise),
        **exercise.files,
        **dict(_package()),
    }
    return zipped(files, programs=("setup.sh", "run_autograder"))


def _packages(rules: CodeRules) -> Iterator[str]:
    yield "numpy"
    if rules.library == "torch":
        yield "torch --extra-index-url https://download.pytorch.org/whl/cpu"
    if any(name.startswith("matplotlib") for name in rules.imports):
        yield "matplotlib"


def _package() -> Iterator[tuple[str, str]]:
    """regard itself: its Python and data, which is all that grading needs."""
    root = Path(regard.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml", ".json", ".css") and "__pycache__" not in path.parts:
            yield f"regard/{path.relative_to(root).as_posix()}", path.read_text(encoding="utf-8")
