"""Tables in the terminal. Measures by group have their intervals below the values, where there is room for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.counting import counted
from ..analyses.analysis import Cell, Mark
from ..analyses.tables.measures import GROUPINGS, group_column
from .formats import marks_legend
from .scores import Scores
from .text_tables import TextTable, text_table

MARKS = {Mark.BEST: "*", Mark.HIGHEST: "▲", Mark.LOWEST: "▼", Mark.COLUMN_HIGHEST: "▲", Mark.COLUMN_LOWEST: "▼"}
"""Before a value: where there are neither colours nor bold letters, it is all that there is."""

STRONG = {Mark.BEST, Mark.COLUMN_HIGHEST, Mark.COLUMN_LOWEST}
"""These are bold too."""

UNLIMITED = 10_000
"""Wider than any table: what a table would like to have is measured with that much room."""


def print_table(scores: Scores, by: str = "overall", console: Console | None = None) -> None:
    """Print one table; where the terminal is too narrow, measures by group without their intervals, then without marks.

    Args:
        scores: What to show.
        by: As for ``Scores.table``; underscores and hyphens are the same.
        console: Where to; the terminal by default.

    Raises:
        NotFoundError: If there is no such table.
        InvalidInputError: If it needs the supplementary measures and they were not taken.
    """
    terminal = console or Console()
    shown = text_table(scores, by)
    grouping = shown.name.replace("-", "_")
    if grouping not in GROUPINGS:
        print_text_table(shown, terminal)
        return
    unlimited = terminal.options.update(max_width=UNLIMITED)
    for cells, intervals in ((shown.cells, True), (shown.cells, False), (_unmarked(shown), False)):
        table = measure_table(scores, replace(shown, cells=cells), grouping, intervals=intervals)
        if terminal.measure(table, options=unlimited).maximum <= terminal.width:
            break
    terminal.print(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How a table is laid out: the narrower the terminal, the taller it gets.

    Attributes:
        below: Whether intervals stand below their values, and the words of a head below each other.
        by_section: Whether what rows have in common stands above them, in place of columns of its own.
        short: Whether intervals have no decimals.
    """

    below: bool = True
    by_section: bool = True
    short: bool = False


LAYOUTS = (
    _Layout(below=False, by_section=False),
    _Layout(by_section=False),
    _Layout(),
    _Layout(short=True),
)
"""The first that fits is taken, or the last, whose words are broken then."""


def print_text_table(shown: TextTable, console: Console) -> None:
    """Print any table that is text already; nothing of it is left out, however narrow the terminal."""
    unlimited = console.options.update(max_width=UNLIMITED)
    for layout in LAYOUTS:
        table = _laid_out(shown, layout)
        if console.measure(table, options=unlimited).maximum <= console.width:
            break
    console.print(table)


def _laid_out(shown: TextTable, layout: _Layout) -> Table:
    note = shown.note if shown.rows else f"no rows; {shown.note}"
    table = _empty_table(f"[bold]{escape(shown.title)}[/bold]", escape(note))
    in_common = shown.labels - 1 if layout.by_section else 0
    heads = [escape(_head(head, layout)) for head in shown.header]
    for index, head in enumerate(["\n".join(heads[: in_common + 1]), *heads[in_common + 1 :]]):
        table.add_column(head, justify="left" if index + in_common < shown.labels else "right", overflow="fold")
    for section, rows in groupby(shown.cells, key=lambda row: [cell.value for cell in row[:in_common]]):
        if section:
            table.add_section()
            table.add_row(f"[bold]{escape('\n'.join(section))}[/bold]")
        for row in rows:
            labels, numbers = row[in_common : shown.labels], row[shown.labels :]
            table.add_row(*(escape(str(cell)) for cell in labels), *(_number(cell, layout) for cell in numbers))
    return table


def _head(head: str, layout: _Layout) -> str:
    return head.replace(" − ", " −\u00a0").replace(" ", "\n") if layout.below else head


def _number(cell: Cell, layout: _Layout) -> str:
    """A value and its interval, or a difference and its, which are one text."""
    if not layout.below:
        return escape(str(cell))
    value, _, interval = cell.value.partition(" (")
    if cell.interval:
        return f"{escape(cell.value)}\n[dim]{escape(cell.short_interval if layout.short else cell.interval)}[/dim]"
    return f"{escape(value)}\n[dim]{escape(interval.removesuffix(')'))}[/dim]" if interval else escape(cell.value)


def measure_table(scores: Scores, shown: TextTable, grouping: str, *, intervals: bool = True) -> Table:
    """Measures by group for the terminal, each policy's rows together.

    Args:
        scores: Where the table is from, for what stands above and below it.
        shown: The table as text.
        grouping: By what its measures are grouped.
        intervals: Whether the intervals stand under the values; without them and marks any table fits 80 columns.
    """
    group = group_column(grouping)
    table = _empty_table(
        f"[bold]{shown.title}[/bold] [dim]({_conditions(scores, grouping)})[/dim]",
        _caption(scores, grouping, intervals=intervals) + _legend(shown),
    )
    table.add_column(group or "policy", min_width=10, overflow="fold")
    for head in shown.header[shown.labels :]:
        table.add_column(head.replace(" ", "\n"), justify="right", no_wrap=True)
    for part in (shown.cells, shown.means):
        table.add_section()
        for policy, rows in groupby(part, key=lambda row: row[0].value):
            name = escape(policy if intervals else policy.removesuffix(" policies"))
            if group is not None:
                table.add_section()
                table.add_row(f"[bold]{name}[/bold]")
            for row in rows:
                texts = [_text(cell, intervals=intervals) for cell in row[shown.labels :]]
                table.add_row(escape(row[shown.labels - 1].value) if group is not None else name, *texts)
    return table


def _unmarked(shown: TextTable) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(replace(cell, mark=None) for cell in row) for row in shown.cells)


def _text(cell: Cell, *, intervals: bool) -> str:
    """A value with its mark, and its interval below."""
    value = (MARKS[cell.mark] if cell.mark is not None else "") + cell.value
    if cell.mark in STRONG:
        value = f"[bold]{value}[/bold]"
    return f"{value}\n[dim]{cell.short_interval}[/dim]" if intervals and cell.short_interval else value


def _legend(shown: TextTable) -> str:
    legend = marks_legend(shown, "*")
    return f"\n{legend.strip()}" if legend else ""


def _empty_table(title: str, caption: str) -> Table:
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _conditions(scores: Scores, by: str) -> str:
    """Under which prompt condition the rows are; named per policy where they differ."""
    condition = dict(zip(*(scores.table(by)[name].to_pylist() for name in ("policy", "prompt")), strict=True))
    if by == "prompt" or not condition:
        return "percent"
    if len(set(condition.values())) == 1:
        return f"percent, {next(iter(condition.values()))}"
    return "percent, " + ", ".join(f"{escape(policy)} {prompt}" for policy, prompt in condition.items())


def _caption(scores: Scores, by: str, *, intervals: bool) -> str:
    protocol = scores.provenance.protocol_version
    about = "95% intervals over base tasks" if intervals else "intervals need a wider terminal"
    pairs = sum(scores.table(by)["n"].to_pylist()) if by in PROBES else scores.pairs.num_rows
    text = f"{about}; protocol {protocol}; {counted(pairs, 'pair')} scored"
    refused = ", ".join(f"{field} {count}" for field, count in scores.refusals_by_field().items())
    return f"{text}, {len(scores.refusals)} refused ({escape(refused)})" if refused else text
