"""Reads the requirements out of pyproject.toml, so that no other file repeats them.

    python scripts/requirements.py extras test check   # what these extras ask for
    python scripts/requirements.py lowest              # constraints: the lowest versions admitted

`lowest` pins what the base, the build and the extras `exact` and `figures` ask for at their
lower bounds, and everything else as constraints.txt does.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS_TRIED_AT_THE_LOWEST = ("exact", "figures")
LOWER_BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def extras(pyproject: dict[str, Any], names: list[str]) -> list[str]:
    """Return the requirements of the named extras, in order."""
    available = pyproject["project"]["optional-dependencies"]
    for name in names:
        if name not in available:
            sys.exit(f"requirements: no extra is named {name!r}; there are {', '.join(available)}")
    return [requirement for name in names for requirement in available[name]]


def lowest(pyproject: dict[str, Any], constraints: list[str]) -> list[str]:
    """Return `constraints` with every lower bound of `pyproject` in place of its pin."""
    floors = {}
    for requirement in (
        *pyproject["build-system"]["requires"],
        *pyproject["project"]["dependencies"],
        *extras(pyproject, list(EXTRAS_TRIED_AT_THE_LOWEST)),
    ):
        bound = LOWER_BOUND.fullmatch(requirement)
        if bound is None:
            sys.exit(f"requirements: {requirement!r} has no lower bound; write it as name>=version")
        floors[_canonical(bound["name"])] = f"{bound['name']}=={bound['version']}"
    kept = [pin for pin in constraints if _canonical(pin.partition("==")[0]) not in floors]
    return [*kept, *floors.values()]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: list[str]) -> None:
    """Print one requirement a line."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    match arguments:
        case ["extras", *names] if names:
            lines = extras(pyproject, names)
        case ["lowest"]:
            pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
            lines = lowest(pyproject, pins)
        case _:
            sys.exit(__doc__)
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
