"""What was found in an assignment as the givens of its computation, in the words of the format.

Nothing that has a role is dropped: what the computation does not use is refused by name and line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

from regard._errors import AssignmentError

if TYPE_CHECKING:
    from regard.exercises.reading import Found

WEIGHTS = ("WQ", "WK", "WV", "WO", "bQ", "bK", "bV", "bO", "mask")
# By kind: what it uses, by the names of the format.
USED = {
    "dot-product": ("s", "h", "v"),
    "attention": ("Q", "K", "V", "mask"),
    "self-attention": ("X", *WEIGHTS),
    "cross-attention": ("X", "Y", *WEIGHTS),
    "multi-head": ("X", *WEIGHTS),
}
# By kind: names of the text that mean a given of the format.
MEANT: dict[str, dict[str, str]] = {
    "dot-product": {"q": "s", "k": "h", "K": "h", "V": "v"},
    "attention": {"q": "Q", "k": "K", "v": "V"},
}
# They change the attention, but the reader of assignments knows no role for them.
UNSAID = ("P", "P_Y", "bias", "lengths", "prefix", "sinks")


def has_role(found: Found) -> bool:
    """Whether leaving it out could make the answer wrong; a matrix without a role cannot."""
    from regard.exercises.reading import DESCRIPTIONS

    base = found.name.rstrip("0123456789")
    return found.name in DESCRIPTIONS or found.name in UNSAID or base in ("X", "Y", "M")


def givens_of_kind(kind: str, usable: Sequence[Found], name: str) -> dict[str, Any]:
    """Values by the names of the format; the matrices of a head in the order of the heads."""
    givens: dict[str, Any] = {}
    heads: dict[str, list[tuple[int, Any]]] = {}
    origins: dict[str, Found] = {}
    for found in usable:
        meant = MEANT.get(kind, {}).get(found.name, "mask" if found.name == "M" else found.name)
        first = origins.setdefault(meant, found)
        one_of_heads = first.name == found.name and None not in (first.head, found.head)
        if first is not found and not one_of_heads:
            raise AssignmentError(
                f"{name}: {first.written!r} (line {first.line}) and {found.written!r} (line "
                f"{found.line}) both mean the same given of {kind}, {meant}: take one out"
            )
        if meant not in USED[kind]:
            raise _unused(kind, found, name)
        if found.head is not None:
            heads.setdefault(meant, []).append((found.head, found.values))
        else:
            givens[meant] = _rows(meant, found, name)
    for meant, matrices in heads.items():
        ordered = [matrix for _, matrix in sorted(matrices, key=lambda item: item[0])]
        givens[meant] = ordered
    return givens


def _unused(kind: str, found: Found, name: str) -> AssignmentError:
    from regard.exercises.reading import DESCRIPTIONS

    role = DESCRIPTIONS.get(found.name)
    read = f"was read as {role}" if role else "changes the attention in a way not understood here"
    return AssignmentError(
        f"{name}: {found.written!r} (line {found.line}) {read}, which {kind} does not use: take "
        "it out of the text, rename it if it only states a result, or write an exercise file"
    )


def _rows(meant: str, found: Found, name: str) -> Any:
    """The values; one key or value alone is a set of one, and a mask must have one meaning."""
    if meant == "mask":
        return _mask(found, name)
    if meant in ("h", "v", "Q", "K", "V", "X", "Y") and not isinstance(found.values[0], list):
        return [found.values]
    return found.values


def _mask(found: Found, name: str) -> Any:
    """A mask of 0 and −∞, as it is added to the scores."""
    entries = set(_flat(found.values))
    if entries <= {0, -inf} and -inf in entries:
        return found.values
    here = f"{name}: the mask {found.written!r} (line {found.line})"
    what = "write 0 where a query may look and -inf where it may not"
    if entries <= {0, 1}:
        raise AssignmentError(
            f"{here} holds only 0 and 1, and 1 could mean that a query may look there or that it "
            f"may not: {what} (in an exercise file also true and false)"
        )
    raise AssignmentError(f"{here} holds other numbers than 0 and -inf: {what}")


def _flat(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return list(chain.from_iterable(map(_flat, values)))


def hides_the_future(mask: list[Any]) -> bool:
    """Whether a mask hides every later key from every query."""
    if isinstance(mask[0][0], list):
        return all(map(hides_the_future, mask))
    return all(entry == -inf for place, row in enumerate(mask) for entry in row[place + 1 :])
