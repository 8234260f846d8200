"""Generated programs are run, and every variable is compared with the run's step of its name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import which
from types import ModuleType, NoneType
from typing import Any

import numpy as np
import pytest

from regard._axes import LEADING
from regard._errors import OptionError
from regard.graph.builders import build
from regard.graph.gradient import backward
from regard.graph.graph import Given, Graph, Step
from regard.graph.heads import one_head
from regard.graph.notation import Symbol
from regard.graph.numbers import numbers_named, read_given
from regard.graph.operation import Array, Axis, Operation
from regard.graph.operations import (
    Affine,
    Merge,
    Normalise,
    Outer,
    PickHead,
    Place,
    PutHead,
    Repeat,
    Rotary,
    Sinusoidal,
    Split,
    Take,
    Tanh,
    Window,
)
from regard.graph.polynomial import Polynomial
from regard.graph.rewrites import (
    HEADS_BY_VIEW,
    NO_SCALE,
    SCALE_BY_SIZE,
    SOFTMAX_OVER_HEADS,
    SOFTMAX_OVER_QUERIES,
    Change,
    Drop,
    MoveAfter,
    Operands,
    Rewrite,
    Substitute,
    Swap,
    softmax_over,
)
from regard.graph.run import Run, run
from regard.show.code import LANGUAGES, to_code

Shapes = dict[str, tuple[int, ...]]

# A prime for each axis where the computation allows it, so that no two can be taken for another.
BATCH, HEADS, N, N_Q, N_K, D_MODEL, D_K, D_V, D_FF, D_OUT = 2, 3, 5, 5, 7, 17, 11, 13, 19, 23


def attention(*leading: int, d_k: int = D_K) -> Shapes:
    return {"Q": (*leading, N_Q, d_k), "K": (*leading, N_K, d_k), "V": (*leading, N_K, D_V)}


def projections(
    *per_head: int,
    d_k: int = D_K,
    heads: int = 1,
    kv_heads: int | None = None,
    biased: bool = False,
) -> Shapes:
    few = kv_heads or heads
    shapes = {
        "WQ": (*per_head, D_MODEL, heads * d_k),
        "WK": (*per_head, D_MODEL, few * d_k),
        "WV": (*per_head, D_MODEL, few * D_V),
    }
    if biased:
        shapes |= {f"b{name[1]}": (*per_head, shape[-1]) for name, shape in shapes.items()}
    return shapes


def self_attention(*batch: int, **options: Any) -> Shapes:
    return {"X": (*batch, N, D_MODEL), **projections(**options)}


def wide(*batch: int, n: int = N, **options: Any) -> Shapes:
    return {"X": (*batch, n, D_MODEL), **projections(heads=HEADS, **options)}


def square() -> Shapes:
    return {"X": (N, D_K), "WQ": (D_K, D_K), "WK": (D_K, D_K), "WV": (D_K, D_K)}


def block(*batch: int) -> Shapes:
    width = HEADS * 4
    return {"X": (*batch, N, width), **dict.fromkeys(("WQ", "WK", "WV", "WO"), (width, width))}


def norms(width: int) -> Shapes:
    return dict.fromkeys(("gamma_1", "beta_1", "gamma_2", "beta_2"), (width,))


GELU = {"W1": (12, D_FF), "b1": (D_FF,), "W2": (D_FF, 12), "b2": (12,)}
SWIGLU = {"WG": (12, D_FF), "WU": (12, D_FF), "WD": (D_FF, 12)}
OUTPUT = {"WO": (HEADS * D_V, D_OUT), "bO": (D_OUT,)}
CLOSED_ROW = np.array(
    [[1, 1, 0, 1, 0, 1, 1], [0] * 7, [1] * 7, [0, 1, 0, 1, 0, 0, 0], [1] * 7], bool
)

CASES: dict[str, tuple[str, Shapes, dict[str, Any]]] = {
    "dot product": ("dot-product", {"s": (D_K,), "h": (N_K, D_K)}, {}),
    "dot product, values": (
        "dot-product",
        {"s": (D_K,), "h": (N_K, D_K), "v": (N_K, D_V)},
        {"scale": "sqrt"},
    ),
    "given": ("attention", attention(), {}),
    "given, heads": ("attention", attention(BATCH, HEADS), {"causal": "bottom-right"}),
    "factor": ("attention", attention(), {"scale": "1/3"}),
    "causal, first tokens aligned": ("attention", attention(), {"causal": "top-left"}),
    "causal, last tokens aligned": ("attention", attention(), {"causal": "bottom-right"}),
    "causal, shifted": ("attention", attention(), {"causal": -1}),
    "window": ("attention", attention(), {"window": 1}),
    "window, one side": ("attention", attention(), {"window": (2, -1), "causal": 1}),
    "window, no side": ("attention", attention(), {"window": -1}),
    "window, causal": ("attention", attention(BATCH), {"window": (2, 0), "causal": "bottom-right"}),
    "padding": ("attention", attention(), {"lengths": np.array(3)}),
    "padding, batch": ("attention", attention(BATCH, HEADS), {"lengths": np.array([3, 6])}),
    "prefix": ("attention", attention(), {"prefix": np.array(3), "causal": "top-left"}),
    "prefix, batch": (
        "attention",
        attention(BATCH, HEADS),
        {"prefix": np.array([2, 4]), "causal": "bottom-right"},
    ),
    "boolean mask, a row closed": ("attention", attention(), {"mask": CLOSED_ROW}),
    "boolean mask, heads": (
        "attention",
        attention(BATCH, HEADS),
        {"mask": np.stack([CLOSED_ROW, ~CLOSED_ROW, CLOSED_ROW])},
    ),
    "additive mask": ("attention", attention(), {"mask": np.where(CLOSED_ROW, 0.25, -np.inf)}),
    "masks together": (
        "attention",
        attention(BATCH),
        {"mask": CLOSED_ROW, "lengths": np.array([7, 4]), "causal": "bottom-right"},
    ),
    "bias": ("attention", attention() | {"bias": (N_Q, N_K)}, {}),
    "bias, heads": ("attention", attention(BATCH, HEADS) | {"bias": (HEADS, N_Q, N_K)}, {}),
    "softcap": ("attention", attention(), {"softcap": 2.5}),
    "sinks": ("attention", attention() | {"sinks": ()}, {}),
    "sinks, heads": (
        "attention",
        attention(BATCH, HEADS) | {"sinks": (HEADS,)},
        {"mask": CLOSED_ROW},
    ),
    "rotary": ("attention", attention(d_k=4), {"positions": "rotary"}),
    "rotary, interleaved": (
        "attention",
        attention(BATCH, HEADS, d_k=6),
        {"positions": "rotary", "rotary_layout": "interleaved", "rotary_base": 100},
    ),
    "alibi": ("attention", attention(BATCH, HEADS), {"positions": "alibi"}),
    "alibi, one head": ("self-attention", self_attention(), {"positions": "alibi", "causal": True}),
    "self": ("self-attention", self_attention(), {"scale": 1}),
    "self, biased, batch": ("self-attention", self_attention(BATCH, biased=True), {"causal": True}),
    "self, output": ("self-attention", self_attention() | {"WO": (D_V, D_OUT), "bO": (D_OUT,)}, {}),
    "self, sinusoidal": (
        "self-attention",
        {"X": (N, 6)} | dict.fromkeys(("WQ", "WK", "WV"), (6, D_K)),
        {"positions": "sinusoidal"},
    ),
    "self, learned": (
        "self-attention",
        self_attention(BATCH) | {"P": (N, D_MODEL)},
        {"positions": "learned"},
    ),
    "cross": (
        "cross-attention",
        {
            "X": (N_Q, D_MODEL),
            "Y": (N_K, D_FF),
            "WQ": (D_MODEL, D_K),
            "WK": (D_FF, D_K),
            "WV": (D_FF, D_V),
        },
        {},
    ),
    "cross, heads": (
        "cross-attention",
        {"X": (N_Q, D_MODEL), "Y": (N_K, D_MODEL), **projections(heads=HEADS)},
        {"heads": HEADS},
    ),
    "one matrix a head": (
        "multi-head",
        {"X": (N, D_MODEL), **projections(HEADS, biased=True), **OUTPUT},
        {},
    ),
    "one matrix a head, batch": (
        "multi-head",
        {"X": (BATCH, N, D_MODEL), **projections(HEADS, biased=True)},
        {},
    ),
    "wide": ("multi-head", wide() | OUTPUT, {"heads": HEADS}),
    "wide, batch": (
        "multi-head",
        wide(BATCH, biased=True) | OUTPUT,
        {"heads": HEADS, "causal": True},
    ),
    "shared keys": (
        "multi-head",
        {"X": (N, D_MODEL), **projections(heads=6, kv_heads=3)},
        {"heads": 6, "kv_heads": 3},
    ),
    "shared keys, batch": (
        "multi-head",
        {"X": (5, N_K, D_MODEL), **projections(heads=6, kv_heads=3)},
        {"heads": 6, "kv_heads": 3},
    ),
    "shared keys, one matrix a head": (
        "multi-head",
        {
            "X": (N, D_MODEL),
            "WQ": (4, D_MODEL, D_K),
            "WK": (2, D_MODEL, D_K),
            "WV": (2, D_MODEL, D_V),
        },
        {},
    ),
    "block": ("decoder-block", block() | norms(12) | GELU, {"heads": HEADS, "causal": True}),
    "block, bare": (
        "decoder-block",
        block() | {"W1": (12, D_FF), "W2": (D_FF, 12)},
        {"heads": HEADS},
    ),
    "block, RMS and SwiGLU": (
        "decoder-block",
        block(BATCH) | {"gamma_1": (12,), "gamma_2": (12,)} | SWIGLU,
        {"heads": HEADS, "norm": "rms", "feed_forward": "swiglu", "positions": "rotary"},
    ),
}

REWRITTEN = {
    "no scale": ("given", NO_SCALE),
    "scale by size": ("given", SCALE_BY_SIZE),
    "scale multiplied": ("given", Change("scaled", multiply=True)),
    "softmax over queries": ("given", SOFTMAX_OVER_QUERIES),
    "softmax over queries, batch": ("given, heads", SOFTMAX_OVER_QUERIES),
    "softmax over heads": ("given, heads", SOFTMAX_OVER_HEADS),
    "softmax over the matrix": ("padding, batch", softmax_over("query", "key")),
    "softmax over batches and keys": ("padding, batch", softmax_over("batch", "key")),
    "no shift": ("padding, batch", Change("exp", shift=False)),
    "split by view": ("wide, batch", HEADS_BY_VIEW),
    "split by view, one sequence": ("wide", HEADS_BY_VIEW),
    "interleaved": ("wide, batch", Change(Split, layout="interleaved")),
    "interleaved, one sequence": ("wide", Change(Split, layout="interleaved")),
    "merged interleaved": ("wide, batch", Change(Merge, layout="interleaved")),
    "merged interleaved, one sequence": ("wide", Change(Merge, layout="interleaved")),
    "merged by view": ("wide, batch", Change(Merge, layout="view")),
    "merged by view, one sequence": ("wide", Change(Merge, layout="view")),
    "softmax not divided": ("given", Drop("weights")),
    "unmasked": ("self, biased, batch", Drop("masked")),
    "bias left out": ("self, biased, batch", Drop("Q")),
    "masked after softmax": ("padding, batch", MoveAfter("masked", "weights")),
    "queries and keys exchanged": ("self, biased, batch", Swap("bQ", "bK")),
    "keys as values": ("given", Operands("context", ("weights", "K"))),
    "other function": ("softcap", Substitute("capped", Tanh())),
    "cosine first": ("self, sinusoidal", Change(Sinusoidal, swapped=True)),
    "rotated from the third place": ("rotary", Change(Rotary, offset="n_k - n_q + 1")),
}

GRADIENTS = {
    "dot product": ("s", "h"),
    "given, heads": ("Q", "K", "V"),
    "boolean mask, a row closed": ("Q", "K", "V"),
    "bias, heads": ("Q", "bias"),
    "softcap": ("Q", "K", "V"),
    "sinks, heads": ("Q", "sinks"),
    "rotary": ("Q", "K"),
    "rotary, interleaved": ("Q", "K"),
    "self, biased, batch": ("X", "WQ", "bQ", "WK", "WV"),
    "wide, batch": ("X", "WQ", "bV", "WO"),
    "one matrix a head, batch": ("X", "WQ", "bK"),
    "shared keys, batch": ("X", "WK"),
    "block": ("X", "WQ", "gamma_1", "beta_2", "W1", "b1"),
    "block, RMS and SwiGLU": ("X", "WO", "gamma_2", "WG", "WD"),
}


def computed(
    kind: str, shapes: Shapes, options: dict[str, Any], rewrite: Rewrite | None = None
) -> Run:
    """A run of this kind on random numbers; options that are arrays are givens."""
    rng = np.random.default_rng(7)
    givens = {name: rng.normal(size=shape).round(3) for name, shape in shapes.items()}
    givens |= {n: read_given(n, v) for n, v in options.items() if isinstance(v, np.ndarray)}
    chosen = {n: v for n, v in options.items() if not isinstance(v, np.ndarray)}
    graph = build(kind, {name: np.shape(value) for name, value in givens.items()}, **chosen)
    return run(rewrite(graph) if rewrite else graph, givens)


def differentiated(name: str) -> Run:
    """The backward pass of a case, from a random gradient of its last step."""
    forward = computed(*CASES[name])
    last = forward.graph.steps[-1].name
    graph = backward(forward.graph, last, GRADIENTS[name])
    seed = np.random.default_rng(8).normal(size=forward.values[last].shape).round(3)
    needed = {given.name for given in graph.givens}
    givens = {n: v for n, v in {**forward.givens, f"d_{last}": seed}.items() if n in needed}
    return run(graph, givens)


def of_steps(
    givens: dict[str, tuple[Array, tuple[tuple[str, str], ...]]],
    steps: list[tuple[str, Operation, tuple[str, ...]]],
    sizes: dict[str, int],
) -> Run:
    """A run of single operations that no builder makes."""
    axes = {
        name: tuple(Axis(n, Polynomial.parse(s)) for n, s in a) for name, (_, a) in givens.items()
    }
    graph = Graph(
        "parts",
        tuple(Given(name, Symbol(name), axes[name]) for name in givens),
        tuple(Step(name, Symbol(name), operation, operands) for name, operation, operands in steps),
        sizes,
    )
    return run(graph, {name: values for name, (values, _) in givens.items()})


def parts() -> Run:
    rng = np.random.default_rng(9)
    heads = (
        rng.normal(size=(2, 3, 5, 7)),
        (("batch", "batch"), ("head", "h"), ("query", "n"), ("dim", "d_k")),
    )
    keys = (rng.normal(size=(2, 3, 7)), (("batch", "batch"), ("head", "h"), ("key", "d_k")))
    steps = [
        ("one", PickHead(1), ("heads",)),
        ("put", PutHead(1), ("one",)),
        ("taken", Take("dim", "2", "d_k - 1"), ("heads",)),
        ("front", Take("query", "0", "3"), ("one",)),
        ("placed", Place("dim", "2", "d_k"), ("taken",)),
        ("pair", Outer(), ("keys", "keys_too")),
        ("twice", Repeat("many"), ("heads",)),
        ("sums", Affine("1/2", "-1/2"), ("counts",)),
        ("shares", Normalise(), ("heads", "sums")),
    ]  # fmt: skip
    other = (rng.normal(size=(3, 5)), (("head", "h"), ("query", "n")))
    sizes = {"batch": 2, "h": 3, "n": 5, "d_k": 7, "many": 6}
    counts = (np.array([3.0, 1.0, 2.0, 5.0, 1.0]), (("query", "n"),))
    givens = {"heads": heads, "keys": keys, "keys_too": other, "counts": counts}
    return of_steps(givens, steps, sizes)


def strange_values() -> Run:
    """NaN under the mask, scores too large for exp without a shift, infinities."""
    work = computed("attention", attention(), {"mask": CLOSED_ROW})
    keys = work.values["K"].copy()
    keys[2] = np.nan
    mask = CLOSED_ROW.copy()
    mask[:, 2] = False
    values = work.values["V"].copy()
    values[2, 1:] = np.nan, *[np.inf] * 11
    changed = {"K": keys, "V": values, "mask": mask, "Q": work.givens["Q"] * 400}
    return run(work.graph, {**work.givens, **changed})


def strange_gradient() -> Run:
    """The backward pass behind NaN under the mask."""
    forward = strange_values()
    graph = backward(forward.graph, "context", ("Q", "K", "V"))
    seed = np.random.default_rng(8).normal(size=forward.values["context"].shape).round(3)
    return forward.on(graph, values={"d_context": seed})


RUNS = {
    **{name: (lambda case=case: computed(*case)) for name, case in CASES.items()},
    **{
        f"{case}: {name}": (lambda case=case, rewrite=rewrite: computed(*CASES[case], rewrite))
        for name, (case, rewrite) in REWRITTEN.items()
    },
    **{f"gradient: {name}": (lambda name=name: differentiated(name)) for name in GRADIENTS},
    **{
        f"one head: {name}": (lambda name=name: one_head(computed(*CASES[name]), 1))
        for name in ("wide, batch", "one matrix a head", "shared keys", "alibi", "sinks, heads")
    },
    "rows as heads": lambda: computed(
        "multi-head", wide(n=6), {"heads": HEADS}, Change(Split, layout="rows")
    ),
    "rows as heads and back": lambda: computed(
        "multi-head", wide(BATCH, n=6), {"heads": HEADS},
        Change(Split, layout="rows") | Change(Merge, layout="rows"),
    ),
    "transposed weights": lambda: computed(
        "self-attention", square(), {}, Change("Q", transpose_b=True)
    ),
    "transposed twice": lambda: computed(
        "self-attention", square(), {},
        Change("scores", transpose_a=True, transpose_b=False) | Drop("context"),
    ),
    "parts": parts,
    "strange values": strange_values,
    "gradient of strange values": strange_gradient,
    "large scores": lambda: computed("attention", attention(), {"scale": 500}),
    "large scores, no shift": lambda: computed(
        "attention", attention(), {"scale": 500}, Change("exp", shift=False)
    ),
    "large scores, a row closed": lambda: computed(
        "attention", attention(BATCH, HEADS), {"scale": 500, "mask": CLOSED_ROW}
    ),
    "put in": lambda: computed(*CASES["self, biased, batch"]).replace(sums=np.full((2, 5), 3.5)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _default_dtype() -> Iterator[None]:
    """PyTorch programs set the default for the whole process."""
    torch = sys.modules.get("torch")
    before = torch.get_default_dtype() if torch else None
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_default_dtype(before or sys.modules["torch"].float32)


def in_python(code: str) -> dict[str, Array]:
    space: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        exec(compile(code, "program", "exec"), space)
    return {
        name: np.asarray(value, float)
        for name, value in space.items()
        if not callable(value) and not isinstance(value, (dict, str, ModuleType, NoneType))
    }


def assert_same(work: Run, found: dict[str, Array], left_out: tuple[str, ...] = ()) -> None:
    """Every step that has a variable has the run's values."""
    compared = 0
    for name, expected in work.values.items():
        variable = next((v for v in (f"{name}_", name) if v in found), None)
        if variable is None:
            assert name in left_out, f"no variable for {name}"
            continue
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(
            found[variable], expected, rtol=1e-12, atol=1e-12 * scale, err_msg=name
        )
        assert found[variable].shape == expected.shape, name
        compared += 1
    assert compared


@pytest.mark.parametrize("name", RUNS)
def test_numpy_programs_compute_every_step(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    work = RUNS[name]()
    assert_same(work, in_python(to_code(work, "numpy")))


@pytest.mark.parametrize("name", RUNS)
def test_torch_programs_compute_every_step(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    work = RUNS[name]()
    assert_same(work, in_python(to_code(work, "torch")), ("exp", "sums"))


@pytest.fixture(scope="module")
def octave(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Run, Path]]:
    """What every MATLAB program computes, from one start of Octave."""
    if which("octave-cli") is None:
        pytest.skip("octave-cli is not installed")
    folder = tmp_path_factory.mktemp("octave")
    works = {name: make() for name, make in RUNS.items()}
    driver = []
    for place, work in enumerate(works.values()):
        code = to_code(work, "matlab")
        variables = sorted(set(re.findall(r"^(\w+) = ", code, re.MULTILINE)))
        report = "".join(
            f'fprintf(fid, "{v} %s\\n", sprintf(" %.17g", double({v}(:))));\n' for v in variables
        )
        (folder / f"p{place}.m").write_text(
            f'{code}\nfid = fopen("p{place}.txt", "w");\n{report}fclose(fid);\n'
        )
        driver.append(
            f'clear all\ntry, source("p{place}.m");\n'
            f'catch, f = fopen("p{place}.err", "w"); fputs(f, lasterr()); fclose(f); end\n'
        )
    (folder / "driver.m").write_text("".join(driver))
    command = ["octave-cli", "--norc", "--quiet", "driver.m"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    reports = (folder / f"p{place}.txt" for place in range(len(works)))
    return dict(zip(works, zip(works.values(), reports, strict=True), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_matlab_programs_compute_every_step(name: str, octave: dict[str, tuple[Run, Path]]) -> None:
    work, report = octave[name]
    assert report.exists(), report.with_suffix(".err").read_text()
    found = {}
    for line in report.read_text().splitlines():
        variable, *numbers = line.split()
        found[variable] = np.array([float(number) for number in numbers])
    in_pages = {name: in_matlab_order(work, name) for name in work.values}
    assert_same_flat(in_pages, found)


def in_matlab_order(work: Run, name: str) -> Array:
    """Down the columns, then from column to column, from head to head, from batch to batch."""
    names = [axis.name for axis in work.graph.axes[name]]
    core = [axis for axis in names if axis not in LEADING]
    order = [names.index(axis) for axis in ("batch", "head", *core[::-1]) if axis in names]
    return work.values[name].transpose(order).ravel()


def assert_same_flat(expected: dict[str, Array], found: dict[str, Array]) -> None:
    for name, values in expected.items():
        variable = f"{name}_" if f"{name}_" in found else name
        scale = np.abs(values[np.isfinite(values)]).max(initial=1)
        np.testing.assert_allclose(
            found[variable], values, rtol=1e-12, atol=1e-12 * scale, err_msg=name
        )


# ---- the text --------------------------------------------------------------------------------


@pytest.fixture
def small() -> Run:
    """Short enough to be read as a whole: exact fractions, a mask with a closed row."""
    givens = {
        "X": [[0.8, -0.4], [1.2, 0.3], [-0.5, 1.1]],
        "WQ": [["3/5", "-1/3"], ["0.1", "2"]],
        "WK": [[-0.3, 0.7], [0.4, 0.9]],
        "WV": [[1, -0.5, 1e-7], [0.2, 0.8, 1e20]],
        "mask": np.array([[True, False, False], [False] * 3, [True, True, True]]),
    }
    read = {name: read_given(name, value) for name, value in givens.items()}
    return run(build("self-attention", {n: v.shape for n, v in read.items()}), read)


@pytest.mark.parametrize("language", LANGUAGES)
def test_golden_programs(language: str, small: Run, golden: Callable[[str, str], None]) -> None:
    golden(f"program.{language}.txt", to_code(small, language))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_longer_than_a_hundred_characters(name: str, language: str) -> None:
    assert max(map(len, to_code(RUNS[name](), language).splitlines())) < 100


def test_unknown_languages_are_refused_with_the_known_ones(small: Run) -> None:
    with pytest.raises(OptionError, match="'numpy', 'torch', 'matlab', but 'nunpy' was passed"):
        to_code(small, "nunpy")


def test_numbers_are_written_as_short_as_they_can_be(small: Run) -> None:
    code = to_code(small, "numpy")
    assert "WQ = np.array([[0.6, -1/3],\n               [0.1, 2.0]])" in code
    assert "[0.2, 0.8, 1e+20]" in code


def test_torch_calls_softmax_where_all_of_it_is_one() -> None:
    whole, divided = (RUNS[name]() for name in ("given", "given: softmax not divided"))
    assert "weights = F.softmax(scaled, dim=-1)\n" in to_code(whole, "torch")
    assert "softmax" not in to_code(divided, "torch")
    assert "softmax" not in to_code(whole.replace(exp=np.ones((N_Q, N_K))), "torch")


def test_a_program_of_exact_numbers_computes_in_float64() -> None:
    pytest.importorskip("sympy")
    givens = {"s": [1, 2], "h": [[1, 0], ["1/3", "1/2"], [0, 1]]}
    read = {name: read_given(name, value) for name, value in givens.items()}
    graph = build("dot-product", {name: value.shape for name, value in read.items()})
    exact = run(graph, read, numbers_named("exact")).replace(scores=["1/2", 0, 1])
    assert to_code(exact, "numpy") == to_code(run(graph, read).replace(scores=[0.5, 0, 1]), "numpy")


@pytest.mark.parametrize("language", ["numpy", "torch"])
def test_variables_never_take_a_name_that_the_program_needs(
    language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(language)
    names = ["np", "torch", "lambda", "print", "i", "j", "scores'", "2nd", "math", "angles"]
    axes = (("query", "n"), ("key", "n_k"))
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    steps = [(name, Affine("2"), ("np" if name != "np" else "x",)) for name in names]
    window = ("mask", Window(1, 0, "n", "n_k"), ())
    work = of_steps({"x": (values, axes)}, [*steps, window], {"n": 2, "n_k": 3})
    found = in_python(to_code(work, language))
    for name in ("np_", "torch_", "lambda_", "print_", "i_", "j_", "scores_", "x2nd", "angles_"):
        assert np.array_equal(found[name], values * (2 if name == "np_" else 4)), name
    assert np.array_equal(found["mask"], work.values["mask"])


def test_aliases_name_the_variables(small: Run, capsys: pytest.CaptureFixture[str]) -> None:
    aliases = {"weights": "attention weights", "context": "Ȧ", "WQ": "W_q"}
    found = in_python(to_code(small, "numpy", aliases))
    assert np.array_equal(found["attention_weights"], small.values["weights"])
    assert np.allclose(found["context"], small.values["context"])
    assert found["W_q"].shape == (2, 2)


def test_every_line_of_a_comment_is_a_comment() -> None:
    graph = replace(build("dot-product", {"s": (2,), "h": (3, 2)}), kind="one\nprint('two')\rthree")
    computed = run(graph, {"s": np.ones(2), "h": np.ones((3, 2))})
    for language, sign in (("numpy", "#"), ("torch", "#"), ("matlab", "%")):
        lines = to_code(computed, language).splitlines()
        assert lines[:3] == [f"{sign} one", f"{sign} print('two')", f"{sign} three"]
