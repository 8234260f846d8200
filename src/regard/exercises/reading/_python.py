"""Array literals of NumPy and torch, read from their syntax tree and never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

from regard.exercises.reading._numbers import (
    count,
    read_number,
    refuse_words,
    shape,
    transposed,
)
from regard.exercises.reading._records import Block, Cell, Number, UnreadableError
from regard.exercises.reading._text import matching, quoted

_HEAD = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)?(?=[\[(])")
_METHOD = re.compile(r"\s*\.(?=[A-Za-z_])[A-Za-z_]\w*")
_MAKER = re.compile(
    r"(?:as_?)?(?:array|tensor)|(?:Float|Double|Long)?Tensor|mat(?:rix)?|constant|Parameter"
    r"|float(?:32|64)|list|tuple|from_numpy"
)
_CAST = re.compile(
    r"float|double|half|long|int|to|(?:as)?type|clone|numpy|cuda|cpu|detach|copy|tolist"
    r"|requires_grad_|contiguous"
)
_LARGEST = 10**6


class _UnfitError(Exception):
    """A leaf that is no number, or a call that this reader does not follow."""


class _Digits(str):
    """A number as the source spells it."""


def read_literal(text: str, at: int) -> Block | None:
    """A nested list, bare or inside ``np.array`` and its kin, with casts and transposes after."""
    head = _HEAD.match(text, at)
    if head is None or (head[1] and not _makes_array(head[1].split(".")[-1])):
        return None
    close = matching(text, head.end())
    if close is None:
        _refuse_unclosed(text, at, head)
        return None
    end = _end_of_methods(text, close + 1)
    try:
        tree = ast.parse(text[at:end], mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse_entries(text, at, head.end(), close)
        return None
    _keep_digits(tree, text[at:end])
    try:
        values = _values(tree.body)
    except (_UnfitError, RecursionError):
        _refuse_leaves(text[at:end], at, tree)
        return None
    if not isinstance(values, list) or not shape(values)[0]:
        return None
    _even(values, at)
    return Block(values, end, "torch" if _is_torch(text[at:end]) else "numpy")


def _makes_array(name: str) -> bool:
    return name in _BUILDERS or _MAKER.fullmatch(name) is not None


def _keep_digits(tree: ast.Expression, source: str) -> None:
    """Put the digits as written in place of floats, which would round them."""
    lines = [line.encode() for line in source.split("\n")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
            line = lines[node.lineno - 1]
            node.value = _Digits(line[node.col_offset : node.end_col_offset].decode())


def _end_of_methods(text: str, end: int) -> int:
    while method := _METHOD.match(text, end):
        end = method.end()
        if text[end : end + 1] == "(":
            close = matching(text, end)
            if close is None:
                return end
            end = close + 1
    return end


def _is_torch(source: str) -> bool:
    return re.search(r"\btorch\.|[tT]ensor\(", source) is not None


def _refuse_unclosed(text: str, at: int, head: re.Match[str]) -> None:
    opened = text[head.end() : head.end() + 2]
    if head[1] or opened == "[[":
        raise UnreadableError(
            at, f'the bracket "{opened[0]}" opened here is never closed', "Close every bracket"
        )


def _refuse_entries(text: str, at: int, opened: int, close: int) -> None:
    """Find the entry that keeps a bracketed list of numbers from being Python."""
    entries = [
        Cell(found[0], opened + 1 + found.start())
        for found in re.finditer(r"[^\s,\[\]()][^,\[\]()\n]*", text[opened + 1 : close])
    ]
    refuse_words(entries, [read_number(entry.text) is not None for entry in entries])
    raise UnreadableError(
        at, "the brackets and commas do not form a list", "Put a comma between two entries", True
    )


def _refuse_leaves(source: str, at: int, tree: ast.Expression) -> None:
    leaves = [
        (node, ast.get_source_segment(source, node) or "")
        for row in ast.walk(tree)
        if isinstance(row, ast.List | ast.Tuple)
        for node in row.elts
        if not isinstance(node, ast.List | ast.Tuple)
    ]
    if not leaves:
        return
    starts = [0, *(found.end() for found in re.finditer("\n", source))]
    entries = [Cell(written, at + starts[node.lineno - 1]) for node, written in leaves]
    refuse_words(entries, [_is_leaf_number(node) for node, _ in leaves])
    raise UnreadableError(
        at, f"{quoted(source)} is computed, not written out", "Write the numbers", True
    )


def _is_leaf_number(node: ast.expr) -> bool:
    try:
        return not isinstance(_values(node), list)
    except _UnfitError:
        return False


def _even(values: list[Any], at: int, name: str = "row") -> None:
    """Raise unless all rows have one length at every depth."""
    if not any(isinstance(value, list) for value in values):
        return
    for place, row in enumerate(values, start=1):
        if not isinstance(row, list) or len(row) != len(values[0]):
            size = count(len(row)) if isinstance(row, list) else "a bare number"
            first = len(values[0]) if isinstance(values[0], list) else "a bare number"
            raise UnreadableError(
                at,
                f"{name} {place} has {size}, {name} 1 has {first}",
                "Give every row the same count",
            )
        _even(row, at, f"part {place}, row")


def _values(node: ast.expr) -> Any:
    if isinstance(node, ast.List | ast.Tuple):
        return [_values(entry) for entry in node.elts]
    if isinstance(node, ast.Attribute) and node.attr in {"T", "mT"}:
        return _turned(_values(node.value))
    if isinstance(node, ast.Call) and (called := _called(node)) is not None:
        return called
    return _number(node)


def _called(node: ast.Call) -> Any:
    """The array that a call makes, or None when it is a call for a number."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name in _BUILDERS:
        return _BUILDERS[name](_sizes(node.args))
    if _MAKER.fullmatch(name) and node.args:
        return _values(node.args[0])
    if not isinstance(node.func, ast.Attribute):
        return None
    if _CAST.fullmatch(name):
        return _values(node.func.value)
    if name in {"t", "transpose"}:
        return _turned(_values(node.func.value))
    if name in {"reshape", "view"}:
        return _reshaped(_values(node.func.value), _sizes(node.args))
    return None


def _turned(values: Any) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise _UnfitError
    try:
        return transposed(values) if isinstance(values[0], list) else values
    except (TypeError, ValueError) as ragged:
        raise _UnfitError from ragged


def _sizes(arguments: list[ast.expr]) -> list[int]:
    values = _values(ast.List(elts=arguments))
    flat = values[0] if values and isinstance(values[0], list) else values
    if not all(isinstance(size, Fraction) and size.denominator == 1 for size in flat):
        raise _UnfitError
    return [int(size) for size in flat]


def _reshaped(values: Any, sizes: list[int]) -> list[Any]:
    flat = _flat(values)
    if sizes.count(-1) == 1 and (rest := -prod(sizes)) > 0:
        sizes = [len(flat) // rest if size == -1 else size for size in sizes]
    if not sizes or min(sizes) < 1 or prod(sizes) != len(flat):
        raise _UnfitError
    for size in reversed(sizes[1:]):
        flat = [flat[start : start + size] for start in range(0, len(flat), size)]
    return flat


def _flat(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return [number for value in values for number in _flat(value)]


def _filled(value: int) -> Callable[[list[int]], list[Any]]:
    def fill(sizes: list[int]) -> list[Any]:
        if not sizes or not 0 < prod(sizes) <= _LARGEST:
            raise _UnfitError
        return _reshaped([Fraction(value)] * prod(sizes), sizes)

    return fill


def _identity(sizes: list[int]) -> list[Any]:
    if len(sizes) != 1 or not 0 < sizes[0] ** 2 <= _LARGEST:
        raise _UnfitError
    return [[Fraction(row == column) for column in range(sizes[0])] for row in range(sizes[0])]


def _counted(limits: list[int]) -> list[Any]:
    if not 1 <= len(limits) <= 3 or limits[-1] == 0 or max(map(abs, limits)) > _LARGEST:
        raise _UnfitError
    return [Fraction(number) for number in range(*limits)]


_BUILDERS: dict[str, Callable[[list[int]], list[Any]]] = {
    "eye": _identity,
    "identity": _identity,
    "zeros": _filled(0),
    "ones": _filled(1),
    "arange": _counted,
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}


def _number(node: ast.expr) -> Number:
    """A number, a sign, or a fraction of numbers; anything else is unfit."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _number(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and (operation := _OPERATIONS.get(type(node.op))):
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.Div) and right == 0:
            raise _UnfitError
        result: Number = operation(left, right)
        return result
    exact = _exact(node)
    if exact is None:
        raise _UnfitError
    return exact


def _exact(node: ast.expr) -> Number | None:
    if isinstance(node, ast.Constant):
        digits = node.value
        return read_number(digits.replace("_", "")) if isinstance(digits, _Digits) else None
    return read_number(ast.unparse(node))
