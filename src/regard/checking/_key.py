"""The key to a computation: its right values and those of every known mistake, to judge by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations

import numpy as np

from regard._axes import written
from regard.checking._answer import FLOAT32, Answer
from regard.checking._rounding import Rounded, holds
from regard.checking._slips import place_words, sign_slips, slip
from regard.checking._verdict import Difference, Judgement, Verdict
from regard.graph.operation import Array
from regard.graph.rewrites import Rewrite
from regard.graph.run import Run
from regard.graph.run import run as run_graph
from regard.mistakes import CATALOGUE, Cause, Committed, Mistake, commit, commit_all, replay, same

# How much the numbers must say (in bits) before one mistake, or a pair of them, is named: among
# thousands of candidates, some number of two digits comes out by chance.
BITS_FOR_ONE, BITS_FOR_TWO = 7, 20
NEAREST = 6  # mistakes for which the effect of rounding is bounded
TINY = 1e-6
MOST_FLIPS = 3  # signs that are named as possible slips
LINES = ("One row", "One column")

Causes = tuple[Cause, ...]


class Key:
    """Judges answers to the steps of one run; what it works out once serves every answer."""

    def __init__(self, run: Run, mistakes: Iterable[Mistake] = CATALOGUE) -> None:
        self.run = run
        self.mistakes = tuple(mistakes)
        self._pairs: dict[str, list[Committed]] = {}
        self._rounded: dict[tuple[int | None, float], Run] = {}

    @cached_property
    def singles(self) -> list[tuple[Rewrite, Committed]]:
        """Every way to make one mistake."""
        return list(commit_all(self.run, self.mistakes))

    def judge(self, answers: Mapping[str, Answer]) -> dict[str, Judgement]:
        """What is found about each answered step, in the order of the work."""
        fitted = {
            name: _fitted(answers[name], self.run.values[name].shape)
            for name in self.run.graph.names
            if name in answers
        }
        judging = _Judging(self, fitted)
        with np.errstate(all="ignore"):  # −∞ and NaN are compared, not computed with
            for name in fitted:
                judging.judged[name] = judging.judge(name)
        return judging.judged

    def pairs(self, step: str) -> list[Committed]:
        """What two mistakes at once make of a step, each in whichever order they can be made."""
        if step not in self._pairs:
            found: list[Committed] = []
            for (one, a), (other, b) in combinations(self._visible(step), 2):
                if a.words != b.words:
                    causes = (*a.causes, *b.causes)
                    both = commit(self.run, one | other, causes, step) or commit(
                        self.run, other | one, causes, step
                    )
                    found += [both] if both and step in both.values else []
            self._pairs[step] = found
        return self._pairs[step]

    def _visible(self, step: str) -> list[tuple[Rewrite, Committed]]:
        """The ways to make a mistake that change a step, each in another way."""
        found: list[tuple[Rewrite, Committed]] = []
        for rewrite, one in self.singles:
            if step in one.changed and step in one.values:
                value = one.values[step]
                if not any(same(value, other.values[step]) for _, other in found):
                    found.append((rewrite, one))
        return found

    def rounded(self, decimals: int | None, share: float) -> Run:
        """The run with every step rounded."""
        if (decimals, share) not in self._rounded:
            numbers = Rounded(self.run.graph, decimals, share)
            self._rounded[decimals, share] = run_graph(self.run.graph, self.run.givens, numbers)
        return self._rounded[decimals, share]


def _fitted(answer: Answer, shape: tuple[int, ...]) -> Answer:
    """A vector that was written as one row or one column, in the shape that is wanted."""
    if answer.shape == shape or _without_ones(answer.shape) != _without_ones(shape):
        return answer
    return Answer(
        answer.values.reshape(shape), answer.radius.reshape(shape), answer.where,
        answer.decimals, answer.noise,
    )  # fmt: skip


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


class _Judging:
    """One set of answers under judgement."""

    def __init__(self, key: Key, answers: Mapping[str, Answer]) -> None:
        self.key = key
        self.run = key.run
        self.answers = answers
        self.judged: dict[str, Judgement] = {}

    def judge(self, name: str) -> Judgement:
        answer, wanted = self.answers[name], self.run.values[name]
        if problem := self._problem(answer, wanted):
            causes = self._by_one(name, answer)
            return Judgement(Verdict.UNGRADABLE, problem, causes=causes)
        if answer.is_near(wanted):
            return Judgement(Verdict.RIGHT, decimals=answer.decimals)
        own = self._own(name)
        return (
            self._carried_exactly(name, answer, own)
            or self._named(name, answer, self._by_one(name, answer))
            or self._rounding(name, answer, own)
            or self._slipped(name, answer, own)
            or self._named_after(name, answer, own)
            or self._wrong(name, answer, own)
        )

    # ---- what cannot be judged

    @staticmethod
    def _problem(answer: Answer, wanted: Array) -> str:
        if answer.shape != wanted.shape:
            turned = "; this is the shape of its transpose" if (
                answer.shape == wanted.shape[:-2] + wanted.shape[-2:][::-1]
            ) else ""  # fmt: skip
            commas = ". Write decimals with a point, not a comma" if (
                answer.shape[:-1] == wanted.shape[:-1]
                and answer.shape[-1:] == (2 * wanted.shape[-1],)
                and np.array_equal(answer.values, np.round(answer.values))
            ) else ""  # fmt: skip
            return (
                f"{_size(answer.shape)} was read, but {_size(wanted.shape)} is wanted"
                f"{turned or commas}."
            )
        if np.isnan(answer.values).any():
            place = tuple(int(i) for i in np.argwhere(np.isnan(answer.values))[0])
            return f"There is no number (NaN) at {place_words(place)}."
        if _is_coarse(answer, wanted):
            return (
                "The numbers are rounded to whole ones, which is too coarse to tell right from "
                "wrong: give two decimals."
            )
        return ""

    # ---- own earlier values carried on

    def _own(self, name: str) -> dict[str, Answer]:
        """Earlier answers that are not the right values but are numbers to go on with."""
        before = self.run.graph.upstream(name) - {name}
        return {
            step: self.answers[step]
            for step, judgement in self.judged.items()
            if step in before
            and judgement.verdict not in (Verdict.RIGHT, Verdict.UNGRADABLE)
            and not self.run.graph.is_given(step)
        }

    def _carried_exactly(
        self, name: str, answer: Answer, own: Mapping[str, Answer]
    ) -> Judgement | None:
        before = self.run.graph.upstream(name) - {name}
        shown = {
            step: self.answers[step]
            for step, judgement in self.judged.items()
            if step in before
            and judgement.verdict == Verdict.RIGHT
            and judgement.decimals is not None
        }  # right, but gone on with as they were written
        for used in (own, {**shown, **own}):
            if used and answer.is_near(self._carried(used).values[name]):
                return self._follow(name, used)
        return None

    def _carried(self, own: Mapping[str, Answer]) -> Run:
        return self.run.replace(**{step: answer.values for step, answer in own.items()})

    def _follow(self, name: str, own: Mapping[str, Answer]) -> Judgement:
        """Right, given the answers before; unless one of those left nothing to work out."""
        wrong = [step for step in own if not self.judged[step].is_accepted]
        for step in wrong:
            if _is_trivial(self.answers[step].values, self.run.values[step]):
                words = (
                    f"It follows from {{{step}}}, but with numbers as plain as those nothing was "
                    "left to work out."
                )
                return self._fault(Verdict.WRONG, name, words, first=step)
        sources = wrong or [step for step in own if self.judged[step].first] or list(own)
        rounded = (Verdict.ROUNDED, Verdict.RIGHT)
        if not wrong and all(self.judged[step].verdict in rounded for step in own):
            return Judgement(
                Verdict.ROUNDED, "The values before it were rounded.",
                decimals=self.answers[name].decimals,
            )  # fmt: skip
        first = self.judged[sources[0]].first or sources[0]
        words = f"It follows from {{{sources[0]}}}."
        return Judgement(Verdict.CARRIED, words, first=first, decimals=self.answers[name].decimals)

    # ---- rounding

    def _rounding(self, name: str, answer: Answer, own: Mapping[str, Answer]) -> Judgement | None:
        for decimals, share in _roundings(answer, own):
            if own:
                numbers = Rounded(self.run.graph, decimals, share)
                put_in = {
                    step: numbers.around(each.values, each.radius) for step, each in own.items()
                }
                bounded = run_graph(self.run.graph, self.run.givens, numbers, put_in)
                if holds(bounded.values[name], answer.values, answer.radius):
                    return self._follow(name, own)
            bounded = self.key.rounded(decimals, share)
            if holds(bounded.values[name], answer.values, answer.radius):
                words = _rounded_words(decimals)
                return Judgement(Verdict.ROUNDED, words, decimals=answer.decimals)
        return None

    # ---- mistakes

    def _by_one(self, name: str, answer: Answer) -> tuple[Causes, ...]:
        """The single mistakes that make this answer; of several, those that fit the others too."""
        if answer.bits < BITS_FOR_ONE:
            return ()
        found = [one for _, one in self.key.singles if self._makes(one, name)]
        return self._best(found)

    def _makes(self, one: Committed, name: str) -> bool:
        return (
            name in one.changed
            and name in one.values
            and self.answers[name].is_near(one.values[name])
        )

    def _best(self, found: list[Committed]) -> tuple[Causes, ...]:
        fits = [sum(self._fits(one, name) for name in self.answers) for one in found]
        best = [one for one, fit in zip(found, fits, strict=True) if fit == max(fits)]
        unique = {one.words: one.causes for one in reversed(best)}
        return tuple(reversed(unique.values()))

    def _fits(self, one: Committed, name: str) -> bool:
        answer = self.answers[name]
        value = one.values.get(name)
        return value is not None and answer.shape == value.shape and answer.is_near(value)

    def _named(
        self,
        name: str,
        answer: Answer,
        causes: tuple[Causes, ...],
        words: str = "",
    ) -> Judgement | None:
        if not causes:
            return None
        for step, before in self.judged.items():
            shared = {c.mistake.word for each in before.causes for c in each}
            if shared & {c.mistake.word for each in causes for c in each}:
                return Judgement(
                    Verdict.CARRIED, f"It has the same mistake as {{{step}}}.", first=step,
                    decimals=answer.decimals,
                )  # fmt: skip
        return self._fault(Verdict.MISTAKE, name, words, causes)

    def _named_after(
        self, name: str, answer: Answer, own: Mapping[str, Answer]
    ) -> Judgement | None:
        """Mistakes on top of own values or of rounding, a sign before this step, or two at once."""
        if answer.bits < BITS_FOR_ONE:
            return None
        if own:
            again = _Judging(Key(self._carried(own), self.key.mistakes), self.answers)
            if causes := again._by_one(name, answer):
                steps = ", ".join(f"{{{step}}}" for step in own)
                words = f"This is on top of what was wrong in {steps}."
                return self._named(name, answer, causes, words)
        if causes := self._by_one_rounded(name, answer):
            return self._named(name, answer, causes)
        if answer.bits < BITS_FOR_TWO or any(not self.judged[s].is_accepted for s in own):
            return None  # too little to go by, or one mistake too many
        if words := self._flipped(name, answer):
            return self._fault(Verdict.SLIP, name, words)
        pairs = [p.causes for p in self.key.pairs(name) if answer.is_near(p.values[name])]
        return self._named(name, answer, tuple(pairs))

    def _by_one_rounded(self, name: str, answer: Answer) -> tuple[Causes, ...]:
        if answer.decimals is None or answer.decimals < 2 or answer.bits < BITS_FOR_TWO:
            return ()
        near = [
            (float(np.abs(one.values[name] - answer.values).max(initial=0.0)), place)
            for place, (_, one) in enumerate(self.key.singles)
            if name in one.changed and name in one.values and one.values[name].shape == answer.shape
        ]
        found = []
        for distance, place in sorted(near)[:NEAREST]:
            _, one = self.key.singles[place]
            bounded, _ = replay(self.key.rounded(answer.decimals, 0.0), one.graph)
            if np.isfinite(distance) and holds(bounded[name], answer.values, answer.radius):
                found.append(one)
        return self._best(found[:1])

    # ---- slips, and what is left

    def _slipped(self, name: str, answer: Answer, own: Mapping[str, Answer]) -> Judgement | None:
        words = slip(answer, self.run.values[name])
        if not words and own:
            words = slip(answer, self._carried(own).values[name])
        if words.startswith(LINES):  # a whole line goes wrong by what lies before it
            words = " ".join(filter(None, (words, self._flipped(name, answer))))
        return self._fault(Verdict.SLIP, name, words) if words else None

    def _flipped(self, name: str, answer: Answer) -> str:
        """Which single sign before a step makes these numbers, in words."""
        right = {s for s, judgement in self.judged.items() if judgement.verdict == Verdict.RIGHT}
        flips = list(sign_slips(self.run, name, answer, right))
        places = " or of ".join(f"{{{step}}} ({place})" for step, place in flips[:MOST_FLIPS])
        return f"These numbers come out when one sign is wrong: that of {places}." if flips else ""

    def _wrong(self, name: str, answer: Answer, own: Mapping[str, Answer]) -> Judgement:
        wrong = [step for step in own if not self.judged[step].is_accepted]
        if wrong:
            words = f"It does not follow from {{{wrong[0]}}} either."
            return self._fault(Verdict.WRONG, name, words, first=wrong[0])
        if answer.bits >= BITS_FOR_TWO:
            for step in self.run.graph.step_names:
                if answer.is_near(self.run.values[step]):
                    words = f"These are the right numbers of {step}, which is another step."
                    return self._fault(Verdict.WRONG, name, words)
        words = "No known mistake gives these numbers."
        return self._fault(Verdict.WRONG, name, words)

    def _fault(
        self,
        verdict: Verdict,
        name: str,
        words: str,
        causes: tuple[Causes, ...] = (),
        first: str = "",
    ) -> Judgement:
        return Judgement(
            verdict, words, self._after(name), causes, self._differences(name), first or name,
            self.answers[name].decimals,
        )  # fmt: skip

    def _after(self, name: str) -> str:
        """The last step before this one that is right, in words."""
        before = self.run.graph.upstream(name)
        judged = [step for step in self.judged if step in before]
        if not judged or any(not self.judged[step].is_accepted for step in judged):
            return ""
        return f"{{{judged[-1]}}} is right, so it goes wrong after that."

    def _differences(self, name: str) -> tuple[Difference, ...]:
        answer, wanted = self.answers[name], self.run.values[name]
        if answer.shape != wanted.shape:
            return ()
        places = np.argwhere(answer.differs(wanted))
        return tuple(
            Difference(
                tuple(int(i) + 1 for i in place),
                float(answer.values[tuple(place)]),
                float(wanted[tuple(place)]),
            )
            for place in places
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} in a row" if len(shape) == 1 else written(shape) if shape else "one number"


def _is_coarse(answer: Answer, wanted: Array) -> bool:
    """The right numbers rounded to whole ones; numbers below 1 are nothing when so rounded."""
    off = float(np.abs(answer.values - wanted).max(initial=0.0, where=np.isfinite(wanted)))
    is_rounded = answer.decimals is None and np.array_equal(answer.values, np.round(wanted))
    return bool(is_rounded and off > TINY and np.abs(answer.values).max(initial=0.0) > 1)


def _is_trivial(values: Array, wanted: Array) -> bool:
    """Numbers with which the rest needs no work: all the same, or only a 1 in each row."""

    def plain(array: Array) -> bool:
        if array.size < 2:
            return False
        same = bool((array == array.flat[0]).all())
        units = np.isin(array, (0, 1)).all() and (np.sum(array == 1, axis=-1) <= 1).all()
        return same or bool(units)

    return plain(values) and not plain(np.asarray(wanted))


def _roundings(answer: Answer, own: Mapping[str, Answer]) -> list[tuple[int | None, float]]:
    """How the values before an answer may have been rounded."""
    if answer.noise:
        return [(None, FLOAT32)]
    if answer.decimals is None:
        return [(None, 0.0)] if any(each.radius.any() for each in own.values()) else []
    fewest = {max(2, answer.decimals), 2}  # nobody is asked to go on with fewer
    return [(decimals, 0.0) for decimals in sorted(fewest, reverse=True)]


def _rounded_words(decimals: int | None) -> str:
    if decimals is None:
        return "The difference is what single precision leaves."
    plural = "decimal" if decimals == 1 else "decimals"
    return f"The difference is what rounding the values before it to {decimals} {plural} makes."
