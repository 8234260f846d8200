"""Tensors: torch's own samples, autograd, torch.compile, and training in bfloat16."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import regard
from regard import conventions
from regard.ops._arguments import pose

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's database of operators needs it")

from regard.ops import _torch  # noqa: E402

HEADS, KV_HEADS, QUERIES, KEYS, D_K, D_V = 4, 2, 3, 7, 5, 6


def operands(dtype: Any = torch.float64, grad: bool = True, seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((HEADS, QUERIES, D_K), (KV_HEADS, KEYS, D_K), (KV_HEADS, KEYS, D_V))
    made = [torch.randn(2, *shape, generator=generator).to(dtype) for shape in shapes]
    return [each.requires_grad_(grad) for each in made]


def options() -> dict[str, dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    scores = (2, HEADS, QUERIES, KEYS)
    bias = torch.randn(scores, generator=generator).double()
    return {
        "plain": {},
        "causal": {"causal": "bottom-right", "window": (4, 0)},
        "some see nothing": {"causal": -1},
        "mask": {"mask": torch.rand(scores, generator=generator) < 0.6},
        "bias": {"bias": bias},
        "bias of all": {"bias": bias[0, 0, 0]},
        "sinks and softcap": {"sinks": bias[0, :, 0, 0], "softcap": 1.5},
        "lengths": {"lengths": torch.tensor([3, 7]), "prefix": 2, "causal": "top-left"},
        "segments": {"segments": (torch.tensor([0, 1, 1]), torch.tensor([0, 0, 0, 1, 1, 1, 2]))},
        "past": {"past": tuple(each.detach() for each in operands(seed=2)[1:]), "causal": 7},
        "tokens first": {"layout": "token-head"},
    }


@cache
def samples(dtype: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

        entry = next(op for op in op_db if op.name == "nn.functional.scaled_dot_product_attention")
        made = list(entry.sample_inputs("cpu", dtype, requires_grad=True))
    return [sample for sample in made if not sample.kwargs.pop("dropout_p")]


def output_and_gradients(attend: Any, sample: Any, dtype: Any) -> list[Any]:
    """Of a sample in some type, as float64."""
    inputs = [each.detach().to(dtype).requires_grad_() for each in (sample.input, *sample.args)]
    mask = sample.kwargs.get("attn_mask")
    mask = mask.detach().to(dtype) if mask is not None and mask.is_floating_point() else mask
    output = attend(*inputs, **{**sample.kwargs, **({} if mask is None else {"attn_mask": mask})})
    d_output = torch.cos(torch.arange(output.numel())).reshape(output.shape).to(dtype)
    return [each.double() for each in (output, *torch.autograd.grad(output, inputs, d_output))]


def as_torch(q: Any, k: Any, v: Any, **theirs: Any) -> Any:
    if k.dim() > q.dim():  # what torch broadcasts, regard wants to be told
        q = q.expand(*k.shape[:-2], *q.shape[-2:])
    return regard.attention(q, k, v, **conventions.torch(**theirs))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_samples_of_torch_itself(dtype: Any) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    assert len(samples(dtype)) == 13
    for sample in samples(dtype):
        exact = output_and_gradients(attend, sample, torch.float64)
        theirs = output_and_gradients(attend, sample, dtype)
        ours = output_and_gradients(as_torch, sample, dtype)
        for a, b, want in zip(ours, theirs, exact, strict=True):
            # Scores of some hundreds, and gradients that are differences of numbers of size 1.
            rounding = 128 * torch.finfo(dtype).eps * want.abs().max().clamp_min(1)
            assert (a - want).abs().max() <= max(rounding, (b - want).abs().max())


@pytest.mark.parametrize("case", options())
def test_gradcheck(case: str) -> None:
    chosen = options()[case]
    extra = {name: chosen[name] for name in ("bias", "sinks") if name in chosen}
    if case == "past":
        extra = dict(zip(("past_k", "past_v"), chosen["past"], strict=True))
    given = operands()
    if case == "tokens first":
        given = [each.detach().transpose(1, 2).requires_grad_() for each in given]

    def attend(q: Any, k: Any, v: Any, *others: Any) -> Any:
        named = dict(zip(extra, others, strict=True))
        if case == "past":
            named = {"past": others}
        return regard.attention(q, k, v, **{**chosen, **named})

    inputs = [*given, *(each.clone().requires_grad_() for each in extra.values())]
    assert torch.autograd.gradcheck(attend, inputs, fast_mode=True)


@pytest.mark.parametrize("case", options())
def test_compiled_whole(case: str) -> None:
    chosen = options()[case]
    given = operands()
    if case == "tokens first":
        given = [each.detach().transpose(1, 2).requires_grad_() for each in given]

    def loss(*arrays: Any) -> Any:
        return regard.attention(*arrays, **chosen).square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given), loss(*given))
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*given), given), torch.autograd.grad(loss(*given), given)
    )


def test_inspection_compiled_whole() -> None:
    def looked(*arrays: Any) -> Any:
        asked = regard.Inspect(top=2, entropy=True, received=True, rows=[0])
        output, seen = regard.attention(*arrays, inspect=asked)
        return output, seen.top_keys, seen.top_weights, seen.entropy, seen.received, seen.rows

    given = operands(grad=False)
    torch._dynamo.reset()
    compiled = torch.compile(looked, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given), looked(*given))


def test_multi_head_compiled_whole() -> None:
    x, *weights = (torch.randn(shape) for shape in ((2, 5, 8), (8, 8), (8, 8), (8, 8), (8, 3)))

    def attend(x: Any) -> Any:
        return regard.multi_head_attention(x, *weights, heads=2, causal=True)

    torch._dynamo.reset()
    torch.testing.assert_close(
        torch.compile(attend, fullgraph=True, backend="aot_eager")(x), attend(x)
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")  # torch's own
def test_compiled_by_the_default_backend() -> None:
    given = operands(torch.float32)

    def loss(*arrays: Any) -> Any:
        return torch.relu(regard.attention(*arrays, causal="bottom-right") + 1).sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*given), given), torch.autograd.grad(loss(*given), given)
    )


@pytest.mark.parametrize("case", ["plain", "mask", "bias", "sinks and softcap", "lengths", "past"])
def test_operators_keep_torchs_rules(case: str) -> None:
    problem = pose(*operands(grad=case != "past"), **options()[case]).problem
    given = [
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) else each
        for each in (getattr(problem, name) for name in _torch.OPERANDS)
    ]
    torch.library.opcheck(_torch.forward, given)
    plain = [each.detach() if isinstance(each, torch.Tensor) else each for each in given]
    output, log_sum_exp = _torch.forward(*plain)
    asked = (2, True, True, [0, 1])
    torch.library.opcheck(_torch.inspect, [*plain, log_sum_exp, *asked])
    if case != "past":
        grown = [*plain, output, log_sum_exp, torch.randn_like(output), case == "bias"]
        torch.library.opcheck(_torch.backward, grown)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_gradients(dtype: Any) -> None:
    given = operands(dtype)
    output = regard.attention(*given, causal="bottom-right")
    found = torch.autograd.grad(output.float().square().sum(), given)
    wide = [each.detach().double().requires_grad_() for each in given]
    exact = regard.attention(*wide, causal="bottom-right")
    want = torch.autograd.grad(exact.square().sum(), wide)
    unit = torch.finfo(dtype).eps
    for have, expected in zip(found, want, strict=True):
        assert have.dtype == dtype
        assert (have - expected).abs().max() < 4 * unit * expected.abs().max()


def test_training_in_bfloat16() -> None:
    """Learns to copy the token before, which attention alone can find."""
    torch.manual_seed(0)
    words, tokens, width = 5, 8, 16
    table = torch.nn.Embedding(words, width)
    places = torch.nn.Embedding(tokens, width)
    matrices = [torch.nn.Linear(width, width, bias=False) for _ in range(3)]
    read = torch.nn.Linear(width, words)
    model = torch.nn.ModuleList([table, places, *matrices, read]).bfloat16()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-2)
    losses = []
    for _ in range(60):
        text = torch.randint(words, (32, tokens))
        x = table(text) + places.weight
        y = regard.self_attention(x, *(each.weight.T for each in matrices), causal=True)
        guesses = read(y[:, 1:]).float().flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(guesses, text[:, :-1].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] > 1.4  # about ln 5
    assert losses[-1] < 0.3


def test_no_gradient_is_kept_where_none_is_wanted() -> None:
    with torch.no_grad():
        assert not regard.attention(*operands()).requires_grad
    q, k, v = operands()
    output = regard.attention(q, k.detach(), v.detach())
    assert torch.autograd.grad(output.sum(), q)[0].shape == q.shape


def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    q, k, v = operands()
    (d_q,) = torch.autograd.grad(regard.attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward"):
        torch.autograd.grad(d_q.sum(), q)
    mixed = regard.attention(q, k, v).sum() + (q**3).sum()
    (d_q,) = torch.autograd.grad(mixed, q, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward"):
        torch.autograd.grad(d_q.square().sum(), q)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("case", options())
def test_functions_of_torch_func(case: str) -> None:
    """Gradients as autograd has them; vmap as a loop."""
    option = options()[case]
    q, k, v = operands()
    if case == "tokens first":
        q, k, v = (each.detach().transpose(1, 2).requires_grad_() for each in (q, k, v))

    def loss(q: Any) -> Any:
        return regard.attention(q, k.detach(), v.detach(), **option).square().sum()

    (want,) = torch.autograd.grad(loss(q), q)
    have = torch.func.grad(loss)
    torch.testing.assert_close(have(q.detach()), want)
    several = torch.stack([q.detach(), 2 * q.detach()])
    each_alone = torch.stack([have(several[0]), have(several[1])])
    torch.testing.assert_close(torch.func.vmap(have)(several), each_alone)
    with pytest.raises(regard.OptionError, match="no second derivatives"):
        torch.func.grad(lambda q: have(q).sum())(q.detach())


@pytest.mark.parametrize("case", options())
def test_shapes_without_numbers(case: str) -> None:
    """On the device "meta" there are shapes alone."""
    option = options()[case]
    given = operands(grad=False)
    if case == "tokens first":
        given = [each.transpose(1, 2) for each in given]

    def ghost(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(ghost, value))
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    asked = regard.Inspect(top=2, entropy=True, received=True, rows=(0,))
    want, told = regard.attention(*given, **option, inspect=asked)
    unreal = {name: ghost(value) for name, value in option.items()}
    have, found = regard.attention(*map(ghost, given), **unreal, inspect=asked)
    assert (have.device.type, have.shape, have.dtype) == ("meta", want.shape, want.dtype)
    for name, each in vars(told).items():
        assert getattr(found, name).shape == each.shape
        assert getattr(found, name).dtype == each.dtype


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("option", [{}, {"window": 2}])
def test_a_forward_derivative_is_refused_and_not_lost(option: dict[str, Any]) -> None:
    q, k, v = operands(grad=False)
    with pytest.raises(regard.OptionError, match="no forward-mode derivatives"):
        torch.func.jvp(lambda q: regard.attention(q, k, v, **option), (q,), (q,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        with pytest.raises(regard.OptionError, match="no forward-mode derivatives"):
            regard.attention(dual, k, v, **option)
        regard.attention(q, k, v, **option)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("queries", [QUERIES, 64])
def test_what_watches_torch_sees_the_operator(queries: int) -> None:
    """Short calls too, which would else pass by torch."""
    q = torch.randn(2, HEADS, queries, D_K, dtype=torch.float64)
    _, k, v = operands(grad=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(regard.attention, (q, k, v))
    want = regard.attention(2 * q, k, v)
    torch.testing.assert_close(traced(2 * q, k, v), want)
    torch.testing.assert_close(torch.func.vmap(regard.attention)(2 * q, k, v), want)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        assert regard.attention(torch.empty(q.shape, dtype=q.dtype), k, v).shape == want.shape


@pytest.mark.parametrize("grad", [False, True])
def test_tensors_that_are_negated_lazily(grad: bool) -> None:
    q, k, v = operands(grad=False)
    lazy = torch.complex(q, -k[:, :1, :QUERIES].expand_as(q)).conj().imag
    assert lazy.is_neg()
    v.requires_grad_(grad)
    want = regard.attention(lazy.resolve_neg(), k, v)
    torch.testing.assert_close(regard.attention(lazy, k, v), want)


def test_tensors_share_what_numpy_computes() -> None:
    q, k, v = operands(grad=False)
    arrays = [each.numpy() for each in (q, k, v)]
    np.testing.assert_array_equal(regard.attention(q, k, v), regard.attention(*arrays))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("tokens", "width"), [(256, 64), (1024, 64), (1024, 128)])
def test_error_is_no_larger_than_torchs(tokens: int, width: int, causal: bool) -> None:
    """Root mean square in float32, of the output and of each gradient; 1.15 for the luck of it."""
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, tokens, width, requires_grad=True) for _ in range(3)]
    wide = [each.detach().double().requires_grad_() for each in inputs]
    theirs = torch.nn.functional.scaled_dot_product_attention
    exact = theirs(*wide, is_causal=causal)
    d_output = torch.randn_like(exact)
    want = [exact, *torch.autograd.grad(exact, wide, d_output)]
    errors = []
    for output in (regard.attention(*inputs, causal=causal), theirs(*inputs, is_causal=causal)):
        found = [output, *torch.autograd.grad(output, inputs, d_output.float())]
        errors.append([(a - b).square().mean().sqrt() for a, b in zip(found, want, strict=True)])
    for ours, other in zip(*errors, strict=True):
        assert ours <= 1.15 * other
