"""A trace as JSON: it keeps to its schema, comes back the same, and refuses what is damaged."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pytest

import regard
from regard.show.data import read_trace

GIVENS: dict[str, dict[str, Any]] = {
    "dot-product": {"s": [1, 2, 1], "h": [[1, 2, 3], [1, 2, 1], [0, 1, -1]]},
    "attention": {
        "Q": [[1.5, 2], [3, 1]],
        "K": [[2, 1], [1, 1], [0, 1]],
        "V": [[1, 2, -2, 0], [1, 1, 2, 1], [0, 1, -1, 5]],
        "causal": "bottom-right",
        "softcap": "7/3",
        "mask": np.array([[True, False, True], [True, True, True]]),
    },
    "multi-head": {
        "X": np.linspace(-1, 1, 2 * 3 * 4).reshape(2, 3, 4),
        "WQ": np.eye(4),
        "WK": np.eye(4)[::-1],
        "WV": np.arange(24.0).reshape(4, 6),
        "heads": 2,
        "lengths": [2, 3],
        "positions": "rotary",
    },
}


def schema() -> dict[str, Any]:
    loaded = json.loads(files("regard.show").joinpath("trace.schema.json").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("kind", GIVENS)
def test_a_trace_keeps_to_its_schema_and_comes_back_the_same(kind: str) -> None:
    trace = regard.work(kind, **GIVENS[kind])
    text = trace.to_json()
    jsonschema.validate(json.loads(text), schema())
    back = read_trace(text)
    assert back.steps == trace.steps
    for name in trace.run.graph.names:
        np.testing.assert_array_equal(back[name].value, trace[name].value, err_msg=name)
    assert back.to_json() == text


def test_the_gradient_comes_back_with_only_its_own_steps_shown() -> None:
    trace = regard.work("attention", **GIVENS["attention"]).gradient()
    back = read_trace(trace.to_json())
    assert back.steps == trace.steps
    assert all(name.startswith("d_") for name in back.steps)


@pytest.mark.parametrize("numbers", ["exact", "certified"])
def test_exact_and_certified_values_are_text_and_are_computed_again(numbers: str) -> None:
    trace = regard.work("dot-product", **GIVENS["dot-product"], numbers=numbers, digits=25)
    text = trace.to_json()
    jsonschema.validate(json.loads(text), schema())
    back = read_trace(text)
    assert back.to_text(digits=20) == trace.to_text(digits=20)


def test_a_value_put_in_stays_put_in() -> None:
    trace = regard.work("dot-product", **GIVENS["dot-product"]).replace(weights=["1/3", 0.5, 2])
    back = read_trace(trace.to_json())
    assert dict(back.run.replaced).keys() == {"weights"}
    np.testing.assert_array_equal(back["context"].value, trace["context"].value)


def test_what_is_not_finite_is_written_as_text() -> None:
    trace = regard.work("dot-product", s=[float("inf"), 1], h=[[0, 1], [1, 1], [-1, 0]])
    scores = next(step for step in json.loads(trace.to_json())["steps"] if step["name"] == "scores")
    assert scores["value"] == ["nan", "inf", "-inf"]
    back = read_trace(trace.to_json())
    np.testing.assert_array_equal(back["scores"].value, trace["scores"].value)


def changed(change: str) -> str:
    data = json.loads(regard.work("dot-product", **GIVENS["dot-product"]).to_json())
    match change:
        case "version":
            data["version"] = 99
        case "operation":
            data["steps"][0]["operation"] = "matmull"
        case "value":
            data["steps"][-1]["value"][0] += 1e-6
        case "missing":
            del data["steps"][0]["operands"]
        case "order":
            data["steps"].reverse()
        case "option":
            data["steps"][0]["options"]["speed"] = 3
        case "shape":
            data["steps"][-1]["shape"] = [4]
        case "given":
            data["givens"][0]["value"][0] = ["a", "b", "c"]
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "no regard-trace file"),
        ('{"schema": "other"}', "no regard-trace file"),
        (changed("version"), "version 99, this regard reads 1"),
        (changed("operation"), "did you mean 'matmul'"),
        (changed("value"), "'context' holds values that its own operation does not give"),
        (changed("missing"), "breaks the format of version 1: .*operands"),
        (changed("order"), "before they are computed"),
        (changed("option"), "speed"),
        (changed("shape"), r"'context' has shape \[4\] in the file"),
        (changed("given"), "'a'"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(regard.RegardError, match=message):
        read_trace(text)
