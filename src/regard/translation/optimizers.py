"""What changes the weights: optimizers, the rate of learning over time, averages of weights."""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, pi
from typing import Any

import torch

from regard.translation.distributed import placed
from regard.translation.recipes import Recipe

Tensor = Any
Tensors = dict[str, Tensor]
LAST_SHARE = 1e-3


def rate(recipe: Recipe, step: int, steps: int) -> float:
    """Which share of the learning rate update `step` of `steps` takes; the first is 0."""
    warmup = max(1, round(recipe.warmup * steps))
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    share: float = {
        "linear": 1 - done,
        "cosine": (1 + cos(pi * min(done, 1))) / 2,
        "inverse-sqrt": (warmup / (step + 1)) ** 0.5,
        "constant": 1.0,
    }[recipe.schedule]
    return max(share, LAST_SHARE)


class Optimizers:
    """AdamW for everything, or Muon for the matrices between embeddings and output."""

    def __init__(self, model: Any, recipe: Recipe, steps: int) -> None:
        self.recipe, self.steps = recipe, steps
        named = list(model.named_parameters())
        inner = [p for name, p in named if p.dim() == 2 and not _of_tokens(name)]
        others = [p for name, p in named if p.dim() != 2 or _of_tokens(name)]
        self.each: list[tuple[Any, float]] = []
        groups: list[dict[str, Any]] = [{"params": others, "weight_decay": 0.0}]
        if recipe.optimizer == "muon":
            muon = torch.optim.Muon(
                inner, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay, momentum=0.95
            )
            self.each.append((muon, recipe.matrix_rate))
        else:
            groups.append({"params": inner, "weight_decay": recipe.weight_decay})
        adamw = torch.optim.AdamW(
            groups, lr=recipe.learning_rate, betas=(0.9, recipe.beta2), eps=1e-9, fused=True
        )
        self.each.append((adamw, recipe.learning_rate))

    def step(self, number: int, scaler: Any = None, changed: bool = True) -> float:
        """Update number `number`, which may change nothing; returns the learning rate."""
        share = rate(self.recipe, number, self.steps)
        for optimizer, full in self.each:
            for group in optimizer.param_groups:
                group["lr"] = full * share
            if changed and scaler is None:
                optimizer.step()
            elif changed:
                scaler.step(optimizer)
            optimizer.zero_grad(set_to_none=True)
        return self.recipe.learning_rate * share

    def unscale(self, scaler: Any) -> None:
        for optimizer, _ in self.each:
            scaler.unscale_(optimizer)

    def state(self) -> Tensors:
        return {
            f"{number}.{at}.{name}": value
            for number, (optimizer, _) in enumerate(self.each)
            for at, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }

    def restore(self, state: Tensors) -> None:
        for number, (optimizer, _) in enumerate(self.each):
            found: dict[int, dict[str, Tensor]] = {}
            for key, value in state.items():
                of, at, name = key.split(".", 2)
                if int(of) == number:
                    found.setdefault(int(at), {})[name] = value
            held = [p for group in optimizer.param_groups for p in group["params"]]
            for order, values in found.items():
                for name, value in values.items():
                    if value.shape == held[order].shape:
                        values[name] = placed(value, held[order])
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": found, "param_groups": groups})


def _of_tokens(name: str) -> bool:
    """Rows of these belong to tokens or places, not to directions of the width."""
    return any(part in name for part in ("embedding", "places", "head."))


class Average:
    """The weights that are validated and exported: the last ones, or an average of many."""

    def __init__(self, model: Any, recipe: Recipe) -> None:
        self.recipe = recipe
        self._model = model
        self.kept: list[Tensors] = []

    def after_update(self) -> None:
        if self.recipe.average != "ema":
            return
        if not self.kept:
            self.kept = [self._copy()]
        new = dict(self._model.named_parameters())
        old = [self.kept[0][name] for name in new]
        with torch.no_grad():
            torch._foreach_lerp_(old, list(new.values()), 1 - self.recipe.average_decay)

    def before_validation(self) -> None:
        if self.recipe.average == "last":
            self.kept = [*self.kept[1 - self.recipe.average_last :], self._copy()]
            self.kept = self.kept[-self.recipe.average_last :]

    def _copy(self) -> Tensors:
        return {name: p.detach().clone() for name, p in self._model.named_parameters()}

    def weights(self) -> Tensors:
        """By name; the model's own where nothing is averaged."""
        if not self.kept:
            return {name: p.detach() for name, p in self._model.named_parameters()}
        if len(self.kept) == 1:
            return self.kept[0]
        names = self.kept[0]
        return {name: _mean(each[name] for each in self.kept) for name in names}

    def state(self) -> Tensors:
        return {f"{i}.{name}": t for i, each in enumerate(self.kept) for name, t in each.items()}

    def restore(self, state: Tensors) -> None:
        found: dict[int, Tensors] = {}
        held = dict(self._model.named_parameters())
        for key, value in state.items():
            at, _, name = key.partition(".")
            found.setdefault(int(at), {})[name] = placed(value, held[name])
        self.kept = [found[at] for at in sorted(found)]


def _mean(tensors: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(tensors)).mean(0)
