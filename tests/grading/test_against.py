"""Two programs side by side: they part where they part, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.cli import main
from regard.grading._sandbox import Isolation

ONE = (Path(__file__).with_name("programs") / "multi_head.py").read_text(encoding="utf-8")


@pytest.fixture
def compare(bubblewrap: Isolation, tmp_path: Path, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def compared(one: str, other: str, *options: str) -> tuple[int, str]:
        paths = [tmp_path / "one.py", tmp_path / "other.py"]
        for path, text in zip(paths, (one, other), strict=True):
            path.write_text(text, encoding="utf-8")
        code = main(
            ["grade", "numpy-multi-head", str(paths[0]), "--against", str(paths[1]), *options]
        )
        return code, capsys.readouterr().out

    return compared


def test_a_program_does_not_part_from_itself(compare) -> None:  # type: ignore[no-untyped-def]
    code, said = compare(ONE, ONE)
    assert code == 0
    assert "apart" not in said
    assert said.endswith("They give the same.\n")


def test_they_part_at_the_first_step_that_differs(compare) -> None:  # type: ignore[no-untyped-def]
    """Only the result is changed, so the weights before it are the same."""
    code, said = compare(ONE, ONE.replace("return weights @", "return 2 * weights @"))
    assert code == 1
    assert "✓ same   self_attention: weights" in said
    assert "They part at self_attention: context, on the exercise's numbers." in said


def test_an_overflow_parts_them_on_large_scores_alone(compare) -> None:  # type: ignore[no-untyped-def]
    code, said = compare(ONE, ONE.replace(" - scores.max(axis=1, keepdims=True)", ""), "--json")
    assert code == 1
    rows = json.loads(said)
    assert {row["numbers"] for row in rows if not row["same"]} == {"large scores"}


def test_one_that_stops_is_apart_with_its_reason(compare) -> None:  # type: ignore[no-untyped-def]
    code, said = compare(ONE, ONE.replace("return weights @", "return weight @"))
    assert code == 1
    assert "other.py: NameError: name 'weight' is not defined (line 8)" in said


def test_what_stops_a_whole_program_is_told_once(compare) -> None:  # type: ignore[no-untyped-def]
    broken = ONE.replace("return weights @", "return weights @@")
    code, said = compare(ONE, broken)
    assert code == 1
    assert said.count("SyntaxError") == 1
    assert "✗ apart  the whole program  other.py: SyntaxError: invalid syntax (line 8)" in said
    assert said.endswith("Of the whole program there is nothing to compare.\n")
    code, said = compare(broken, broken)
    assert code == 1
    assert "one.py: SyntaxError" in said


def test_a_function_that_is_missing_is_told_once_and_the_others_are_compared(compare) -> None:  # type: ignore[no-untyped-def]
    code, said = compare(ONE, ONE.replace("def multi_head_attention", "def multi_head"))
    assert code == 1
    assert said.count("NameError") == 1
    assert said.count("✓ same   self_attention: weights") == 4
    assert said.endswith("Of multi_head_attention there is nothing to compare.\n")
