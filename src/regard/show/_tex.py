"""Mathematics and words in LaTeX that pdflatex, MathJax and KaTeX all read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.graph.notation import (
    Call,
    Equation,
    Fraction,
    Math,
    Matrix,
    Negative,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Symbol,
    Transposed,
    Words,
)
from regard.show import _tree
from regard.show._format import Cell, Grid, NumberFormat, format_matrix, format_number
from regard.show._symbols import GREEK, Token, tokens
from regard.show._tree import Level

SIGNS = {"": " ", "·": r" \cdot ", "⊙": r" \odot ", "×": r" \times "}
FUNCTIONS = {"exp", "tanh", "max", "min", "log", "ln", "sin", "cos", "tan", "det"}
ELLIPSES = {"…": r"\cdots", "⋮": r"\vdots", "⋱": r"\ddots"}
SPECIALS = {
    "nan": r"\mathrm{NaN}", "infinity": r"\infty", "minus-infinity": r"-\infty",
    "masked": r"\blacksquare",
}  # fmt: skip

# Signs in prose that need mathematics; anything else outside Latin is named by its code point.
MATHEMATICAL = {
    "−": "-", "·": r"\cdot", "×": r"\times", "√": r"\surd", "∞": r"\infty", "≤": r"\le",
    "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "→": r"\to", "←": r"\leftarrow", "⇒": r"\Rightarrow",
    "∂": r"\partial", "∑": r"\sum", "Σ": r"\Sigma", "∏": r"\prod", "∈": r"\in", "∉": r"\notin",
    "∀": r"\forall", "∃": r"\exists", "⊙": r"\odot", "⊗": r"\otimes", "⊤": r"\top", "⊥": r"\perp",
    "∝": r"\propto", "∥": r"\parallel", "∼": r"\sim", "≡": r"\equiv", "≪": r"\ll", "≫": r"\gg",
    "ℝ": r"\mathbb{R}", "ℕ": r"\mathbb{N}", "ℤ": r"\mathbb{Z}", "∇": r"\nabla", "∫": r"\int",
    "⟨": r"\langle", "⟩": r"\rangle", "∘": r"\circ", "⋯": r"\cdots", "⋮": r"\vdots", "⋱": r"\ddots",
    "■": r"\blacksquare", "✓": r"\checkmark", "ᵀ": r"^{\top}", "↦": r"\mapsto", "∅": r"\emptyset",
}  # fmt: skip
ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "-": "-{}",
}  # fmt: skip
PUNCTUATION = {
    "\xa0": "~", "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''",
    "…": r"\dots{}", "€": r"\texteuro{}", "•": r"\textbullet{}", "„": ",,",
}  # fmt: skip
IN_PROSE = {"'": "'", "-": "-"}  # an apostrophe and a hyphen may look their best
IN_WORDS = MATHEMATICAL | {letter: "\\" + name for letter, name in GREEK.items()} | {
    "<": r"\lt", ">": r"\gt", "|": r"\vert", "_": r"\_", "&": r"\&", "%": r"\%", "#": r"\#",
    "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\sim", "^": r"\wedge", "\\": r"\backslash",
}  # fmt: skip
ABSENT = set("\xadĦħĸĿŀŉŦŧſ")  # what the T1 fonts lack up to U+017F


def escape(text: str, *, is_code: bool = False) -> str:
    """Words as LaTeX; every character compiles, with a code point for what has no glyph."""
    return "".join(_escaped(character, is_code) for character in text)


def _escaped(character: str, is_code: bool) -> str:
    if not is_code and character in IN_PROSE:
        return IN_PROSE[character]
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isascii():
        return character if character.isprintable() else " "
    if character in MATHEMATICAL:
        return rf"\ensuremath{{{MATHEMATICAL[character]}}}"
    if character in GREEK:
        return rf"\ensuremath{{\{GREEK[character]}}}"
    return _beyond_ascii(character)


def _beyond_ascii(character: str) -> str:
    if "\xa1" <= character <= "\u017f" and character not in ABSENT:
        return character
    if character in PUNCTUATION:
        return PUNCTUATION[character]
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf", "Cc") or category[0] == "Z":
        return " " if category[0] == "Z" else ""
    # Raised, lowered and wide letters are ordinary letters in another shape.
    plain = unicodedata.normalize("NFKD", character)
    if plain == character:
        return rf"[U+{ord(character):04X}]"
    text = escape("".join(part for part in plain if not unicodedata.combining(part)))
    shape = unicodedata.decomposition(character).partition(" ")[0]
    command = {"<super>": r"\textsuperscript", "<sub>": r"\textsubscript"}.get(shape, "")
    return rf"{command}{{{text}}}"


def math_to_latex(math: Math, numbers: NumberFormat) -> str:
    """A formula without its dollar signs."""
    return Tex(numbers).write(math)


@dataclass(frozen=True)
class Tex:
    """Writes mathematics as LaTeX; `flat` in exponents, where fraction bars grow too small."""

    numbers: NumberFormat
    flat: bool = False

    def write(self, math: Math) -> str:
        match math:
            case Symbol() | Words():
                return symbol_tex(math) if isinstance(math, Symbol) else words_tex(math.text)
            case Number(value, rounding):
                return self.cell(format_number(value, self.numbers, rounding))
            case Matrix(values, rounding, hidden):
                return self.grid(format_matrix(values, self.numbers, rounding, hidden))
            case Product(factors):
                return "".join(self.factors(math, factors))
            case Sum() | Negative():
                return "".join(self.terms(math))
            case Fraction():
                return "".join(self.quotient(math))
            case Root(body):
                return rf"\sqrt{{{self.write(body)}}}"
            case Power(base, exponent):
                return f"{self._tight(base)}^{{{replace(self, flat=True).write(exponent)}}}"
            case Transposed(body):
                return self._transposed(body)
            case Call():
                return self._call(math)
            case Equation(sides):
                return " = ".join(self.write(side) for side in sides)

    def level(self, math: Math) -> Level:
        return _tree.level(math, self.numbers, flat=self.flat)

    def _loose(self, math: Math, needed: Level) -> str:
        text = self.write(math)
        return _parenthesised(text) if self.level(math) < needed else text

    def _tight(self, math: Math) -> str:
        """As the base of a power: one group for LaTeX."""
        return f"{{{self._loose(math, Level.ATOM)}}}"

    def factors(self, whole: Product, factors: Sequence[Math]) -> list[str]:
        """Each factor, every one but the first with the sign before it."""
        pieces: list[str] = []
        for place, factor in enumerate(factors):
            text = self.write(factor)
            if _tree.factor_in_parentheses(factor, whole, self.numbers, flat=self.flat):
                text = _parenthesised(text)
            if place:
                text = self._joint(factors[place - 1], factor, whole.sign) + text
            pieces.append(text)
        return pieces

    def _joint(self, left: Math, right: Math, sign: str) -> str:
        if isinstance(left, Words) or isinstance(right, Words):
            return "~"
        return SIGNS[_tree.joint(left, right, sign, self.numbers, flat=self.flat)]

    def terms(self, math: Sum | Negative) -> list[str]:
        """Each term with its sign before it."""
        pieces: list[str] = []
        for is_negative, term in _tree.signed_terms(math):
            is_first = not pieces
            text = self.write(term)
            if _tree.term_in_parentheses(
                term, is_first and not is_negative, self.numbers, flat=self.flat
            ):
                text = _parenthesised(text)
            sign = ("-" if is_negative else "") if is_first else (" - " if is_negative else " + ")
            pieces.append(sign + text)
        return pieces

    def quotient(self, whole: Fraction) -> list[str]:
        """The top and, with the sign before it, the bottom; one piece where a bar is drawn."""
        if not (self.flat or _tree.is_slashed(whole)):
            return [rf"\frac{{{self.write(whole.top)}}}{{{self.write(whole.bottom)}}}"]
        above, below = _tree.needs_around(whole)
        slash = "/" if self.flat else " / "
        return [self._loose(whole.top, above), slash + self._loose(whole.bottom, below)]

    def _transposed(self, body: Math) -> str:
        if isinstance(body, Symbol):
            return symbol_tex(body, r"\top")
        return rf"{self._tight(body)}^{{\top}}"

    def _call(self, call: Call) -> str:
        arguments = ", ".join(self.write(argument) for argument in call.arguments)
        sub = f"_{{{_index(call.sub)}}}" if call.sub else ""
        return _function(call.function) + sub + _parenthesised(arguments)

    def cell(self, cell: Cell) -> str:
        """A written number: -0.4, 1.7 · 10^-62, an exact expression, NaN."""
        if cell.expression is not None:
            return self.write(cell.expression)
        if cell.kind == "ellipsis":
            return ELLIPSES[cell.digits]
        if cell.verbatim:
            sign = "-" if cell.kind == "minus-infinity" else ""
            return rf"\texttt{{{sign}{cell.digits}}}"
        if cell.kind in SPECIALS:
            return SPECIALS[cell.kind]
        return _number(cell)

    def grid(self, grid: Grid) -> str:
        rows = [[self.cell(cell) for cell in row] for row in grid.rows]
        if grid.is_vector:
            return _parenthesised(", ".join(cell for row in rows for cell in row))
        # Fractions above each other would touch at the usual distance.
        end = r" \\[6pt] " if any(r"\frac" in cell for row in rows for cell in row) else r" \\ "
        body = end.join(" & ".join(row) for row in rows)
        alignment = "r" * max(len(grid.columns), 1)
        return rf"\left[\begin{{array}}{{{alignment}}} {body} \end{{array}}\right]"


def _parenthesised(text: str) -> str:
    return rf"\left({text}\right)" if r"\begin{" in text or r"\frac" in text else f"({text})"


def _number(cell: Cell) -> str:
    text = cell.digits
    if cell.kind == "truth":
        return rf"\mathrm{{{text}}}"
    if cell.exponent is not None:
        times = "" if cell.unsigned == "1" else text + r" \cdot "
        text = f"{times}10^{{{cell.exponent}}}"
    if not cell.proven and cell.kind == "number":
        text += r"\mathrm{?}"
    return rf"\lvert x \rvert \lt {text}" if cell.kind == "bound" else text


def _function(name: str) -> str:
    if name in FUNCTIONS:
        return "\\" + name
    return "\\" + GREEK[name] if name in GREEK else rf"\operatorname{{{escape(name)}}}"


def symbol_tex(symbol: Symbol, beside: str = "") -> str:
    """A symbol with its index and its superscript; `beside` joins the superscript."""
    text = (r"\mathrm{d}" if symbol.hat == "d" else escape(symbol.hat)) + _index(symbol.base)
    if symbol.sub:
        text += f"_{{{_index(symbol.sub)}}}"
    sup = _index(symbol.sup) + beside
    return f"{text}^{{{sup}}}" if sup else text


def _index(name: str) -> str:
    if " " in name:
        return words_tex(name)
    return "".join(_token(token) for token in tokens(name))


def _token(token: Token) -> str:
    if token.kind == "word":
        return rf"\mathrm{{{escape(token.text)}}}"
    if token.text in GREEK:
        return f"\\{GREEK[token.text]} "
    if token.text in MATHEMATICAL:
        return f"{MATHEMATICAL[token.text]} "
    if token.text.isascii() and token.text not in ESCAPES:
        return token.text
    return "-" if token.text == "-" else rf"\text{{{escape(token.text)}}}"


def words_tex(text: str) -> str:
    r"""Words within a formula; signs stand between the \text, where every reader knows them."""
    runs = re.findall(f"[{re.escape(''.join(IN_WORDS))}]|[^{re.escape(''.join(IN_WORDS))}]+", text)
    return "".join(
        f"{{{IN_WORDS[run]}}}" if run in IN_WORDS else rf"\text{{{escape(run)}}}" for run in runs
    )
