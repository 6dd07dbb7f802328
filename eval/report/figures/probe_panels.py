"""Panels of what probes change: completion of valid and of invalid tasks side by side, level by level."""

from __future__ import annotations

import math
from typing import Any

from ....builders.rollouts.episode_record import PROBES
from ....toolkit.counting import counted
from ...analyses.columns import percent
from ...analyses.groups import ORDER
from ...measures import MEASURES
from ...scores.scores import Scores
from .panels import NamedPlot
from .plot import PERCENT_TICKS, Plot, spread
from .styles import CONFLICT_COLOUR, INK, MUTED, REFERENCE_COLOUR, TARGET_COLOUR, Style

AXES = {"visual_probe": "visual probe", "language_probe": "language probe"}

DRAWN = {
    "PCSR": Style(colour=REFERENCE_COLOUR, shape="square"),
    "RGSR": Style(colour=CONFLICT_COLOUR, shape="circle"),
    "TAR": Style(colour=TARGET_COLOUR, shape="diamond"),
}
"""Measures drawn as lines over the levels."""

SYMBOLS = {measure.name: measure.symbol for measure in MEASURES}


def probe_panels(scores: Scores) -> list[NamedPlot]:
    """PCSR, RGSR and TAR over the levels of a probe: a panel for each policy and kind of probe that it ran under."""
    panels = []
    for by in AXES:
        rows = scores.table(by).to_pylist()
        for policy in dict.fromkeys(row["policy"] for row in rows):
            own = {row[by]: row for row in rows if row["policy"] == policy}
            if set(own) > {PROBES[by]}:
                panels.append(_panel(policy, by, own))
    return panels


def _panel(policy: str, by: str, rows: dict[str, dict[str, Any]]) -> NamedPlot:
    levels = [level for level in ORDER[by] if level in rows]
    plot = Plot(
        width=340,
        height=250,
        x_range=(-0.35, len(levels) - 0.65),
        y_range=(0, 100),
        margin=(44, 12, 46, 40),
        title=f"{policy}: outcomes and approach by {AXES[by]}",
    )
    plot.axes((), PERCENT_TICKS, AXES[by], "percent")
    for place, level in enumerate(levels):
        plot.text((place, 0), level, dy=16, text_anchor="middle", fill=MUTED, font_size=11)
    for index, (name, drawn) in enumerate(DRAWN.items()):
        _line(plot, name, drawn, levels, rows, shift=0.08 * (index - 1))
    _name_lines(plot, rows[levels[-1]])
    file = f"{by.replace('_', '-')}-" + "".join(c if c.isalnum() else "-" for c in policy)
    return NamedPlot(name=file, caption=policy, plot=plot)


def _line(
    plot: Plot, name: str, drawn: Style, levels: list[str], rows: dict[str, dict[str, Any]], *, shift: float
) -> None:
    """One measure over the levels; side by side, so that intervals of several do not cover each other."""
    shown = [(place + shift, rows[level]) for place, level in enumerate(levels) if not math.isnan(rows[level][name])]
    plot.curve([(x, 100 * row[name]) for x, row in shown], stroke=drawn.colour, stroke_width=2)
    for x, row in shown:
        low, high = 100 * row[f"{name}_lo"], 100 * row[f"{name}_hi"]
        if not math.isnan(low):
            plot.segment((x, low), (x, high), stroke=drawn.colour, stroke_width=1.5, stroke_opacity=0.6)
    for (x, row), level in zip(shown, [level for level in levels if not math.isnan(rows[level][name])], strict=True):
        tooltip = f"{SYMBOLS[name]} under {level}: {percent(row[name])}%, {counted(row['n'], 'pair')}"
        plot.mark((x, 100 * row[name]), drawn.shape, 4, tooltip, fill=drawn.colour, stroke="white", stroke_width=1)


def _name_lines(plot: Plot, last: dict[str, Any]) -> None:
    ends = {name: plot.y(100 * last[name]) for name in DRAWN if not math.isnan(last[name])}
    right = plot.x(plot.x_range[1]) + 4
    for name, height in zip(ends, spread(list(ends.values()), 13), strict=True):
        plot.element("text", SYMBOLS[name], x=right, y=height + 4, fill=INK, font_size=11, font_weight=600)
        colour = DRAWN[name].colour
        plot.element("line", x1=right - 10, y1=ends[name], x2=right - 2, y2=height, stroke=colour, stroke_opacity=0.5)
