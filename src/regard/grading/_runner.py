"""Runs a submission: this file alone is copied into the sandbox, and regard is not there.

It reads `request.json` beside it, puts the limits on itself, loads the submission, makes the calls
and writes one line of JSON for each thing that happened. Whatever is written here may have been
written by the submission instead: `regard` trusts none of it and compares the numbers itself.
"""

import base64
import importlib
import json
import linecache
import math
import os
import re
import resource
import sys
import traceback
import types
from pathlib import Path
from typing import Any

LARGEST_RESULT = 4_000_000  # numbers
FOLDER = Path(__file__).resolve().parent
SUBMISSION = "submission.py"


def main() -> None:
    request = json.loads((FOLDER / "request.json").read_text(encoding="utf-8"))
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the submission prints goes with its errors
    confine(request["limits"], request["user"])
    sys.path[:0] = request["path"]

    def tell(**event: Any) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    for name in request["imports"]:
        importlib.import_module(name)
    tell(event="ready")
    try:
        module = load()
    except BaseException as error:
        tell(event="failed", **described(error))
        return
    tell(event="loaded")
    for place, call in enumerate(request["calls"]):
        try:
            tell(event="called", call=place, **answer(module, call))
        except BaseException as error:
            tell(event="raised", call=place, **described(error))
    tell(event="done")


def confine(limits: dict[str, int], user: int | None) -> None:
    """Limits that nothing started from here can raise again; then another user, if one is named."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def load() -> types.ModuleType:
    """The submission as a module; what stands under `if __name__ == "__main__"` does not run."""
    path = FOLDER / SUBMISSION
    module = types.ModuleType("submission")
    module.__file__ = str(path)
    sys.modules["submission"] = module
    exec(compile(path.read_text(encoding="utf-8"), SUBMISSION, "exec"), module.__dict__)
    return module


def described(error: BaseException) -> dict[str, Any]:
    """An exception in words, with the line of the submission that it came from."""
    lines = [
        f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == SUBMISSION
    ]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    linecache.clearcache()
    words = error.msg if isinstance(error, SyntaxError) else error  # without the line again
    return {"error": type(error).__name__, "message": str(words)[:500], "line": line}


# ---- calls ---------------------------------------------------------------------------------


def answer(module: types.ModuleType, call: dict[str, Any]) -> dict[str, Any]:
    """What the function or module of the submission gives, and which arguments it changed."""
    library = importlib.import_module(call["library"])
    if call["seed"] is not None and call["library"] == "torch":
        library.manual_seed(call["seed"])
    told = {}
    callee = member(module, call["name"])
    if call["makes"] is not None:
        callee = callee(*call["makes"])
        told = read_parameters(callee, call["weights"])
    arguments = [decoded(value, call["library"]) for value in call["arguments"]]
    before = [encoded(value) for value in arguments]
    value = callee(*arguments)
    if call["makes"] is not None:
        told["arguments"] = before
    changed = [i for i, value in enumerate(arguments) if encoded(value) != before[i]]
    wanted = call["results"]
    several = isinstance(value, tuple) or (isinstance(value, list) and len(value) == wanted > 1)
    values = list(value) if several else [value]
    results = [encoded(each) for each in values[:wanted]]
    return {"results": results, "returned": len(values), "changed": changed, **told}


def member(module: types.ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise NameError(f"the submission defines no {name!r}")
    return getattr(module, name)


def decoded(value: Any, library: str) -> Any:
    """An argument: a number as it is, or an array of the library."""
    if not isinstance(value, dict):
        return value
    if "normal" in value:
        return importlib.import_module("torch").randn(*value["normal"])
    numpy = importlib.import_module("numpy")
    data = base64.b64decode(value["data"])
    array = numpy.frombuffer(data, dtype="<f8").reshape(value["shape"]).copy()
    if library == "torch":
        torch = importlib.import_module("torch")
        return torch.tensor(array, dtype=torch.get_default_dtype())
    return array


def encoded(value: Any) -> Any:
    """An array as its kind of numbers, shape and bytes; a number as it is."""
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    numpy = importlib.import_module("numpy")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        kind = str(value.dtype).removeprefix("torch.")
        array = value.to(dtype=importlib.import_module("torch").float64).numpy()
    else:
        if isinstance(value, (list, tuple)):
            value = [
                each.detach().cpu().numpy() if hasattr(each, "detach") else each for each in value
            ]
        array = numpy.asarray(value)
        kind = str(array.dtype)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"a result is no array of numbers, but {type(value).__name__} of {kind}")
    if math.prod(array.shape) > LARGEST_RESULT:
        raise ValueError(f"a result has the shape {array.shape}: too large")
    data = numpy.ascontiguousarray(array, dtype="<f8").tobytes()
    text = base64.b64encode(data).decode("ascii")
    return {"shape": list(array.shape), "data": text, "kind": kind}


# ---- the parameters of a torch module ------------------------------------------------------


def read_parameters(module: Any, weights: dict[str, Any]) -> dict[str, Any]:
    """Find the weights by name or else by order; put values in where some are passed."""
    torch = importlib.import_module("torch")
    found = named_parameters(module, [name for name in weights["names"] if name.startswith("W")])
    for name, (parameter, is_linear) in found.items():
        values = weights["values"].get(name)
        if values is None:
            if weights["values"]:  # a bias that the computation does not have
                with torch.no_grad():
                    parameter.zero_()
            continue
        tensor = decoded(values, "torch")
        tensor = tensor.T if is_linear and tensor.ndim == 2 else tensor
        if tensor.shape != parameter.shape:
            wanted, given = tuple(tensor.shape), tuple(parameter.shape)
            raise ValueError(f"the module's {name} has the shape {given}, and {wanted} was wanted")
        with torch.no_grad():
            parameter.copy_(tensor)
    read = {
        name: encoded(parameter.T if is_linear and parameter.ndim == 2 else parameter)
        for name, (parameter, is_linear) in found.items()
    }
    return {"parameters": read}


def named_parameters(module: Any, names: list[str]) -> dict[str, tuple[Any, bool]]:
    """By given (WQ, bQ, …): the parameter, and whether it belongs to a linear layer."""
    linear = importlib.import_module("torch").nn.Linear
    layers = {name: isinstance(layer, linear) for name, layer in module.named_modules()}
    parameters = dict(module.named_parameters())
    matrices = [name for name, parameter in parameters.items() if parameter.ndim == 2]
    chosen: dict[str, Any] = {}
    for name in names:
        letter = name[1].lower()
        pattern = re.compile(rf"(^|[._])(w_?|to_)?{letter}([^a-z]|uer|ey|al|ut|$|_)", re.IGNORECASE)
        hits = [matrix for matrix in matrices if pattern.search(matrix)]
        chosen[name] = hits[0] if len(hits) == 1 else None
    if None in chosen.values() or len(set(chosen.values())) < len(names):
        if len(matrices) != len(names):
            shapes = [f"{name} {tuple(parameters[name].shape)}" for name in matrices]
            raise ValueError(
                f"its parameters cannot be read as {', '.join(names)}: "
                f"its matrices are {', '.join(shapes) or 'none'}"
            )
        chosen = dict(zip(names, matrices, strict=True))
    found = {}
    for name, matrix in chosen.items():
        owner = matrix.rpartition(".")[0]
        is_linear = layers.get(owner, False)
        found[name] = (parameters[matrix], is_linear)
        bias = parameters.get(f"{owner}.bias") if is_linear else None
        if bias is not None:
            found[f"b{name[1:]}"] = (bias, True)
    return found


if __name__ == "__main__":
    main()
