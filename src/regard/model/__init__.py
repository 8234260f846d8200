"""The decoder-only Transformer, its loss, its cache and its checkpoints."""

from regard.model._cache import Cache
from regard.model._checkpoint import best_of, from_transformers, load, save
from regard.model._config import Config
from regard.model._loss import loss, predicting
from regard.model._transformer import Transformer

__all__ = [
    "Cache",
    "Config",
    "Transformer",
    "best_of",
    "from_transformers",
    "load",
    "loss",
    "predicting",
    "save",
]
