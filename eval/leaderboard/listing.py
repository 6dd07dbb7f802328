"""The leaderboard in the terminal and as rows for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..measures.response import CAPABILITY_GATE
from ..scores.terminal import UNLIMITED
from ..submissions.results import FIGURES, Entry
from .columns import BoardColumn, run_text, shown_columns
from .ranking import Filters, PlacedEntry, Premises, Standing, placed_entries

HEADINGS = {
    Standing.RANKED: "Ranked by response",
    Standing.BELOW_GATE: f"Not ranked: PCSR's interval begins below {CAPABILITY_GATE:.0%}",
    Standing.NO_INTERVAL: "Not ranked: pairs of a single base task give PCSR no interval",
    Standing.SCALE: "Marks of the scale: scripted agents with known answers",
}

MARKS = {
    Premises.TOLD_FROM_WORDING: "controls ✓",
    Premises.NOT_TOLD_FROM_WORDING: "controls: wording",
    Premises.TOO_FEW: "controls: too few",
    Premises.NO_CONTROLS: "",
}
"""What stands with an entry about its controls, before how many of them were run."""

POLICY_WIDTH = 14
"""Columns that a terminal has at least for policies, whose names and what was run are broken where they are longer."""

NARROW = ("response", "premise_effect", "PCSR", "RGSR", "TAR", "Early20_TS", "AMS")
"""Columns of the terminal's table; JSON has all of them."""


def board_rows(entries: Sequence[Entry], filters: Filters, column: BoardColumn) -> Iterator[dict[str, Any]]:
    """The entries as flat rows, in the order of ``placed_entries``; numbers are fractions, NaN where undefined."""
    for placed in placed_entries(entries, filters, column):
        result = placed.entry.result
        row: dict[str, Any] = {
            "rank": placed.rank,
            "standing": placed.standing.value,
            "policy": result.policy_name,
            "revision": result.policy_revision,
            "kind": result.kind,
            "prompt": placed.row.prompt,
            "family": placed.row.family,
            "level": placed.row.level,
            "controls": placed.premises.value,
            "control_pairs": placed.row.controls,
            "coverage": result.coverage.kind,
            "rollouts": result.coverage.rollouts,
            "rollouts_of": result.coverage.of,
            "prompts": list(result.prompts),
            "init_states": list(result.init_states),
            "seeds": list(result.seeds),
            "n": placed.row.n,
            "capable": placed.row.capable,
            "verified": placed.entry.verification is not None,
        }
        for name in FIGURES:
            interval = placed.row.value(name)
            row |= {name: interval.value, f"{name}_lo": interval.low, f"{name}_hi": interval.high}
        yield row


def controls_text(placed: PlacedEntry) -> str:
    """What an entry's controls say, and how many of how many were run; empty where none were."""
    mark, row = MARKS[placed.premises], placed.row
    return mark and f"{mark} · {row.controls:,} of {row.n:,}"


def board_table(entries: Sequence[Entry], filters: Filters, column: BoardColumn, *, width: int) -> Table:
    """The entries for a terminal, each standing under its own heading; without intervals where it is too narrow."""
    table = _table(entries, filters, column, intervals=True)
    return table if _narrowest(table) <= width else _table(entries, filters, column, intervals=False)


def _table(entries: Sequence[Entry], filters: Filters, column: BoardColumn, *, intervals: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("policy", overflow="fold", min_width=POLICY_WIDTH)
    shown = [one for one in shown_columns(entries) if one.name in NARROW or one.name == column.name]
    for one in shown:
        table.add_column(one.head.replace(" ", "\n"), justify="right", no_wrap=True)
    for standing, group in groupby(placed_entries(entries, filters, column), key=lambda one: one.standing):
        table.add_row("", f"[bold]{HEADINGS[standing]}[/bold]")
        for placed in group:
            cells = [one.cell(placed.entry, placed.row) for one in shown]
            table.add_row(
                str(placed.rank or "–" if standing is Standing.RANKED else ""),
                _policy_text(placed),
                *(f"{cell.value}\n[dim]{cell.short_interval}[/dim]" if intervals else cell.value for cell in cells),
            )
    return table


def _narrowest(table: Table) -> int:
    """How wide the table is with a policy column as narrow as it can be."""
    policy = table.columns[1]
    policy.width = POLICY_WIDTH
    width = Console(width=UNLIMITED).measure(table).maximum
    policy.width = None
    return width


def _policy_text(placed: PlacedEntry) -> str:
    mark = controls_text(placed)
    lines = [placed.entry.result.policy_name, *([mark] if mark else []), run_text(placed.entry)]
    first, *others = map(escape, lines)
    return "\n".join([f"{first}", *(f"[dim]{line}[/dim]" for line in others)])
