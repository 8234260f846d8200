"""The operators that ours is compared with, each as a call without arguments."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from math import sqrt
from typing import Any

import numpy as np

import regard

WINDOW = 255  # keys before its own that a query sees
Calls = dict[str, Callable[[], Any]]
OPTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "causal": {"causal": True},
    "window": {"window": (WINDOW, 0)},
}


def versions() -> str:
    """Which packages stand beside ours."""
    names = [name for name in ("torch", "onnxruntime", "jax", "numpy") if find_spec(name)]
    return ", ".join(f"{name} {version(name)}" for name in names)


def contestants(case: Any, operands: list[np.ndarray]) -> Calls:
    """Everybody who can do `case`, ours first."""
    if case.backward:
        return _backward(case, operands)
    q, k, v = operands
    options = {"mask": case.visible} if case.sees == "mask" else OPTIONS[case.sees]
    calls: Calls = {"regard": lambda: regard.attention(q, k, v, **options)}
    for package, peer in (("torch", _torch), ("onnxruntime", _onnxruntime), ("jax", _jax)):
        if find_spec(package):
            calls.update(peer(case, operands))
    if case.heads * case.n * case.n <= 2**24:
        calls["numpy"] = lambda: _plain(case, operands)
    return calls


def in_float64(case: Any, operands: list[np.ndarray]) -> np.ndarray:
    """The right answer, one head after another."""
    q, k, v = (each.astype(np.float64) for each in operands)
    group = q.shape[1] // k.shape[1]
    hidden = np.where(case.visible, 0.0, -np.inf)
    heads = []
    for head in range(q.shape[1]):
        scores = q[0, head] @ k[0, head // group].T / sqrt(case.d) + hidden
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(weights @ v[0, head // group] / weights.sum(-1, keepdims=True))
    return np.stack(heads)[None]


def as_numpy(answer: Any, heads: int) -> np.ndarray:
    """The output of any contestant, heads first."""
    array = np.asarray(answer[0] if isinstance(answer, (list, tuple)) else answer)
    if array.ndim == 3:  # Microsoft's operators: heads within a token
        array = array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)
    return array


def _plain(case: Any, operands: list[np.ndarray]) -> np.ndarray:
    q, k, v = operands
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each, group, 1) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.float32(sqrt(case.d))
    if case.sees != "all":
        scores = np.where(case.visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def _torch(case: Any, operands: list[np.ndarray]) -> Calls:
    torch = import_module("torch")
    q, k, v = map(torch.from_numpy, operands)
    attend = torch.nn.functional.scaled_dot_product_attention
    options: dict[str, Any] = {"enable_gqa": k.shape[1] != q.shape[1]}
    if case.sees == "causal":
        options["is_causal"] = True
    elif case.sees != "all":
        options["attn_mask"] = torch.from_numpy(case.visible)
    return {"torch": lambda: attend(q, k, v, **options)}


def _jax(case: Any, operands: list[np.ndarray]) -> Calls:
    jax = import_module("jax")
    q, k, v = (jax.numpy.asarray(each.swapaxes(1, 2)) for each in operands)  # tokens first
    options: dict[str, Any] = {}
    if case.sees == "mask":
        options["mask"] = jax.numpy.asarray(case.visible)
    elif case.sees != "all":
        options["is_causal"] = True
        if case.sees == "window":
            options["local_window_size"] = (WINDOW, 0)
    attend = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, **options))
    return {"jax": lambda: attend(q, k, v).block_until_ready().swapaxes(1, 2)}


def _backward(case: Any, operands: list[np.ndarray]) -> Calls:
    """Forward and backward, since what is kept between them is a choice of each."""
    if not find_spec("torch"):
        raise SystemExit("operator: the backward pass is compared through torch: pip install torch")
    torch = import_module("torch")
    q, k, v = (torch.from_numpy(each).requires_grad_() for each in operands)
    d_out = torch.ones_like(q)
    causal = case.sees == "causal"
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def through(attend: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(attend(), (q, k, v), d_out)

    return {
        "regard": through(lambda: regard.attention(q, k, v, causal=causal)),
        "torch": through(lambda: sdpa(q, k, v, is_causal=causal)),
    }


def _onnxruntime(case: Any, operands: list[np.ndarray]) -> Calls:
    if not find_spec("onnx"):
        return {}
    calls = {}
    for name, make in (
        ("ort Attention", _standard),
        ("ort MultiHead", _multi_head),
        ("ort GroupQuery", _group_query),
    ):
        model = make(case, operands)
        if model is not None:
            calls[name] = _session(*model)
    return calls


def _session(node: Any, inputs: dict[str, np.ndarray], outputs: list[str]) -> Callable[[], Any]:
    onnx, ort = import_module("onnx"), import_module("onnxruntime")
    helper = onnx.helper

    def told(name: str, array: np.ndarray) -> Any:
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )

    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "attention",
        [told(*item) for item in inputs.items()],
        [helper.make_tensor_value_info(name, float32, None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda: session.run(outputs[:1], inputs)


def _standard(case: Any, operands: list[np.ndarray]) -> Any:
    helper = import_module("onnx").helper
    inputs = dict(zip("qkv", operands, strict=True))
    names = list(inputs)
    if case.sees in ("mask", "window"):
        inputs["mask"] = case.visible
        names.append("mask")
    causal = int(case.sees == "causal")
    return helper.make_node("Attention", names, ["out"], is_causal=causal), inputs, ["out"]


def _tokens_first(operands: list[np.ndarray]) -> dict[str, np.ndarray]:
    """(1, tokens, heads · d), as Microsoft's operators take them."""
    return {
        name: np.ascontiguousarray(each.swapaxes(1, 2).reshape(1, each.shape[2], -1))
        for name, each in zip("qkv", operands, strict=True)
    }


def _multi_head(case: Any, operands: list[np.ndarray]) -> Any:
    if case.kv_heads:
        return None
    helper = import_module("onnx").helper
    inputs = _tokens_first(operands)
    names = list(inputs)
    if case.sees in ("mask", "window"):
        hidden = np.where(case.visible, 0, np.finfo(np.float32).min).astype(np.float32)
        inputs["bias"] = hidden[None, None]
        names += ["", "", "bias"]
    node = helper.make_node(
        "MultiHeadAttention",
        names,
        ["out"],
        domain="com.microsoft",
        num_heads=case.heads,
        unidirectional=int(case.sees == "causal"),
    )
    return node, inputs, ["out"]


def _group_query(case: Any, operands: list[np.ndarray]) -> Any:
    """One new token after a past of n − 1."""
    if case.queries != 1:
        return None
    helper = import_module("onnx").helper
    q, k, v = operands
    last = _tokens_first([q, k[:, :, -1:], v[:, :, -1:]])
    past = {"past_k": k[:, :, :-1].copy(), "past_v": v[:, :, :-1].copy()}
    lengths = {
        "seqlens": np.array([case.n - 1], np.int32),
        "total": np.array(case.n, np.int32),
    }
    node = helper.make_node(
        "GroupQueryAttention",
        [*last, *past, *lengths],
        ["out", "k_now", "v_now"],
        domain="com.microsoft",
        num_heads=case.heads,
        kv_num_heads=case.kv_heads,
    )
    return node, {**last, **past, **lengths}, ["out", "k_now", "v_now"]
