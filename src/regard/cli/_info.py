"""Say what is installed and which parts of regard can be used here."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import regard
from regard import kernel

EPILOG = """examples:
  regard info
  regard info --json
"""


@dataclass(frozen=True)
class Part:
    """Something optional: what it is for and the packages that it needs."""

    purpose: str
    extra: str
    packages: tuple[str, ...]


PARTS = (
    Part("exact and certified numbers", "exact", ("sympy", "python-flint")),
    Part("figures", "figures", ("matplotlib",)),
    Part("torch tensors, and exercises that torch draws", "torch", ("torch",)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    facts = gather()
    print(json.dumps(facts, indent=1) if arguments.json else _written(facts))
    return 0


def gather() -> dict[str, object]:
    """Versions, the kernel's state with its reason, and each optional part."""
    found = kernel.report()
    return {
        "regard": regard.__version__,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "rich": _version("rich"),
        "kernel": found.reason,
        "instruction sets": list(found.instruction_sets),
        "parts": {part.purpose: _state(part) for part in PARTS},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _state(part: Part) -> str:
    versions = {package: _version(package) for package in part.packages}
    if missing := [package for package, found in versions.items() if found is None]:
        return f"not here ({', '.join(missing)} missing): pip install 'regard[{part.extra}]'"
    return ", ".join(f"{package} {found}" for package, found in versions.items())


def _written(facts: dict[str, object]) -> str:
    rows: dict[str, object] = {**facts}
    parts = rows.pop("parts")
    assert isinstance(parts, dict)
    sets = rows.pop("instruction sets")
    assert isinstance(sets, list)
    rows |= {"instruction sets": ", ".join(sets) or "unknown"} | parts
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())
