"""Golden files: renderings as they were last looked at, in the folder `golden` beside their test.

After a change of the renderings that is meant, write the golden files anew with

    pytest tests --update-goldens

and read the difference before it is committed. Nothing else ever writes them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings

# A deadline would fail tests on a busy machine, not on a wrong result.
settings.register_profile("regard", deadline=None)
settings.load_profile("regard")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write the golden files anew, then fail"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a rendering with its golden file."""

    def compare(name: str, rendering: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-goldens"):
            if not path.exists() or path.read_text(encoding="utf-8") != rendering:
                path.parent.mkdir(exist_ok=True)
                path.write_text(rendering, encoding="utf-8")
                pytest.fail(f"{path.name} was written anew: read the difference")
            return
        assert path.exists(), f"no golden file {path}: run pytest tests --update-goldens"
        assert rendering == path.read_text(encoding="utf-8")

    return compare
