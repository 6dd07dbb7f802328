"""The leaderboard's pages as HTML: pure functions of results files. All text in them is escaped by the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...toolkit.counting import counted
from ...toolkit.records import Family, Level
from ..analyses.analysis import Cell
from ..report.figures.outcome_plot import outcome_note
from ..report.figures.styles import style
from ..submissions.results import ALL, FIGURES, SCRIPTED_AGENT, Entry
from .columns import BoardColumn, interval_cell, run_text, shown_columns
from .figures import group_name, outcome_figures, policy_figures
from .listing import HEADINGS, controls_text
from .ranking import Filters, PlacedEntry, Standing, placed_entries

PUBLISHED = (
    "PCSR and RGSR differ by 17.3 to 56.2 points; TAR 76.5 to 89.6, TS 47.1 to 74.4, Early20 78.4 to 88.6, "
    "AMS 6.7 to 27.6"
)
"""What the eight models of the ConflictVLA-Bench paper span, in percent; context, never entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCell:
    """A cell of the table.

    Attributes:
        text: What it shows.
        sort: Number by which the table is sorted; empty where it is undefined.
    """

    text: Cell
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One row of the table.

    Attributes:
        placed: The entry and its place.
        run: What was run: coverage, prompt conditions, initial states and seeds.
        mark: What its controls say, and how many were run; empty where none were.
        cells: One for each column.
    """

    placed: PlacedEntry
    run: str
    mark: str
    cells: tuple[BoardCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardGroup:
    """Entries of one standing, in the table's order."""

    heading: str
    standing: Standing
    rows: tuple[BoardRow, ...]


def table_page(entries: Sequence[Entry], filters: Filters) -> str:
    """The sortable table: the ranked, those below the gate, and the scale's marks, each under their own heading."""
    placed, columns = placed_entries(entries, filters), shown_columns(entries)
    groups = [
        BoardGroup(
            heading=HEADINGS[standing],
            standing=standing,
            rows=tuple(_board_row(one, columns) for one in of_standing),
        )
        for standing, of_standing in groupby(placed, key=lambda one: one.standing)
    ]
    return _render(
        "table.html.j2",
        groups=groups,
        shown=len(placed),
        columns=columns,
        filters=filters,
        total=len(entries),
        prompts=sorted({prompt for entry in entries for prompt in entry.result.prompts}),
    )


def _board_row(placed: PlacedEntry, columns: Sequence[BoardColumn]) -> BoardRow:
    entry, row = placed.entry, placed.row
    numbers = [(column, column.number(entry, row)) for column in columns]
    return BoardRow(
        placed=placed,
        run=run_text(entry),
        mark=controls_text(placed),
        cells=tuple(
            BoardCell(text=column.cell(entry, row), sort="" if math.isnan(number) else f"{number:.6f}")
            for column, number in numbers
        ),
    )


def policy_page(entry: Entry, prompt: str, endpoint: str) -> str:
    """One policy: its revision and settings, where its rollouts are, figures, and measures by family and level.

    Args:
        entry: The entry.
        prompt: Prompt condition; another one where the entry lacks it.
        endpoint: Address of the Hub, for links to rollouts.
    """
    result = entry.result
    prompts = list(dict.fromkeys(row.prompt for row in result.rows))
    shown = prompt if prompt in prompts else prompts[0]
    groups = [(family, ALL) for family in (ALL, *Family)] + [(ALL, level) for level in Level]
    rows = [row for family, level in groups if (row := result.row(shown, family, level))]
    columns = [one for one in shown_columns([entry]) if one.name in FIGURES]
    link = f"{endpoint}/datasets/{result.repo_id}/tree/{result.commit}" if result.repo_id and result.commit else ""
    return _render(
        "policy.html.j2",
        entry=entry,
        result=result,
        prompt=shown,
        run=run_text(entry),
        groups=[(group_name(row), [interval_cell(row, column.name) for column in columns], row.n) for row in rows],
        columns=columns,
        link=link,
        figures=[figure.render() for figure in policy_figures(entry, shown)],
        scripted=result.kind == SCRIPTED_AGENT,
    )


def scatter_page(entries: Sequence[Entry], filters: Filters) -> str:
    """Outcome against process, a panel for each process measure, with the published ranges below as context."""
    found = [(placed.entry, placed.row) for placed in placed_entries(entries, filters)]
    return _render(
        "scatter.html.j2",
        panels=[panel.render() for panel in outcome_figures(found, with_families=filters.family == ALL)],
        names=[(entry.result.policy_name, style(number)) for number, (entry, _) in enumerate(found)],
        note=outcome_note(len(found)),
        published=PUBLISHED,
        filters=filters,
    )


def missing_page(name: str) -> str:
    """What a link shows that names no entry, as after a results file was replaced or withdrawn."""
    return _render("missing.html.j2", name=name[:200])


@cache
def _templates() -> Environment:
    loader = PackageLoader("conflictvla.eval.leaderboard", ".")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.globals["counted"] = counted
    return found


def _render(template: str, **values: object) -> str:
    return _templates().get_template(template).render(values)


def asset(name: str) -> str:
    """A text file of this package: style sheet, script or guide."""
    return resources.files("conflictvla.eval.leaderboard").joinpath(name).read_text(encoding="utf-8")


def masthead() -> Markup:
    """The page's head: what it is, and its style sheet."""
    return Markup(asset("masthead.html")) + Markup(f"<style>{asset('board.css')}</style>")
