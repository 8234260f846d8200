"""Aliases: names of the user's own for the steps and givens of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from regard._errors import NoSuchStepError, OptionError, did_you_mean


def check_aliases(
    aliases: Mapping[str, str], known: Collection[str], taken: Collection[str] = ()
) -> dict[str, str]:
    """The aliases (name to alias), once each is for a `known` name and means nothing else.

    `taken` are further names that no alias may be.
    """
    used = {*known, *taken}
    for name, alias in aliases.items():
        if name not in known:
            raise NoSuchStepError(f"names: no step or given {name!r}: {did_you_mean(name, known)}")
        if not isinstance(alias, str) or not alias.strip():
            raise OptionError(f"names: the alias of {name!r} must be a word, but is {alias!r}")
        if alias in used and alias != name:
            raise OptionError(
                f"names: {name!r} cannot be called {alias!r}, which already is the name of "
                "something else"
            )
        used.add(alias)
    return dict(aliases)
