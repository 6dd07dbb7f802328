"""What an analysis is: one table of the scored pairs, and how it is shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from ...toolkit.errors import InvalidInputError

Row = Mapping[str, Any]
"""One row of an analysis's table, by column."""


NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

RESERVED_NAMES = frozenset(
    {
        "controls",
        "deviations",
        "left_out",
        "left_out_by_field",
        "pairs",
        "pairs_refused",
        "pairs_scored",
        "probed",
        "provenance",
        "references",
        "refusals",
        "refusals_by_field",
        "refused_controls",
        "repeats",
        "scores_version",
        "statistics",
        "tables",
        "trajectories",
    }
)
"""What else the scores file holds beside the analyses' tables."""


class Mark(StrEnum):
    """What sets a value apart from the others of its column."""

    BEST = "best"
    HIGHEST = "highest"
    LOWEST = "lowest"
    COLUMN_HIGHEST = "column-highest"
    COLUMN_LOWEST = "column-lowest"


Marks = Mapping[tuple[int, str], Mark]
"""The marked values of a table, by number of the row and name of the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as text.

    Attributes:
        value: Such as ``71.1``, or a dash where it is undefined.
        interval: Its 95% interval in the same form, such as ``68.2–74.0``; empty without one.
        short_interval: The interval for narrow places, such as ``68–74``; empty without one.
        mark: What sets it apart from the others of its column, or None.
    """

    value: str
    interval: str = ""
    short_interval: str = ""
    mark: Mark | None = None

    def __str__(self) -> str:
        return f"{self.value} ({self.interval})" if self.interval else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table as text.

    Attributes:
        head: Above the column.
        cell: The column's text in a row.
        name: Which column of the data it shows; None where it shows several.
    """

    head: str
    cell: Callable[[Row], Cell]
    name: str | None = None


def no_marks(_rows: Sequence[Row]) -> Marks:
    """Nothing is set apart."""
    return {}


def no_means(_rows: Sequence[Row]) -> Sequence[Row]:
    """Nothing stands below the rows."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One table of the scored pairs. Listed in the registry, it is in scores, scores file, text tables and report.

    Attributes:
        name: What ``Scores.table`` and the scores file call it, such as ``noise_floor``.
        title: Above the table.
        note: What its numbers are.
        compute: Makes the table of the ``ScoredPairs``, then of the tables of the analyses that ``uses`` names.
        labels: Columns of words, on the left.
        numbers: Columns of numbers.
        uses: Names of analyses whose tables ``compute`` needs.
        supplementary: Whether it needs the supplementary and behaviour metrics.
        probes: Whether it is about language and visual probes, and so listed only where pairs are under one.
        controls: Whether it is about controls, and so made only where pairs have one.
        on_page: Whether the report shows it; not where it has a row for every base task.
        marks: Which values of its rows are set apart, such as the best of each column.
        means: Rows of means that stand below its rows where it is shown; the data do not have them.

    Raises:
        InvalidInputError: The name cannot be a key of the scores file and the name of a file.
    """

    name: str
    title: str
    note: str
    compute: Callable[..., pa.Table]
    labels: tuple[Column, ...]
    numbers: tuple[Column, ...]
    uses: tuple[str, ...] = ()
    supplementary: bool = False
    probes: bool = False
    controls: bool = False
    on_page: bool = True
    marks: Callable[[Sequence[Row]], Marks] = no_marks
    means: Callable[[Sequence[Row]], Sequence[Row]] = no_means

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name in RESERVED_NAMES:
            raise InvalidInputError(
                f"an analysis cannot be called '{self.name}': use small letters, digits and underscores, and none of "
                f"{', '.join(sorted(RESERVED_NAMES))}"
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, from left to right."""
        return (*self.labels, *self.numbers)

    @property
    def slug(self) -> str:
        """The name on the command line and as a file's name, such as ``noise-floor``."""
        return self.name.replace("_", "-")
