"""Formats of text tables for other programs: GitHub markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...toolkit.markdown import markdown_table
from ..analyses.analysis import Cell, Mark
from .latex_text import latex_text
from .text_tables import TextTable

MARKDOWN_MARKS = {
    Mark.BEST: "**{}**",
    Mark.HIGHEST: "{} ▲",
    Mark.LOWEST: "{} ▼",
    Mark.COLUMN_HIGHEST: "**{} ▲**",
    Mark.COLUMN_LOWEST: "**{} ▼**",
}
"""How markdown sets a value apart."""

LATEX_MARKS = {
    Mark.BEST: "\\underline{{{}}}",
    Mark.HIGHEST: "{}$^{{\\bigtriangleup}}$",
    Mark.LOWEST: "{}$^{{\\bigtriangledown}}$",
    Mark.COLUMN_HIGHEST: "\\textbf{{{}}}$^{{\\bigtriangleup}}$",
    Mark.COLUMN_LOWEST: "\\textbf{{{}}}$^{{\\bigtriangledown}}$",
}
"""How LaTeX does, with nothing but its own commands."""

LATEX_PACKAGES = ("booktabs",)
"""What a document that takes the tables in has to load."""


def marks_legend(table: TextTable, best: str = "Bold", extremes: str = "▲ ▼", column: str = "bold") -> str:
    """What the marks of a table mean, after a space; empty where it has none.

    Args:
        table: The table.
        best: How the best of the policies is set apart.
        extremes: How the highest and the lowest group of a policy are.
        column: How those of a whole column are.
    """
    if Mark.BEST in table.marks:
        return f" {best}: the best of the policies, and what is tied with it."
    if table.marks:
        return f" {extremes}: the policy's highest and lowest; {column}: the whole column's."
    return ""


def markdown(table: TextTable) -> str:
    """A table as GitHub markdown."""
    rows = [[_marked(cell, str(cell.value), MARKDOWN_MARKS) for cell in row] for row in (*table.cells, *table.means)]
    return markdown_table(table.header, rows, labels=table.labels) + "\n"


def latex(table: TextTable) -> str:
    """A table as a LaTeX tabular, which any LaTeX reads that has loaded ``LATEX_PACKAGES``."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    legend = marks_legend(table, "Underlined", "Triangle up, down")
    comment = " ".join(f"{table.title}. {table.note}{legend}".split())
    means = ["\\midrule", *map(_latex_row, table.means)] if table.means else []
    lines = [
        f"% {comment}",
        f"% Needs: {' '.join(f'\\usepackage{{{package}}}' for package in LATEX_PACKAGES)}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _latex_row(tuple(Cell(value=head) for head in table.header)),
        "\\midrule",
        *map(_latex_row, table.cells),
        *means,
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: tuple[Cell, ...]) -> str:
    cells = " & ".join(_marked(cell, latex_text(cell.value), LATEX_MARKS, latex_text) for cell in row)
    # What ends the line above, \\ or a rule, would take a bracket or an asterisk for its own.
    return f"{'{}' if cells.startswith(('[', '*')) else ''}{cells} \\\\"


def _marked(cell: Cell, value: str, marks: Mapping[Mark, str], written: Callable[[str], str] = str) -> str:
    """A cell with its mark and interval, both in the form of one format."""
    if cell.mark is not None:
        value = marks[cell.mark].format(value)
    return f"{value} ({written(cell.interval)})" if cell.interval else value
