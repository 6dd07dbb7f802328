"""Markdown for cards, reviews and tables: untrusted text stays text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, labels: int = 1) -> str:
    """A GitHub table, one line for each row.

    Args:
        header: Column heads.
        rows: Cells, as many in each as heads.
        labels: How many columns on the left are words; the others are numbers and stand right.

    >>> print(markdown_table(["suite", "cases"], [["libero_goal", 12]]))
    | suite | cases |
    | --- | ---: |
    | libero_goal | 12 |
    """
    lines = [header, ["---"] * labels + ["---:"] * (len(header) - labels), *rows]
    return "\n".join("| " + " | ".join(map(_one_cell, line)) + " |" for line in lines)


def _one_cell(cell: object) -> str:
    """Text that neither ends its cell nor its line."""
    return " ".join(str(cell).split()).replace("|", "\\|")


def code_span(text: str, most: int = 200) -> str:
    """Untrusted text as a code span of one line, cut short: it stays text, whatever it holds."""
    line = " ".join(text.split())[:most]
    return "`" + line.replace("`", "'").replace("|", "¦") + "`" if line else ""
