"""Judging what programs gave: points for right results, mistakes by name, and what probes found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from regard._axes import written
from regard._errors import RegardError
from regard.checking import Judgement, Key, Verdict, read_answer
from regard.grading._grade import FAILED, GRADED, NOT_GRADABLE, Finding, Item
from regard.grading._program import Answered, Tried
from regard.grading._sandbox import Outcome
from regard.grading._trials import WORDS
from regard.graph.operation import Array
from regard.mistakes import Cause, Committed
from regard.show.trace import Trace

NEAR_NAN = 1e-5  # relative, beside results that are no numbers
MOST_CODE = 160  # characters of two lines of code that are told


def status_of(outcome: Outcome, results: Sequence[Tried]) -> tuple[str, str]:
    """The whole program: one result anywhere is enough to be graded."""
    if any(answered.values for tried in results for answered in tried.answered):
        return GRADED, ""
    failed = outcome.first("failed")
    if failed and failed.get("error") == "ModuleNotFoundError" and "matplotlib" in str(failed):
        words = "it imports matplotlib, which is not installed here: pip install 'regard[figures]'"
        return NOT_GRADABLE, words
    if not outcome.first("ready"):
        return NOT_GRADABLE, outcome.stopped or outcome.printed
    wrong = next(each.wrong for tried in results for each in tried.answered)
    return FAILED, wrong


def judged(tried: Tried, key: Key, probe_cost: float) -> tuple[list[Item], list[Finding]]:
    """Points for what is right on all numbers of the exercise's sizes; probes may take some."""
    diagnoses = _diagnosed(tried, key)
    each = tried.run.points / len(tried.steps)
    items = []
    for name, step in zip(tried.run.results, tried.steps, strict=True):
        item = Item(f"{tried.run.name}: {name}", each, each, "right")
        if not all(a.is_right(step) for a in tried.of_kind("exercise", "fresh")):
            item = _wrong(item, tried, step, diagnoses.get(step))
        items.append(item)
    if not any(answered.values for answered in tried.answered):
        return items, []
    cost = probe_cost * sum(item.points for item in items)
    return items, [*tried.notes, *_findings(tried, cost)]


def _wrong(item: Item, tried: Tried, step: str, judgement: Judgement | None) -> Item:
    """The same item for a step that is wrong somewhere: where, and by which mistake."""
    wrong = [a for a in tried.of_kind("exercise", "fresh") if not a.is_right(step)]
    kinds = {answered.trial.kind for answered in wrong}
    message = _difference(wrong[0], step)
    if kinds == {"exercise"}:
        message = f"right on other numbers, but not on the exercise's: {message}"
    elif kinds == {"fresh"}:
        message = f"right on the exercise's numbers, but not on others: {message}"
    if judgement is None or kinds == {"exercise"}:
        return replace(item, points=0.0, verdict="wrong", message=message)
    if judgement.is_accepted and all(_follows(answered, step) for answered in wrong):
        words = "it is what follows from the wrong values before it"
        return replace(item, verdict="error carried forward", message=words)
    titles = [" and ".join(map(_title, causes)) for causes in judgement.causes]
    if titles:
        message = " or ".join(titles)
    if len(titles) == 1:
        message += _in_code(wrong[-1], judgement.causes[0])
    known = tuple(titles) if len(titles) == 1 else ()
    return replace(item, points=0.0, verdict="wrong", message=message, mistakes=known)


def _diagnosed(tried: Tried, key: Key) -> Mapping[str, Judgement]:
    """What is known of the steps on fresh numbers, which tell the mistakes apart."""
    answered = next(a for a in tried.of_kind("fresh") if a.trial.trace.run is key.run)
    judgements = key.judge(
        {name: read_answer(name, value) for name, value in answered.values.items()}
    )
    if any(np.isnan(value).any() for value in answered.values.values()):
        causes = tuple(one.causes for _, one in key.singles if _is_finitely(one, answered.values))
        found = Judgement(Verdict.MISTAKE, causes=causes)
        return dict.fromkeys(judgements, found)
    return judgements


def _is_finitely(one: Committed, values: Mapping[str, Array]) -> bool:
    """Whether a mistake makes these results where they are numbers: a row of 0/0 says nothing."""
    for name, value in values.items():
        made = one.values.get(name)
        known = np.isfinite(value)
        if made is None or made.shape != value.shape or 2 * known.sum() < value.size:
            return False
        if not np.allclose(made[known], value[known], rtol=NEAR_NAN, atol=NEAR_NAN):
            return False
    return True


def _follows(answered: Answered, step: str) -> bool:
    """Whether a step is right, given what the program itself gave for the steps before it."""
    run = answered.trial.trace.run
    before = run.graph.upstream(step) - {step}
    own = {name: value for name, value in answered.values.items() if name in before}
    if not own or any(value.shape != run.values[n].shape for n, value in own.items()):
        return False
    carried = Trace(run.replace(**own), answered.trial.trace.names)
    return replace(answered, trial=replace(answered.trial, trace=carried)).is_right(step)


def _title(cause: Cause) -> str:
    return f"{cause.mistake.title} ({cause.detail})" if cause.detail else cause.mistake.title


def _in_code(answered: Answered, causes: Sequence[Cause]) -> str:
    """The line of a short program that the mistake changes: `F.softmax(scores, dim=-2)`."""
    if len(causes) != 1:
        return ""
    trace, cause = answered.trial.trace, causes[0]
    library = str(answered.trial.call["library"])
    ways = [way for way in cause.mistake.ways(trace.run.graph) if way.detail == cause.detail]
    try:
        wrong = trace.rewrite(ways[0].rewrite).to_code(library).splitlines()
    except (RegardError, IndexError):
        return ""
    right = trace.to_code(library).splitlines()
    mine, theirs = ([x for x in a if x not in b] for a, b in ((right, wrong), (wrong, right)))
    if not mine or len(mine) != len(theirs) or len(mine[0]) + len(theirs[0]) > MOST_CODE:
        return ""
    return f": as with `{theirs[0]}` instead of `{mine[0]}`"


def _difference(answered: Answered, step: str) -> str:
    """What is wrong with one step in one trial."""
    if answered.wrong:
        return answered.wrong
    value, wanted = answered.values[step], answered.trial.trace[step].value
    if value.shape != wanted.shape:
        return f"its shape is {written(value.shape)}; it must be {written(wanted.shape)}"
    with np.errstate(all="ignore"):
        away = np.where(value == wanted, 0.0, np.abs(value - wanted))
    place = np.unravel_index(int(np.argmax(np.nan_to_num(away, nan=np.inf))), away.shape)
    entry = ", ".join(str(int(index) + 1) for index in place)
    shown = f"{value[place]:.6g} instead of {wanted[place]:.6g}"
    off = int((away > 0).sum()) if answered.gap(step) > 1 else 0
    return f"{off} of {away.size} entries differ; entry {entry} is {shown}"


def _findings(tried: Tried, cost: float) -> Iterator[Finding]:
    """What the probes say, each once; most say something only of what is otherwise right."""
    name = tried.run.name
    changed = sorted({each for answered in tried.answered for each in answered.changed})
    if changed:
        words = f"{name} changes its input {', '.join(changed)} in place"
        yield Finding("in place", words, cost)
    right = [
        step for step in tried.steps
        if all(answered.is_right(step) for answered in tried.of_kind("fresh"))
    ]  # fmt: skip
    yield from _batches(tried)
    yield from _causal(tried, cost)
    if not right:
        return
    again = tried.of_kind("again")
    if any(not answered.is_right(step) for answered in again for step in right):
        words = f"{name} called again with the same inputs gives other results"
        yield Finding("again", words, cost)
    yield from _sizes(tried, right, cost)
    yield from _overflow(tried, right)


def _batches(tried: Tried) -> Iterator[Finding]:
    """Whether only batches of one go right, or only those of the exercise's size."""
    batches = [a for a in tried.of_kind("size") if a.trial.about == "batch"]
    single = [a for a in batches if a.trial.trace.run.graph.sizes["batch"] == 1]
    if single and all(a.is_right(step) for a in single for step in tried.steps):
        several = [a for a in (*batches, *tried.of_kind("fresh")) if a not in single]
        if not any(a.is_right(step) for a in several for step in tried.steps[-1:]):
            yield Finding("batch", f"{tried.run.name} fails only when batch > 1")


def _sizes(tried: Tried, right: Sequence[str], cost: float) -> Iterator[Finding]:
    for answered in tried.of_kind("size"):
        wrong = [step for step in right if not answered.is_right(step)]
        if not wrong:
            continue
        symbol = answered.trial.about
        old = tried.of_kind("fresh")[0].trial.trace.run.graph.sizes[symbol]
        new = answered.trial.trace.run.graph.sizes[symbol]
        words = (
            f"{tried.run.name} fails when {WORDS[symbol]} is {new} instead of {old}: "
            f"{_difference(answered, wrong[0])}"
        )
        # Nobody was told of other widths; tokens and batches may be as many as one likes.
        yield Finding("size", words, 0 if symbol.startswith("d_") else cost)


def _overflow(tried: Tried, right: Sequence[str]) -> Iterator[Finding]:
    for answered in tried.of_kind("overflow"):
        wrong = [step for step in right if not answered.is_right(step)]
        values = [answered.values[step] for step in wrong if step in answered.values]
        if any(not np.isfinite(value).all() for value in values):
            words = (
                f"{tried.run.name} overflows for scores above {answered.trial.about}: subtract "
                "the largest score of each row before exp"
            )
            yield Finding("overflow", words)


def _causal(tried: Tried, cost: float) -> Iterator[Finding]:
    """Whether an earlier output changes when a later token does."""
    before = tried.of_kind("fresh")[0]
    for answered in tried.of_kind("causal"):
        token = int(answered.trial.about)
        for step in tried.steps:
            axes = before.trial.trace[step].axes
            axis = next((a for a in ("query", "token") if a in axes), None)
            if axis is None or step not in answered.values or step not in before.values:
                continue
            old, new = before.values[step], answered.values[step]
            if old.shape != new.shape:
                continue
            away = np.moveaxis(np.abs(new - old), axes.index(axis), 0)[: token - 1]
            rows = [i + 1 for i, row in enumerate(away) if row.max(initial=0.0) > 1e-6]
            if rows:
                words = (
                    f"{tried.run.name} is not causal: {step} {rows[0]} changes when "
                    f"token {token} changes"
                )
                yield Finding("causal", words, cost)
                return
