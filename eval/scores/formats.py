"""Formats of text tables for other programs: GitHub markdown and LaTeX."""

from __future__ import annotations

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


def code_span(text: str, most: int = 200) -> str:
    """Untrusted text as a markdown code span of one line, cut short: it stays text, whatever it holds."""
    line = " ".join(text.split())[:most]
    return "`" + line.replace("`", "'").replace("|", "¦") + "`" if line else ""


def markdown(table: TextTable) -> str:
    """A table as GitHub markdown."""
    lines = [table.header, ["---"] * table.labels + ["---:"] * (len(table.header) - table.labels), *table.rows]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines)


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
