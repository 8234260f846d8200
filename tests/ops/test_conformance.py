"""ONNX's own cases for its operator Attention: all of opsets 23, 24 and 25."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import regard
from regard import conventions
from regard.graph.run import Run

onnx = pytest.importorskip("onnx")

INPUTS = ("q", "k", "v", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
# In the middle of a computation in half precision the reference rounds as well.
ROUNDING = {"float32": 1e-3, "float16": 2e-3, "bfloat16": 2.0**-6}


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other operators' cases overflow on purpose
        from onnx.backend.test.loader import load_model_tests

        made = load_model_tests(kind="node")
    return {
        case.name: case
        for case in made
        if case.name.startswith("test_attention_") and not case.name.endswith("_expanded")
    }


def test_there_are_93() -> None:
    assert len(cases()) == 93


def read(case: Any) -> tuple[dict[str, Any], dict[str, Any], list[str], list[Any]]:
    """Inputs and attributes by name, the outputs that are wanted, and what they are."""
    (node,) = case.model.graph.node
    (data,) = case.data_sets
    given = iter(data[0])
    inputs = {place: next(given) for place, name in zip(INPUTS, node.input, strict=False) if name}
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return inputs, attributes, list(node.output), data[1]


def split(array: Any, heads: int | None) -> Any:
    """(batch, tokens, heads · dim) as (batch, heads, tokens, dim)."""
    if array.ndim == 4:
        return array
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def attend(inputs: dict[str, Any], attributes: dict[str, Any], with_scores: bool) -> list[Any]:
    """The outputs of ONNX's operator, by regard; the fourth if it is wanted."""
    kv_heads = attributes.get("kv_num_heads")
    q = split(inputs["q"], attributes.get("q_num_heads"))
    k, v = (split(inputs[name], kv_heads) for name in "kv")
    past = (inputs["past_key"], inputs["past_value"]) if "past_key" in inputs else None
    present = [k, v]
    if past is not None:
        present = [np.concatenate(pair, axis=2) for pair in zip(past, present, strict=True)]
    options = conventions.onnx(
        inputs.get("attn_mask"),
        nonpad_kv_seqlen=inputs.get("nonpad_kv_seqlen"),
        queries=q.shape[2],
        keys=present[0].shape[2],
        past=0 if past is None else past[0].shape[2],
        **{
            name: attributes[name]
            for name in ("is_causal", "left_window_size", "right_window_size")
            if name in attributes
        },
    )
    options["scale"] = attributes.get("scale", "sqrt")
    options["softcap"] = attributes.get("softcap") or None
    whole = regard.Inspect(rows=range(q.shape[2]))
    output, seen = regard.attention(q, k, v, past=past, inspect=whole, **options)
    if inputs["q"].ndim == 3:
        output = output.swapaxes(1, 2).reshape(*output.shape[::2], -1)
    if not with_scores:
        return [output, *present]
    mode = attributes.get("qk_matmul_output_mode", 0)
    scores = seen.rows if mode == 3 else step_of(mode, q, present, options)
    return [output, *present, scores.astype(q.dtype)]


def step_of(mode: int, q: Any, present: list[Any], options: dict[str, Any]) -> Any:
    """The scores as they are scaled (0), capped (1) or masked (2): steps of the graph."""
    group = q.shape[1] // present[0].shape[1]
    wide = [each.astype(float) for each in (q, *present)]
    k, v = (np.repeat(each, group, axis=1) for each in wide[1:])
    given = {name: each for name, each in options.items() if each is not None}
    if "bias" in given:
        given["bias"] = np.broadcast_to(given["bias"], (*q.shape[:3], k.shape[2]))
    steps: Run = regard.work("attention", Q=wide[0], K=k, V=v, **given)
    names = ("scaled", "capped", "masked" if "masked" in steps else "biased")[: mode + 1]
    return next(steps[name].value for name in reversed(names) if name in steps)


@pytest.mark.parametrize("name", cases())
def test_case(name: str) -> None:
    inputs, attributes, wanted, expected = read(cases()[name])
    have = attend(inputs, attributes, with_scores="qk_matmul_output" in wanted)
    expected = iter(expected)
    for place, output in enumerate(wanted):
        if output:
            want = next(expected)
            assert have[place].dtype == want.dtype
            tolerance = ROUNDING[inputs["q"].dtype.name]
            have_, want_ = have[place].astype(float), want.astype(float)
            np.testing.assert_allclose(have_, want_, tolerance, 1e-7, err_msg=output)
