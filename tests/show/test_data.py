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


def with_value(value: Any, *path: str | int) -> str:
    """The file with another value at one place."""
    data = json.loads(regard.work("dot-product", **GIVENS["dot-product"]).to_json())
    place = data
    for word in path[:-1]:
        place = place[word]
    place[path[-1]] = value
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
        (with_value("x\nprint('INJECTED')#", "kind"), "a kind is made of words"),
        (with_value("scores = 1; print", "steps", 0, "name"), "a name is made of words"),
        (with_value("s", "steps", 0, "name"), "two steps are called 's'"),
        (with_value(3, "steps", 0, "symbol", "base"), "the symbol of 'scores' is to be text"),
        (with_value("dims", "givens", 0, "axes", 0, 0), "did you mean 'dim'"),
        (
            with_value("yes", "steps", 0, "options", "transpose_b"),
            "does not take transpose_b='yes'",
        ),
        (with_value(5, "title"), "the title is to be text"),
        (with_value({"scores": "weights"}, "names"), "'scores' cannot be called 'weights'"),
        (with_value("three", "sizes", "d_k"), "breaks the format"),
        ("[" * 100_000, "lists within lists"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(regard.RegardError, match=message):
        read_trace(text)


def test_a_file_travels_between_builds_of_the_same_library() -> None:
    """What rounding leaves of 0 differs from build to build."""
    q = [[0.1, 0.2, -0.3]]
    trace = regard.work("attention", Q=q, K=[[3, 0, 1], [0, 0, 0]], V=[[1], [2]], scale=1)
    data = json.loads(trace.to_json())
    scores = next(step for step in data["steps"] if step["name"] == "scores")
    assert abs(scores["value"][0][0]) < 1e-15
    scores["value"][0][0] = 4.2e-17
    assert read_trace(json.dumps(data)).to_text() == trace.to_text()
    scores["value"][0][0] = 1e-9
    with pytest.raises(regard.FileError, match="'scores' holds values"):
        read_trace(json.dumps(data))


@pytest.mark.parametrize("numbers", ["exact", "certified"])
def test_forged_exact_and_certified_values_are_refused(numbers: str) -> None:
    trace = regard.work("dot-product", **GIVENS["dot-product"], numbers=numbers, digits=30)
    data = json.loads(trace.to_json())
    context = data["steps"][-1]["value"]
    old = context[0]
    forged = ["1/3", "nan", "abc", 1.0]
    if numbers == "certified":
        place = old.index(".") + 25
        forged.append(old[:place] + str((int(old[place]) + 5) % 10) + old[place + 1 :])
    for text in forged:
        context[0] = text
        with pytest.raises(regard.FileError):
            read_trace(json.dumps(data))


def test_certified_values_meet_whatever_bits_they_were_computed_with() -> None:
    trace = regard.work("dot-product", **GIVENS["dot-product"], numbers="certified", digits=30)
    data = json.loads(trace.to_json())
    data["numbers"]["digits"] = 50
    assert read_trace(json.dumps(data))["context"].shape == (3,)


@pytest.mark.parametrize(
    ("change", "step"),
    [({"softcap": 2}, "capped"), ({"scale": 2}, "scaled"), ({"positions": "rotary"}, "q_rotated")],
)
def test_a_number_that_takes_forever_to_write_out_is_refused(change: Any, step: str) -> None:
    trace = regard.work("attention", Q=[[1, 2]], K=[[1, 2]], V=[[1]], **change)
    data = json.loads(trace.to_json())
    options = next(item for item in data["steps"] if item["name"].lower() == step)["options"]
    name = next(word for word in ("cap", "factor", "base") if word in options)
    options[name] = "1e99999999"
    with pytest.raises(regard.FileError, match=f"does not take {name}='1e99999999'"):
        read_trace(json.dumps(data))


def test_a_mask_is_a_mask_still_when_it_comes_back() -> None:
    back = read_trace(regard.work("attention", **GIVENS["attention"]).to_json())
    with pytest.raises(regard.NumberError, match="0 and 1"):
        back.replace(mask=[[1, 0, 1], [1, 1, 1]])


def test_short_floats_come_back_as_they_were_read() -> None:
    value = np.array([[0.8, 0.1]], dtype=np.float32)
    for numbers in ("float64", "exact", "certified"):
        trace = regard.work("attention", Q=value, K=value, V=value, numbers=numbers)
        back = read_trace(trace.to_json())
        assert back.to_json() == trace.to_json()
    assert "4/5" in regard.work("attention", Q=value, K=value, V=value, numbers="exact").to_text()
