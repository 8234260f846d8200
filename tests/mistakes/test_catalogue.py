"""The catalogue: what every mistake must be, and what library exercises can show of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import regard
from regard._errors import MissingExtraError, OptionError
from regard.checking import checker_for
from regard.graph.run import Run
from regard.mistakes import CATALOGUE, commit_all, discriminate, mistake_named

NAMED_BY_COURSES = """
    no-scale scale-by-size scale-by-model-width scale-by-length scale-multiplied
    softmax-over-columns softmax-over-heads softmax-over-everything no-softmax not-normalised
    softmax-before-scale keys-not-transposed scores-transposed wrong-score-operands
    weight-matrix-transposed queries-keys-swapped values-not-projected weights-transposed
    mask-after-softmax mask-inverted mask-transposed mask-finite causal-hides-itself
    causal-sees-next causal-misaligned queries-padded heads-by-rows heads-interleaved heads-by-view
    heads-reversed heads-merged-by-rows heads-averaged output-projection-forgotten
    output-projection-transposed positions-forgotten positions-twice sine-cosine-swapped
""".split()  # noqa: SIM905


def test_every_mistake_is_explained_and_no_name_is_used_twice() -> None:
    words = [mistake.word for mistake in CATALOGUE]
    assert len(set(words)) == len(words) >= 30
    assert len({mistake.title for mistake in CATALOGUE}) == len(words)
    for mistake in CATALOGUE:
        assert mistake.explanation.endswith((".", ")", "…"))
        assert mistake.evidence.endswith((".", "…"))
        assert mistake.hint.endswith((".", "?"))
        assert not mistake.title.endswith(".")


def test_the_mistakes_that_courses_know_are_there() -> None:
    assert {mistake.word for mistake in CATALOGUE} >= set(NAMED_BY_COURSES)


def test_a_mistake_has_a_name() -> None:
    assert mistake_named("no-scale") in CATALOGUE
    with pytest.raises(OptionError, match="did you mean 'no-scale'"):
        mistake_named("noscale")


def library_runs() -> Iterator[tuple[str, Run, tuple[str, ...]]]:
    for name in regard.library_names():
        checker = checker_for(name)
        for variant in checker.asking.exercise.variants:
            try:
                steps, trace = checker.asking.asked_in(variant), checker.asking.trace(variant)
            except MissingExtraError:
                continue
            if steps:
                yield f"{name} {variant}", trace.run, steps


def test_each_mistake_changes_an_answer_of_each_library_exercise_or_is_reported() -> None:
    """The mutation test: nothing that applies goes by unnoticed and unreported."""
    seen: set[str] = set()
    for name, run, steps in library_runs():
        found = discriminate(run, steps)
        applied = {word for _, one in commit_all(run, CATALOGUE) for word in one.words}
        assert set(found.seen) | set(found.unseen) == applied, name
        assert not set(found.seen) & set(found.unseen), name
        seen |= set(found.seen)
    assert len(seen) >= 30


def test_a_tie_is_one_by_the_numbers() -> None:
    """Two computations that are equal for every input: QᵀK swapped is the transpose."""
    trace = regard.solve("numpy-multi-head").trace
    found = discriminate(trace.run, ("weights",))
    assert any({"scores-transposed", "queries-keys-swapped"} <= set(tie) for tie in found.alike)
    apart = discriminate(trace.run, ("Q", "weights"))
    assert not any({"scores-transposed", "queries-keys-swapped"} <= set(tie) for tie in apart.alike)


def test_coarse_answers_tell_less_apart() -> None:
    run = regard.solve("unscaled-self-attention").trace.run
    exact, coarse = (discriminate(run, ("context",), within=w) for w in (0.0, 0.3))
    assert len(coarse.unseen) > len(exact.unseen)
