"""Wrong input: every message names the operation, what was passed, why it is wrong, what to do."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard._errors import OptionError, RegardError, RewriteError, ShapeError
from regard.graph.builders import KINDS, build
from regard.graph.construction import DEFAULTS, GIVEN_SYMBOLS
from regard.graph.rewrites import Change
from regard.graph.run import run

Shapes = dict[str, tuple[int, ...]]
QKV: Shapes = {"Q": (3, 2), "K": (5, 2), "V": (5, 7)}
HEADED: Shapes = {name: (2, 3, *shape) for name, shape in QKV.items()}
EVEN_HEADS: Shapes = {name: (2, 2, *shape) for name, shape in QKV.items()}
SELF: Shapes = {"X": (5, 7), "WQ": (7, 6), "WK": (7, 6), "WV": (7, 6)}
EACH: Shapes = {"X": (5, 7)} | dict.fromkeys(("WQ", "WK", "WV"), (3, 7, 2))
CROSS: Shapes = SELF | {"Y": (4, 11), "WK": (11, 6), "WV": (11, 6)}
BLOCK: Shapes = SELF | {"WO": (6, 7), "W1": (7, 13), "W2": (13, 7)}


@pytest.mark.parametrize(
    ("kind", "shapes", "options", "message"),
    [
        # sizes that do not fit
        (
            "attention",
            QKV | {"K": (5, 4)},
            {},
            "attention: K is 5×4; its dim axis must have d_k = 2 entries to fit Q, but it has 4",
        ),
        (
            "attention",
            QKV | {"V": (4, 7)},
            {},
            "attention: V is 4×7; its key axis must have n_k = 5 entries to fit K, but it has 4",
        ),
        (
            "attention",
            HEADED | {"K": (2, 4, 5, 2)},
            {},
            "K is 2×4×5×2; its head axis must have h = 3 entries to fit Q, but it has 4",
        ),
        (
            "dot-product",
            {"s": (4,), "h": (5, 3)},
            {},
            "s is 4; its dim axis must have d_k = 3 entries to fit h, but it has 4",
        ),
        (
            "self-attention",
            SELF | {"WK": (6, 6)},
            {},
            "WK is 6×6; its model axis must have d_model = 7 entries to fit X, but it has 6",
        ),
        (
            "self-attention",
            SELF | {"bK": (5,)},
            {},
            "bK is 5; its dim axis must have d_k = 6 entries to fit WQ, but it has 5",
        ),
        (
            "self-attention",
            SELF | {"WO": (5, 7)},
            {},
            "WO is 5×7; its dim axis must have d_v = 6 entries to fit WV, but it has 5",
        ),
        (
            "multi-head",
            SELF | {"WO": (5, 7)},
            {"heads": 2},
            "its dim axis must have h·d_v = 6 entries to fit WV and heads, but it has 5",
        ),
        (
            "multi-head",
            SELF,
            {"heads": 4},
            "WQ is 7×6; its dim axis of 6 is to hold h·d_k, but 6 is not divisible by 4",
        ),
        (
            "decoder-block",
            BLOCK | {"WO": (6, 8)},
            {"heads": 2},
            "WO is 6×8; its model axis must have d_model = 7 entries to fit X, but it has 8",
        ),
        (
            "decoder-block",
            BLOCK | {"W2": (12, 7)},
            {"heads": 2},
            "W2 is 12×7; its hidden axis must have d_ff = 13 entries to fit W1, but it has 12",
        ),
        (
            "self-attention",
            SELF | {"P": (4, 7)},
            {"positions": "learned"},
            "P is 4×7; its token axis must have n = 5 entries to fit X, but it has 4",
        ),
        (
            "attention",
            QKV | {"mask": (5, 3)},
            {},
            "mask is 5×3; its query axis must have n_q = 3 entries to fit Q, but it has 5",
        ),
        (
            "attention",
            {n: (2, *s) for n, s in QKV.items()} | {"lengths": (3,)},
            {},
            "lengths is 3; its batch axis must have batch = 2 entries to fit Q, but it has 3",
        ),
        # numbers of axes
        ("attention", QKV | {"Q": (3,)}, {}, r"Q must have 2 axes \(n_q × d_k\), but it is 3"),
        (
            "attention",
            QKV | {"Q": (1, 2, 3, 4, 5)},
            {},
            "Q must have 4 axes .* but it is 1×2×3×4×5",
        ),
        ("attention", QKV | {"Q": (2, 3, 2)}, {}, r"K must have 3 axes \(batch × n_k × d_k\)"),
        (
            "self-attention",
            SELF | {"X": (7,)},
            {},
            r"X must have 2 axes \(n × d_model\), but it is 7",
        ),
        (
            "self-attention",
            SELF | {"WQ": ()},
            {},
            "WQ must have 2 axes .* but it is a single number",
        ),
        ("attention", QKV | {"lengths": (3,)}, {}, "lengths must be a single number, but it is 3"),
        (
            "attention",
            QKV | {"prefix": (3,)},
            {"causal": 0},
            "prefix must be a single number, but it is 3",
        ),
        ("attention", QKV | {"sinks": (3,)}, {}, "sinks must be a single number, but it is 3"),
        ("attention", HEADED | {"sinks": ()}, {}, r"sinks must have 1 axes \(h\)"),
        ("attention", QKV | {"mask": (2, 3, 5)}, {}, r"mask must have 2 axes \(n_q × n_k\)"),
        (
            "cross-attention",
            CROSS | {"X": (2, 5, 7)},
            {},
            "X is 2×5×7 and Y is 4×11; either both have a batch axis or neither",
        ),
        # one matrix for each head, or one for all
        (
            "self-attention",
            EACH,
            {},
            "WQ has one matrix for each of 3 heads; .* use the kind 'multi-head'",
        ),
        (
            "self-attention",
            SELF,
            {"heads": 2},
            "has one head, but heads=2 was passed; use the kind 'multi",
        ),
        (
            "multi-head",
            EACH | {"WK": (7, 2)},
            {},
            "one matrix for every head, but WQ 3×7×2, WK 7×2, WV 3×7×2 were passed",
        ),
        ("multi-head", EACH, {"heads": 4}, "WQ has 3 matrices, but heads=4"),
        ("multi-head", EACH, {"kv_heads": 1}, "WK has 3 matrices, but kv_heads=1"),
        (
            "multi-head",
            EACH | {"WK": (2, 7, 2), "WV": (2, 7, 2)},
            {},
            "3 query heads cannot share 2 key heads: 3 is not divisible by 2",
        ),
        ("multi-head", SELF, {"heads": 2, "kv_heads": 3}, "2 query heads cannot share 3 key heads"),
        (
            "multi-head",
            SELF,
            {},
            "needs heads: pass heads=… to split WQ 7×6 by columns, or one matrix",
        ),
        (
            "attention",
            EVEN_HEADS | {"bias": (2, 3, 5)},
            {},
            r"bias is 2×3×5; its first axis could be the batch or the heads \(2 for the batch",
        ),
        (
            "attention",
            HEADED | {"mask": (7, 3, 5)},
            {},
            r"mask is 7×3×5; .* pass it with 4 axes \(batch × h × n_q × n_k\)",
        ),
        # nothing there
        (
            "attention",
            {"Q": (3, 0), "K": (5, 0), "V": (5, 7)},
            {},
            "Q is 3×0; its dim axis must have at least one entry",
        ),
        (
            "multi-head",
            EACH | dict.fromkeys(("WQ", "WK", "WV"), (0, 7, 2)),
            {},
            "WQ is 0×7×2: it has no head",
        ),
        (
            "self-attention",
            SELF | {"WV": (7, 0)},
            {},
            "WV is 7×0; its dim axis must have at least one",
        ),
        # what is missing and what is too much
        ("attention", {"Q": (3, 2), "K": (5, 2)}, {}, "attention needs V, which was not given"),
        (
            "decoder-block",
            {n: s for n, s in BLOCK.items() if n != "WO"},
            {"heads": 2},
            "decoder-block needs WO, which was not given",
        ),
        (
            "decoder-block",
            BLOCK,
            {"heads": 2, "feed_forward": "swiglu"},
            "needs WG, which was not given",
        ),
        (
            "self-attention",
            SELF | {"Y": (5, 7)},
            {},
            r"does not use Y \(it was given X, WQ, WK, WV, Y\)",
        ),
        ("self-attention", SELF | {"bO": (6,)}, {}, "self-attention does not use bO"),
        ("self-attention", SELF | {"P": (5, 7)}, {}, "self-attention does not use P"),
        ("attention", QKV | {"Wq": (2, 2)}, {}, "knows no given or option 'Wq': did you mean 'WQ'"),
        (
            "dot-product",
            {"s": (3,), "h": (5, 3), "mask": (5,)},
            {},
            "dot-product does not use mask",
        ),
    ],
)
def test_shapes(kind: str, shapes: Shapes, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        build(kind, shapes, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": None}, '`scale=None` could mean 1/√d_k or no scaling.*scale="sqrt".*scale=1'),
        ({"scale": "sqr"}, "`scale` must be \"sqrt\" or a number, but 'sqr' was passed"),
        ({"scale": True}, '`scale` must be "sqrt" or a number, but True was passed'),
        ({"scale": 1j}, '`scale` must be "sqrt" or a number, but 1j was passed'),
        ({"scale": np.nan}, '`scale` must be "sqrt" or a number, but nan was passed'),
        ({"scale": np.inf}, '`scale` must be "sqrt" or a number, but inf was passed'),
        ({"scale": "1e400"}, "`scale` must be \"sqrt\" or a number, but '1e400' was passed"),
        ({"scale": "1e9999999999"}, "`scale` must be .* but '1e9999999999' was passed"),
        ({"scale": [0.5]}, r"`scale` must be .* but \[0.5\] was passed"),
        (
            {"causal": True},
            '`causal=True` is unclear for 3 queries and 5 keys: pass "top-left" .*"bottom-right"',
        ),
        (
            {"causal": "casual"},
            "`causal` must be False, True, 'top-left', .* but 'casual' was passed",
        ),
        ({"causal": None}, "`causal` must be .* but None was passed"),
        ({"causal": 1.5}, "`causal` must be .* or a whole number .* but 1.5 was passed"),
        ({"causal": np.ones(2)}, r"`causal` must be .* but array\(\[1., 1.\]\) was passed"),
        (
            {"window": "x"},
            "`window` must be how many keys to see on each side .* but 'x' was passed",
        ),
        ({"window": True}, "`window` must be .* but True was passed"),
        ({"window": -2}, "−1 is unbounded.*but -2 was passed"),
        ({"window": (1, 2, 3)}, r"`window` must be .* but \(1, 2, 3\) was passed"),
        ({"window": (1, 0.5)}, r"`window` must be .* but \(1, 0.5\) was passed"),
        ({"window": 1.0}, "`window` must be .* but 1.0 was passed"),
        ({"softcap": 0}, "`softcap` must be a number above 0, but 0 was passed"),
        ({"softcap": -3}, "`softcap` must be a number of at least 0, but -3 was passed"),
        ({"softcap": "soft"}, "`softcap` must be a number of at least 0, but 'soft' was passed"),
        ({"positions": "rotery"}, "`positions` must be one of .* did you mean 'rotary'"),
        ({"positions": "sinusoidal"}, "sinusoidal positions are added to X, which is not there"),
        ({"positions": 3}, "`positions` must be one of .* but 3 was passed"),
        (
            {"positions": "rotary", "rotary_base": 0},
            "`rotary_base` must be a number above 0, but 0",
        ),
        (
            {"positions": "rotary", "rotary_base": "-2"},
            "`rotary_base` must be .* but '-2' was passed",
        ),
        (
            {"positions": "rotary", "rotary_layout": "halves"},
            "`rotary_layout` must be one of 'half', 'interleaved', but 'halves' was passed; did",
        ),
        ({"casual": True}, "no option 'casual': did you mean 'causal'"),
        ({"heads": 2}, "`heads=2` changes nothing in this attention: leave it out"),
        ({"norm": "rms"}, "`norm='rms'` changes nothing in this attention"),
        ({"rotary_layout": "interleaved"}, "`rotary_layout='interleaved'` changes nothing"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build("attention", QKV, **options)


@pytest.mark.parametrize(
    ("kind", "shapes", "options", "message"),
    [
        ("multi-head", SELF, {"heads": 0}, "`heads` must be a whole number of at least 1, but 0"),
        (
            "multi-head",
            SELF,
            {"heads": 2.0},
            "`heads` must be a whole number of at least 1, but 2.0",
        ),
        ("multi-head", SELF, {"heads": True}, "`heads` must be a whole number .* but True"),
        (
            "multi-head",
            SELF,
            {"heads": 2, "kv_heads": "1"},
            "`kv_heads` must be .* but '1' was passed",
        ),
        (
            "decoder-block",
            BLOCK,
            {"heads": 2, "norm": "batch"},
            "`norm` must be one of 'layer', 'rms'",
        ),
        (
            "decoder-block",
            BLOCK,
            {"heads": 2, "feed_forward": "relu"},
            "one of 'gelu', 'swiglu', but 'relu'",
        ),
        (
            "decoder-block",
            BLOCK,
            {"heads": 2, "eps": -1},
            "`eps` must be a number of at least 0, but -1",
        ),
        (
            "dot-product",
            {"s": (3,), "h": (5, 3)},
            {"causal": True},
            "`causal=True` changes nothing in this",
        ),
        (
            "self-attention",
            SELF,
            {"eps": "1e-6"},
            "`eps='1e-6'` changes nothing in this self-attention",
        ),
        (
            "atention",
            QKV,
            {},
            "`kind` must be one of .* 'atention' was passed; did you mean 'attention'",
        ),
        (None, QKV, {}, "`kind` must be one of .* but None was passed"),
    ],
)
def test_options_of_other_kinds(
    kind: str, shapes: Shapes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        build(kind, shapes, **options)


def test_causal_is_unclear_for_a_prefix_too() -> None:
    with pytest.raises(OptionError, match="unclear for 3 queries and 5 keys"):
        build("attention", QKV | {"prefix": ()})


@pytest.mark.parametrize(
    ("kind", "shapes", "options", "message"),
    [
        (
            "attention",
            dict.fromkeys("QKV", (5, 3)),
            {"positions": "rotary"},
            "an even d_k, but it is 3",
        ),
        ("self-attention", SELF, {"positions": "sinusoidal"}, "an even d_model, but it is 7"),
    ],
)
def test_widths_that_must_be_even(
    kind: str, shapes: Shapes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run(build(kind, shapes, **options), {n: np.ones(s) for n, s in shapes.items()})


@pytest.mark.parametrize(
    "options",
    [
        {"heads": np.int64(3)},
        {"heads": 3, "causal": np.True_},
        {"heads": 3, "causal": np.int32(1)},
        {"heads": 3, "window": np.int64(2)},
        {"heads": 3, "window": [1, -1]},
        {"heads": 3, "scale": np.float32(0.5), "softcap": "3/2"},
        {"heads": 3, "norm": "layer", "eps": "1e-5", "positions": None},  # as by default
    ],
)
def test_numbers_of_numpy_and_defaults_are_welcome(options: dict[str, Any]) -> None:
    assert build("multi-head", SELF, **options).sizes["h"] == 3


# ---- anything at all -------------------------------------------------------------------------

sizes = st.sampled_from([0, 1, 2, 3, 4, 6])
shapes_of_any_kind = st.dictionaries(
    st.sampled_from([*GIVEN_SYMBOLS, "W", "x"]), st.lists(sizes, max_size=5).map(tuple), max_size=8
)
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 7),
    st.floats(),
    st.text(max_size=6),
    st.complex_numbers(),
    st.lists(st.integers(-2, 3), max_size=3),
    st.tuples(st.integers(-2, 3), st.integers(-2, 3)),
    st.sampled_from(
        [
            "sqrt",
            "1/2",
            "rotary",
            "alibi",
            "sinusoidal",
            "learned",
            "rms",
            "layer",
            "gelu",
            "swiglu",
            "top-left",
            "bottom-right",
            "half",
            "interleaved",
            "1e-5",
            np.ones(2),
            np.float64(2),
        ]
    ),
)
any_options = st.dictionaries(st.sampled_from([*DEFAULTS, "casual"]), junk, max_size=5)


@given(st.one_of(st.sampled_from(sorted(KINDS)), junk), shapes_of_any_kind, any_options)
def test_whatever_is_passed_only_our_own_errors_escape(
    kind: Any, shapes: Shapes, options: dict[str, Any]
) -> None:
    with suppress(RegardError):
        build(kind, shapes, **options)


@st.composite
def nearly_right(draw: st.DrawFn) -> tuple[str, Shapes, dict[str, Any]]:
    """Givens that fit, but for one at times; so that the fuzz gets past the first check."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    n, m = (draw(st.sampled_from([0, 1, 2, 3, 4])) for _ in range(2))
    d, h, k, v, f = (draw(st.sampled_from([1, 2, 3, 4, 6])) for _ in range(5))
    batch = draw(st.sampled_from([(), (), (2,), (0,)]))
    each = kind not in ("self-attention", "attention") and draw(st.booleans())
    heads, wide = ((h,), 1) if each else ((), 1 if kind == "self-attention" else h)
    source = m if kind in ("attention", "cross-attention") else n
    width = d + 1 if kind == "cross-attention" else d
    weights: Shapes = {
        "WQ": (*heads, d, wide * k),
        "WK": (*heads, width, wide * k),
        "WV": (*heads, width, wide * v),
    }
    shapes: Shapes = {
        "dot-product": {"s": (k,), "h": (m, k)},
        "attention": {"Q": (*batch, n, k), "K": (*batch, m, k), "V": (*batch, m, v)},
        "cross-attention": {"X": (*batch, n, d), "Y": (*batch, m, width)} | weights,
        "decoder-block": {"X": (*batch, n, d), "WO": (h * v, d), "W1": (d, f), "W2": (f, d)}
        | weights,
    }.get(kind, {"X": (*batch, n, d)} | weights)
    extras: Shapes = {
        "mask": (n, source),
        "bias": (*batch, *heads, n, source),
        "lengths": batch,
        "prefix": (),
        "sinks": () if kind in ("attention", "self-attention") else (h,),
        "bQ": (*heads, wide * k),
        "WO": (wide * v, f),
        "gamma_1": (d,),
        "b1": (f,),
    }
    usual = ("mask", "bias", "lengths", "sinks")
    for name in draw(st.lists(st.sampled_from(usual), max_size=2, unique=True)):
        shapes[name] = extras[name]
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted({*shapes, *extras})))
        shapes[name] = draw(st.one_of(st.just(extras.get(name, ())), st.lists(sizes).map(tuple)))
    options = draw(any_options) if draw(st.booleans()) else {}
    options |= draw(
        st.sampled_from([{}, {"causal": "bottom-right"}, {"positions": "alibi"}, {"window": 1}])
    )
    if kind in ("multi-head", "cross-attention", "decoder-block") and not heads:
        options.setdefault("heads", h)
    return kind, shapes, options


@given(nearly_right(), st.booleans())
@example(("attention", {"Q": (1, 1), "K": (0, 1), "V": (0, 1), "sinks": ()}, {}), False)
def test_what_is_built_runs_or_says_why_not(
    case: tuple[str, Shapes, dict[str, Any]], boolean_mask: bool
) -> None:
    kind, shapes, options = case
    try:
        graph = build(kind, shapes, **options)
        givens: dict[str, Any] = {name: np.ones(shape) for name, shape in shapes.items()}
        if boolean_mask and "mask" in givens:
            givens["mask"] = givens["mask"] > 0
        values = run(graph, givens).values
    except RegardError:
        return
    for name, axes in graph.axes.items():
        assert values[name].shape == tuple(axis.size.evaluate(graph.sizes) for axis in axes)


def test_an_axis_that_the_glossary_does_not_know_is_refused() -> None:
    graph = build("attention", {"Q": (2, 3), "K": (5, 3), "V": (5, 7)})
    with pytest.raises(RewriteError, match="there is no 'keys' axis: did you mean 'key'"):
        Change("scores", columns="keys")(graph)
