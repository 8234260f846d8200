"""Which mistakes the numbers of an exercise show, which look alike, and which they cannot show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from regard.checking._asking import Asking
from regard.mistakes import Discrimination, discriminate, mistake_named
from regard.show.document import Block, Document, Heading, Paragraph, Table
from regard.show.shown import Shown


@dataclass(frozen=True, eq=False)
class ShownMistakes(Shown):
    """What `discriminate` says about each computation of an exercise."""

    asking: Asking

    @cached_property
    def found(self) -> dict[str, Discrimination]:
        """By variant; only those in which steps are asked for."""
        asked = {
            variant: self.asking.asked_in(variant) for variant in self.asking.exercise.variants
        }
        return {
            variant: discriminate(self.asking.trace(variant).run, steps)
            for variant, steps in asked.items()
            if steps
        }

    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        blocks: list[Block] = []
        for variant, found in self.found.items():
            asked = ", ".join(map(self.asking.called, self.asking.asked_in(variant)))
            if len(self.found) > 1:
                blocks.append(Heading(variant, 1))
            blocks.append(Paragraph((f"Asked: {asked}.",)))
            blocks += self._blocks(found)
        if not blocks:
            blocks.append(Paragraph(("It asks for no step whose numbers could show one.",)))
        return Document(f"Mistakes in: {self.asking.exercise.title}", tuple(blocks))

    @staticmethod
    def _blocks(found: Discrimination) -> Iterator[Block]:
        yield Heading(f"{len(found.seen)} mistakes change an answer", 2)
        rows = tuple(((word,), (mistake_named(word).title,)) for word in found.seen)
        yield Table((("name",), ("mistake",)), rows)
        if found.alike:
            yield Heading("These cannot be told apart", 2)
            for words in dict.fromkeys(found.alike):
                yield Paragraph((", ".join(words),))
        if found.unseen:
            yield Heading("These change no answer", 2)
            rows = tuple(((word,), (mistake_named(word).title,)) for word in found.unseen)
            yield Table((("name",), ("mistake",)), rows)

    def to_json(self) -> str:
        data: dict[str, Any] = {
            variant: {
                "asked": list(self.asking.asked_in(variant)),
                "seen": list(found.seen),
                "alike": [list(words) for words in found.alike],
                "unseen": list(found.unseen),
            }
            for variant, found in self.found.items()
        }
        return json.dumps(data, ensure_ascii=False, indent=1)
