"""What an exercise demands of a program's text: imports, calls, the seed. Nothing is run here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from regard.exercises._exercise import CodeRules

# How people and exercises abbreviate modules.
SHORT = {
    "F": "torch.nn.functional", "nn": "torch.nn", "np": "numpy", "plt": "matplotlib.pyplot",
}  # fmt: skip
SEEDS = ("torch.manual_seed", "torch.random.manual_seed", "numpy.random.seed", "random.seed")
UNSEEN = ("__import__", "eval", "exec", "compile")


def broken_rules(program: str, rules: CodeRules | None) -> list[str]:
    """A sentence for each rule that the program breaks; a program without sense breaks none."""
    if rules is None:
        return []
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError):
        return []  # running it says so
    names = _imported_names(tree)
    broken = list(_imports(tree, rules.imports)) if rules.imports else []
    broken += _missing_calls(tree, names, rules.calls)
    if rules.seed is not None:
        broken += _seed(tree, names, rules.seed)
    return list(dict.fromkeys(broken))


def _imported_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for: F is torch.nn.functional."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _imports(tree: ast.AST, allowed: tuple[str, ...]) -> Iterator[str]:
    for node in ast.walk(tree):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = ["." * node.level + (node.module or "")]
        for module in found:
            if module not in (*allowed, "__future__"):
                line = getattr(node, "lineno", 0)
                yield f"line {line} imports {module}; only {', '.join(allowed)} may be imported"
        callee = node.func if isinstance(node, ast.Call) else None
        if isinstance(callee, ast.Name) and callee.id in UNSEEN:
            yield f"line {callee.lineno} calls {callee.id}, by which anything can be imported"


def _called(node: ast.Call, names: Mapping[str, str]) -> str:
    """The full name of what is called: torch.nn.functional.softmax; "" when it has none."""
    parts: list[str] = []
    target = node.func
    while isinstance(target, ast.Attribute):
        parts.append(target.attr)
        target = target.value
    if not isinstance(target, ast.Name) or target.id not in names:
        return ""
    return ".".join([names[target.id], *reversed(parts)])


def _missing_calls(
    tree: ast.AST, names: Mapping[str, str], wanted: tuple[str, ...]
) -> Iterator[str]:
    calls = {_called(node, names) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    uses_at = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    ]
    for name in wanted:
        first, dot, rest = name.partition(".")
        full = f"{SHORT.get(first, first)}{dot}{rest}"
        if full in calls:
            continue
        last = full.rpartition(".")[2]
        others = sorted(call for call in calls if call.rpartition(".")[2] == last)
        hint = f" ({others[0]} is another function)" if others else ""
        if last == "matmul" and uses_at and not hint:
            hint = f" (line {uses_at[0]} uses @ instead)"
        yield f"{name} is never called{hint}"


def _seed(tree: ast.AST, names: Mapping[str, str], seed: int) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _called(node, names) not in SEEDS:
            continue
        found = True
        argument = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        value = argument.value if isinstance(argument, ast.Constant) else None
        if isinstance(argument, ast.Name):
            value = constants.get(argument.id)
        if value != seed:
            said = ast.unparse(argument) if argument is not None else "nothing"
            yield f"line {node.lineno} sets the seed to {said[:40]}; it must stay {seed}"
    if not found:
        yield f"the seed {seed} is never set"
