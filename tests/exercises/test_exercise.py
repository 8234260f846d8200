"""The exercise format: what a file says becomes an exercise; every mistake names its line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from regard import ExerciseError, FileError
from regard._errors import NoSuchExerciseError
from regard._files import LARGEST
from regard.exercises import library_names, load_exercise, read_exercise
from regard.exercises._checks import CHECKS
from regard.exercises._draft import Said, exercise_from, to_toml
from regard.exercises._evidence import AGREEMENTS, COUNTS, FACTS
from regard.exercises._exercise import (
    QUESTIONS,
    AnswerTable,
    Asked,
    AskedExplain,
    AskedSteps,
    CodeRules,
    CodeRun,
    Column,
    LinearDraw,
    NormalDraw,
)
from regard.exercises._format import TOP, VARIANT, words_of
from regard.exercises._library import library_text
from regard.exercises._lines import Source
from regard.graph.builders import KINDS
from regard.graph.construction import GIVEN_SYMBOLS, OPTION_NAMES
from regard.graph.cost import CONVENTIONS
from regard.graph.numbers import NUMBERS

WHOLE = """\
format = 1
title = "Everything"
kind = "self-attention"
source = "a test"
text = '''
First paragraph.

format = 2 in a text is no word.'''
remarks = ["One.", "Two with $d_k$."]
numpy_precision = 2

[givens]
X = [[1, 2], [3, 4], ["1/3", 0]]
WQ = [[1, 0], [0, 1]]
WK = "beta*WQ"
WV = [[2], [3]]

[options]
scale = 1

[constants]
beta = 0.5
mu = [[1, 2], [3, 4]]
q = "beta*mu[1]"

[names]
context = "C"
WQ = "W_q"

[code]
imports = ["numpy"]
calls = "numpy.exp"
seed = 7
skeleton = "gaps.py"

[variants.masked]
options = { causal = true }

[variants.heads]
kind = "multi-head"
givens = { X = [[1, 2]], WQ = [[1, 0], [0, 1]], WK = [[1, 0], [0, 1]], WV = [[1, 0], [0, 1]] }
options = { heads = 2 }

[[asked]]
label = "(a)"
title = "Values"
text = "How?"
step = ["Q", "C"]
points = 2.5

[[asked]]
explain = "Like $beta*mu[1]$."
remark = "Take care."

[asked.table]
vary = "beta"
values = [0.5, 1]
caption = "Two rows."
columns = [
  { header = "$beta$", show = "beta" },
  { header = "c", show = "C[1, 1]", variant = "masked" },
]

[[asked]]
variant = "masked"
mask = "mask_causal"

[[asked]]
program = "answer.py"
"""


def read(text: str, read_file: Callable[[str], str] | None = str.upper) -> Any:
    return read_exercise(text, "a.toml", read_file)


def test_what_a_file_says() -> None:
    exercise = read(WHOLE)
    assert (exercise.title, exercise.source, exercise.numpy_precision) == (
        "Everything",
        "a test",
        2,
    )
    assert exercise.remarks == ("One.", "Two with $d_k$.")
    assert exercise.text.startswith("First paragraph.")
    assert exercise.names == {"context": "C", "WQ": "W_q"}
    assert exercise.code == CodeRules(("numpy",), ("numpy.exp",), 7, "gaps.py")
    assert exercise.files == {"gaps.py": "GAPS.PY", "answer.py": "ANSWER.PY"}
    first, second, third, fourth = exercise.asked
    assert first == Asked(AskedSteps(("Q", "C")), "(a)", "Values", "How?", 2.5)
    assert second.question == AskedExplain("Like $beta*mu[1]$.")
    assert second.remark == "Take care."
    columns = (Column("$beta$", "beta"), Column("c", "C[1, 1]", "masked"))
    assert second.table == AnswerTable("beta", (0.5, 1), columns, "Two rows.")
    assert third.variant == "masked"
    assert fourth.question.program == "answer.py"


def test_a_variant_is_the_exercise_with_some_parts_changed() -> None:
    variants = read(WHOLE).variants
    main, masked, heads = (variants[name] for name in ("main", "masked", "heads"))
    assert masked.givens == main.givens
    assert masked.options == {"scale": 1, "causal": True}
    assert heads.kind == "multi-head"
    assert set(heads.givens) == {"X", "WQ", "WK", "WV"}
    assert heads.options == {"heads": 2}


def test_a_variant_of_another_kind_has_its_own_options() -> None:
    text = SMALL.replace(
        "[constants]", "[options]\ncausal = true\n[variants.x]\nkind = 'self-attention'\n"
        "givens = { X = [[1]], WQ = [[1]], WK = [[1]], WV = [[1]] }\n[constants]"
    )  # fmt: skip
    variant = read(text).variants["x"]
    assert (variant.options, variant.constants) == ({}, {"beta": 2})
    assert list(variant.givens) == ["X", "WQ", "WK", "WV"]


# ---- every mistake -----------------------------------------------------------------------------

SMALL = """\
format = 1
title = "Small"
kind = "attention"

[givens]
Q = [[1, 2], [3, 4]]
K = [[1, 2], [3, 4]]
V = [[1], [2]]

[constants]
beta = 2

[[asked]]
label = "(a)"
step = "weights"

[[asked]]
label = "(b)"
step = ["context"]
"""


class Broken(NamedTuple):
    """A change to SMALL, the error, and whether the JSON Schema alone can see it."""

    old: str
    new: str
    message: str
    by_schema: bool = True


LAST = 'step = ["context"]\n'


def asked(words: str, message: str, by_schema: bool = True) -> Broken:
    """The last question replaced."""
    return Broken(LAST, words, message, by_schema)


def above(words: str, message: str, by_schema: bool = True) -> Broken:
    """Some words more above [constants]."""
    return Broken("[constants]", words + "\n[constants]", message, by_schema)


def table(words: str, message: str, by_schema: bool = True) -> Broken:
    """The last question replaced by an explanation with this table."""
    return asked('explain = "a"\n[asked.table]\n' + words, message, by_schema)


def run(words: str, message: str, by_schema: bool = True) -> Broken:
    """A program to be called, with these words."""
    return above('[[code.run]]\narguments = "Q"\n' + words, message, by_schema)


BROKEN = [
    # TOML itself
    Broken("title = ", "title ", "line 2: this is no TOML: Expected '='", False),
    Broken("[3, 4]]\nK", "[3, 4]\nK", "line 7: this is no TOML: Unclosed array", False),
    Broken(
        "title = ", 'title = "A"\ntitle = ', "line 3: this is no TOML: .*stands.*already", False
    ),
    Broken("[constants]", "[givens]", "line 10: this is no TOML: .*stands.*already", False),
    Broken('["context"]\n', '"""', "line 19: this is no TOML", False),
    # words outside tables
    Broken("format = 1", "format = 2", "line 1: this regard reads format 1, not 2"),
    Broken(
        "format = 1", 'format = "1"', "line 1: `format` must be a whole number, but '1' was found"
    ),
    Broken("format = 1\n", "", "line 1: format is missing"),
    Broken('title = "Small"\n', "", "line 1: title is missing"),
    Broken('title = "Small"', "title = 3", "line 2: `title` must be a text, but 3 was found"),
    Broken("title", "titel", "line 2: unknown word 'titel': did you mean 'title'"),
    Broken('kind = "attention"\n', "", "line 1: kind is missing"),
    Broken(
        '"attention"', '"atention"', "line 3: unknown kind 'atention': did you mean 'attention'"
    ),
    Broken("[[asked]]", "[[ask]]", r"line 13: unknown word 'ask': did you mean 'asked'"),
    Broken(
        "format = 1", 'format = 1\nremarks = ["$d"]', "line 2: a formula that \\$ opens is never"
    ),
    Broken("format = 1", 'format = 1\ntext = "$d+$"', "line 2: .*'d\\+' cannot be read", False),
    Broken("format = 1", "format = 1\nnumpy_precision = 0", "line 2: .*at least 1"),
    Broken("format = 1", "format = 1\nnumpy_precision = true", "line 2: .*must be a whole number"),
    # what is given
    Broken("[givens]", "[given]", "line 5: unknown word 'given': did you mean 'givens'"),
    Broken("Q = [[1", "q = [[1", r"line 6: unknown word 'q' in \[givens\]: did you mean 'Q'"),
    Broken("[3, 4]]\nK", "[3]]\nK", "line 6: Q: the rows have different lengths", False),
    Broken("[3, 4]]\nK", '[3, "x"]]\nK', "line 6: Q: 'x' is no number", False),
    Broken("[3, 4]]\nK", "[3, 1979-05-27]]\nK", "line 6: Q: "),
    Broken("[3, 4]]\nV", "[3, 4, 5]]\nV", "line 7: K: the rows have different lengths", False),
    Broken("V = [[1], [2]]", "V = [[true], [false]]", "line 8: V: numbers are wanted", False),
    Broken("beta = 2", "beta = [true]", "line 11: beta: numbers are wanted", False),
    Broken("K = [[1, 2], [3, 4]]", "K = [[1], [2]]", "line 7: .*K is 2×1; its dim axis", False),
    Broken("V = [[1], [2]]", "", "line 5: attention needs V, which was not given", False),
    Broken(
        "V = [[1], [2]]", "V = [[1], [2]]\nX = [[1]]", "line 9: attention does not use X", False
    ),
    Broken("V = [[1], [2]]", 'V = "bets*Q"', "line 8: .*'bets'.*did you mean 'beta'", False),
    Broken("V = [[1], [2]]", 'V = "K"\nX = "V"', "line 9: attention does not use X", False),
    Broken("V = [[1], [2]]", 'V = "open(1)"', r"line 8: .*'open', which is not understood", False),
    Broken("beta = 2", 'beta = "gamma"', "line 11: .*'gamma', which is not defined", False),
    Broken("beta = 2", "beta = true", "line 11: beta must be a number"),
    Broken("beta = 2", "beta = {}", "line 11: beta must be a number"),
    Broken("beta = 2", "sqrt = 2", "line 11: 'sqrt' is the name of a function", False),
    Broken("beta = 2", '"b c" = 2', "line 11: 'b c' is no name"),
    Broken("beta = 2", "beta = [[1, 2], [3]]", "line 11: beta: the rows have different", False),
    above(
        "[options]\nscales = 1",
        r"line 11: unknown word 'scales' in \[options\]: did you mean 'scale'",
    ),
    above('[options]\nscale = "sqr"', 'line 11: .*"sqrt" or a number', False),
    above('[options]\ncausal = "casual"', "line 11: `causal` must be", False),
    # aliases
    above('[names]\ncontxt = "C"', "line 11: no step or given 'contxt'.*'context'", False),
    above('[names]\ncontext = "scores"', "line 11: 'scores' is already", False),
    above('[names]\ncontext = "beta"', "line 11: 'beta' is already", False),
    above('[names]\ncontext = "C"\nweights = "C"', "line 12: 'C' is already", False),
    above('[names]\ncontext = "a b"', "line 11: 'a b' is no name"),
    above("[names]\ncontext = 3", "line 10: `names` must be a table of texts"),
    # variants
    above("[variants.main]", "line 10: 'main' is the exercise itself"),
    above("[variants]\nx = 1", "line 10: `variants` must be a table of tables"),
    above('[variants.x]\nkind = "multihead"', "line 11: unknown kind.*'multi-head'"),
    above("[variants.x]\nasked = []", r"line 11: unknown word 'asked' in \[variants.x\]"),
    above("[variants.x.givens]\nQ = [[1]]", "line 10: .*K is 2×2", False),
    above("[variants.x.options]\ncausal = true\nheads = 0", "line 12: .*heads", False),
    # draws
    above("[draws]\nseed = 1", r"line 10: tensors is missing in \[draws\]"),
    above("[draws]\nseed = 1.5\ntensors = []", "line 11: `seed` must be a whole"),
    above(
        '[draws]\nseed = 1\ntensors = [{ normals = "Q" }]',
        "line 12: one of linear, normal is wanted in entry 1 of draws.*did you mean 'normal'",
    ),
    above('[draws]\nseed = 1\ntensors = [{ normal = "Q" }]', "line 12: shape is missing"),
    above(
        '[draws]\nseed = 1\ntensors = [{ linear = "Q", shape = [2] }]',
        "line 12: `shape` must hold 2 sizes",
    ),
    above(
        '[draws]\nseed = 1\ntensors = [{ normal = "Q", shape = [0, 1] }]',
        "line 12: `shape` must be a whole number of at least 1",
    ),
    above(
        '[draws]\nseed = 1\ntensors = [{ linear = "X", shape = [60000, 60000] }]',
        r"line 12: with `shape` \[60000, 60000\] 3,600,000,000 numbers are drawn; 1,000,000 is",
        False,
    ),
    above(
        '[draws]\nseed = 1\ntensors = [{ normal = "X", shape = [999999] }, '
        '{ normal = "Y", shape = [9] }]',
        r"line 12: with `shape` \[9\] 1,000,008 numbers are drawn",
        False,
    ),
    Broken("V = [[1], [2]]", 'V = "K[1.7]"', "line 8: .*place 1.7: places are whole", False),
    # programs
    above('[code]\nimport = "os"', r"line 11: unknown word 'import' in \[code\].*'imports'"),
    above('[code]\nskeleton = "../secret"', "line 11: '../secret' must be the name"),
    above('[code]\nskeleton = "none.py"', "line 11: 'none.py' cannot be read", False),
    above('[code]\nlibrary = "jax"', "line 11: `library` must be one of .*'jax'"),
    above("[code]\nprobe_cost = 2", "line 11: `probe_cost` must be between 0 and 1"),
    run('function = "f"', r"line 10: results is missing in entry 1 of code.run"),
    run('results = ["context"]', "line 10: one of function, module is wanted, but none"),
    run('function = "f"\nmodule = "M"\nresults = "context"', "line 10: .*, but both were found"),
    run(
        'function = "f"\nmade_with = "d_k"\nresults = "context"',
        "line 13: `made_with` goes with `module`",
        False,
    ),
    run('function = "f"\npoints = -1\nresults = "context"', "line 13: `points` must be at least 0"),
    run('function = "f"\nvariant = "x"\nresults = "context"', "line 13: no variant 'x'", False),
    run('function = "f"\nresults = "contxt"', "line 13: .*did you mean 'context'", False),
    run(
        'module = "M"\nmade_with = "d_kk"\nresults = "context"',
        "line 13: 'd_kk' cannot be passed: did you mean 'd_k'",
        False,
    ),
    asked('program = "/etc/passwd"', "line 19: '/etc/passwd' must be the name of a file"),
    # what is asked
    asked("", "line 17: one of step, shape, .* is wanted in entry 2 of asked, but none was found"),
    asked('stpe = "weights"', "line 17: .*none was found; did you mean 'step'"),
    asked('step = "scores"\nshape = "scores"', "line 19: .*but step and shape were found"),
    asked('step = "wieghts"', "line 19: no step 'wieghts': did you mean 'weights'", False),
    asked('step = "Q"', "line 19: no step 'Q' .it is given, not computed.", False),
    asked("step = []", "line 19: `step` must be a text or a list of texts"),
    asked("step = 3", "line 19: `step` must be a text or a list of texts, but 3 was found"),
    asked(
        'step = "weights"\nnumbers = "exakt"',
        "line 20: `numbers` must be one of.*did you mean 'exact'",
    ),
    asked(
        'step = "weights"\nfact = "x"',
        "line 20: `fact` goes with `choice`, but this asks for a `step`",
    ),
    asked(
        'step = "weights"\npoint = 1',
        "line 20: unknown word 'point' in entry 2 of asked: did you mean 'points'",
    ),
    asked(
        'step = "weights"\npoints = "2"', "line 20: `points` must be a number, but '2' was found"
    ),
    asked('step = "weights"\npoints = -1', "line 20: `points` must be at least 0"),
    asked('step = "weights"\npoints = nan', "line 20: `points` must be at least 0", False),
    asked(
        'step = "weights"\nvariant = "masked"', "line 20: no variant 'masked': known: main", False
    ),
    asked('step = "weights"\nanswer = "a $ sign"', "line 20: a formula that"),
    asked('step = "weights"\nremark = "$a.b$"', "line 20: .*uses Attribute", False),
    asked('step = "weights"\npoints = inf', "line 20: `points` must be at least 0", False),
    asked('shape = "contex"', "line 19: no step 'contex': did you mean 'context'", False),
    asked('choice = ["a"]', "line 17: fact is missing in entry 2 of asked"),
    asked(
        'choice = ["a"]\nfact = "softmax_axis"',
        "line 20: `fact` must be one of.*did you mean 'softmax-axis'",
    ),
    asked('choice = ["$a"]\nfact = "softmax-axis"', "line 19: .*\\$", False),
    asked('formula = { "a $" = "scores" }', "line 19: a formula that .* is never closed", False),
    asked("formula = {}", "line 19: `formula` must be a table of texts"),
    asked('formula = { a = "scors" }', "line 19: no step 'scors': did you mean 'scores'", False),
    asked(
        'formula = { a = "scores" }\ncount = "additons"',
        "line 20: `count` must be .*did you mean 'additions'",
    ),
    asked('formula = { a = "scores" }\nconvention = "x"', "line 20: `convention` must be one of"),
    asked('mask = "weights"', "line 19: 'weights' is no mask.*the masks here: none", False),
    asked('mask = "mask_causal"', "line 19: no step 'mask_causal'", False),
    asked(
        'design = "beta"\nproperty = "context"\ntarget = "1"\nwithin = 1',
        "line 19: no constant or given 'beta' that is a formula",
        False,
    ),
    asked('design = "beta"', "line 17: property, target, within are missing"),
    asked('compare = { a = "main" }', "line 19: `compare` takes two variants or more"),
    asked('compare = { a = "main", b = "b" }', "line 19: no variant 'b': known: main", False),
    asked("permute = [2, 1]", "line 19: `permute` takes a self-attention with X", False),
    asked('permute = ["a"]', "line 19: `permute` must be a list of whole numbers"),
    asked("permute = [1, true]", "line 19: `permute` must be a list of whole numbers"),
    asked('agree = "torch.attention"', "line 19: `agree` must be one of"),
    asked("explain = true", "line 19: `explain` must be a text"),
    asked('explain = "a"\ntable = 3', "line 20: `table` must be a table"),
    # tables
    table('vary = "beta"', r"line 20: values, columns are missing in \[asked.table\]"),
    table(
        'vary = "bta"\nvalues = [1]\ncolumns = [{ header = "", show = "1" }]',
        "line 21: no constant 'bta' to vary: did you mean 'beta'",
        False,
    ),
    table(
        'vary = "beta"\nvalues = []\ncolumns = [{ header = "", show = "1" }]',
        "line 22: `values` must be a list of numbers",
    ),
    table(
        'vary = "beta"\nvalues = [1]\ncolumns = [{ heading = "", show = "1" }]',
        "line 23: unknown word 'heading'.*did you mean 'header'",
    ),
    table(
        'vary = "beta"\nvalues = [1]\ncolumns = [{ header = "", show = "bet" }]',
        "line 23: .*'bet', which is not defined: did you mean 'beta'",
        False,
    ),
    table(
        'vary = "beta"\nvalues = [1]\ncolumns = [{ header = "", show = "1", variant = "x" }]',
        "line 23: no variant 'x'",
        False,
    ),
    table(
        'vary = "beta"\nvalues = [1]\ncaption = "$"\ncolumns = [{ header = "", show = "1" }]',
        "line 23: a formula that",
    ),
]


def beside(name: str) -> str:
    raise FileError(f"{name!r} cannot be read: No such file")


@cache
def validator() -> Draft202012Validator:
    schema = json.loads((files("regard.exercises") / "exercise.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_small_exercise_is_fine() -> None:
    assert len(read(SMALL).asked) == 2
    assert validator().is_valid(tomllib.loads(SMALL))


@pytest.mark.parametrize("broken", BROKEN, ids=[f"{b.message[:50]}" for b in BROKEN])
def test_every_mistake_names_its_line(broken: Broken) -> None:
    assert broken.old in SMALL
    text = SMALL.replace(broken.old, broken.new)
    with pytest.raises(ExerciseError, match=re.compile(broken.message, re.DOTALL)) as caught:
        read(text, beside)
    assert str(caught.value).startswith("a.toml, line ")


@pytest.mark.parametrize(
    "broken",
    [b for b in BROKEN if b.by_schema],
    ids=[b.message[:50] for b in BROKEN if b.by_schema],
)
def test_the_schema_refuses_it_too(broken: Broken) -> None:
    data = tomllib.loads(SMALL.replace(broken.old, broken.new))
    assert not validator().is_valid(data)


def test_a_program_needs_a_folder() -> None:
    with pytest.raises(ExerciseError, match=r"line 19: 'a\.py' stands beside"):
        read(SMALL.replace(LAST, 'program = "a.py"'), None)


def test_draws_need_no_torch_to_be_checked() -> None:
    text = library_text("torch-self-attention").replace('"scores", "weights"', '"score"', 1)
    with pytest.raises(ExerciseError, match="no step 'score': did you mean 'scores'"):
        read(text)


@given(st.data())
def test_no_damage_does_anything_else(data: st.DataObject) -> None:
    """A piece cut out of a file, or doubled, is read or refused with a line."""
    start = data.draw(st.integers(0, len(WHOLE)))
    end = data.draw(st.integers(start, min(len(WHOLE), start + 40)))
    middle = data.draw(st.sampled_from(["", WHOLE[start:end] * 2, "0", '"', "[", "="]))
    with suppress(ExerciseError):
        read(WHOLE[:start] + middle + WHOLE[end:])


# ---- lines ---------------------------------------------------------------------------------------

LINES = [
    (("format",), 1),
    (("text",), 5),
    (("givens",), 12),
    (("givens", "WK"), 15),
    (("givens", "nothing"), 12),
    (("variants", "masked", "options"), 37),
    (("variants", "heads", "givens"), 41),
    (("asked", 0), 44),
    (("asked", 0, "step"), 48),
    (("asked", 1, "explain"), 52),
    (("asked", 1, "table"), 55),
    (("asked", 1, "table", "caption"), 58),
    (("asked", 1, "table", "columns", 1, "show"), 59),
    (("asked", 2, "mask"), 66),
    (("nothing",), 1),
]


@pytest.mark.parametrize(("path", "line"), LINES)
def test_lines(path: tuple[str | int, ...], line: int) -> None:
    assert Source("a.toml", WHOLE).line_of(*path) == line


def test_lines_within_a_text_are_no_words() -> None:
    source = Source("a", "a = '''\nb = 1\n[c]\n'''\nb = 2\n[c]\nd = \"\"\"one line\"\"\"\ne = 3")
    assert [source.line_of(*path) for path in (("b",), ("c",), ("c", "e"))] == [5, 6, 8]


def test_lines_of_dotted_and_quoted_words() -> None:
    source = Source("a", 'a.b = 1\n"c d".e = 2\n[ x . "y" ]\nz.w = 3\n[[l]]\n[l.m]\n[[l]]\n[l.m]')
    paths = {
        ("a", "b"): 1,
        ("c d", "e"): 2,
        ("x", "y", "z", "w"): 4,
        ("l", 0, "m"): 6,
        ("l", 1, "m"): 8,
    }
    assert {path: source.line_of(*path) for path in paths} == paths


# ---- the schema and the reader say the same ------------------------------------------------------


def properties(*path: str) -> set[str]:
    part: Any = validator().schema
    for name in path:
        part = part[name]
    return set(part["properties"])


def test_the_schema_has_the_words_of_the_reader() -> None:
    definitions = validator().schema["$defs"]
    assert properties() == set(TOP)
    assert properties("properties", "variants", "additionalProperties") == set(VARIANT)
    assert properties("properties", "code") == set(words_of(CodeRules))
    assert properties("$defs", "run") == set(words_of(CodeRun))
    assert properties("$defs", "table") == set(words_of(AnswerTable))
    assert properties("$defs", "table", "properties", "columns", "items") == set(words_of(Column))
    assert properties("$defs", "asked") == {f.name for f in fields(Asked)} - {"question"}
    questions = [set(each["properties"]) for each in definitions["asked"]["oneOf"]]
    assert questions == [set(words_of(kind)) for kind in QUESTIONS.values()]
    draws = definitions["draws"]["properties"]["tensors"]["items"]["oneOf"]
    assert [set(d["properties"]) for d in draws] == [
        set(words_of(draw)) for draw in (LinearDraw, NormalDraw)
    ]


def test_the_schema_has_the_choices_of_the_reader() -> None:
    definitions = validator().schema["$defs"]
    asked = {k: v for each in definitions["asked"]["oneOf"] for k, v in each["properties"].items()}
    assert definitions["kind"]["enum"] == list(KINDS)
    assert definitions["givens"]["propertyNames"]["enum"] == list(GIVEN_SYMBOLS)
    assert definitions["options"]["propertyNames"]["enum"] == list(OPTION_NAMES)
    assert asked["fact"]["enum"] == sorted(FACTS)
    assert asked["agree"]["enum"] == sorted(AGREEMENTS)
    assert asked["count"]["anyOf"][0]["enum"] == list(COUNTS)
    assert asked["convention"]["enum"] == list(CONVENTIONS)
    assert asked["numbers"]["enum"] == list(NUMBERS)


def test_every_question_is_checked() -> None:
    assert set(CHECKS) == set(QUESTIONS.values())


@pytest.mark.parametrize("name", library_names())
def test_the_library_conforms(name: str) -> None:
    assert [e.message for e in validator().iter_errors(tomllib.loads(library_text(name)))] == []
    exercise = load_exercise(name)
    assert re.match(r"course document 00[0-4], ", exercise.source)
    assert sum(asked.points for asked in exercise.asked) > 0


def test_a_draft_is_an_exercise_file() -> None:
    text = "X = [[1, 2], [3, 4/3]]\nWq = [[1, 0], [0, 1]]\nWk = [[1, 2], [0, 1]]\nWv = [[1], [0]]\n"
    exercise = exercise_from(text, "a.md", Said(scale=1))
    draft = to_toml(exercise)
    assert validator().is_valid(tomllib.loads(draft))
    again = read(draft)
    assert again.asked == exercise.asked
    assert again.variants["main"].options == {"scale": 1}


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.replace(LAST, 'program = "mine.py"'), encoding="utf-8")
    with pytest.raises(ExerciseError, match=r"mine\.toml, line 19: 'mine\.py' cannot be read"):
        load_exercise(str(path))
    (tmp_path / "mine.py").write_text("print(1)\n", encoding="utf-8")
    assert load_exercise(str(path)).files == {"mine.py": "print(1)\n"}


def test_checking_makes_no_large_arrays() -> None:
    import tracemalloc

    text = """format = 1
title = "Large"
kind = "attention"
[draws]
seed = 1
tensors = [
  { normal = "Q", shape = [1, 300000] },
  { normal = "K", shape = [1, 300000] },
  { normal = "V", shape = [1, 300000] },
]
[[asked]]
step = "context"
"""
    read(text)
    tracemalloc.start()
    try:
        read(text)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_a_step_has_a_largest_size() -> None:
    text = (
        SMALL.replace("V = ", "#").replace("Q = ", "#").replace("K = ", "#")
        + """
[draws]
seed = 1
tensors = [
  { normal = "Q", shape = [300000, 1] },
  { normal = "K", shape = [300000, 1] },
  { normal = "V", shape = [300000, 1] },
]
"""
    )
    with pytest.raises(
        ExerciseError, match=r"line \d+: .*scores would be 300000×300000, and 10,00"
    ):
        read(text)


def test_programs_beside_have_the_size_limit_of_exercises(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("#" * (LARGEST + 1), encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.replace(LAST, 'program = "mine.py"'), encoding="utf-8")
    with pytest.raises(ExerciseError, match=r"line 19: 'mine.py' has more than 10,000,000 bytes"):
        load_exercise(path)
    path.write_text(SMALL + "#" * LARGEST, encoding="utf-8")
    with pytest.raises(FileError, match=r"mine.toml' has more than 10,000,000 bytes"):
        load_exercise(path)


def test_neither_a_file_nor_an_exercise() -> None:
    with pytest.raises(NoSuchExerciseError, match=r"'copyin' is no file .*did you mean 'copying'"):
        load_exercise("copyin")
