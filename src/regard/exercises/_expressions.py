"""Small formulas in exercise files: `beta*(mu[a] + mu[b])`, read without running code.

Numbers, names, + − * / ** @, rows counted from 1 as in print, and a few functions. Nothing else
is understood, so an exercise file from a stranger can do no harm.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from regard._errors import OptionError, did_you_mean
from regard.graph import notation
from regard.graph.notation import Equation, Math, Number, Symbol
from regard.show._symbols import SPELLED

LONGEST = 500  # characters
DEEPEST = 40  # brackets and operations within each other
LARGEST_POWER = 64
MOST_ENTRIES = 100_000

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


def _ones(count: Any) -> Any:
    if count != round(float(count)) or not 0 <= count <= MOST_ENTRIES:
        raise ValueError(f"ones takes a whole number up to {MOST_ENTRIES}, not {count}")
    return np.ones(int(count))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "join": lambda *parts: np.concatenate([np.atleast_1d(part) for part in parts]),
    "log": np.log,
    "max": lambda array: np.max(array),
    "min": lambda array: np.min(array),
    "norm": lambda vector: np.linalg.norm(vector),
    "ones": _ones,
    "rows": lambda *rows: np.stack(np.broadcast_arrays(*rows)),
    "sqrt": np.sqrt,
    "sum": lambda array: np.sum(array),
    "transpose": lambda matrix: np.swapaxes(matrix, -1, -2),
}
ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Tuple, ast.Name, ast.Load, ast.Constant,
    *OPERATORS,
)  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """A formula that was checked when it was read."""

    text: str
    tree: ast.expr

    @property
    def names(self) -> tuple[str, ...]:
        """The names that must be known, in the order in which they stand."""
        functions = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        found = (
            node.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and id(node) not in functions
        )
        return tuple(dict.fromkeys(found))

    def require(self, known: Mapping[str, Any] | set[str]) -> None:
        """Raise an OptionError when a name is not among these."""
        for name in self.names:
            if name not in known:
                raise OptionError(
                    f"the expression {self.text!r} uses {name!r}, which is not defined: "
                    + did_you_mean(name, known)
                )

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        self.require(names)
        try:
            with np.errstate(all="ignore"):
                return _Evaluator(self.text, names).visit(self.tree)
        except OptionError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise OptionError(f"the expression {self.text!r} has no value: {error}") from error

    def math(self, symbols: Mapping[str, Symbol] | None = None) -> Math:
        """The formula as it is printed; `symbols` are those of names that have their own."""
        return _Writer(symbols or {}).visit(self.tree)  # type: ignore[no-any-return]


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression in these names."""
    return parse(expression).evaluate(names)


def written(formula: str, symbols: Mapping[str, Symbol] | None = None) -> Math:
    """A formula as it is printed, its sides apart at " = "."""
    sides = tuple(parse(side).math(symbols) for side in formula.split(" = "))
    return sides[0] if len(sides) == 1 else Equation(sides)


@lru_cache(maxsize=1000)
def parse(text: str) -> Expression:
    """Read an expression; an OptionError says what in it is not understood."""
    if len(text) > LONGEST:
        raise OptionError(
            f"the expression {text[:30]!r}… has {len(text)} characters; {LONGEST} is the most"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, about code that is refused below
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise OptionError(f"the expression {text!r} cannot be read: {reason}") from error
    _check(text, tree)
    return Expression(text, tree)


def _check(text: str, tree: ast.expr) -> None:
    """Every part of it is understood, and it is not too deep."""
    left: list[tuple[ast.AST, int]] = [(tree, 1)]
    while left:
        node, depth = left.pop()
        if depth > DEEPEST:
            raise OptionError(f"the expression {text!r} is nested more than {DEEPEST} deep")
        if reason := _refused(node):
            raise OptionError(
                f"the expression {text!r} uses {reason}, which is not understood; it may hold "
                "numbers, names, + - * / ** @, rows such as mu[1] and the functions "
                + ", ".join(FUNCTIONS)
            )
        left += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _refused(node: ast.AST) -> str:
    """What is not understood about this part of an expression; "" when all is."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            return f"the function {ast.unparse(node.func)!r}"
        return "keywords" if node.keywords else ""
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
        return repr(node.value)
    if isinstance(node, ast.Name) and node.id.startswith("__"):
        return f"the name {node.id!r}"
    return "" if isinstance(node, ALLOWED) else type(node).__name__


def _result_shape(
    operation: ast.operator, left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[int, ...]:
    if not isinstance(operation, ast.MatMult):
        return np.broadcast_shapes(left, right)
    return (*np.broadcast_shapes(left[:-2], right[:-2]), *left[-2:-1], *right[1:][-1:])


class _Evaluator(ast.NodeVisitor):
    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        self.text = text
        self.names = names

    def _expect(self, *shape: int) -> None:
        """Refuse an array of this shape before it is made."""
        if prod(shape) > MOST_ENTRIES:
            reason = f"makes more than {MOST_ENTRIES} numbers"
            raise OptionError(f"the expression {self.text!r} {reason}")

    def _sized(self, value: Any) -> Any:
        self._expect(np.size(value))
        return value

    def visit_Constant(self, node: ast.Constant) -> Any:
        return float(node.value)  # type: ignore[arg-type]

    def visit_Name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow) and np.max(np.abs(right)) > LARGEST_POWER:
            raise OptionError(f"the expression {self.text!r} has a power above {LARGEST_POWER}")
        self._expect(*_result_shape(node.op, np.shape(left), np.shape(right)))
        return self._sized(OPERATORS[type(node.op)](left, right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return OPERATORS[type(node.op)](self.visit(node.operand))

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        raise OptionError(f"the expression {self.text!r} holds a list; only places may be listed")

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        array = np.asarray(self.visit(node.value))
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(self._place(self.visit(place)) for place in places)
        if len(index) > array.ndim or any(
            not 1 <= i <= size for i, size in zip(index, array.shape, strict=False)
        ):
            raise OptionError(
                f"the expression {self.text!r} asks for place {', '.join(map(str, index))} "
                f"(counted from 1) of an array of shape {array.shape}"
            )
        return array[tuple(i - 1 for i in index)]

    def _place(self, value: Any) -> int:
        if np.ndim(value) or float(value) != round(float(value)):
            raise OptionError(
                f"the expression {self.text!r} asks for place {value}: places are whole numbers, "
                "counted from 1"
            )
        return int(value)

    def visit_Call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        arguments = [self.visit(argument) for argument in node.args]
        if node.func.id == "rows":
            self._expect(len(arguments), *np.broadcast_shapes(*map(np.shape, arguments)))
        elif node.func.id == "join":
            self._expect(sum(map(np.size, arguments)))
        return self._sized(FUNCTIONS[node.func.id](*arguments))


class _Writer(ast.NodeVisitor):
    """The same tree as mathematics."""

    def __init__(self, symbols: Mapping[str, Symbol]) -> None:
        self.symbols = symbols

    def visit_Constant(self, node: ast.Constant) -> Math:
        return Number(node.value)

    def visit_Name(self, node: ast.Name) -> Math:
        return self.symbols.get(node.id) or symbol_of(node.id)

    def visit_BinOp(self, node: ast.BinOp) -> Math:
        left, right = self.visit(node.left), self.visit(node.right)
        match node.op:
            case ast.Add():
                return notation.Sum((*_terms(left), right))
            case ast.Sub():
                return notation.Sum((*_terms(left), notation.Negative(right)))
            case ast.Div():
                return notation.Fraction(left, right)
            case ast.Pow():
                return notation.Power(left, right)
        return notation.Product((left, right), sign="·" if isinstance(right, Number) else "")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Math:
        body: Math = self.visit(node.operand)
        return notation.Negative(body) if isinstance(node.op, ast.USub) else body

    def visit_Subscript(self, node: ast.Subscript) -> Math:
        base = self.visit(node.value)
        places = ast.unparse(node.slice).strip("()").replace(" ", "")
        if not isinstance(base, Symbol):
            return notation.Words(ast.unparse(node))
        return replace(base, sub=",".join(filter(None, (base.sub, places))))

    def visit_Call(self, node: ast.Call) -> Math:
        assert isinstance(node.func, ast.Name)
        arguments = tuple(self.visit(argument) for argument in node.args)
        if node.func.id == "sqrt":
            return notation.Root(*arguments)
        if node.func.id == "transpose":
            return notation.Transposed(*arguments)
        return notation.Call(node.func.id, arguments)


def _terms(math: Math) -> tuple[Math, ...]:
    return math.terms if isinstance(math, notation.Sum) else (math,)


def symbol_of(name: str) -> Symbol:
    """A name as a symbol: beta is β, q_1 has an index."""
    base, _, sub = name.partition("_")
    return Symbol(SPELLED.get(base, base), sub)
