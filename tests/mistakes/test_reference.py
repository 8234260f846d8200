"""The reference page holds the catalogue as it is.

After a change of the catalogue write the page anew with `pytest tests --update-goldens`.
"""

from pathlib import Path

import pytest

from regard.mistakes._reference import reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "mistakes.md"


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference()
