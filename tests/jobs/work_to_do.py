"""Functions that worker processes find by name."""

import math
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any


def drawn(piece: dict[str, Any], seed: int) -> dict[str, Any]:
    """Takes a moment, and draws from its seed."""
    time.sleep(piece.get("seconds", 0))
    return {"n": piece["n"], "draw": random.Random(seed).random(), "inf": math.inf}


def noted(piece: dict[str, Any], seed: int) -> int:
    """Leaves a line in a file each time it is called."""
    with Path(piece["file"]).open("a", encoding="utf-8") as file:
        file.write(f"{piece['n']}\n")
    return int(piece["n"])


def failing(piece: dict[str, Any], seed: int) -> int:
    """Fails for 3, is killed at 5."""
    if piece["n"] == 3:
        raise ValueError("three is refused")
    if piece["n"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return int(piece["n"])


def talkative(piece: dict[str, Any], seed: int) -> str:
    """Prints to, and reads from, what a worker speaks through."""
    print("{}")
    os.write(1, b"{}\n")
    return sys.stdin.read()


def unspeakable(piece: dict[str, Any], seed: int) -> object:
    return {1, 2}
