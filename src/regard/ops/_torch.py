"""Tensors of torch: operators that autograd and torch.compile know, computed by the same paths.

Loaded when the first tensor comes. Tensors on the CPU share their memory with the arrays that the
paths work on; on other devices torch's own kernels compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard._errors import OptionError
from regard.ops import _device, _kernel, _paths
from regard.ops._dtypes import Array
from regard.ops._inspection import ANSWERS, Inspect
from regard.ops._problem import PARTS, Problem

Tensor = Any
OPERANDS = PARTS[1:]  # the type stands in the tensors
OWN_TYPES = {torch.Tensor, torch.nn.Parameter}
DIFFERENTIABLE = ("q", "k", "v", "bias", "sinks")
PROBLEM = """Tensor q, Tensor k, Tensor v, Tensor? past_k, Tensor? past_v, Tensor? mask,
    Tensor? bias, Tensor? q_segments, Tensor? k_segments, Tensor? lengths, Tensor? prefix,
    Tensor? offsets, Tensor? sinks, bool causal, int left, int right, float scale,
    float softcap"""


def _was_forked() -> bool:
    """Whether torch's threads may have stayed behind, in the process that this one is a fork of."""
    forked = 0x40  # Linux's PF_FORKNOEXEC
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            flags = int(file.read().rpartition(")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return False
    return bool(flags & forked)


if _kernel.AVAILABLE:
    _kernel.native.use_torch_threads(to_work=not _was_forked())


def solve(problem: Problem, wanted: Inspect | None) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Output, log-sum-exp and the answers asked for."""
    if problem.q.device.type not in ("cpu", "meta"):
        return _device.solve(problem.with_past_joined(torch.cat), wanted)
    if problem.past_k is not None and _wants_gradient(problem):
        problem = problem.with_past_joined(torch.cat)
    operands = [getattr(problem, name) for name in OPERANDS]
    _refuse_tangents(operands)
    attend, tell = _operators(operands)
    output, log_sum_exp = attend(*operands)
    if wanted is None:
        return output, log_sum_exp, {}
    rows = wanted.row_places(problem.q.shape[2])
    asked = (wanted.top, wanted.entropy, wanted.received, rows)
    told = zip(ANSWERS, tell(*operands, log_sum_exp, *asked), strict=True)
    return output, log_sum_exp, {name: answer for name, answer in told if answer.dim() > 1}


def _operators(operands: Sequence[Any]) -> tuple[Any, Any]:
    """Who computes, and who tells of the weights."""
    if operands[0].device.type == "meta":
        return _forward_shapes, _inspect_shapes
    if _is_eager(operands):
        return _Eager.apply, inspect
    return _Transformed.apply if _is_transformed() else forward, inspect


def _is_transformed() -> bool:
    """Whether torch.func.grad or vmap is at work."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.peek_interpreter_stack() is not None


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Any, *options: Any) -> Tensor | None:
    """As `Path.plain`, for tensors whose memory nobody else has an eye on."""
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    if q.dtype not in (torch.float32, torch.float64) or not _is_eager(tensors):
        return None
    if torch.autograd.forward_ad._current_level >= 0:
        return None
    torch.get_num_threads()  # which a thread does not know until torch is asked
    try:
        arrays = [each.numpy() for each in tensors]
    except (AttributeError, RuntimeError, TypeError):  # not of the CPU, or gradients are wanted
        return None
    output = _paths.CHOSEN.plain(*arrays[:3], arrays[3] if len(arrays) > 3 else None, *options)
    return None if output is None else torch.from_numpy(output)


def _is_eager(operands: Sequence[Any]) -> bool:
    """Whether no compiler, mode or transformation of torch has to see an operator here."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and not any(issubclass(each, torch.Tensor) for each in {*map(type, operands)} - OWN_TYPES)
    )


def _wants_gradient(problem: Problem) -> bool:
    operands = (problem.q, problem.k, problem.v, problem.past_k, problem.past_v)
    return torch.is_grad_enabled() and any(each.requires_grad for each in operands)


def _refuse_tangents(operands: Sequence[Any]) -> None:
    """Torch's dispatcher would take a derivative that it is not told of for 0."""
    forward_ad = torch.autograd.forward_ad
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    tensors = (each for each in operands if isinstance(each, torch.Tensor))
    if any(forward_ad.unpack_dual(each).tangent is not None for each in tensors):
        raise OptionError(
            "attention has no forward-mode derivatives (torch.func.jvp, jacfwd): take gradients "
            "(backward, torch.autograd.grad)"
        )


def _as_array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    bits = value.detach().resolve_neg()
    return (bits.view(torch.uint16) if value.dtype == torch.bfloat16 else bits).numpy()


def _as_tensor(array: Array, dtype: str) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _read(operands: Sequence[Any]) -> Problem:
    torch.get_num_threads()
    dtype = str(operands[0].dtype).removeprefix("torch.")
    return Problem(dtype, *map(_as_array, operands))


def _forward(*operands: Any) -> tuple[Tensor, Tensor]:
    problem = _read(operands)
    problem.check_counts()
    output, log_sum_exp = _paths.CHOSEN.forward(problem)
    return _as_tensor(output, problem.dtype), torch.from_numpy(log_sum_exp)


def _forward_shapes(*operands: Any) -> tuple[Tensor, Tensor]:
    problem = Problem("", *operands)
    return (
        problem.q.new_empty(problem.output_shape),
        problem.q.new_empty(problem.scores_shape[:3], dtype=_computing(problem.q)),
    )


def _computing(tensor: Tensor) -> Any:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _backward(*operands: Any) -> tuple[Tensor, ...]:
    """Gradients in the order of DIFFERENTIABLE; empty for a bias or sinks that want none."""
    *described, output, log_sum_exp, d_output, with_bias = operands
    problem = _read(described)
    output, log_sum_exp, d_output = map(_as_array, (output, log_sum_exp, d_output))
    found = _paths.CHOSEN.backward(problem, output, log_sum_exp, d_output, with_bias)
    gradients = (_as_tensor(each, problem.dtype) for each in (found.q, found.k, found.v))
    others = (
        np.empty(0, problem.real) if each is None else each for each in (found.bias, found.sinks)
    )
    return (*gradients, *map(torch.from_numpy, others))


def _backward_shapes(*operands: Any) -> tuple[Tensor, ...]:
    *described, _, log_sum_exp, _, with_bias = operands
    problem = Problem("", *described)
    return (
        *(each.new_empty(each.shape) for each in (problem.q, problem.k, problem.v)),
        log_sum_exp.new_empty(problem.scores_shape if with_bias else 0),
        log_sum_exp.new_empty(0 if problem.sinks is None else problem.sinks.shape),
    )


def _inspect(*operands: Any) -> list[Tensor]:
    """The answers in the order of ANSWERS; an empty tensor for what was not asked."""
    *described, log_sum_exp, top, entropy, received, rows = operands
    problem = _read(described)
    wanted = Inspect(top=top, entropy=entropy, received=received, rows=rows)
    told = _paths.CHOSEN.inspect(problem, _as_array(log_sum_exp), wanted)
    return [
        torch.empty(0) if answer is None else torch.from_numpy(answer)
        for answer in (told[name] for name in ANSWERS)
    ]


def _inspect_shapes(*operands: Any) -> list[Tensor]:
    *described, log_sum_exp, top, entropy, received, rows = operands
    *leading, keys = Problem("", *described).scores_shape
    many = leading[:2]
    new = log_sum_exp.new_empty
    return [
        new((*leading, top) if top else 0, dtype=torch.int64 if top else torch.float32),
        new((*leading, top)) if top else torch.empty(0),
        new(leading) if entropy else torch.empty(0),
        new((*many, keys)) if received else torch.empty(0),
        new((*many, len(rows), keys)) if rows else torch.empty(0),
    ]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    ctx.save_for_backward(*tensors, *output)
    ctx.others = [None if isinstance(each, torch.Tensor) else (each,) for each in inputs]
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, output, log_sum_exp = ctx.saved_tensors
    saved = iter(tensors)
    operands = [next(saved) if other is None else other[0] for other in ctx.others]
    wanted = dict(zip(OPERANDS, ctx.needs_input_grad, strict=True))
    twice = torch.is_grad_enabled()  # which only the operator refuses
    if _is_transformed():
        back = _TransformedBack.apply
    else:
        back = _backward if not twice and _is_eager((*operands, d_output)) else backward
    gradients = back(*operands, output, log_sum_exp, d_output, wanted["bias"])
    found = dict(zip(DIFFERENTIABLE, gradients, strict=True))
    return tuple(found.get(name) if wanted[name] else None for name in OPERANDS)


class _Eager(torch.autograd.Function):  # type: ignore[misc]
    """The operator without torch's dispatcher, which takes longer than short computations."""

    @staticmethod
    def forward(ctx: Any, *operands: Any) -> tuple[Tensor, Tensor]:
        found = _forward(*operands)
        _remember(ctx, operands, found)
        return found

    backward = staticmethod(_differentiate)


class _Transformed(torch.autograd.Function):  # type: ignore[misc]
    """The operator for torch.func.grad and vmap, which know gradients of such functions only."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*operands: Any) -> Any:
        return forward(*operands)

    setup_context = staticmethod(_remember)
    backward = staticmethod(_differentiate)


class _TransformedBack(torch.autograd.Function):  # type: ignore[misc]
    generate_vmap_rule = True

    @staticmethod
    def forward(*operands: Any) -> Any:
        return backward(*operands)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing of it is needed again."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise OptionError("attention has no second derivatives: take gradients once")


def _operator(name: str, schema: str, compute: Any, shapes: Any) -> Any:
    operator = torch.library.custom_op(
        f"regard::{name}", compute, mutates_args=(), device_types="cpu", schema=schema
    )
    operator.register_fake(shapes)
    return operator


forward = _operator("attention", f"({PROBLEM}) -> (Tensor, Tensor)", _forward, _forward_shapes)
backward = _operator(
    "attention_backward",
    f"({PROBLEM}, Tensor output, Tensor log_sum_exp, Tensor d_output, bool with_bias)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _backward,
    _backward_shapes,
)
inspect = _operator(
    "attention_inspect",
    f"({PROBLEM}, Tensor log_sum_exp, int top, bool entropy, bool received, int[] rows)"
    " -> Tensor[]",
    _inspect,
    _inspect_shapes,
)
forward.register_autograd(_differentiate, setup_context=_remember)
