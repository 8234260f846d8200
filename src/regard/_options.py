"""One checker for every option that is a choice among words."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from regard._errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Chosen = TypeVar("Chosen")


def one_of(option: str, given: object, choices: Iterable[str]) -> str:
    """Return `given` if it is among `choices`; otherwise say what the option takes."""
    choices = list(choices)
    if isinstance(given, str) and given in choices:
        return given
    listed = ", ".join(repr(choice) for choice in choices)
    meant = did_you_mean(given, choices) if isinstance(given, str) and len(choices) > 1 else ""
    hint = f"; {meant}" if meant.startswith("did you mean") else ""
    raise OptionError(f"`{option}` must be one of {listed}, but {given!r} was passed{hint}")


def look_up(option: str, given: str, table: Mapping[str, Chosen]) -> Chosen:
    """The entry of `table` that `given` names; otherwise say what the option takes."""
    return table[one_of(option, given, table)]


def is_integer(given: object) -> TypeGuard[int]:
    """Whether it is a whole number of Python's or NumPy's; True and False are none."""
    return isinstance(given, Integral) and not isinstance(given, bool)


def positive_integer(option: str, given: object) -> int:
    """Return `given` if it is a whole number of at least one."""
    if is_integer(given) and given >= 1:
        return int(given)
    raise OptionError(f"`{option}` must be a whole number of at least 1, but {given!r} was passed")
