"""Small runs, quick enough to be trained many times over."""

import sys
from pathlib import Path
from typing import Any

import pytest

from regard.translation.recipes import Recipe

SMALL = Recipe(
    pairs=300, vocabulary=400, width=32, layers=1, heads=1, head_dim=32, batch_tokens=400,
    steps=12, validate_every=5, validate_pairs=8, test_pairs=8, checkpoint_every=4, threads=1,
    learning_rate=1e-3, precision="float32",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def small() -> Recipe:
    return SMALL


class Events(list[tuple[str, dict[str, Any]]]):
    """What a run told."""

    def __call__(self, event: str, facts: dict[str, Any]) -> None:
        self.append((event, facts))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self if name == event]

    def losses(self) -> dict[int, float]:
        return {facts["step"]: facts["loss"] for facts in self.of("update")}


def trained(recipe: Recipe, folder: Path, resume: bool = False) -> tuple[Any, Events]:
    from regard.translation.training import train

    events = Events()
    return train(recipe, folder, events, resume), events
