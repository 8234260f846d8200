"""What an exercise is: data only. The fields are the words of the file format.

Reading one from its file is in `_format`, what its words must mean in `_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

FORMAT = 1
MAIN = "main"  # the exercise's own computation, among its variants


@dataclass(frozen=True)
class Variant:
    """One computation: its kind, what is given to it, and its options."""

    kind: str
    givens: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    draws: Draws | None = None


@dataclass(frozen=True)
class Draws:
    """Givens that torch draws after a seed, in the order of the parameters of a module."""

    seed: int
    tensors: tuple[Draw, ...]


@dataclass(frozen=True)
class LinearDraw:
    """The weight, and the bias if it is named, of a linear layer of this shape (from, to)."""

    word: ClassVar[str] = "linear"
    linear: str
    shape: tuple[int, ...]
    bias: str = ""


@dataclass(frozen=True)
class NormalDraw:
    """A tensor of standard normal numbers."""

    word: ClassVar[str] = "normal"
    normal: str
    shape: tuple[int, ...]


Draw = LinearDraw | NormalDraw


@dataclass(frozen=True)
class Column:
    """One column of a table: what stands above it, and the expression that it shows."""

    header: str
    show: str
    variant: str = ""


@dataclass(frozen=True)
class AnswerTable:
    """Numbers that show an answer: one row for each value of a constant."""

    vary: str
    values: tuple[float, ...]
    columns: tuple[Column, ...]
    caption: str = ""


# ---- what may be asked: each class is one word of the format, with what goes with it ---------


@dataclass(frozen=True)
class AskedSteps:
    """The values of steps; `numbers` when they are not the solution's own."""

    word: ClassVar[str] = "step"
    step: tuple[str, ...]
    numbers: str = ""


@dataclass(frozen=True)
class AskedShape:
    """The shapes of steps."""

    word: ClassVar[str] = "shape"
    shape: tuple[str, ...]


@dataclass(frozen=True)
class AskedChoice:
    """One of several answers, decided by a fact of the computation."""

    word: ClassVar[str] = "choice"
    choice: tuple[str, ...]
    fact: str


@dataclass(frozen=True)
class AskedFormula:
    """How many operations some steps take; `formula` names groups of steps."""

    word: ClassVar[str] = "formula"
    formula: Mapping[str, tuple[str, ...]]
    count: tuple[str, ...] = ("multiplications", "additions", "divisions")
    convention: str = "schoolbook"


@dataclass(frozen=True)
class AskedMask:
    """A mask's shape and values."""

    word: ClassVar[str] = "mask"
    mask: str


@dataclass(frozen=True)
class AskedDesign:
    """Inputs to design, such that the property comes within a distance of the target.

    Those that are to be `apart` must not be the same.
    """

    word: ClassVar[str] = "design"
    design: tuple[str, ...]
    property: str
    target: str
    within: float
    apart: bool = False


@dataclass(frozen=True)
class AskedCompare:
    """What differs between variants; `compare` gives each a name to print."""

    word: ClassVar[str] = "compare"
    compare: Mapping[str, str]


@dataclass(frozen=True)
class AskedPermute:
    """What happens when the tokens stand in another order, counted from 1."""

    word: ClassVar[str] = "permute"
    permute: tuple[int, ...]


@dataclass(frozen=True)
class AskedAgree:
    """Agreement with a function of torch."""

    word: ClassVar[str] = "agree"
    agree: str


@dataclass(frozen=True)
class AskedProgram:
    """A program to write; the named file beside the exercise is one that answers it."""

    word: ClassVar[str] = "program"
    program: str


@dataclass(frozen=True)
class AskedExplain:
    """An answer in words."""

    word: ClassVar[str] = "explain"
    explain: str


Question = (
    AskedSteps
    | AskedShape
    | AskedChoice
    | AskedFormula
    | AskedMask
    | AskedDesign
    | AskedCompare
    | AskedPermute
    | AskedAgree
    | AskedProgram
    | AskedExplain
)
QUESTIONS: dict[str, type[Question]] = {kind.word: kind for kind in get_args(Question)}


@dataclass(frozen=True)
class Asked:
    """One thing that is asked.

    `label` and `title` head it; without either it belongs to what is asked before it. `text` is
    the question, `answer` opens the solution in words, `table` shows it by numbers, and `remark`
    is what a reader of the source must be told.
    """

    question: Question
    label: str = ""
    title: str = ""
    text: str = ""
    points: float = 1
    variant: str = MAIN
    answer: str = ""
    remark: str = ""
    table: AnswerTable | None = None


@dataclass(frozen=True)
class CodeRun:
    """What of a submitted program is called, with what, and which steps its results are.

    Either a `function` or a torch `module`; a module is made with `made_with`, and its own
    parameters are the weights. Arguments are givens, options, constants or sizes of the variant.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    function: str = ""
    module: str = ""
    made_with: tuple[str, ...] = ()
    variant: str = MAIN
    points: float = 1

    @property
    def name(self) -> str:
        return self.function or self.module


@dataclass(frozen=True)
class CodeRules:
    """What a submitted program must keep to, and how it is run.

    A probe that fails takes `probe_cost` of a run's points.
    """

    imports: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    seed: int | None = None
    skeleton: str = ""
    library: str = "numpy"
    probe_cost: float = 0.25
    run: tuple[CodeRun, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """`names` are aliases of steps and givens, `files` the texts of the programs it names."""

    title: str
    variants: Mapping[str, Variant]
    asked: tuple[Asked, ...]
    text: str = ""
    source: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    code: CodeRules | None = None
    remarks: tuple[str, ...] = ()
    numpy_precision: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    # How a pasted assignment was read: the title of each part and what was noted in it.
    understood: tuple[tuple[str, tuple[str, ...]], ...] = ()
    toml: str = ""  # the file that it was read from; "" for a pasted assignment
