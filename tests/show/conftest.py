"""The document that contains everything, and golden files.

After a change of the renderings that is meant, write the golden files anew with

    pytest tests/show --update-goldens

and read the difference before it is committed. Nothing else ever writes them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write tests/show/golden anew, then fail"
    )


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def everything() -> ModuleType:
    """The module `everything`: DOCUMENT and the arrays in it."""
    return _load("everything")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a rendering with its golden file."""

    def compare(name: str, rendering: str) -> None:
        path = HERE / "golden" / name
        if request.config.getoption("--update-goldens", default=False):
            if not path.exists() or path.read_text(encoding="utf-8") != rendering:
                path.write_text(rendering, encoding="utf-8")
                pytest.fail(f"{path.name} was written anew: read the difference")
            return
        assert path.exists(), f"no golden file {path}: run pytest tests/show --update-goldens"
        assert rendering == path.read_text(encoding="utf-8")

    return compare
