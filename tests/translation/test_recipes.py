"""Recipes: the same words everywhere, and errors that name the nearest one."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from regard import FileError, OptionError
from regard.translation.recipes import RECIPES, Recipe, read_recipe


@pytest.mark.parametrize("name", RECIPES)
def test_the_package_has_them_and_they_are_written_as_read(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    assert recipe.corpus == name
    (tmp_path / "again.toml").write_text(recipe.written())
    assert read_recipe(str(tmp_path / "again.toml")) == recipe


def test_settings_win_and_take_the_type_of_their_word() -> None:
    settings = ["dropout=0.3", "batch-tokens=1000", "with_source=true", "epochs=2", "corpus=a b"]
    recipe = read_recipe("multi30k", settings)
    assert (recipe.dropout, recipe.batch_tokens, recipe.with_source) == (0.3, 1000, True)
    assert (recipe.epochs, recipe.corpus) == (2.0, "a b")
    assert asdict(read_recipe("multi30k")) | asdict(recipe) == asdict(recipe)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("droput=0.3", "a recipe has no word 'droput': did you mean 'dropout'?"),
        ("dropout", "--set takes name=value, such as dropout=0.3, not 'dropout'"),
        ("dropout=1.5", "`dropout` must be at least 0 and below 1, but is 1.5"),
        ("layers=two", "`layers` takes a whole number, but 'two' was passed"),
        ("layers=2.5", "`layers` takes a whole number, but '2.5' was passed"),
        ("with_source=1", "`with_source` takes true or false, but '1' was passed"),
        ("optimizer=adam", "`optimizer` must be one of 'adamw', 'muon', but 'adam' was passed"),
        ("batch_tokens=0", "`batch_tokens` must be at least 1, but is 0"),
        ("epochs=nan", "`epochs` must be a finite number, but is nan"),
        ("learning_rate=inf", "`learning_rate` must be a finite number, but is inf"),
        ("source=a.fr", "`source` and `target` go together"),
    ],
)
def test_what_is_wrong_is_said(setting: str, said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        read_recipe("pocket", [setting])


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="did you mean 'multi30k'"):
        read_recipe("multi30")
    (tmp_path / "broken.toml").write_text("a = = 1")
    with pytest.raises(FileError, match=r"broken\.toml"):
        read_recipe(str(tmp_path / "broken.toml"))
    (tmp_path / "odd.toml").write_text("layer = 1")
    with pytest.raises(OptionError, match=r"odd\.toml.*did you mean 'layers'"):
        read_recipe(str(tmp_path / "odd.toml"))


def test_by_itself_a_recipe_is_whole() -> None:
    assert Recipe().changed({}) == Recipe()


def test_the_reference_has_every_word_and_what_it_is_by_itself() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "recipes.md"
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\| ", page.read_text("utf-8"), re.MULTILINE)
    usual = {
        name: str(said).lower() if isinstance(said, bool) else str(said)
        for name, said in asdict(Recipe()).items()
    }
    assert dict(rows) == usual
