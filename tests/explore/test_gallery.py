"""The gallery's scripts are short and show every experiment; the reference tells every option."""

import inspect
import re
import runpy
from pathlib import Path

import pytest

from regard.explore import EXPERIMENTS
from regard.explore._experiments import named

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
REFERENCE = (ROOT / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")


def test_every_experiment_has_a_short_script() -> None:
    texts = [script.read_text(encoding="utf-8") for script in SCRIPTS]
    assert all(text.count("\n") < 40 for text in texts)
    everything = "".join(texts)
    for name in EXPERIMENTS:
        assert f"explore.{name.replace('-', '_')}(" in everything


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_reference_tells_every_option_as_its_help_does(name: str) -> None:
    section = REFERENCE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    experiment = named(name)
    for option in inspect.signature(experiment).parameters:
        assert f"`{option}`" in section, option
    documented = (inspect.getdoc(experiment) or "").partition("\n\n")[2]
    for entry in re.split(r"\n(?=\w)", documented):
        assert " ".join(entry.partition(":")[2].split()) in section


def test_the_gallery_has_a_picture_for_each_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    scripts, folder = tmp_path / "scripts", tmp_path / "gallery"
    scripts.mkdir()
    (scripts / "one.py").write_text(
        '"""A copy."""\nfrom regard import explore\n'
        'explore.copy(n=4).save_figure("copy.svg")\nprint("Found.")\n'
    )
    gallery = runpy.run_path(str(ROOT / "scripts" / "gallery.py"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gallery["main"].__globals__, "SCRIPTS", scripts)
    gallery["main"]([str(folder)])
    page = (folder / "index.md").read_text(encoding="utf-8")
    assert "![A copy](copy.svg)" in page
    assert "Found." in page
    assert (folder / "copy.svg").exists()
