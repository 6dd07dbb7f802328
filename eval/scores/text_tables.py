"""Tables as text: any analysis of a set of scores in words and numbers, for whatever shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..analyses.analysis import Analysis, Cell, Mark, Marks, Row
from ..analyses.registry import find_analysis
from .scores import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """One table in words and numbers.

    Attributes:
        name: File name without ending, and what ``conflictvla score --by`` calls it.
        title: Above the table.
        note: What its numbers are.
        header: Column heads.
        cells: Cells row by row, as many in each as heads.
        means: Rows of means that stand below them.
        labels: How many columns on the left are words.
        data: The same with full precision, as fractions and counts.
    """

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    labels: int
    data: pa.Table
    means: tuple[tuple[Cell, ...], ...] = ()

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells as text, with their intervals."""
        return tuple(tuple(map(str, row)) for row in self.cells)

    @property
    def marks(self) -> frozenset[Mark]:
        """Which marks its cells have."""
        return frozenset(cell.mark for row in self.cells for cell in row if cell.mark is not None)


def table_names(scores: Scores) -> tuple[str, ...]:
    """Names of the tables that these scores have; those about probes only where pairs are under one."""
    return tuple(analysis.slug for analysis in scores.analyses() if scores.probed.num_rows or not analysis.probes)


def text_table(scores: Scores, name: str) -> TextTable:
    """One table as text.

    Args:
        scores: What to show.
        name: One of ``table_names``; underscores and hyphens are the same.

    Raises:
        NotFoundError: If there is no such table.
        InvalidInputError: If it needs the supplementary measures and they were not taken.
    """
    analysis = find_analysis(name)
    data = scores.table(analysis.name)
    rows = data.to_pylist()
    return TextTable(
        name=analysis.slug,
        title=analysis.title,
        note=analysis.note,
        header=tuple(column.head for column in analysis.columns),
        cells=_cells(analysis, rows, analysis.marks(rows)),
        means=_cells(analysis, analysis.means(rows), {}),
        labels=len(analysis.labels),
        data=data,
    )


def _cells(analysis: Analysis, rows: Sequence[Row], marks: Marks) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        tuple(
            replace(column.cell(row), mark=marks.get((number, column.name)) if column.name else None)
            for column in analysis.columns
        )
        for number, row in enumerate(rows)
    )
