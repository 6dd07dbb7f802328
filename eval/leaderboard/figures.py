"""The leaderboard's figures: measures of one policy by family and level, and outcome against process of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple

from ...toolkit.counting import counted
from ...toolkit.records import Family, Level
from ..measures import DRAWN_MEASURES, DRAWN_PROCESS_MEASURES, Measure
from ..report.figures.outcome_plot import PolicySpots, Spot, outcome_against_process
from ..report.figures.plot import PERCENT_TICKS, Plot
from ..report.figures.styles import INK, MUTED, style
from ..submissions.results import ALL, Entry, ResultRow


def policy_figures(entry: Entry, prompt: str) -> list[Plot]:
    """RGSR and the process measures of one policy, each by conflict family and level."""
    return [_family_figure(entry, prompt, measure) for measure in DRAWN_MEASURES]


def outcome_figures(found: Sequence[tuple[Entry, ResultRow]], *, with_families: bool) -> list[Plot]:
    """Outcome against process, a panel for each process measure.

    Args:
        found: Entries, each with the row that is shown of it.
        with_families: Whether the same pairs are shown by conflict family as well.
    """
    panels = []
    for measure in DRAWN_PROCESS_MEASURES:
        spots = [
            _policy_spots(number, entry, row, measure, with_families=with_families)
            for number, (entry, row) in enumerate(found)
            if not _is_undefined(row, measure)
        ]
        panels.append(outcome_against_process(measure, spots))
    return panels


def group_name(row: ResultRow) -> str:
    """The conflict family or level that a row is of."""
    return next((name for name in (row.family, row.level) if name != ALL), "all pairs")


def _family_figure(entry: Entry, prompt: str, measure: Measure) -> Plot:
    """A measure by conflict family and by level, with intervals."""
    result = entry.result
    rows = [row for family in Family if (row := result.row(prompt, family=family))]
    rows += [row for level in Level if (row := result.row(prompt, level=level))]
    rows = [row for row in rows if not _is_undefined(row, measure)]
    lines = max(len(rows), 1)
    title = f"{measure.title} of {result.policy_name} by family and level"
    plot = Plot(
        width=340, height=56 + 22 * lines, x_range=(0, 100), y_range=(0, lines), margin=(84, 8, 18, 40), title=title
    )
    plot.axes(PERCENT_TICKS, (), f"{measure.symbol} (%)", "")
    for place, row in enumerate(reversed(rows)):
        value, low, high = (100 * part for part in astuple(row.measures[measure.name]))
        y = place + 0.5
        plot.text((0, y), group_name(row), dx=-6, dy=4, text_anchor="end", fill=INK, font_size=11)
        if not math.isnan(low):
            plot.segment((low, y), (high, y), stroke=MUTED, stroke_width=2)
        tooltip = f"{group_name(row)}: {value:.1f}%, {counted(row.n, 'pair')}"
        plot.mark((value, y), "circle", 4.5, tooltip, fill=style(0).colour)
    return plot


def _policy_spots(number: int, entry: Entry, row: ResultRow, measure: Measure, *, with_families: bool) -> PolicySpots:
    families = [entry.result.row(row.prompt, family, row.level) for family in Family] if with_families else []
    return PolicySpots(
        policy=_spot(row, entry.result.policy_name, measure),
        families=tuple(
            _spot(one, one.family, measure) for one in families if one is not None and not _is_undefined(one, measure)
        ),
        style=style(number),
    )


def _spot(row: ResultRow, name: str, measure: Measure) -> Spot:
    across, up = ([100 * part for part in astuple(row.measures[of])] for of in ("RGSR", measure.name))
    return Spot(name=name, at=(across[0], up[0]), x_interval=(across[1], across[2]), y_interval=(up[1], up[2]))


def _is_undefined(row: ResultRow, measure: Measure) -> bool:
    return math.isnan(row.measures[measure.name].value)
