"""The words of a recipe, their checks, and where they are read from."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from regard._errors import FileError, OptionError, did_you_mean
from regard._options import is_integer, one_of

RECIPES = ("pocket", "multi30k")
CHOICES = {
    "optimizer": ("adamw", "muon"),
    "schedule": ("linear", "cosine", "inverse-sqrt", "constant"),
    "average": ("none", "ema", "last"),
    "precision": ("auto", "float32", "bfloat16", "float16"),
    "compile": ("auto", "yes", "no"),
}
POSITIVE = ("vocabulary", "batch_tokens", "accumulate", "validate_every", "validate_pairs",
            "test_pairs", "longest", "checkpoint_every", "pairs", "average_last",
            "keep")  # fmt: skip
SHARES = ("dropout", "smoothing", "bpe_dropout", "warmup", "average_decay", "beta2")


@dataclass(frozen=True)
class Recipe:
    """What a run is made of. Left alone, it trains the pocket translator."""

    # The corpus: a name (pocket, multi30k, tatoeba, newstest) or a file with both sides, else two
    # files, `source` and `target`; and what it is tried on.
    corpus: str = "pocket"
    source: str = ""
    target: str = ""
    validation: str = ""
    test: str = ""
    source_field: str = "fr"
    target_field: str = "en"
    data_dir: str = ""
    pairs: int = 60000
    longest: int = 256

    # The tokenizer.
    vocabulary: int = 6000
    bpe_dropout: float = 0.0

    # The model: the words of regard.model.Config.
    shape: str = "llama"
    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 0
    head_dim: int = 64
    hidden: int = 0
    scale_embeddings: bool = False
    source_mask: str = "prefix"
    dropout: float = 0.1
    with_source: bool = False

    # Batches: tokens of one step, padding not counted; steps that are added up before an update.
    batch_tokens: int = 2048
    accumulate: int = 1

    # The optimizer. `warmup` is a share of all updates.
    optimizer: str = "adamw"
    learning_rate: float = 2e-3
    matrix_rate: float = 0.02
    schedule: str = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.01
    beta2: float = 0.98
    clip: float = 1.0
    smoothing: float = 0.1
    r_drop: float = 0.0
    average: str = "none"
    average_decay: float = 0.999
    average_last: int = 5

    # How long: epochs, or updates where `steps` is not 0.
    epochs: float = 10.0
    steps: int = 0

    # Validation: every so many updates, on so many pairs; `patience` 0 never stops early.
    validate_every: int = 500
    validate_pairs: int = 1000
    test_pairs: int = 5000
    patience: int = 0
    checkpoint_every: int = 500
    keep: int = 2

    # The machine.
    seed: int = 1
    precision: str = "auto"
    compile: str = "auto"
    threads: int = 0
    sharded: bool = False

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            one_of(name, getattr(self, name), choices)
        for name in POSITIVE:
            self._at_least(name, 1)
        for name in ("steps", "patience", "seed", "threads", "r_drop", "epochs", "clip",
                     "learning_rate", "matrix_rate", "weight_decay"):  # fmt: skip
            self._at_least(name, 0)
        for name in SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise OptionError(
                    f"`{name}` must be at least 0 and below 1, but is {getattr(self, name)}"
                )
        if bool(self.source) != bool(self.target):
            raise OptionError("`source` and `target` go together: one file for each language")

    def _at_least(self, name: str, least: int) -> None:
        if not isfinite(getattr(self, name)):
            raise OptionError(f"`{name}` must be a finite number, but is {getattr(self, name)}")
        if getattr(self, name) < least:
            raise OptionError(f"`{name}` must be at least {least}, but is {getattr(self, name)}")

    def changed(self, said: Mapping[str, object]) -> Recipe:
        """With these words instead; an unknown one is an error that names the nearest."""
        known = {field.name: field.type for field in fields(self)}
        for name in said:
            if name not in known:
                raise OptionError(f"a recipe has no word {name!r}: {did_you_mean(name, known)}")
        return replace(self, **{name: _typed(name, known[name], said[name]) for name in said})

    def model_words(self) -> dict[str, Any]:
        """What of it describes the model."""
        names = ("width", "layers", "heads", "kv_heads", "head_dim", "hidden", "source_mask",
                 "dropout", "scale_embeddings")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def written(self) -> str:
        """As TOML: only the words that differ from what a recipe says by itself, and `corpus`."""
        usual = asdict(Recipe())
        said = {n: v for n, v in asdict(self).items() if v != usual[n] or n == "corpus"}
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items())


def _typed(name: str, kind: object, given: object) -> Any:
    """The value as the kind that the word takes; text from the command line is read."""
    if kind == "str" and isinstance(given, str):
        return given
    read = _value(given) if isinstance(given, str) else given
    if kind == "bool" and isinstance(read, bool):
        return read
    if kind == "int" and is_integer(read):
        return read
    if kind == "float" and isinstance(read, int | float) and not isinstance(read, bool):
        return float(read)
    wanted = {"int": "a whole number", "float": "a number", "bool": "true or false",
              "str": "text"}[str(kind)]  # fmt: skip
    raise OptionError(f"`{name}` takes {wanted}, but {given!r} was passed")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def read_recipe(source: str, settings: Sequence[str] = ()) -> Recipe:
    """A recipe of the package or a TOML file, with `name=value` settings on top."""
    said = _read(source)
    base = Recipe()
    try:
        recipe = base.changed(said)
    except OptionError as error:
        raise OptionError(f"recipe {source!r}: {error}") from error
    return recipe.changed(dict(map(_setting, settings)))


def _read(source: str) -> dict[str, Any]:
    if source in RECIPES:
        text = files(__package__).joinpath(f"{source}.toml").read_text(encoding="utf-8")
    elif Path(source).is_file():
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    else:
        hint = did_you_mean(source, RECIPES)
        raise FileError(f"recipe {source!r} is neither a file nor one of the package's: {hint}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"recipe {source!r}: {error}") from error


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--set takes name=value, such as dropout=0.3, not {text!r}")
    return name.strip().replace("-", "_"), value.strip()
