"""What stands in pyproject.toml and constraints.txt agrees; scripts/requirements.py reads it."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def as_numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


def requirements() -> list[str]:
    project = PYPROJECT["project"]
    return [
        *PYPROJECT["build-system"]["requires"],
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]


def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "requirements.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("requirement", requirements())
def test_every_requirement_has_a_pin_above_its_lower_bound(requirement: str) -> None:
    name, _, bound = requirement.partition(">=")
    pinned = {canonical(pin.partition("==")[0]): pin.partition("==")[2] for pin in PINS}
    assert canonical(name) in pinned, f"{name} is missing from constraints.txt"
    assert as_numbers(pinned[canonical(name)]) >= as_numbers(bound)


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == PYPROJECT["project"]["version"] == version("regard")


def test_constraints_are_exact_and_sorted() -> None:
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in PINS)
    assert sorted(PINS, key=canonical) == PINS


def test_extras_lists_what_an_extra_asks_for() -> None:
    figures = PYPROJECT["project"]["optional-dependencies"]["figures"]
    assert run_script("extras", "figures").stdout.splitlines() == figures


def test_an_unknown_extra_is_named() -> None:
    finished = run_script("extras", "figure")
    assert finished.returncode == 1
    assert "no extra is named 'figure'; there are dask, exact, figures" in finished.stderr


def test_lowest_replaces_pins_by_lower_bounds() -> None:
    lines = run_script("lowest").stdout.splitlines()
    bound = next(r for r in PYPROJECT["project"]["dependencies"] if r.startswith("numpy"))
    assert [line for line in lines if line.startswith("numpy==")] == [bound.replace(">=", "==")]
    assert next(pin for pin in PINS if pin.startswith("pytest==")) in lines
