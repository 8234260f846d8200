"""A Document as a LaTeX document that pdflatex compiles, and mathematics as LaTeX."""

from __future__ import annotations

import re

from regard.graph.notation import Math
from regard.show import _tree
from regard.show._boxes import columns_of
from regard.show._format import NumberFormat
from regard.show._plain import Plain
from regard.show._rows import Row, rows_of
from regard.show._tex import Tex, escape, math_to_latex
from regard.show.document import (
    Block,
    Code,
    Display,
    Document,
    Heading,
    Note,
    Paragraph,
    Picture,
    Prose,
    Table,
    formulas_of,
    is_formula,
)

__all__ = ["math_to_latex", "to_latex"]

LINE = 74  # about how many characters of a formula fit on a line of the page
CONTINUED = r" \quad {}"
WIDEST_COLUMN = 60
LONG_WORD = 40  # letters after which even a word of code may break
LONG_TABLE = 25  # rows from which a table may break across pages

PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{lmodern}
\usepackage{textcomp}
\usepackage[a4paper,margin=25mm]{geometry}
\usepackage{amsmath,amssymb}
\usepackage{graphicx,booktabs,longtable,array}
\setlength{\parindent}{0pt}
\setlength{\parskip}{6pt plus 2pt}
\setlength{\arraycolsep}{4pt}
\setlength{\emergencystretch}{4em}
\raggedbottom
\providecommand{\lt}{<}
\providecommand{\gt}{>}
% A formula at its own size, or shrunk to the room there is.
\newsavebox{\formula}
\newcommand{\fitted}[1]{\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}%
  \else\usebox{\formula}\fi}
% One line of a displayed formula; the lines of one formula keep together if they can.
\makeatletter
\newenvironment{steps}%
  {\@itempenalty=300\@beginparpenalty=0\begin{list}{}{\setlength{\leftmargin}{1.5em}\setlength{\rightmargin}{0pt}%
    \setlength{\itemsep}{5pt}\setlength{\parsep}{0pt}\setlength{\topsep}{4pt}}\raggedright}%
  {\end{list}}
% A new page unless so many lines still fit: a heading stays with the formula below it.
\newcommand{\room}[1]{\par\dimen@\pagegoal\advance\dimen@-\pagetotal
  \ifdim\pagetotal>0pt\ifdim#1\baselineskip>\dimen@\newpage\fi\fi}
\makeatother
\newcommand{\step}[1]{\item[]\fitted{#1}}
\newcommand{\remark}[1]{{\small\itshape #1\par}}
\newenvironment{note}%
  {\begin{list}{}{\setlength{\leftmargin}{1.5em}\setlength{\topsep}{4pt}}%
    \item[]\small\textbf{Note.}~}%
  {\end{list}}
\newenvironment{code}%
  {\begin{list}{}{\setlength{\leftmargin}{3em}\setlength{\itemindent}{-1.5em}%
    \setlength{\itemsep}{0pt}\setlength{\parsep}{0pt}\setlength{\topsep}{4pt}}%
    \raggedright\small\ttfamily}%
  {\end{list}}
"""


def to_latex(
    document: Document,
    numbers: NumberFormat,
    *,
    new_page_per_answer: bool = False,
    figure: str = "",
) -> str:
    """A complete document; with `new_page_per_answer` each level-1 heading opens a page.

    `figure` is the file that holds its picture; without one the caption alone is shown.
    """
    body: list[str] = []
    for block in document.blocks:
        if body and new_page_per_answer and isinstance(block, Heading) and block.level == 1:
            body.append(r"\clearpage")
        if figure and isinstance(block, Picture):
            body.append(_figure(block, figure))
        else:
            body.append(_block(block, numbers))
    if document.title:
        title = rf"{{\LARGE\bfseries\raggedright {escape(document.title)}\par}}\medskip"
        body.insert(0, title)
    return "\n".join([PREAMBLE, r"\begin{document}", *body, r"\end{document}", ""])


def _block(block: Block, numbers: NumberFormat) -> str:
    match block:
        case Heading(text, level):
            command = {1: "section", 2: "subsection"}.get(level, "subsubsection")
            return rf"\room{{{max(15 - 2 * level, 6)}}}\{command}*{{{escape(text)}}}"
        case Paragraph(prose):
            return _paragraph(prose, numbers)
        case Note(prose):
            return f"\\begin{{note}}\n{_paragraph(prose, numbers)}\\end{{note}}"
        case Display(math):
            return _display(math, numbers)
        case Table():
            return _table(block, numbers)
        case Code(_, text):
            return _code(text)
        case Picture(plot):
            words = f"Figure, to be saved as a file of its own: {plot.caption}"
            return _block(Note((words,)), numbers)


def _figure(picture: Picture, file: str) -> str:
    width = r"\includegraphics[width=\linewidth]"
    return f"\\par\\medskip\n{width}{{{file}}}\n\n\\remark{{{escape(picture.plot.caption)}}}\n"


def _paragraph(prose: Prose, numbers: NumberFormat) -> str:
    text, formulas = _prose(prose, numbers), formulas_of(prose)
    if any(True for formula in formulas for _ in _tree.matrices(formula)):
        text = rf"{{\raggedright {text}\par}}"  # nothing else makes a line end before a matrix
    return text + "\n" + _remark(formulas, numbers)


def _prose(prose: Prose, numbers: NumberFormat) -> str:
    return "".join(
        escape(part) if isinstance(part, str) else _inline(part, numbers) for part in prose
    )


def _inline(math: Math, numbers: NumberFormat) -> str:
    text = math_to_latex(math, numbers)
    is_tall = any(True for _ in _tree.matrices(math))
    return rf"\fitted{{{text}}}" if is_tall else f"${text}$"


def _remark(formulas: tuple[Math, ...], numbers: NumberFormat) -> str:
    phrase = _tree.left_out(formulas, numbers)
    return rf"\remark{{({escape(phrase)})}}" + "\n" if phrase else ""


def _display(math: Math, numbers: NumberFormat) -> str:
    first, *others = rows_of(math, Tex(numbers), " = ", LINE)
    # Continued rows start under the first "=", or indented by a little after a long left side.
    lead = first.lead if first.has_equals else ""
    lines = [_step(first, lead, is_first=True)]
    lines += [_step(row, lead or r"\quad", is_first=False) for row in others]
    phrase = _tree.left_out((math,), numbers)
    lines += [rf"\item[]\remark{{({escape(phrase)})}}"] if phrase else []
    return "\n".join([r"\begin{steps}", *lines, r"\end{steps}"]) + "\n"


def _step(row: Row, lead: str, is_first: bool) -> str:
    margin = "" if is_first else rf"\hphantom{{{lead}}}"
    if row.has_equals:
        return rf"\step{{{row.lead}{margin} = {row.body}}}"
    return rf"\step{{{row.lead}{margin}{'' if is_first else CONTINUED}{row.body}}}"


def _table(table: Table, numbers: NumberFormat) -> str:
    head = _table_row([rf"\textbf{{{_prose(cell, numbers)}}}" for cell in table.header])
    rows = [_table_row([_prose(cell, numbers) for cell in row]) for row in table.rows]
    columns = _columns(table, numbers)
    if len(rows) <= LONG_TABLE:
        return _fitted_table(columns or _natural(table), head, rows)
    if columns:
        lines = [rf"\begin{{longtable}}{{{columns}}}", r"\toprule", head, r"\midrule", r"\endhead"]
        return "\n".join([*lines, *rows, r"\bottomrule", r"\end{longtable}"])
    # Too wide for its columns and too long for a page: shrunk, so many rows at a time.
    parts = [rows[start : start + LONG_TABLE] for start in range(0, len(rows), LONG_TABLE)]
    return "\n".join(_fitted_table(_natural(table), head, part) for part in parts)


def _table_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _fitted_table(columns: str, head: str, rows: list[str]) -> str:
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows]
    tabular = "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
    return f"\\par\\medskip\n\\fitted{{\\text{{{tabular}}}}}\n\\par\\medskip\n"


def _columns(table: Table, numbers: NumberFormat) -> str:
    """Column types that fit the line: as they come, else shares of it; "" if there are none."""
    plain = Plain(numbers, inline=True)

    def text(prose: Prose) -> str:
        return "".join(part if isinstance(part, str) else plain.text(part) for part in prose)

    texts = [
        [text(cell) for cell in column] for column in zip(table.header, *table.rows, strict=True)
    ]
    widths = [max(map(columns_of, column)) for column in texts]
    if sum(widths) + 2 * len(widths) <= LINE:
        return _natural(table)
    capped = [min(width, WIDEST_COLUMN) for width in widths]
    shares = [0.9 * width / sum(capped) for width in capped]
    for share, column in zip(shares, texts, strict=True):
        if share * LINE < max(columns_of(word) for cell in column for word in cell.split() or [""]):
            return ""
    return "".join(
        rf">{{\raggedright\arraybackslash}}p{{{share:.3f}\linewidth}}" for share in shares
    )


def _natural(table: Table) -> str:
    columns = list(zip(*table.rows, strict=True)) or [() for _ in table.header]
    return "".join("r" if column and all(map(is_formula, column)) else "l" for column in columns)


def _code(text: str) -> str:
    lines = [r"\item[]" + _code_line(line) for line in text.rstrip("\n").split("\n")]
    return "\n".join([r"\begin{code}", *lines, r"\end{code}"])


def _code_line(line: str) -> str:
    """Indentation as it is; a line too long for the page may break behind any punctuation."""
    bare = line.expandtabs(4).lstrip(" ")
    depth = len(line.expandtabs(4)) - len(bare)
    pieces = re.findall(rf"\w{{1,{LONG_WORD}}}|.", bare)
    text = "".join(_code_piece(piece) for piece in pieces)
    return rf"\hspace*{{{0.525 * depth:.3f}em}}{text}" if depth else f"{{}}{text}"


def _code_piece(piece: str) -> str:
    if piece == " ":
        return r"\ "
    is_name = piece.isidentifier() and len(piece) < LONG_WORD
    return escape(piece, is_code=True) + ("" if is_name else r"\allowbreak{}")
