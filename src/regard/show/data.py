"""A trace as JSON, for other programs, and back. The format is described in trace.schema.json.

What is read back is the graph and what was given; the values are computed again and compared
with those in the file, so that a file cannot claim numbers that its own steps do not give.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._errors import FileError, RegardError, did_you_mean
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.numbers import numbers_named, read_given
from regard.graph.operation import Array, Axes, Axis, Operation
from regard.graph.operations import OPERATIONS
from regard.graph.polynomial import Polynomial
from regard.graph.run import Run, run

if TYPE_CHECKING:
    from regard.show.trace import Trace

SCHEMA = "regard-trace"
VERSION = 1


def to_json(trace: Trace) -> str:
    return json.dumps(to_data(trace), ensure_ascii=False, indent=1)


def to_data(trace: Trace) -> dict[str, Any]:
    computed, graph = trace.run, trace.run.graph
    numbers = {"kind": computed.numbers.word}
    if hasattr(computed.numbers, "digits"):
        numbers["digits"] = computed.numbers.digits
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "kind": graph.kind,
        "title": trace.title,
        "numbers": numbers,
        "sizes": dict(graph.sizes),
        "names": dict(trace.names),
        "shown": None if graph.shown is None else list(graph.shown),
        "replaced": {name: plain_values(value) for name, value in computed.replaced.items()},
        "givens": [
            _named(given.name, given.symbol, given.axes)
            | {"shape": list(computed.givens[given.name].shape)}
            | {"value": plain_values(computed.givens[given.name])}
            for given in graph.givens
        ],
        "steps": [_step_data(computed, step) for step in graph.steps],
    }


def _named(name: str, symbol: Symbol, axes: Axes) -> dict[str, Any]:
    return {
        "name": name,
        "symbol": {part: text for part, text in asdict(symbol).items() if text},
        "axes": [[axis.name, str(axis.size)] for axis in axes],
    }


def _step_data(computed: Run, step: Step) -> dict[str, Any]:
    operation = step.operation
    options = {option.name: getattr(operation, option.name) for option in fields(operation)}
    value = computed.values[step.name]
    return _named(step.name, step.symbol, computed.graph.axes[step.name]) | {
        "operation": operation.word,
        "options": {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()},
        "operands": list(step.operands),
        "shape": list(value.shape),
        "value": plain_values(value, getattr(computed.numbers, "digits", 15)),
    }


def plain_values(array: Array, digits: int = 15) -> Any:
    """Nested lists; finite floats and truth values as they are, everything else as text.

    `digits` is how many a certified value is written with.
    """
    return _plain(array.tolist(), digits)


def _plain(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_plain(entry, digits) for entry in value]
    finite = isinstance(value, float) and isfinite(value)
    if finite or isinstance(value, (bool, int)):
        return value
    if hasattr(value, "rad"):  # a certified ball
        return _ball(value, digits)
    return str(value)


def _ball(ball: Any, digits: int) -> str:
    """As many digits as were asked for, and how far the true value can be from them."""
    if ball.is_finite():
        return str(ball.str(digits, more=True))
    if ball.is_nan():
        return "nan"
    return "inf" if ball > 0 else "-inf"


# ---- reading it back -----------------------------------------------------------------------


def read_trace(text: str) -> Trace:
    """The trace that `to_json` wrote."""
    from regard.show.trace import Trace

    data = _checked(text)
    try:
        graph = _read_graph(data)
        given = {item["name"]: _read_values(item) for item in data["givens"]}
        replaced = {
            name: _read_values({"name": name, "value": value, "shape": None})
            for name, value in data["replaced"].items()
        }
        numbers = numbers_named(data["numbers"]["kind"], data["numbers"].get("digits", 15))
        computed = run(graph, given, numbers, replaced)
        _compare(computed, data)
        return Trace(computed, data["names"], data["title"])
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, RegardError):
            raise
        raise FileError(
            f"trace: the file breaks the format of version {VERSION}: {error!r}"
        ) from error


def _checked(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(f"trace: line {error.lineno} is no JSON: {error.msg}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise FileError(f'trace: this JSON is no {SCHEMA} file (it has no "schema": "{SCHEMA}")')
    if data.get("version") != VERSION:
        raise FileError(
            f"trace: the file has version {data.get('version')!r}, this regard reads {VERSION}"
        )
    return data


def _read_graph(data: dict[str, Any]) -> Graph:
    givens = [
        Given(g["name"], Symbol(**g["symbol"]), _read_axes(g["axes"])) for g in data["givens"]
    ]
    steps = [
        Step(s["name"], Symbol(**s["symbol"]), _read_operation(s), tuple(s["operands"]))
        for s in data["steps"]
    ]
    shown = None if data["shown"] is None else tuple(data["shown"])
    return Graph(data["kind"], tuple(givens), tuple(steps), data["sizes"], shown)


def _read_axes(axes: list[list[str]]) -> Axes:
    return tuple(Axis(name, Polynomial.parse(size)) for name, size in axes)


def _read_operation(step: dict[str, Any]) -> Operation:
    word = step["operation"]
    if word not in OPERATIONS:
        raise FileError(
            f"trace: step {step['name']!r} has operation {word!r}: {did_you_mean(word, OPERATIONS)}"
        )
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in step["options"].items()}
    return OPERATIONS[word](**options)


def _read_values(item: dict[str, Any]) -> Array:
    array = read_given(item["name"], _from_lists(item["value"]))
    return array if item["shape"] is None else array.reshape(item["shape"])


def _from_lists(value: Any) -> Any:
    """Exact fractions stay exact; the words for NaN and ∞ become numbers."""
    if isinstance(value, list):
        return [_from_lists(entry) for entry in value]
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        return Fraction(value)
    return float(value) if isinstance(value, str) else value


def _compare(computed: Run, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        value = computed.values[item["name"]]
        if list(value.shape) != item["shape"]:
            raise FileError(
                f"trace: step {item['name']!r} has shape {item['shape']} in the file, "
                f"but its operation gives {list(value.shape)}"
            )
        if value.dtype == np.float64:
            stored = np.asarray(_from_lists(item["value"]), dtype=float).reshape(value.shape)
            if not np.allclose(stored, value, rtol=1e-9, atol=0, equal_nan=True):
                raise FileError(
                    f"trace: step {item['name']!r} holds values that its own operation "
                    "does not give: the file was changed by hand or is damaged"
                )
