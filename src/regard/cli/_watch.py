"""The curves of a run, drawn in the terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from regard._errors import FileError
from regard.translation.runs import Run

HEIGHT = 10
EVERY_SECONDS = 2.0
# Two by four dots in a character: the bit of each, by row from the top, left and right.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def watch(folder: str) -> int:
    """Once into a pipe; in a terminal again and again, until the run ends or Ctrl-C."""
    run = Run(folder)
    run.recipe()  # an error where there is no run
    if not sys.stdout.isatty():
        print(curves(run, 80))
        return 0
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(Text(curves(run, console.width)), refresh=True)
            if _ended(run):
                return 0
            time.sleep(EVERY_SECONDS)


def _ended(run: Run) -> bool:
    return any("finished" in facts for facts in run.logged())


def curves(run: Run, width: int) -> str:
    """Loss and BLEU over the updates, and where the run stands."""
    logged = list(run.logged())
    losses = [(facts["step"], facts["loss"]) for facts in logged if "loss" in facts]
    if not losses:
        raise FileError(f"watch: {str(run.folder)!r} has logged nothing yet")
    parts = [_curve("loss", losses, width)]
    scores = [(facts["step"], facts["bleu"]) for facts in logged if "bleu" in facts]
    if len(scores) > 1:
        parts.append(_curve("BLEU on the validation set", scores, width))
    last = next(facts for facts in reversed(logged) if "loss" in facts)
    state = f"update {last['step']:,}, {last['tokens']:,} tokens, {last['seconds']:,.0f} s"
    best = max((score, step) for step, score in scores) if scores else None
    parts.append(state + (f", best BLEU {best[0]:.1f} (update {best[1]:,})" if best else ""))
    return "\n".join(parts)


def _curve(title: str, points: list[tuple[int, float]], width: int) -> str:
    """A line of dots between its smallest and largest value, both written on the left."""
    columns = 2 * max(10, width - 10)
    low, high = min(y for _, y in points), max(y for _, y in points)
    values = _by_column(points, columns)
    cells: list[list[int]] = [[0] * (columns // 2) for _ in range(HEIGHT)]
    for x, value in enumerate(values):
        level = round((high - value) / ((high - low) or 1) * (4 * HEIGHT - 1))
        cells[level // 4][x // 2] |= DOTS[level % 4][x % 2]
    rows = ["".join(chr(0x2800 + cell) for cell in row).rstrip("\u2800") for row in cells]
    labels = [f"{high:8.2f} "] + [" " * 9] * (HEIGHT - 2) + [f"{low:8.2f} "]
    body = "\n".join(label + "│" + row for label, row in zip(labels, rows, strict=True))
    first, last = points[0][0], points[-1][0]
    axis = f"{'':9}└{first:,}".ljust(width - len(f"{last:,}")) + f"{last:,}"
    return f"{title}\n{body}\n{axis}"


def _by_column(points: list[tuple[int, float]], columns: int) -> list[float]:
    """The mean of what falls into each column, or what a straight line between points gives."""
    import numpy as np

    steps, values = (np.array(side, dtype=float) for side in zip(*points, strict=True))
    if len(points) > columns:
        parts: list[Any] = np.array_split(values, columns)
        return [float(part.mean()) for part in parts]
    places = np.linspace(steps[0], steps[-1], columns)
    return [float(value) for value in np.interp(places, steps, values)]
