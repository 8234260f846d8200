"""How a training run tells of itself: a bar in a terminal, lines in a pipe, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from regard._errors import MissingExtraError

EVERY_SECONDS = 10.0


class Teller(Protocol):
    """Gets the events of a run: begin, update, validation, note."""

    def __call__(self, event: str, facts: dict[str, Any]) -> None: ...


@contextmanager
def teller(as_json: bool, folder: str, tensorboard: bool) -> Iterator[Teller]:
    others: list[Teller] = [_tensorboard(folder)] if tensorboard else []
    if as_json:
        yield _all(_json, *others)
    elif sys.stdout.isatty() and os.environ.get("RANK", "0") == "0":
        with _bar() as shown:
            yield _all(shown, *others)
    else:
        yield _all(_Lines(), *others)


def _all(*tellers: Teller) -> Teller:
    def told(event: str, facts: dict[str, Any]) -> None:
        for each in tellers:
            each(event, facts)

    return told


def _json(event: str, facts: dict[str, Any]) -> None:
    print(json.dumps({"event": event, **facts}, ensure_ascii=False), flush=True)


def sentence(event: str, facts: dict[str, Any]) -> str:
    """An event other than an update, in words."""
    if event == "begin":
        start = [f"going on after update {facts['step']:,}"] if facts["step"] else []
        return "\n".join([*facts["lines"], *start])
    if event == "validation":
        best = ", the best so far" if facts["best"] else ""
        return f"update {facts['step']:,}: BLEU {facts['bleu']:.1f}, chrF {facts['chrf']:.1f}{best}"
    return str(facts["text"])


class _Pace:
    """Tokens a second and the time left, over what was done since the start."""

    def __init__(self) -> None:
        self.first: tuple[int, int, float] | None = None

    def __call__(self, facts: dict[str, Any]) -> tuple[float, float]:
        now = facts["step"], facts["tokens"], facts["seconds"]
        self.first = self.first or now
        steps, tokens, seconds = (b - a for a, b in zip(self.first, now, strict=True))
        left = (facts["steps"] - facts["step"]) * seconds / steps if steps else 0.0
        return (tokens / seconds if seconds else 0.0), left


class _Lines:
    """A line every few seconds."""

    def __init__(self) -> None:
        self.next, self.pace = 0.0, _Pace()

    def __call__(self, event: str, facts: dict[str, Any]) -> None:
        if event != "update":
            print(sentence(event, facts), flush=True)
            return
        speed, left = self.pace(facts)
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + EVERY_SECONDS
        print(
            f"update {facts['step']:,}/{facts['steps']:,}  loss {facts['loss']:.3f}  "
            f"{speed:,.0f} tokens/s  {_time(left)} left  {facts['last']}", flush=True,
        )  # fmt: skip


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def _bar() -> Iterator[Teller]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[speed]:,.0f} tokens/s"), TextColumn("{task.fields[left]} left"),
        TextColumn("{task.fields[score]}"),
    )  # fmt: skip
    pace = _Pace()
    with Progress(*columns, refresh_per_second=4) as shown:
        task = shown.add_task("", total=None, loss=0.0, speed=0.0, left="?", score="")

        def told(event: str, facts: dict[str, Any]) -> None:
            if event != "update":
                shown.console.print(sentence(event, facts), highlight=False, markup=False)
                return
            speed, left = pace(facts)
            shown.update(
                task, total=facts["steps"], completed=facts["step"], loss=facts["loss"],
                speed=speed, left=_time(left), score=facts["last"],
            )  # fmt: skip

        yield told


def _tensorboard(folder: str) -> Teller:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("--tensorboard", "tensorboard", "tensorboard") from error
    curves = ("loss", "rate", "norm", "bleu", "chrf")
    make = cache(lambda: SummaryWriter(str(Path(folder) / "tensorboard")))  # a run wants none there

    def told(event: str, facts: dict[str, Any]) -> None:
        for name in curves:
            if name in facts:
                make().add_scalar(name, facts[name], facts["step"])
        if event == "validation":
            make().flush()

    return told
