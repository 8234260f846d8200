"""The examples in docstrings do what they show."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "regard.ops._attention",
        "regard.ops._projections",
        "regard.ops.conventions",
        "regard.show.costs",
        "regard.show.trace",
    ],
)
def test_examples(module: str) -> None:
    failed, tried = doctest.testmod(import_module(module))
    assert tried > 0
    assert failed == 0
