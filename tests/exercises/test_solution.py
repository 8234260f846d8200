"""Solutions: every library exercise in every level, format and kind of numbers."""

from __future__ import annotations

import builtins
import html
import json
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from regard import ExerciseError, MissingExtraError, OptionError
from regard.exercises import Solution, library_names, read_exercise, solve
from regard.exercises._answers import ANSWERS
from regard.exercises._evidence import FACTS
from regard.exercises._exercise import QUESTIONS
from regard.exercises._library import library_text
from regard.exercises._solution import SCHEMA, VERSION
from regard.graph.notation import Symbol
from regard.show.document import Code, Heading, Note, Paragraph, Table
from regard.show.layout import LEVELS

DRAWN = "torch-self-attention"
NAMES = library_names()


@cache
def solution(name: str, numbers: str = "float64") -> Solution:
    if name == DRAWN:
        pytest.importorskip("torch")
    return solve(name, numbers=numbers)


def small(asked: str, rest: str = "") -> Solution:
    text = f"""format = 1
title = "Small"
kind = "attention"
text = "Situation with $n_q$."
remarks = "Loose."
{rest}
[givens]
Q = [[1, 0], [0, 1]]
K = [[1, 0], [0, 1]]
V = [[1], [2]]
{asked}"""
    return Solution("small", read_exercise(text, "small.toml"))


def test_the_library() -> None:
    assert NAMES == [
        "attention-questions", "average-of-two", "copying", "numpy-multi-head",
        "scaled-attention-by-hand", "single-head-noise", "source-over-vectors",
        "torch-self-attention", "two-head-attention", "two-heads-noise",
        "unscaled-self-attention",
    ]  # fmt: skip


# ---- everything is shown everywhere --------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_in_every_format(name: str, level: str) -> None:
    solved = solution(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = solved.to_text(level=level, width=100)
        markdown = solved.to_markdown(level=level)
        latex = solved.to_latex(level=level)
        page = solved.to_html(level=level)
    title = solved.exercise.title
    assert text.startswith(title)
    assert title in markdown
    assert title in html.unescape(page)
    assert latex.count("\\begin{document}") == 1
    for asked in solved.exercise.asked:
        assert asked.title in text
        assert asked.title in markdown
        assert asked.title in html.unescape(page)
    assert "$" not in text
    widest = max(map(len, text.splitlines()))
    has_code = any(isinstance(block, Code) for block in solved.document(level=level).blocks)
    assert widest <= 100 or has_code


@pytest.mark.parametrize("name", NAMES)
def test_json_holds_every_answer(name: str) -> None:
    data = json.loads(solution(name).to_json())
    asked = solution(name).exercise.asked
    assert (data["schema"], data["version"], data["name"]) == (SCHEMA, VERSION, name)
    assert [each["asks"] for each in data["answers"]] == [a.question.word for a in asked]
    assert [each["points"] for each in data["answers"]] == [a.points for a in asked]
    assert set(data["traces"]) == set(solution(name).exercise.variants)
    for each, question in zip(data["answers"], asked, strict=True):
        if each["asks"] == "step" and question.question.numbers == "":  # type: ignore[union-attr]
            trace = solution(name).traces[question.variant]
            for step, found in each["answer"].items():
                np.testing.assert_array_equal(found, trace[step].value)


def schema(room: str, name: str) -> Draft202012Validator:
    loaded = json.loads((files(f"regard.{room}") / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(loaded)
    return Draft202012Validator(loaded)


@pytest.mark.parametrize("numbers", ["float64", "certified"])
@pytest.mark.parametrize("name", NAMES)
def test_json_conforms_to_its_schema(name: str, numbers: str) -> None:
    if numbers == "certified":
        pytest.importorskip("flint")
    data = json.loads(solution(name, numbers).to_json())
    assert [e.message for e in schema("exercises", "solution").iter_errors(data)] == []
    for trace in data["traces"].values():
        assert [e.message for e in schema("show", "trace").iter_errors(trace)] == []


def test_the_schema_knows_every_question_and_nothing_else() -> None:
    validator = schema("exercises", "solution")
    branches = validator.schema["$defs"]["answer"]["oneOf"]
    assert [each["properties"]["asks"]["const"] for each in branches] == list(QUESTIONS)
    data = json.loads(solution("two-head-attention").to_json())
    for wrong in ({"asks": "feel"}, {"asks": "shape"}, {"answer": 3}, {"points": -1}, {"x": 1}):
        answers = [{**data["answers"][0], **wrong}, *data["answers"][1:]]
        assert not validator.is_valid({**data, "answers": answers}), wrong
    assert not validator.is_valid({**data, "traces": {}})


def test_json_has_no_word_that_json_has_not() -> None:
    solved = small(
        "[variants.other.givens]\nV = [[nan], [inf]]\n[[asked]]\n"
        'compare = { "one" = "main", "other" = "other" }'
    )
    data = json.loads(solved.to_json(), parse_constant=pytest.fail)
    assert data["answers"][0]["answer"] == {"largest difference": {"other": "nan"}}
    assert schema("exercises", "solution").is_valid(data)


@pytest.mark.parametrize("name", NAMES)
def test_certified_agrees_with_float64(name: str) -> None:
    pytest.importorskip("flint")
    certified = solution(name, "certified")
    assert certified.to_text(level="result")
    for variant, trace in solution(name).traces.items():
        for step in ("weights", trace.steps[-1]):
            found = np.asarray(certified.traces[variant][step].value, dtype=float)
            np.testing.assert_allclose(found, trace[step].value, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_exact_agrees_with_float64(name: str) -> None:
    pytest.importorskip("sympy")
    exact = solution(name, "exact")
    assert exact.to_text(level="result", width=100)
    for variant, trace in solution(name).traces.items():
        found = np.asarray(exact.traces[variant]["weights"].value, dtype=float)
        np.testing.assert_allclose(found, trace["weights"].value, rtol=1e-9, atol=1e-300)


def test_exact_softmax_is_shown_with_exponentials() -> None:
    pytest.importorskip("sympy")
    text = solution("source-over-vectors", "exact").to_text(level="result")
    assert "e^8/(e + e^6 + e^8)" in text


@pytest.mark.parametrize("name", NAMES)
def test_results_are_short(name: str) -> None:
    result = solution(name).to_text(level="result", width=100)
    steps = solution(name).to_text(level="steps", width=100)
    assert result.count("\n") < 0.55 * steps.count("\n")
    document = solution(name).document(level="result")
    assert not any(isinstance(block, Note) for block in document.blocks)
    assert not any(b.text == "Given" for b in document.blocks if isinstance(b, Heading))


def test_remarks_stand_in_every_solution_that_has_them() -> None:
    for name in NAMES:
        exercise = solution(name).exercise
        notes = [b for b in solution(name).document().blocks if isinstance(b, Note)]
        wanted = len(exercise.remarks) + sum(bool(asked.remark) for asked in exercise.asked)
        assert len(notes) >= wanted


def test_every_question_has_an_answer() -> None:
    assert set(ANSWERS) == set(QUESTIONS.values())


# ---- some of what is asked -----------------------------------------------------------------------


def headings(solved: Solution, *only: str) -> list[str]:
    blocks = solved.document(only=only).blocks
    return [block.text for block in blocks if isinstance(block, Heading) and block.level == 1]


ONLY = [
    (("(c)",), ["(c) The heads side by side"]),
    (("c",), ["(c) The heads side by side"]),
    (("merged",), ["(c) The heads side by side"]),
    (("Z",), ["(c) The heads side by side"]),
    (("output", "a"), ["(a) Queries, keys and values of both heads", "(d) The output"]),
    (("weights",), ["(b) The attention of each head"]),
]


@pytest.mark.parametrize(("only", "wanted"), ONLY)
def test_only(only: tuple[str, ...], wanted: list[str]) -> None:
    assert headings(solution("two-head-attention"), *only) == wanted


def test_only_a_text_is_one_name() -> None:
    assert "(2)" not in solution("unscaled-self-attention").to_text(only="Q")


def test_only_a_label_takes_all_that_belongs_to_it() -> None:
    document = solution("attention-questions").document(only=("(b)",))
    assert sum(isinstance(block, Table) for block in document.blocks) == 1
    assert not any(isinstance(b, Heading) and b.text == "Given" for b in document.blocks)


def test_only_what_is_not_asked() -> None:
    with pytest.raises(OptionError, match="nothing asked is 'weihgts': did you mean 'weights'"):
        solution("two-head-attention").to_text(only=("weihgts",))


def test_unknown_level() -> None:
    with pytest.raises(OptionError, match="`level` must be one of 'result', 'steps', 'entries'"):
        solution("copying").to_text(level="all")


# ---- answers one by one --------------------------------------------------------------------------


def texts(solved: Solution, level: str = "steps") -> str:
    return " ".join(solved.to_text(level=level, width=100).split())


def test_steps_are_not_repeated() -> None:
    text = solution("unscaled-self-attention").to_text()
    assert [text.count(f"■ {step}:") for step in ("Q", "K", "V", "exp")] == [1, 1, 1, 1]


def test_a_question_without_heading_belongs_to_the_one_before() -> None:
    solved = small(
        '[[asked]]\nlabel = "(a)"\nstep = "scores"\n[[asked]]\ntext = "And?"\nshape = "context"'
    )
    assert headings(solved) == ["(a)"]
    assert [each["label"] for each in json.loads(solved.to_json())["answers"]] == ["(a)", "(a)"]


def test_a_scale_of_its_own_is_no_size() -> None:
    solved = small(
        '[options]\nscale = 0.5\n[[asked]]\nchoice = ["d_k", "another number"]\nfact = "scale-size"'
    )
    assert "Answer: another number." in texts(solved)


def test_a_fact_that_is_no_choice() -> None:
    solved = small('[[asked]]\nchoice = ["up", "down"]\nfact = "softmax-axis"')
    with pytest.raises(ValueError, match="small: the computation says 'row-wise', which is not"):
        solved.to_text()


MASKED = """[options]
causal = -1
[[asked]]
choice = ["row-wise", "column-wise"]
fact = "softmax-axis"
"""


def test_a_masked_row_tells_nothing_about_the_axis_of_the_softmax() -> None:
    solved = small(MASKED)
    assert solved.trace["weights"].value.tolist() == [[0, 0], [1, 0]]
    assert "Answer: row-wise." in texts(solved)


@pytest.mark.parametrize(
    ("weights", "fact"),
    [([[0.25, 0.5], [0.75, 0.5]], "column-wise"), ([[0.25, 0.75], [0.5, 0.5]], "row-wise")],
)
def test_the_axis_of_the_softmax(weights: list[list[float]], fact: str) -> None:
    trace = small(MASKED).trace.replace(weights=weights)
    assert FACTS["softmax-axis"].decide(trace)[0] == fact


@pytest.mark.parametrize("weights", [[[0.25, 0.5], [0.5, 0.5]], [[0, 0], [0, 0]]])
def test_weights_of_no_softmax(weights: list[list[float]]) -> None:
    trace = small(MASKED).trace.replace(weights=weights)
    with pytest.raises(ExerciseError, match="neither the rows nor the columns"):
        FACTS["softmax-axis"].decide(trace)


def test_a_design_that_misses() -> None:
    solved = small(
        '[[asked]]\ndesign = "q"\nproperty = "context[1, 1]"\ntarget = "1"\nwithin = 0.1',
        '[constants]\nbeta = 1\nq = "beta*2"',
    )
    with pytest.raises(ValueError, match=r"small: the design of q misses .* 0\.33, more than 0\.1"):
        solved.to_text()


def test_a_design_and_its_target_have_one_shape() -> None:
    solved = small(
        '[[asked]]\ndesign = "q"\nproperty = "context"\ntarget = "K"\nwithin = 9',
        '[constants]\nq = "1"',
    )
    with pytest.raises(ValueError, match="small: context is 2×1, but its target K is 2×2"):
        solved.to_text()


def test_a_table_cell_has_at_most_two_axes() -> None:
    text = """format = 1
title = "Batch"
kind = "attention"
givens = { Q = [[[1]]], K = [[[1]]], V = [[[1]]] }
constants = { beta = 1 }
[[asked]]
explain = "Look."
table = { vary = "beta", values = [1, inf], columns = [{ header = "A", show = "weights" }] }
"""
    with pytest.raises(ValueError, match=r"b: an array of 1×1×1 cannot be shown here: choose"):
        Solution("b", read_exercise(text, "b.toml")).to_text()
    narrow = Solution("b", read_exercise(text.replace('"weights"', '"weights[1]"'), "b.toml"))
    assert "∞" in narrow.to_text()


def test_a_given_formula_is_shown_with_its_value() -> None:
    assert "q = β (k_a + k_b) = (20, 20, 0, 0)" in texts(solution("average-of-two"))


def test_a_constant_is_varied_everywhere() -> None:
    text = texts(solution("single-head-noise"))
    assert "0.01 0.2 0.3589" in text


def test_comparing_variants_that_differ_in_more_than_weights() -> None:
    solved = small(
        "[variants.other.givens]\nV = [[3], [4]]\n[[asked]]\n"
        'compare = { "one" = "main", "other" = "other" }'
    )
    text = texts(solved)
    assert "The results differ by up to 2." in text
    assert "the weights alone" not in text


@pytest.mark.parametrize(("numbers", "extra"), [("exact", "sympy"), ("certified", "flint")])
def test_other_numbers_compare_the_same(numbers: str, extra: str) -> None:
    pytest.importorskip(extra)
    same = "the weights alone make the difference"
    assert same in texts(solution("numpy-multi-head"))
    assert same in texts(solution("numpy-multi-head", numbers))


def test_rules_for_a_program_are_shown_unless_results_alone_are_wanted() -> None:
    rules = (
        "Rules for the program: it imports nothing but torch, torch.nn, torch.nn.functional; it "
        "calls torch.matmul, F.softmax; its random numbers start from the seed 42; it fills the "
        "gaps of torch-self-attention.py."
    )
    shown = {level: rules in texts(solution(DRAWN), level) for level in LEVELS}
    assert shown == {"result": False, "steps": True, "entries": True}


def test_the_skeleton_can_be_had() -> None:
    assert "TODO" in solve(DRAWN).skeleton
    with pytest.raises(OptionError, match="copying: this exercise has no skeleton"):
        _ = solve("copying").skeleton


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_and_its_cost_need_no_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = solution(name).trace
    without(monkeypatch, "torch")
    monkeypatch.setattr("regard.exercises._compute.work", None)
    assert solve(name).graph == wanted.run.graph
    assert solve(name).cost("stable").to_json() == wanted.cost("stable").to_json()


def test_a_path_is_as_good_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(library_text("copying"), encoding="utf-8")
    assert solve(path).name == str(path)
    assert solve(path).to_text() == solve(str(path)).to_text()


def test_positions_are_not_equivariant() -> None:
    text = """format = 1
title = "Order"
kind = "self-attention"
[givens]
X = [[1, 2], [3, 5], [7, 11]]
WQ = [[0.1, 0], [0, 0.1]]
WK = [[0.1, 0.2], [0, 0.1]]
WV = [[1, 0], [0, 1]]
[options]
positions = "sinusoidal"
[[asked]]
permute = [2, 3, 1]
"""
    solved = Solution("order", read_exercise(text, "order.toml"))
    assert "The computation is not equivariant" in texts(solved)
    (answer,) = json.loads(solved.to_json())["answers"]
    assert answer["answer"]["verdict"] == "not equivariant"


def test_another_scale_does_not_agree_with_torch() -> None:
    pytest.importorskip("torch")
    asked = '[[asked]]\nagree = "torch.nn.functional.scaled_dot_product_attention"'
    assert "gives another context: it differs by up to" in texts(
        small("[options]\nscale = 3\n" + asked)
    )
    assert "gives the same context" in texts(small(asked))


def test_numpy_prints_as_numpy() -> None:
    solved = small('[[asked]]\nstep = "weights"', "numpy_precision = 3")
    code = [block.text for block in solved.document().blocks if isinstance(block, Code)]
    with np.printoptions(precision=3):
        assert code == [f"weights:\n{solved.trace['weights'].value}"]


def test_formulas_in_prose_are_mathematics() -> None:
    blocks = small('[[asked]]\nstep = "scores"').document().blocks
    situation = next(block for block in blocks if isinstance(block, Paragraph))
    assert situation.prose == ("Situation with ", Symbol("n", "q"), ".")


# ---- without the extras --------------------------------------------------------------------------


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    real = builtins.__import__

    def refusing(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in modules:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refusing)


def test_without_torch_draws_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch")
    solved = solve(DRAWN)
    assert solved.exercise.code is not None
    with pytest.raises(MissingExtraError, match=r"needs torch.*pip install 'regard\[torch\]'"):
        solved.to_text()


def test_without_torch_agreement_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch")
    assert "torch is not installed (pip install 'regard[torch]')" in texts(
        solve("scaled-attention-by-hand")
    )


def test_without_flint_certified_weights_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "regard.graph.certified", raising=False)
    without(monkeypatch, "flint")
    text = texts(solve("two-head-attention"))
    assert "Not shown in certified numbers" in text
    assert "pip install 'regard[exact]'" in text


def test_drawing_leaves_the_random_state_alone() -> None:
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    assert solve(DRAWN).trace["scores"].shape == (2, 3, 3)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_skeleton_keeps_to_its_rules() -> None:
    exercise = solve(DRAWN).exercise
    assert exercise.code is not None
    for text in exercise.files.values():
        compile(text, "program", "exec")
        assert f"manual_seed({exercise.code.seed})" in text
    skeleton, answer = (exercise.files[name] for name in sorted(exercise.files, key=len))
    assert "TODO" in skeleton
    assert "TODO" not in answer
    assert all(f"{call}(" in answer for call in exercise.code.calls)
