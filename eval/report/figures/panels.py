"""Panels of small plots: how failures are distributed, what the prompt changes, and measures by family and level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ....toolkit.arrays import FloatArray
from ....toolkit.records import Family, Level
from ...analyses.columns import percent
from ...measures import MEASURES, Measure
from ...scores.scores import Scores
from .plot import PERCENT_TICKS, Plot
from .styles import INK, MUTED, Style, policy_styles

DISTRIBUTED = ("TAR", "Early20_TS", "AMS")
BY_GROUP = ("RGSR", "TAR", "Early20_TS", "AMS")
PROMPTED = ("PCSR", "RGSR", "TAR", "TS", "Early20_TS", "AMS")

BINS = 20

ROW_PX = 46
"""Height of one policy's histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlot:
    """A plot, the name of its file and the caption above it."""

    name: str
    caption: str
    plot: Plot


def failure_distributions(scores: Scores) -> list[NamedPlot]:
    """Histograms of TAR, Early20 and AMS over each policy's qualified failures; empty where no policy has any."""
    failed = _failures(scores)
    return [_distribution(measure, failed, scores) for measure in _measures(DISTRIBUTED)] if failed else []


def level_panels(scores: Scores) -> list[NamedPlot]:
    """Outcome and process measures by structural level, a line a policy."""
    return _group_panels(scores, "level", "structural level", [level.value for level in Level])


def family_panels(scores: Scores) -> list[NamedPlot]:
    """Outcome and process measures by conflict family, a mark a policy."""
    return _group_panels(scores, "family", "conflict family", [family.value for family in Family])


def _group_panels(scores: Scores, by: str, title: str, groups: Sequence[str]) -> list[NamedPlot]:
    rows = scores.table(by).to_pylist()
    return [_by_group(measure, rows, scores, (by, title, groups)) for measure in _measures(BY_GROUP)] if rows else []


def prompt_panels(scores: Scores) -> list[NamedPlot]:
    """Each measure under P0 and another prompt condition, a panel for each policy and condition rolled out."""
    panels = []
    rows = scores.table("prompt_effect").to_pylist()
    for policy, prompt in dict.fromkeys((row["policy"], row["prompt"]) for row in rows):
        own = {row["measure"]: row for row in rows if (row["policy"], row["prompt"]) == (policy, prompt)}
        panels.append(_prompt((policy, prompt), own, policy_styles(scores.policies)[policy]))
    return panels


def _measures(names: Sequence[str]) -> list[Measure]:
    return [measure for measure in MEASURES if measure.name in names]


def _failures(scores: Scores) -> dict[str, dict[str, FloatArray]]:
    """Values of each distributed measure over the qualified failures of each policy that has some."""
    prompts = {row["policy"]: row["prompt"] for row in scores.table("overall").to_pylist()}
    found = {}
    for policy, prompt in prompts.items():
        mine = pc.and_(pc.equal(scores.pairs["policy"], policy), pc.equal(scores.pairs["prompt"], prompt))
        failed = pc.and_(scores.pairs["reference_success"], pc.invert(scores.pairs["conflict_success"]))
        chosen = scores.pairs.filter(pc.and_(mine, failed))
        if chosen.num_rows:
            found[policy] = {name: chosen[name].to_numpy() for name in DISTRIBUTED}
    return found


def _distribution(measure: Measure, failed: dict[str, dict[str, FloatArray]], scores: Scores) -> NamedPlot:
    count = len(failed)
    plot = Plot(
        width=340,
        height=62 + ROW_PX * count,
        x_range=(0, 100),
        y_range=(0, count),
        margin=(14, 14, 14, 40),
        title=f"{measure.title}: distribution over qualified failures",
    )
    plot.axes(PERCENT_TICKS, (), f"{measure.symbol} (%)", "")
    for place, (policy, values) in enumerate(reversed(failed.items())):
        defined = values[measure.name][np.isfinite(values[measure.name])]
        colour = policy_styles(scores.policies)[policy].colour
        counts, edges = np.histogram(100 * defined, bins=BINS, range=(0, 100))
        tallest = max(1, int(counts.max(initial=0)))
        plot.segment((0, place), (100, place), stroke=MUTED, stroke_opacity=0.5)
        for bin_count, left, right in zip(counts, edges, edges[1:], strict=False):
            if bin_count:
                top = place + 0.68 * bin_count / tallest
                _bar(
                    plot, (float(left), float(right)), (place, top), colour, f"{policy}: {bin_count} of {len(defined)}"
                )
        label = f"{policy}, {len(defined)} failures" if len(policy) < 30 else f"{policy[:28]}…, {len(defined)}"
        plot.text((0, place + 0.78), label, dx=2, fill=colour, font_size=11, font_weight=600, halo=True)
        if len(defined):
            middle = 100 * float(np.median(defined))
            plot.segment((middle, place), (middle, place + 0.7), stroke=INK, stroke_width=1.5, stroke_dasharray="3 2")
    return NamedPlot(name=f"failures-{measure.name}".lower(), caption=measure.title, plot=plot)


def _bar(plot: Plot, across: tuple[float, float], up: tuple[float, float], colour: str, label: str) -> None:
    x, y = plot.x(across[0]) + 0.5, plot.y(up[1])
    width, height = plot.x(across[1]) - plot.x(across[0]) - 1, plot.y(up[0]) - plot.y(up[1])
    plot.element("rect", x=x, y=y, width=width, height=height, fill=colour, fill_opacity=0.75, aria_label=label)


def _by_group(
    measure: Measure, rows: list[dict[str, Any]], scores: Scores, grouping: tuple[str, str, Sequence[str]]
) -> NamedPlot:
    by, title, groups = grouping
    plot = Plot(
        width=270,
        height=250,
        x_range=(-0.5, len(groups) - 0.5),
        y_range=(0, 100),
        margin=(44, 12, 14, 40),
        title=f"{measure.title} by {title}",
    )
    plot.axes((), PERCENT_TICKS, title, f"{measure.symbol} (%)")
    for place, group in enumerate(groups):
        plot.text((place, 0), group, dy=16, text_anchor="middle", fill=MUTED, font_size=9 if len(group) > 4 else 11)
    count = len(scores.policies)
    for index, (policy, drawn) in enumerate(policy_styles(scores.policies).items()):
        # Side by side, so that intervals of several policies do not cover each other.
        shift = 0.6 * ((index + 0.5) / count - 0.5)
        own = [
            row for row in rows if row["policy"] == policy and row[by] in groups and not math.isnan(row[measure.name])
        ]
        at = [(groups.index(row[by]) + shift, 100 * row[measure.name]) for row in own]
        if by == "level":  # levels have an order, families have none
            plot.curve(at, stroke=drawn.colour, stroke_width=1.5, stroke_opacity=0.6)
        for (x, y), row in zip(at, own, strict=True):
            low, high = 100 * row[f"{measure.name}_lo"], 100 * row[f"{measure.name}_hi"]
            if not math.isnan(low):
                plot.segment((x, low), (x, high), stroke=drawn.colour, stroke_width=1.5, stroke_opacity=0.7)
            tooltip = f"{policy}, {row[by]}: {y:.1f}%, {row['n']} pairs"
            plot.mark((x, y), drawn.shape, 4, tooltip, fill=drawn.colour, stroke="white", stroke_width=1)
    return NamedPlot(name=f"{by}-{measure.name}".lower(), caption=measure.title, plot=plot)


def _prompt(panel: tuple[str, str], rows: dict[str, dict[str, Any]], drawn: Style) -> NamedPlot:
    policy, prompt = panel
    measures = [measure for measure in _measures(PROMPTED) if not math.isnan(rows[measure.name]["P0"])]
    plot = Plot(
        width=340,
        height=70 + 30 * len(measures),
        x_range=(0, 100),
        y_range=(0, len(measures)),
        margin=(62, 24, 18, 40),
        title=f"{policy}: each measure under P0 and {prompt}",
    )
    plot.axes(PERCENT_TICKS, (), f"percent: ring P0, mark {prompt}", "")
    for place, measure in enumerate(reversed(measures)):
        row = rows[measure.name]
        before, after, y = 100 * row["P0"], 100 * row["prompted"], place + 0.5
        plot.text((0, y), measure.symbol, dx=-8, dy=4, text_anchor="end", fill=INK, font_size=12)
        plot.segment((before, y), (after, y), stroke=drawn.colour, stroke_width=3, stroke_opacity=0.35)
        tooltip = f"{measure.symbol}: {percent(row['P0'])}% under P0, {percent(row['prompted'])}% under {prompt}"
        plot.mark((after, y), drawn.shape, 5, tooltip, fill=drawn.colour)
        plot.mark((before, y), "circle", 5.5, tooltip, fill="none", stroke=INK, stroke_width=1.4)
    name = "".join(c if c.isalnum() else "-" for c in f"prompt-{policy}-{prompt}")
    return NamedPlot(name=name, caption=f"{policy}, {prompt}", plot=plot)
