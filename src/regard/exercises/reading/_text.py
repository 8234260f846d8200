"""The text as the readers see it: same offsets, plainer characters."""

from __future__ import annotations

import re
import unicodedata

_PLAINER = str.maketrans(
    {"−": "-", "–": "-", "‐": "-", "\r": " "}
    | dict.fromkeys("\u00a0\u2002\u2003\u2005\u2007\u2008\u2009\u200a\u202f\u3000", " ")
    | dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
)
# Mathematical alphanumerics: bold, italic or script letters that are characters of their own.
_STYLED_LETTER = re.compile("[\U0001d400-\U0001d7ff]")
# Session prompts, quotation marks of e-mail, code fences, and Markdown's escape before "_".
_PROMPT = re.compile(
    r"^[ \t]*(?:In ?\[\d*\]:|>>>|\.\.\.(?=[ \t])|>(?=[ \t]))|\\(?=_)|^[ \t]*`{3,}[^`\n]*$",
    re.MULTILINE,
)
# A single letter after an array is a factor, unless an equals sign makes it the next name.
_NOT_A_NAME_FOR_THE_NEXT = r"(?![\w^{}()\\]{0,40}\s*(?:[=:]|&=|\\in\b))"
# What shows that an array is only one operand of a longer formula.
OPERATOR_AFTER = re.compile(
    r"[(\[]|\s*(?:\\[,;:!]|~|\s)*"
    r"(?:\\begin\{[pbBvV]?(?:small)?(?:matrix|array)|\\left(?![a-z])"
    r"|\\(?:cdot|times|odot|otimes|oplus|frac|sqrt|pm|circ)\b)"
    r"|[ \t]*(?:\\[,;:!]|~|[ \t])*"
    r"(?:[+*/^@](?!\*)|-(?!--|\s*[A-Za-z]{2})"
    rf"|\\(?:math|bold)\w+\{{{_NOT_A_NAME_FOR_THE_NEXT}"
    rf"|(?!a\s)[A-Za-z](?![A-Za-z]){_NOT_A_NAME_FOR_THE_NEXT})"
)
TRANSPOSE = re.compile(
    r"[ \t]*(?:\.?'(?!\w)|ᵀ|\^[ \t]*(?:"
    r"\{[ \t]*(?:\\top|\\intercal|\\prime|⊤|[Tt]|\\(?:mathsf|mathrm|text|rm)[ {]*T\}?)[ \t]*\}"
    r"|(?:\\top\b|\\intercal\b|\\prime\b|⊤|[Tt](?![A-Za-z])|\\(?:mathsf|mathrm|text)[ {]*T\}?)))"
)
# What may stand between an equals sign and the array: delimiters of formulas and of code.
SKIPPED = re.compile(
    r"(?:[\s$*`&]|\\\[|\\\((?!\\)|\\displaystyle\b|\\begin\{(?:equation|align|aligned|gather|split)\*?\})*"
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def plain(text: str) -> str:
    """The same length, with odd minus signs, spaces, styled letters and prompts made plain."""
    styled = _STYLED_LETTER.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
    return _PROMPT.sub(lambda prompt: blank(prompt[0]), styled.translate(_PLAINER))


def blank(text: str) -> str:
    """Spaces in place of everything but the line ends."""
    return re.sub(r"[^\n]", " ", text)


def line_of(text: str, at: int) -> int:
    """The line, counted from 1, of an offset."""
    return text.count("\n", 0, at) + 1


def quoted(text: str, longest: int = 60) -> str:
    """A piece of text on one line between quotation marks, cut when it is long."""
    flat = " ".join(text.split())
    return f'"{flat}"' if len(flat) <= longest else f'"{flat[: longest - 1].rstrip()}…"'


def matching(text: str, at: int) -> int | None:
    """The offset of the bracket that closes the one at ``at``, or None."""
    awaited: list[str] = []
    for place in range(at, len(text)):
        sign = text[place]
        if sign in _CLOSING:
            awaited.append(_CLOSING[sign])
        elif sign in ")]}" and (not awaited or sign != awaited.pop()):
            return None
        if not awaited:
            return place
    return None


def in_math(text: str, at: int) -> bool:
    """Whether an offset lies between dollar signs, or just after a LaTeX delimiter."""
    paragraph = text[max(text.rfind("\n\n", 0, at), 0) : at]
    opened = max(paragraph.rfind(r"\["), paragraph.rfind(r"\("))
    closed = max(paragraph.rfind(r"\]"), paragraph.rfind(r"\)"))
    return paragraph.replace("$$", "$").count("$") % 2 == 1 or opened > closed
