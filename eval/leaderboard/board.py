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
from ..report.figures.outcome_plot import PolicySpots, Spot, outcome_against_process, outcome_note
from ..report.figures.picture import PICTURED
from ..report.figures.plot import PERCENT_TICKS, Plot
from ..report.figures.styles import INK, MUTED, style
from ..submissions.results import ALL, SCRIPTED_AGENT, Entry, ResultRow

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
class Number:
    """A measure in a cell: what is shown, and by what it is sorted."""

    value: str
    interval: str
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One row of the table."""

    entry: Entry
    numbers: tuple[Number, ...]
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
    return sorted(found, key=lambda pair: (_value(pair[1], "RGSR"), pair[0].result.policy_name, pair[0].name))


def table_page(entries: Sequence[Entry], filters: Filters) -> str:
    """The sortable table."""
    rows = [
        BoardRow(
            entry=entry,
            numbers=tuple(_cell(row, measure) for measure in MEASURES),
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
    tables = [(_group_name(row), [_cell(row, measure) for measure in MEASURES], row.n) for row in rows]
    link = f"{endpoint}/datasets/{result.repo_id}/tree/{result.commit}" if result.repo_id and result.commit else ""
    figures = [family_figure(entry, shown, measure) for measure in MEASURES if measure.name in ("RGSR", *PICTURED)]
    return _render(
        "policy.html.j2",
        entry=entry,
        result=result,
        prompt=shown,
        tables=tables,
        measures=MEASURES,
        link=link,
        figures=[figure.render() for figure in figures],
        scripted=result.kind == SCRIPTED_AGENT,
    )


def scatter_page(entries: Sequence[Entry], filters: Filters) -> str:
    """Outcome against process, a panel for each process measure, with the published ranges below as context."""
    found = matching_entries(entries, filters)
    panels = []
    for measure in MEASURES:
        if measure.name in PICTURED:
            spots = [_spots(number, entry, row, filters, measure) for number, (entry, row) in enumerate(found)]
            panels.append(outcome_against_process(measure, [spot for spot in spots if spot is not None]).render())
    names = [(entry.result.policy_name, style(number).colour) for number, (entry, _) in enumerate(found)]
    note = outcome_note(len(found))
    return _render("scatter.html.j2", panels=panels, names=names, note=note, published=PUBLISHED, filters=filters)


def family_figure(entry: Entry, prompt: str, measure: Measure) -> Plot:
    """A measure by conflict family and by level, with intervals."""
    result = entry.result
    rows = [row for family in Family if (row := result.row(prompt, family=family))]
    rows += [row for level in Level if (row := result.row(prompt, level=level))]
    rows = [row for row in rows if not math.isnan(row.measures[measure.name].value)]
    height = 56 + 22 * max(len(rows), 1)
    title = f"{measure.title} of {result.policy_name} by family and level"
    plot = Plot(
        width=340, height=height, x_range=(0, 100), y_range=(0, max(len(rows), 1)), margin=(84, 8, 18, 40), title=title
    )
    plot.axes(PERCENT_TICKS, (), f"{measure.symbol} (%)", "")
    for place, row in enumerate(reversed(rows)):
        value, low, high = (100 * part for part in astuple(row.measures[measure.name]))
        y = place + 0.5
        plot.text((0, y), _group_name(row), dx=-6, dy=4, text_anchor="end", fill=INK, font_size=11)
        if not math.isnan(low):
            plot.segment((low, y), (high, y), stroke=MUTED, stroke_width=2)
        tooltip = f"{_group_name(row)}: {value:.1f}%, {row.n} pairs"
        plot.mark((value, y), "circle", 4.5, tooltip, fill=style(0).colour)
    return plot


def _group_name(row: ResultRow) -> str:
    return next((name for name in (row.family, row.level) if name != ALL), "all pairs")


def _spots(number: int, entry: Entry, row: ResultRow, filters: Filters, measure: Measure) -> PolicySpots | None:
    if math.isnan(row.measures[measure.name].value):
        return None
    families = [] if filters.family != ALL else [entry.result.row(filters.prompt, f, filters.level) for f in Family]
    return PolicySpots(
        policy=_spot(row, entry.result.policy_name, measure),
        families=tuple(
            _spot(one, one.family, measure)
            for one in families
            if one is not None and not math.isnan(one.measures[measure.name].value)
        ),
        style=style(number),
    )


def _spot(row: ResultRow, name: str, measure: Measure) -> Spot:
    across, up = ([100 * part for part in astuple(row.measures[of])] for of in ("RGSR", measure.name))
    return Spot(name=name, at=(across[0], up[0]), x_interval=(across[1], across[2]), y_interval=(up[1], up[2]))


def _value(row: ResultRow, name: str) -> float:
    value = row.measures[name].value
    return math.inf if math.isnan(value) else value


def _cell(row: ResultRow, measure: Measure) -> Number:
    value, low, high = astuple(row.measures[measure.name])
    interval = "" if math.isnan(low) else f"{percent(low, 0)}–{percent(high, 0)}"
    return Number(value=percent(value), interval=interval, sort="" if math.isnan(value) else f"{value:.6f}")


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
