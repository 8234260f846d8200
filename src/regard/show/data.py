"""A trace as JSON, for other programs, and back. The format is described in trace.schema.json.

What is read back is the graph and what was given; the values are computed again and compared
with those in the file, so that a file cannot claim numbers that its own steps do not give.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._axes import GLOSSARY
from regard._errors import FileError, RegardError, did_you_mean
from regard._options import one_of
from regard.graph.aliases import check_aliases
from regard.graph.graph import Given, Graph, Step
from regard.graph.notation import Symbol
from regard.graph.numbers import (
    FAR_EXPONENT,
    NOT_FINITE,
    Float64,
    as_printed,
    numbers_named,
    read_given,
)
from regard.graph.operation import Array, Axes, Axis, Operation
from regard.graph.operations import OPERATIONS
from regard.graph.polynomial import Polynomial
from regard.graph.run import Run, run
from regard.show._values import ball_text, plain_values

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
        "replaced": {name: _given_values(computed, name) for name in computed.replaced},
        "givens": [
            _named(given.name, given.symbol, given.axes)
            | {"shape": list(computed.givens[given.name].shape)}
            | {"value": _given_values(computed, given.name)}
            | ({"is_mask": True} if given.is_mask else {})
            for given in graph.givens
        ],
        "steps": [_step_data(computed, step) for step in graph.steps],
    }


def _given_values(computed: Run, name: str) -> Any:
    """What was given or put in; exactly as it was read where numbers are exact or certified."""
    value = {**computed.givens, **computed.replaced}[name]
    is_binary = isinstance(computed.numbers, Float64)
    return plain_values(value if is_binary else as_printed(value))


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
        return Trace(computed, check_aliases(data["names"], graph.names), _title(data["title"]))
    except RegardError:
        raise
    except _DAMAGE as error:
        raise FileError(
            f"trace: the file breaks the format of version {VERSION}: {error!r}"
        ) from error


# What reading or running a file can raise when its parts are not of the types or sizes they are
# to be; everything else is a mistake of regard's own.
_DAMAGE = (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError)


def _title(title: Any) -> str | None:
    if title is None or isinstance(title, str):
        return title
    raise FileError(f"trace: the title is to be text, but is {title!r}")


def _checked(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(f"trace: line {error.lineno} is no JSON: {error.msg}") from error
    except RecursionError as error:
        raise FileError("trace: lists within lists, deeper than any array") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise FileError(f'trace: this JSON is no {SCHEMA} file (it has no "schema": "{SCHEMA}")')
    if data.get("version") != VERSION:
        raise FileError(
            f"trace: the file has version {data.get('version')!r}, this regard reads {VERSION}"
        )
    return data


def _read_graph(data: dict[str, Any]) -> Graph:
    givens = [
        Given(_name(g["name"]), _read_symbol(g), _read_axes(g["axes"]), g.get("is_mask") is True)
        for g in data["givens"]
    ]
    steps = [
        Step(_name(s["name"]), _read_symbol(s), _read_operation(s), tuple(s["operands"]))
        for s in data["steps"]
    ]
    sizes = {_name(name): int(size) for name, size in data["sizes"].items()}
    shown = None if data["shown"] is None else tuple(data["shown"])
    kind = _matching("kind", KIND, data["kind"])
    return Graph(kind, tuple(givens), tuple(steps), sizes, shown).with_shapes()


# Kinds, names and sizes are plain words: they become comments and variables of programs.
KIND = re.compile(r"[\w-]+( [\w-]+)*")
NAME = re.compile(r"\w+")


def _matching(what: str, pattern: re.Pattern[str], text: Any) -> str:
    if isinstance(text, str) and pattern.fullmatch(text):
        return text
    raise FileError(f"trace: a {what} is made of words, but the file has {text!r}")


def _name(text: Any) -> str:
    return _matching("name", NAME, text)


def _read_symbol(item: dict[str, Any]) -> Symbol:
    symbol = Symbol(**item["symbol"])
    if not all(isinstance(part, str) for part in asdict(symbol).values()):
        raise FileError(f"trace: the symbol of {item['name']!r} is to be text: {item['symbol']!r}")
    return symbol


def _read_axes(axes: list[list[str]]) -> Axes:
    return tuple(
        Axis(one_of("axis", name, GLOSSARY), Polynomial.parse(size)) for name, size in axes
    )


def _read_operation(step: dict[str, Any]) -> Operation:
    word = step["operation"]
    if word not in OPERATIONS:
        raise FileError(
            f"trace: step {step['name']!r} has operation {word!r}: {did_you_mean(word, OPERATIONS)}"
        )
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in step["options"].items()}
    defaults = {option.name: option.default for option in fields(OPERATIONS[word])}
    for name, value in options.items():
        is_far = isinstance(value, str) and FAR_EXPONENT.search(value)
        if is_far or (name in defaults and not _is_like(value, defaults[name])):
            raise FileError(
                f"trace: the operation {word} of {step['name']!r} does not take {name}={value!r}"
            )
    return OPERATIONS[word](**options)


def _is_like(value: Any, default: Any) -> bool:
    if isinstance(value, tuple) and not all(isinstance(part, str) for part in value):
        return False
    return type(value) is type(default)


def _read_values(item: dict[str, Any]) -> Array:
    array = read_given(item["name"], _from_lists(item["value"]))
    return array if item["shape"] is None else array.reshape(item["shape"])


def _from_lists(value: Any) -> Any:
    """The words for NaN and ∞ as numbers; all other text is for `read_given` to read."""
    if isinstance(value, list):
        return [_from_lists(entry) for entry in value]
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _compare(computed: Run, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        value = computed.values[item["name"]]
        if list(value.shape) != item["shape"]:
            raise FileError(
                f"trace: step {item['name']!r} has shape {item['shape']} in the file, "
                f"but its operation gives {list(value.shape)}"
            )
        if not _agrees(computed, item["name"], item["value"]):
            raise FileError(
                f"trace: step {item['name']!r} holds values that its own operation "
                "does not give: the file was changed by hand or is damaged"
            )


def _agrees(computed: Run, name: str, stored: Any) -> bool:
    """Whether the stored values are those computed, but for what rounding and proofs leave open.

    Float64 differs between builds of the same library by its last digits; where 0 is due, by as
    much as rounding leaves of it.
    """
    value = computed.values[name]
    if value.dtype == np.float64:
        found = np.asarray(_from_lists(stored), dtype=float).reshape(value.shape)
        rounding = computed.roundings[name]
        return bool(np.allclose(found, value, rtol=1e-9, atol=rounding, equal_nan=True))
    texts = np.asarray(stored, dtype=object).reshape(value.shape)
    pairs = [(value[place], texts[place]) for place in np.ndindex(value.shape)]
    digits = getattr(computed.numbers, "digits", None)
    if digits is None:
        return all(str(entry) == text for entry, text in pairs)
    from regard.graph.certified import precision

    with precision(4 * digits + 64):  # more bits than the digits of the file hold
        return all(_meets(ball, text) for ball, text in pairs)


def _meets(ball: Any, text: Any) -> bool:
    """Whether a certified value and the digits in a file can be of the same number."""
    if not ball.is_finite() or not isinstance(text, str):
        return bool(ball_text(ball, 1) == text)
    stored = type(ball)(text)
    return bool(stored.is_finite() and ball.overlaps(stored))
