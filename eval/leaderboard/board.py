"""The leaderboard's pages as HTML: pure functions of results files. All text in them is escaped by the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...toolkit.records import Family, Level, Prompt
from ..analyses.columns import percent
from ..measures import MEASURES, Measure
from ..report.figures.outcome_plot import outcome_note
from ..report.figures.styles import style
from ..submissions.results import ALL, SCRIPTED_AGENT, Entry, ResultRow
from .figures import group_name, outcome_figures, policy_figures

PUBLISHED = (
    "PCSR and RGSR differ by 17.3 to 56.2 points; TAR 76.5 to 89.6, TS 47.1 to 74.4, Early20 78.4 to 88.6, "
    "AMS 6.7 to 27.6"
)
"""What the eight models of the ConflictVLA-Bench paper span, in percent; context, never entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the table shows.

    Attributes:
        prompt: Prompt condition.
        family: A conflict family, or ``all``.
        level: A level, or ``all``.
        verified_only: Whether unverified results are left out.
        text: Part of a policy's name.
    """

    prompt: str = Prompt.P0.value
    family: str = ALL
    level: str = ALL
    verified_only: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureCell:
    """A measure in a cell of a table.

    Attributes:
        value: As shown.
        interval: As shown; empty without one.
        sort: Number by which the table is sorted; empty where the measure is undefined.
    """

    value: str
    interval: str
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One row of the table.

    Attributes:
        entry: The entry.
        cells: Its measures.
        pairs: Pairs that they are over.
        expected: Pairs of a complete evaluation; 0 where that is not known.
        scripted: Whether the policy is a scripted agent.
    """

    entry: Entry
    cells: tuple[MeasureCell, ...]
    pairs: int
    expected: int
    scripted: bool


def matching_entries(entries: Sequence[Entry], filters: Filters) -> list[tuple[Entry, ResultRow]]:
    """Entries that fit the filters, each with its row; the lowest RGSR first, as the fewest invalid goals completed."""
    found = []
    for entry in entries:
        row = entry.result.row(filters.prompt, filters.family, filters.level)
        if row is None or (filters.verified_only and entry.verification is None):
            continue
        if filters.text.strip().lower() in entry.result.policy_name.lower():
            found.append((entry, row))

    def rank(pair: tuple[Entry, ResultRow]) -> tuple[float, str, str]:
        entry, row = pair
        rgsr = row.measures["RGSR"].value
        return math.inf if math.isnan(rgsr) else rgsr, entry.result.policy_name, entry.name

    return sorted(found, key=rank)


def table_page(entries: Sequence[Entry], filters: Filters) -> str:
    """The sortable table."""
    rows = [
        BoardRow(
            entry=entry,
            cells=_cells(row),
            pairs=row.n,
            expected=entry.result.expected.get(row.prompt, 0) if (row.family, row.level) == (ALL, ALL) else 0,
            scripted=entry.result.kind == SCRIPTED_AGENT,
        )
        for entry, row in matching_entries(entries, filters)
    ]
    return _render("table.html.j2", rows=rows, measures=MEASURES, filters=filters, total=len(entries))


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
    link = f"{endpoint}/datasets/{result.repo_id}/tree/{result.commit}" if result.repo_id and result.commit else ""
    return _render(
        "policy.html.j2",
        entry=entry,
        result=result,
        prompt=shown,
        groups=[(group_name(row), _cells(row), row.n) for row in rows],
        measures=MEASURES,
        link=link,
        figures=[figure.render() for figure in policy_figures(entry, shown)],
        scripted=result.kind == SCRIPTED_AGENT,
    )


def scatter_page(entries: Sequence[Entry], filters: Filters) -> str:
    """Outcome against process, a panel for each process measure, with the published ranges below as context."""
    found = matching_entries(entries, filters)
    return _render(
        "scatter.html.j2",
        panels=[panel.render() for panel in outcome_figures(found, with_families=filters.family == ALL)],
        names=[(entry.result.policy_name, style(number).colour) for number, (entry, _) in enumerate(found)],
        note=outcome_note(len(found)),
        published=PUBLISHED,
        filters=filters,
    )


def _cells(row: ResultRow) -> tuple[MeasureCell, ...]:
    return tuple(_cell(row, measure) for measure in MEASURES)


def _cell(row: ResultRow, measure: Measure) -> MeasureCell:
    value, low, high = astuple(row.measures[measure.name])
    interval = "" if math.isnan(low) else f"{percent(low, 0)}–{percent(high, 0)}"
    return MeasureCell(value=percent(value), interval=interval, sort="" if math.isnan(value) else f"{value:.6f}")


@cache
def _templates() -> Environment:
    loader = PackageLoader("conflictvla.eval.leaderboard", ".")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _render(name: str, **values: object) -> str:
    return _templates().get_template(name).render(values)


def asset(name: str) -> str:
    """A text file of this package: style sheet, script or guide."""
    return resources.files("conflictvla.eval.leaderboard").joinpath(name).read_text(encoding="utf-8")


def masthead() -> Markup:
    """The page's head: what it is, and its style sheet."""
    return Markup(asset("masthead.html")) + Markup(f"<style>{asset('board.css')}</style>")
