"""The catalogue of mistakes: each a rewrite of the graph, and the words that explain it."""

from __future__ import annotations

from regard.mistakes._catalogue import CATALOGUE, mistake_named
from regard.mistakes._discrimination import Discrimination, discriminate, same
from regard.mistakes._mistake import Cause, Mistake, Way
from regard.mistakes._replay import Committed, commit, commit_all, replay

__all__ = [
    "CATALOGUE",
    "Cause",
    "Committed",
    "Discrimination",
    "Mistake",
    "Way",
    "commit",
    "commit_all",
    "discriminate",
    "mistake_named",
    "replay",
    "same",
]
