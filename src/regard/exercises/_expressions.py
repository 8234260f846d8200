"""Small formulas in exercise files: `beta*(mu[1] + mu[2])`, evaluated without running code.

Numbers, names, + − * / ** @, rows counted from 1 as in print, and a few functions. Nothing else
is understood, so an exercise file from a stranger can do no harm.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from regard._errors import OptionError, did_you_mean

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "max": np.max,
    "min": np.min,
    "abs": np.abs,
    "norm": np.linalg.norm,
    "rows": lambda *rows: np.stack(np.broadcast_arrays(*rows)),
    "sqrt": np.sqrt,
    "sum": np.sum,
}
LARGEST_POWER = 64


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression in these names."""
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise OptionError(f"the expression {expression!r} cannot be read: {error.msg}") from error
    try:
        with np.errstate(all="ignore"):
            return _Evaluator(expression, names).visit(tree)
    except (TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"the expression {expression!r} has no value: {error}") from error


class _Evaluator(ast.NodeVisitor):
    def __init__(self, expression: str, names: Mapping[str, Any]) -> None:
        self.expression = expression
        self.names = names

    def generic_visit(self, node: ast.AST) -> Any:
        raise OptionError(
            f"the expression {self.expression!r} uses {type(node).__name__}, which is not "
            "understood; it may hold numbers, names, + - * / ** @, rows such as mu[1] and "
            f"the functions {', '.join(FUNCTIONS)}"
        )

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self.generic_visit(node)
        return float(node.value)  # type: ignore[arg-type]

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise OptionError(
                f"the expression {self.expression!r} uses {node.id!r}, which is not defined: "
                + did_you_mean(node.id, self.names)
            )
        return self.names[node.id]

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in OPERATORS:
            return self.generic_visit(node.op)
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow) and np.max(np.abs(right)) > LARGEST_POWER:
            raise OptionError(f"the expression {self.expression!r} has a power above {LARGEST_POWER}")
        return OPERATORS[type(node.op)](left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if type(node.op) not in OPERATORS:
            return self.generic_visit(node.op)
        return OPERATORS[type(node.op)](self.visit(node.operand))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        array = np.asarray(self.visit(node.value))
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(int(self.visit(place)) for place in places)
        if len(index) > array.ndim or any(
            not 1 <= i <= size for i, size in zip(index, array.shape, strict=False)
        ):
            raise OptionError(
                f"the expression {self.expression!r} asks for place {index} (counted from 1) "
                f"of an array of shape {array.shape}"
            )
        return array[tuple(i - 1 for i in index)]

    def visit_Call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            return self.generic_visit(node)
        return FUNCTIONS[node.func.id](*(self.visit(argument) for argument in node.args))
