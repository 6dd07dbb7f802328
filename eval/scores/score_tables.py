"""Score tables for people: percent with one decimal and the interval beside it, in the terminal or as markdown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..analyses.groups import PROBES
from ..measures import MEASURES, PROCESS_NAMES, Measure
from .scores import Scores

TITLES = {
    "overall": "Overall",
    "family": "By conflict family",
    "level": "By structural level",
    "suite": "By suite",
    "prompt": "By prompt condition",
    "qualified": "Capability-qualified failures: reference succeeds, conflict does not",
    "language_probe": "By language probe",
    "visual_probe": "By visual probe",
}

UNLIMITED = 10_000
"""Wider than any table: what a table would like to have is measured with that much room."""

UNDEFINED = "–"
"""Printed where a value is undefined: never a zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A measure as text.

    Attributes:
        value: Percent with one decimal, such as ``71.1``, or a dash.
        interval: Its 95% interval in the same form, such as ``68.2–74.0``; empty where undefined.
        short_interval: The interval in whole percent, such as ``68–74``, for narrow places; empty where undefined.
    """

    value: str
    interval: str
    short_interval: str


def percent(fraction: float, decimals: int = 1) -> str:
    """A fraction in percent; a dash where it is NaN.

    >>> percent(0.7114)
    '71.1'
    """
    return rounded(100 * fraction, decimals)


def rounded(value: float, decimals: int = 1) -> str:
    """A number as it is, such as a cost; a dash where it is NaN."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return UNDEFINED if math.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"


def cell(row: dict[str, Any], name: str) -> Cell:
    """One measure of a table row as text."""
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    value = percent(row[name])
    if math.isnan(low):
        return Cell(value=value, interval="", short_interval="")
    return Cell(
        value=value,
        interval=f"{percent(low)}–{percent(high)}",
        short_interval=f"{percent(low, 0)}–{percent(high, 0)}",
    )


def arrow(measure: Measure) -> str:
    """Points towards the clearer response to an invalid premise, and for PCSR towards competence."""
    return "↑" if measure.higher_is_better else "↓"


def shown_measures(by: str) -> tuple[Measure, ...]:
    """Measures worth a column: among qualified failures the outcomes are fixed by construction, except FR."""
    if by != "qualified":
        return MEASURES
    return tuple(measure for measure in MEASURES if measure.name in (*PROCESS_NAMES, "FR"))


def group_column(by: str) -> str | None:
    """The column that tells the rows of one policy apart; None where it has one row."""
    return None if by in ("overall", "qualified") else by


def rich_table(scores: Scores, by: str = "overall", *, intervals: bool = True) -> Table:
    """One score table for the terminal.

    Args:
        scores: What to show.
        by: As for ``Scores.table``.
        intervals: Whether the intervals stand under the values; without them any table fits 80 columns.

    Raises:
        NotFoundError: If there is no such grouping.
    """
    measures, group = shown_measures(by), group_column(by)
    table = Table(
        title=f"[bold]{TITLES[by]}[/bold] [dim]({_conditions(scores, by)})[/dim]" if by in TITLES else None,
        caption=_caption(scores, by, intervals=intervals),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column(group or "policy", min_width=10, no_wrap=True)
    for measure in measures:
        table.add_column(f"{measure.symbol}\n{arrow(measure)}", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for policy, rows in groupby(scores.table(by).to_pylist(), key=lambda row: str(row["policy"])):
        if group is not None:
            table.add_section()
            table.add_row(f"[bold]{escape(policy)}[/bold]")
        for row in rows:
            cells = [cell(row, measure.name) for measure in measures]
            texts = [f"{part.value}\n[dim]{part.short_interval}[/dim]" if intervals else part.value for part in cells]
            table.add_row(escape(str(row[group or "policy"])), *texts, str(row["n"]))
    return table


def print_table(scores: Scores, by: str = "overall", console: Console | None = None) -> None:
    """Print one score table; where the terminal is too narrow for the intervals, without them.

    Args:
        scores: What to show.
        by: As for ``Scores.table``.
        console: Where to; the terminal by default.

    Raises:
        NotFoundError: If there is no such grouping.
    """
    terminal = console or Console()
    table = rich_table(scores, by)
    if terminal.measure(table, options=terminal.options.update(max_width=UNLIMITED)).maximum > terminal.width:
        table = rich_table(scores, by, intervals=False)
    terminal.print(table)


def markdown_table(scores: Scores, by: str = "overall") -> str:
    """One score table as GitHub markdown, in percent: ``71.1 (68.2–74.0)``.

    Raises:
        NotFoundError: If there is no such grouping.
    """
    measures, group = shown_measures(by), group_column(by)
    keys = ["policy", "prompt"] + ([group] if group not in (None, "prompt") else [])
    lines = [
        _line([*map(str, keys), *(f"{measure.symbol} {arrow(measure)}" for measure in measures), "n"]),
        _line(["---"] * len(keys) + ["---:"] * (len(measures) + 1)),
    ]
    for row in scores.table(by).to_pylist():
        cells = [cell(row, measure.name) for measure in measures]
        texts = [f"{part.value} ({part.interval})" if part.interval else part.value for part in cells]
        lines.append(_line([*(str(row[key]) for key in keys), *texts, str(row["n"])]))
    return "\n".join(lines) + "\n"


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
    text = f"{about}; protocol {protocol}; {pairs} pairs scored"
    refused = ", ".join(f"{field} {count}" for field, count in scores.refusals_by_field().items())
    return f"{text}, {len(scores.refusals)} refused ({escape(refused)})" if refused else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"
