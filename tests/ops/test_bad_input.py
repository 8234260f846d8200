"""Whatever is passed either works or raises an error that says what to do; nothing crashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import regard

Q, K, V = np.ones((2, 6, 3, 5)), np.ones((2, 2, 7, 5)), np.ones((2, 2, 7, 11))
Shape, Option, Number = regard.ShapeError, regard.OptionError, regard.NumberError
WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("one axis", {"q": Q[0, 0, 0]}, Shape, "q is 5, but it needs at least 2 axes"),
    ("axes of different number", {"k": K[0]}, Shape, "q is 2×6×3×5 and k is 2×7×5: they need eq"),
    ("batches differ", {"k": K[:1]}, Shape, "batch axes differ, 2 ≠ 1"),
    ("last axes differ", {"q": Q[..., :4]}, Shape, "q is 2×6×3×4 .*last axes differ, 4 ≠ 5"),
    ("keys without values", {"v": V[:, :, :6]}, Shape, "tokens differ, 7 ≠ 6"),
    ("key heads without value heads", {"v": V[:, :1]}, Shape, "heads differ, 2 ≠ 1"),
    ("heads that share unevenly", {"q": Q[:, :5]}, Shape, "5 query heads cannot share 2 key heads"),
    ("tokens first", {"q": Q.swapaxes(1, 2)}, Shape, "pass layout='token-head'"),
    ("no key heads", {"k": K[:, :0], "v": V[:, :0]}, Shape, "6 query heads cannot share 0"),
    ("no coordinates", {"q": Q[..., :0], "k": K[..., :0]}, Shape, "1/√0 is no number: pass"),
    ("ragged lists", {"q": [[1.0], [1.0, 2.0]]}, Shape, "q is not an array of numbers"),
    ("types differ", {"v": V.astype("f4")}, Number, "q float64, k float64, v float32"),
    ("complex", {"q": Q * 1j}, Number, "q is complex128, but it must be float16, bfloat16"),
    ("words", {"q": np.full(Q.shape, "a")}, Number, "q is str"),
    ("objects", {"q": Q.astype(object)}, Number, "q is object"),
    ("masked arrays", {"k": np.ma.masked_array(K, K > 0)}, Option, "a masked array, whose"),
    ("mask of numbers", {"mask": np.ones((3, 7))}, Option, "numbers that are added .* are `bias`"),
    ("mask of whole numbers", {"mask": np.ones((3, 7), int)}, Option, "pass mask != 0"),
    ("bias of booleans", {"bias": np.ones((3, 7), bool)}, Option, "pass them as `mask`"),
    ("mask turned", {"mask": np.ones((7, 3), bool)}, Shape, "mask` is 7×3, .* scores are 2×6×3×7"),
    ("mask of a batch", {"mask": np.ones((2, 7), bool)}, Shape, r"pass mask\[..., None, None, :\]"),
    ("too many axes", {"mask": np.ones((1, 1, 1, 3, 7), bool)}, Shape, "mask` is 1×1×1×3×7"),
    ("no q", {"q": None}, Number, "q is None, but it must be an array of float16"),
    ("no keys", {"k": None}, Number, "k is None, but it must be an array of float16"),
    ("causal None", {"causal": None}, Option, "`causal` must be False, True, .* but None"),
    ("causal is unclear", {"causal": True}, Option, 'for 3 queries and 7 keys: pass "top-left"'),
    ("causal misspelt", {"causal": "bottom_right"}, Option, "'bottom_right' was passed"),
    ("causal of another batch", {"causal": np.array([1, 2, 3])}, Shape, "one for each batch entry"),
    ("causal of floats", {"causal": np.array([1.0, 2.0])}, Option, "whole numbers, but float64"),
    ("causal without end", {"causal": 1 << 40}, Option, "between −2³⁰ and 2³⁰"),
    ("window of three", {"window": (1, 2, 3)}, Option, r"\(1, 2, 3\) was passed"),
    ("window below -1", {"window": -2}, Option, "-2 was passed"),
    ("window of floats", {"window": 2.0}, Option, "2.0 was passed"),
    ("scale None", {"scale": None}, Option, '1/√d_k or no scaling at all: pass scale="sqrt"'),
    ("scale not finite", {"scale": np.inf}, Option, "scale` must be .* a number, but inf"),
    ("scale misspelt", {"scale": "squirt"}, Option, "'squirt' was passed"),
    ("scale beyond floats", {"scale": 10**400}, Option, "scale` must be .* a number, but 1000"),
    ("softcap 0", {"softcap": 0}, Option, "above 0, but 0"),
    ("softcap below 0", {"softcap": -1.0}, Option, "above 0, but -1"),
    ("too few sinks", {"sinks": np.ones(2)}, Shape, "one number for each of the 6 heads"),
    ("lengths beyond the keys", {"lengths": np.array([3, 8])}, Option, "8 was .* entry 1"),
    ("lengths below 0", {"lengths": -1}, Option, "between 0 and 7 .* but -1"),
    ("lengths of floats", {"lengths": np.array([3.0, 7.0])}, Option, "whole numbers, but float64"),
    ("lengths of each head", {"lengths": np.ones((2, 6), int)}, Shape, "lengths` has 2×6 numbers"),
    ("prefix beyond the keys", {"prefix": 8, "causal": 0}, Option, "prefix` must be between 0"),
    ("segments of the queries alone", {"segments": np.zeros((2, 3), int)}, Shape, "3 for 7 keys"),
    ("past alone", {"past": K}, Option, r"pair \(k, v\), but an array of 2×2×7×5"),
    ("half a past", {"past": (K, None)}, Option, r"but \(an array of 2×2×7×5, None\) was passed"),
    ("past of other heads", {"past": (K[:, :1], V[:, :1])}, Shape, "heads differ, 2 ≠ 1"),
    ("past of other widths", {"past": (K, V[..., :3])}, Shape, "last axes differ, 11 ≠ 3"),
    ("past of another type", {"past": (K.astype("f4"), V)}, Number, "past_k float32"),
    ("layout None", {"layout": None}, Option, "`layout` must be one of 'head-token'"),
    ("layout misspelt", {"layout": "token_head"}, Option, "did you mean 'token-head'"),
    ("what to inspect", {"inspect": {"top": 3}}, Option, "must be a regard.Inspect"),
    ("rows that are not there", {"inspect": regard.Inspect(rows=[3])}, Option, "row 3 was asked"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "message"), [each[1:] for each in WRONG],
                         ids=[each[0] for each in WRONG])  # fmt: skip
def test_messages(change: dict[str, Any], error: Any, message: str) -> None:
    given = {"q": Q, "k": K, "v": V} | change
    with pytest.raises(error, match=message):
        regard.attention(**given)


@pytest.mark.parametrize(("change", "error", "message"), [each[1:] for each in WRONG],
                         ids=[each[0] for each in WRONG])  # fmt: skip
def test_messages_about_tensors(change: dict[str, Any], error: Any, message: str) -> None:
    """The same, wherever a tensor can be wrong in this way."""
    torch = pytest.importorskip("torch")

    def as_tensor(given: Any) -> Any:
        if isinstance(given, tuple):
            return tuple(map(as_tensor, given))
        if isinstance(given, np.ma.MaskedArray) or not isinstance(given, np.ndarray):
            return given
        return torch.from_numpy(given) if given.dtype.kind in "biuf" else given

    given = {name: as_tensor(each) for name, each in ({"q": Q, "k": K, "v": V} | change).items()}
    if any(isinstance(each, np.ndarray) for each in given.values()):
        error, message = Option, "pass all of them as tensors"
    if isinstance(given["q"], list):
        pytest.skip("torch has its own words for a list that is no tensor")
    with pytest.raises(error, match=message):
        regard.attention(**given)


def test_tensors_that_are_not_dense() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = map(torch.from_numpy, (Q, K, V))
    with pytest.raises(Option, match="must be dense, but a sparse_coo one was passed"):
        regard.attention(q.to_sparse(), k, v)


def test_tensors_on_several_devices() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = map(torch.from_numpy, (Q, K, V))
    with pytest.raises(Option, match=r"several devices .*k on meta.*: move them to one"):
        regard.attention(q, k.to("meta"), v)


def test_arrays_among_tensors() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Option, match="q is a torch tensor and k is not"):
        regard.attention(torch.from_numpy(Q), K, V)


@pytest.mark.parametrize(
    "option", [{"top": -1}, {"top": 1.5}, {"entropy": 1}, {"rows": 3}, {"rows": [0.5]}]
)
def test_inspect_says_what_it_takes(option: dict[str, Any]) -> None:
    (name, value), *_ = option.items()
    with pytest.raises(Option, match=f"`{name}` must be .*{value}"):
        regard.Inspect(**option)


def test_arrays_that_share_memory() -> None:
    """q, k and v may be views of one array; nothing of it is written."""
    whole = np.random.default_rng(0).normal(size=(9, 15))
    before = whole.copy()
    q, k, v = whole[:, :5], whole[:, 5:10], whole[::-1, 3:14]
    have = regard.attention(q, k, v, causal=True)
    np.testing.assert_array_equal(have, regard.attention(q.copy(), k.copy(), v.copy(), causal=True))
    np.testing.assert_array_equal(whole, before)
    assert not np.shares_memory(have, whole)


def test_numbers_that_are_not_arrays() -> None:
    """Lists and whole numbers are float64, as NumPy takes them."""
    output = regard.attention([[0, 0]], [[1, 2], [3, 4]], [[2], [6]])
    assert output.dtype == np.float64
    assert output.tolist() == [[4.0]]


def test_ids_within_records() -> None:
    """Whole numbers may lie at any distance in memory, as other numbers may."""
    records = np.zeros(7, [("id", "i8"), ("part", "i4")])
    records["id"] = [0, 0, 1, 1, 1, 2, 2]
    strided, whole = ((ids[:3], ids) for ids in (records["id"], records["id"].copy()))
    have, want = (regard.attention(Q, K, V, segments=each) for each in (strided, whole))
    np.testing.assert_array_equal(have, want)


def test_whatever_has_an_array() -> None:
    class Held:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return Q

    want = regard.attention(Q, K, V)
    np.testing.assert_array_equal(regard.attention(Held(), K, V), want)
