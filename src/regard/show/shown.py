"""The base of everything that shows itself: one Document, every format."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any

from regard._errors import OptionError, did_you_mean
from regard.show._format import NumberFormat
from regard.show.document import Document

DOCUMENT_WORDS = ("level", "only")
NUMBER_WORDS = ("style", "digits", "elide_above")
WORDS = (*DOCUMENT_WORDS, *NUMBER_WORDS)


class Shown(ABC):
    """Anything that has a Document, in every format.

    The keywords are the same in all of them: `level` ("result", "steps", "entries"), `only`
    (step names), `style` ("decimals", "significant", "numpy") and `digits`.
    """

    @abstractmethod
    def document(self, *, level: str = "steps", only: tuple[str, ...] = ()) -> Document:
        """What is to be shown, before any format."""

    def show(self, **how: Any) -> None:
        """Print it: in colour on a terminal, plain when piped."""
        from regard.show.text import print_text

        document, numbers = self._prepared(how)
        print_text(document, numbers, sys.stdout)

    def to_text(self, *, width: int | None = None, **how: Any) -> str:
        from regard.show.text import to_text

        return to_text(*self._prepared(how), width)

    def to_markdown(self, **how: Any) -> str:
        from regard.show.markdown import to_markdown

        return to_markdown(*self._prepared(how))

    def to_latex(self, *, new_page_per_answer: bool = False, figure: str = "", **how: Any) -> str:
        """A LaTeX document that compiles as it is; `figure` is the file with its picture, if any.

        The name is as the document is to say it, relative to where it will be compiled.
        """
        from regard.show.latex import to_latex

        return to_latex(
            *self._prepared(how), new_page_per_answer=new_page_per_answer, figure=figure
        )

    def to_html(self, **how: Any) -> str:
        """One self-contained page without script."""
        from regard.show.html import to_html

        return to_html(*self._prepared(how))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from regard.show.html import to_fragment

        prepared = self._prepared({})
        return {"text/html": to_fragment(*prepared), "text/plain": self.to_text(width=100)}

    def _prepared(self, how: dict[str, Any]) -> tuple[Document, Any]:
        for word in how:
            if word not in WORDS:
                raise OptionError(f"show: no option {word!r}: {did_you_mean(word, WORDS)}")
        written = {word: how[word] for word in NUMBER_WORDS if word in how}
        chosen = {word: how[word] for word in DOCUMENT_WORDS if word in how}
        if isinstance(chosen.get("only"), str):
            chosen["only"] = (chosen["only"],)
        return self.document(**chosen), NumberFormat(**written)
