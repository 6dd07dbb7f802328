"""Formats of text tables for other programs: GitHub markdown and LaTeX."""

from __future__ import annotations

from ...toolkit.markdown import markdown_table
from .text_tables import TextTable

LATEX = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "Δ": "$\\Delta$",
    "ρ": "$\\rho$",
    "³": "$^3$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "−": "$-$",
    "–": "--",
    "<": "$<$",
}
"""How LaTeX writes what it would otherwise misread."""


def markdown(table: TextTable) -> str:
    """A table as GitHub markdown."""
    return markdown_table(table.header, table.rows, labels=table.labels) + "\n"


def latex(table: TextTable) -> str:
    """A table as a LaTeX tabular; needs the package booktabs."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    lines = [
        f"% {table.title}. {table.note}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(map(_latex_text, table.header)) + " \\\\",
        "\\midrule",
        *(" & ".join(map(_latex_text, row)) + " \\\\" for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_text(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
