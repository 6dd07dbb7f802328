"""The leaderboard's columns: what each one shows, and which way is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from ...toolkit.counting import noun_for
from ...toolkit.errors import NotFoundError, choices
from ..analyses.analysis import Cell
from ..analyses.columns import arrow, percent, signed
from ..measures import MEASURES
from ..submissions.results import Entry, ResultRow


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardColumn:
    """One column that entries can be sorted by.

    Attributes:
        name: On the command line and in JSON.
        head: Above the column.
        title: What it is, in a line.
        highest_first: Which end is best, and so comes first.
        number: By what it is sorted; NaN comes last.
        cell: Its text.
    """

    name: str
    head: str
    title: str
    highest_first: bool
    number: Callable[[Entry, ResultRow], float]
    cell: Callable[[Entry, ResultRow], Cell]

    def order(self, entry: Entry, row: ResultRow) -> float:
        """What sorts the best first."""
        value = self.number(entry, row)
        if math.isnan(value):
            return math.inf
        return -value if self.highest_first else value


def interval_cell(row: ResultRow, name: str) -> Cell:
    """A figure of a row in percent, with its interval."""
    value, low, high = astuple(row.value(name))
    shown = signed if name == "premise_effect" else percent
    interval = "" if math.isnan(low) else f"{_whole(low)}–{_whole(high)}"
    return Cell(value=shown(value), interval=interval, short_interval=interval)


def _whole(fraction: float) -> str:
    return percent(fraction, 0).replace("-", "−")


def _figure(name: str, head: str, title: str, *, highest_first: bool) -> BoardColumn:
    return BoardColumn(
        name=name,
        head=head,
        title=title,
        highest_first=highest_first,
        number=lambda _, row: row.value(name).value,
        cell=lambda _, row: interval_cell(row, name),
    )


def _counted(name: str, head: str, title: str, count: Callable[[Entry, ResultRow], float]) -> BoardColumn:
    return BoardColumn(
        name=name,
        head=head,
        title=title,
        highest_first=True,
        number=count,
        cell=lambda entry, row: Cell(value=f"{count(entry, row):,.0f}"),
    )


RESPONSE = _figure(
    "response",
    "Response ↑",
    "mean of 1 - max(y-, persistence) over the pairs whose reference rollout succeeds; entries are ranked by it",
    highest_first=True,
)

COLUMNS = (
    RESPONSE,
    _figure(
        "premise_effect",
        "Effect ↑",
        "premise effect: response to the conflict minus response to its control, where controls were run",
        highest_first=True,
    ),
    *(
        _figure(
            measure.name,
            f"{measure.symbol} {arrow(measure)}",
            f"{measure.title}: {measure.definition}",
            highest_first=measure.higher_is_better,
        )
        for measure in MEASURES
    ),
    _counted("n", "Pairs ↑", "pairs of a conflict rollout and its reference", lambda _, row: row.n),
    _counted(
        "rollouts",
        "Rollouts ↑",
        "rollouts of the full evaluation that are there",
        lambda entry, _: entry.result.coverage.rollouts,
    ),
    BoardColumn(
        name="verified",
        head="Verified",
        title="whether a maintainer has checked its rollouts and executed a sample again",
        highest_first=True,
        number=lambda entry, _: float(entry.verification is not None),
        cell=lambda entry, _: Cell(value="✓ verified" if entry.verification else "not yet"),
    ),
)
"""All columns but the policy's, from left to right."""


def shown_columns(entries: Sequence[Entry]) -> tuple[BoardColumn, ...]:
    """The columns worth showing: that of the premise effect only where some entry ran controls."""
    has_controls = any(row.premise_effect for entry in entries for row in entry.result.rows)
    return tuple(column for column in COLUMNS if has_controls or column.name != "premise_effect")


def find_column(name: str) -> BoardColumn:
    """The column of that name, in small or large letters.

    Raises:
        NotFoundError: There is none.
    """
    for column in COLUMNS:
        if column.name.lower() == name.lower().replace("-", "_"):
            return column
    raise NotFoundError(f"no column '{name}' in --sort: {choices(name, [column.name for column in COLUMNS])}")


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Initial states or seeds as people write them.

    >>> numbers_text((0, 1, 2, 4, 7, 8))
    '0–2, 4, 7–8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def run_text(entry: Entry) -> str:
    """What was run, in a line: how much of a full evaluation, prompt conditions, initial states and seeds.

    It stands in every row, on every screen: figures over other rollouts are other figures.
    """
    result = entry.result
    states, seeds = (
        f"{noun_for(len(numbers), noun)} {numbers_text(numbers)}"
        for noun, numbers in (("state", result.init_states), ("seed", result.seeds))
    )
    return f"{result.coverage} · {', '.join(result.prompts)} · {states} · {seeds}"
