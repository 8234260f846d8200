"""A short program for exactly this computation: one line for a step, named like the step.

Operations bring their own lines; this module orders them, writes the givens out, and chooses the
names of variables.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard._options import look_up
from regard.graph.gradient import softmax_input
from regard.graph.numbers import Float64
from regard.graph.operation import Array, Operand, Setting
from regard.graph.operations import Exp, Normalise, Sum
from regard.graph.program import Program
from regard.graph.run import Run
from regard.graph.run import run as run_graph
from regard.show._matlab_code import Matlab
from regard.show._python_code import NumPy, Torch

if TYPE_CHECKING:
    from regard.graph.graph import Step

# Variables that templates use besides the steps'.
HELPERS = frozenset(
    """
    i j angles cosine sine first second slopes divisors empty terms inside allowed head item
    """.split()  # noqa: SIM905
)
PYTHON_WORDS = frozenset(
    (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "torch", "math", "F")
)
MATLAB_WORDS = frozenset(
    """
    break case catch continue do else elseif end for function global if otherwise parfor
    persistent return switch try until unwind_protect while
    Inf NaN abs all any ans cat cos disp e erf exp eye false log max mean min ones permute pi
    repelem reshape sin size sqrt sum tanh triu true zeros
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Language:
    """How a whole program is laid out; its lines are the Program's business."""

    program: type[Program]
    imports: tuple[str, ...]
    opening: tuple[str, ...]
    reserved: Collection[str]
    printing: str


_PRINT = 'print("{0} =", {0}, sep="\\n")'
LANGUAGES = {
    "numpy": Language(NumPy, ("import numpy as np",), (), PYTHON_WORDS, _PRINT),
    "torch": Language(
        Torch, ("import torch",), ("torch.set_default_dtype(torch.float64)",), PYTHON_WORDS, _PRINT
    ),
    "matlab": Language(Matlab, (), (), MATLAB_WORDS, "{0}"),
}


def to_code(run: Run, language: str, names: Mapping[str, str] | None = None) -> str:
    """A program in NumPy, PyTorch or MATLAB that computes every step of this run in float64.

    Variables are called like the steps, or by the aliases in `names` (step name to alias).
    """
    chosen = look_up("language", language, LANGUAGES)
    return _Writer(_in_float64(run), chosen, names or {}).text()


def _in_float64(run: Run) -> Run:
    """The same computation in the numbers that programs use."""
    if isinstance(run.numbers, Float64):
        return run
    to_float = np.frompyfunc(float, 1, 1)
    put_in = {name: np.asarray(to_float(run.values[name]), float) for name in run.replaced}
    return run_graph(run.graph, run.givens, Float64(), put_in)


def variables(
    names: Iterable[str], taken: Iterable[str], aliases: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A valid and unused identifier for each name, the name or alias itself where possible."""
    used = {*taken, *HELPERS}
    chosen: dict[str, str] = {}
    for name in names:
        alias = (aliases or {}).get(name, name)
        wanted = re.sub(r"\W+", "_", alias if alias.isascii() else name, flags=re.ASCII)
        variable = wanted if wanted[:1].isalpha() else f"x{wanted}"
        while variable in used:
            variable += "_"
        used.add(variable)
        chosen[name] = variable
    return chosen


class _Whole(NamedTuple):
    """Exponentials, sums and quotients that are one softmax."""

    operation: Normalise
    scores: Operand
    axis: str
    call: str


class _Writer:
    """One program in the making."""

    def __init__(self, run: Run, language: Language, aliases: Mapping[str, str]) -> None:
        graph = run.graph
        self.run, self.graph, self.language = run, graph, language
        self.names = variables(graph.names, language.reserved, aliases)
        size_names = variables(graph.sizes, (*language.reserved, *self.names.values()))
        self.program = language.program(graph.sizes, size_names)
        self.setting = Setting(run.numbers, graph.sizes)

    def text(self) -> str:
        writers = (self._givens, self._steps, self._results)
        givens, steps, results = (self._block(write) for write in writers)
        blocks = [self._block(self._header), self._block(self._sizes), givens, steps, results]
        return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"

    def _block(self, write: Callable[[], None]) -> list[str]:
        self.program.lines = []
        write()
        return self.program.lines

    def _header(self) -> None:
        self.program.comment(self.graph.kind)
        standard = [line for line in self.program.imports if line == "import math"]
        others = [line for line in self.program.imports if line != "import math"]
        lines = (*standard, *self.language.imports, *others, *self.language.opening)
        self.program.lines.extend(lines)

    def _sizes(self) -> None:
        for symbol, size in self.graph.sizes.items():
            if symbol in self.program.used_sizes:
                self.program.assign(self.program.size_names[symbol], str(size))

    def _givens(self) -> None:
        for given in self.graph.givens:
            target = self._operand(given.name)
            values = self.run.givens[given.name]
            if values.dtype == bool:
                allowed = Operand("allowed", target.axes)
                self._numbers(allowed, values)
                self.program.permit(target, allowed.text)
            else:
                self._numbers(target, values)

    def _numbers(self, target: Operand, values: Array) -> None:
        text = self.program.literal(values, target.axes, len(f"{target.text} = "))
        self.program.set(target, text)

    def _steps(self) -> None:
        wholes = self._whole_softmaxes()
        parts = {name for step in wholes for name in self.graph.step(step).operands}
        for step in self.graph.steps:
            if step.name in self.run.replaced:
                self.program.comment("put in from outside")
                self._numbers(self._operand(step.name), self.run.values[step.name])
            elif step.name in wholes:
                whole, target = wholes[step.name], self._operand(step.name)
                whole.operation.whole_code(
                    self.program, target, whole.scores, whole.axis, whole.call
                )
            elif step.name not in parts:
                self._step(step)

    def _whole_softmaxes(self) -> dict[str, _Whole]:
        """The steps that end a softmax over one axis, where the language has a call for it."""
        found: dict[str, _Whole] = {}
        for step in self.graph.steps:
            name = softmax_input(self.graph, step)
            if name is None or {step.name, *step.operands} & set(self.run.replaced):
                continue
            exponentials, sums = (self.graph.step(part).operation for part in step.operands)
            # Without its shift an exponential may overflow, which softmax would hide.
            if type(sums) is Sum and len(sums.over) == 1 and exponentials == Exp(sums.over):
                scores, (axis,) = self._operand(name), sums.over
                call = self.program.softmax(scores, axis)
                if call is not None and isinstance(step.operation, Normalise):
                    found[step.name] = _Whole(step.operation, scores, axis, call)
        return found

    def _step(self, step: Step) -> None:
        tensors = [self.run.tensor(name) for name in step.operands]
        operation = step.operation.as_run(self.setting, *tensors)
        operands = [self._operand(name) for name in step.operands]
        operation.code(self.program, self._operand(step.name), *operands)

    def _operand(self, name: str) -> Operand:
        return Operand(self.names[name], self.graph.axes[name], self.run.values[name])

    def _results(self) -> None:
        """The weights, and what no other step uses."""
        for step in self.graph.steps:
            if isinstance(step.operation, Normalise) or not self.graph.users(step.name):
                self.program.lines.append(self.language.printing.format(self.names[step.name]))
