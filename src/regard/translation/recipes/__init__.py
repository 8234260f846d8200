"""Recipes: everything that a training run needs to be told, with one vocabulary.

The same words stand in TOML files, after `--set` and in the checkpoint.
"""

from regard.translation.recipes._recipe import RECIPES, Recipe, read_recipe

__all__ = ["RECIPES", "Recipe", "read_recipe"]
