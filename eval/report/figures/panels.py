"""Panels of small plots: how failures are distributed, what a prompt changes, and measures by family and level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ....toolkit.arrays import FloatArray
from ....toolkit.counting import counted
from ....toolkit.records import Family, Level
from ...analyses.columns import arrow, percent
from ...analyses.tables.failure_quartiles import QUARTILES
from ...analyses.tables.prompt_effect import ALL_PROCESS, favourable
from ...measures import DRAWN_MEASURES, DRAWN_PROCESS_MEASURES, MEASURES, Measure
from ...scores.scores import Scores
from .plot import PERCENT_TICKS, Plot, shortened
from .styles import GRID, INK, MUTED, Style, policy_styles
from .svg import Value

BINS = 20

ROW_PX = 58
"""Height of one policy's histogram."""

PROMPT_CELL_PX, PROMPT_GAP_PX, PROMPT_ROW_PX = 100, 30, 28
"""Width of a measure, space between two, and height of a policy, in the figure of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlot:
    """A plot, the name of its file and the caption above it."""

    name: str
    caption: str
    plot: Plot


def failure_distributions(scores: Scores) -> list[NamedPlot]:
    """Histograms of process measures over each policy's qualified failures; empty where no policy has any."""
    failed = _failures(scores)
    return [_distribution(measure, failed, scores) for measure in DRAWN_PROCESS_MEASURES] if failed else []


def level_panels(scores: Scores) -> list[NamedPlot]:
    """Outcome and process measures by structural level, a line a policy."""
    return _group_panels(scores, "level", "structural level", [level.value for level in Level])


def family_panels(scores: Scores) -> list[NamedPlot]:
    """Outcome and process measures by conflict family, a mark a policy."""
    return _group_panels(scores, "family", "conflict family", [family.value for family in Family])


def _group_panels(scores: Scores, by: str, title: str, groups: Sequence[str]) -> list[NamedPlot]:
    rows = scores.table(by).to_pylist()
    return [_by_group(measure, rows, scores, (by, title, groups)) for measure in DRAWN_MEASURES] if rows else []


def prompt_figures(scores: Scores) -> list[NamedPlot]:
    """Each measure of all policies under P0 and another prompt condition, a figure for each such condition."""
    effect, moves = scores.table("prompt_effect").to_pylist(), scores.table("prompt_moves").to_pylist()
    return [
        _prompt(
            prompt,
            [row for row in effect if row["prompt"] == prompt],
            {row["measure"]: row for row in moves if row["prompt"] == prompt},
            policy_styles(scores.policies),
        )
        for prompt in dict.fromkeys(row["prompt"] for row in effect)
    ]


def _failures(scores: Scores) -> dict[str, dict[str, FloatArray]]:
    """Values of each distributed measure over the qualified failures of each policy that has some."""
    prompts = {row["policy"]: row["prompt"] for row in scores.table("overall").to_pylist()}
    found = {}
    for policy, prompt in prompts.items():
        mine = pc.and_(pc.equal(scores.pairs["policy"], policy), pc.equal(scores.pairs["prompt"], prompt))
        failed = pc.and_(scores.pairs["reference_success"], pc.invert(scores.pairs["conflict_success"]))
        chosen = scores.pairs.filter(pc.and_(mine, failed))
        if chosen.num_rows:
            found[policy] = {measure.name: chosen[measure.name].to_numpy() for measure in DRAWN_PROCESS_MEASURES}
    return found


def _distribution(measure: Measure, failed: dict[str, dict[str, FloatArray]], scores: Scores) -> NamedPlot:
    count = len(failed)
    plot = Plot(
        width=340,
        height=62 + ROW_PX * count,
        x_range=(0, 100),
        y_range=(-0.16, count),
        margin=(14, 14, 14, 40),
        title=f"{measure.title}: distribution over qualified failures",
    )
    plot.axes(PERCENT_TICKS, (), f"{measure.symbol} (%)", "")
    rows = {row["policy"]: row for row in scores.table("failure_quartiles").to_pylist()}
    for place, (policy, values) in enumerate(reversed(failed.items())):
        defined = values[measure.name][np.isfinite(values[measure.name])]
        colour = policy_styles(scores.policies)[policy].colour
        counts, edges = np.histogram(100 * defined, bins=BINS, range=(0, 100))
        tallest = max(1, int(counts.max(initial=0)))
        plot.segment((0, place), (100, place), stroke=MUTED, stroke_opacity=0.5)
        for bin_count, left, right in zip(counts, edges, edges[1:], strict=False):
            if bin_count:
                top = place + 0.58 * bin_count / tallest
                _bar(
                    plot, (float(left), float(right)), (place, top), colour, f"{policy}: {bin_count} of {len(defined)}"
                )
        label = f"{shortened(policy, 22)}, {counted(len(defined), 'failure')}"
        plot.text((0, place + 0.66), label, dx=2, fill=colour, font_size=11, font_weight=600, halo=True)
        _quartiles(plot, place, [100 * rows[policy][f"{measure.name}_{name}"] for name in QUARTILES])
    return NamedPlot(name=f"failures-{measure.name}".lower(), caption=measure.title, plot=plot)


def _quartiles(plot: Plot, place: int, quartiles: Sequence[float]) -> None:
    """A bar from lower to upper quartile below the histogram, a line at the median, and all three as numbers."""
    if any(map(math.isnan, quartiles)):
        return
    low, middle, high = quartiles
    below = place - 0.07
    plot.segment((low, below), (high, below), stroke=INK, stroke_width=3)
    for end in (low, high):
        plot.segment((end, below - 0.06), (end, below + 0.06), stroke=INK, stroke_width=1.5)
    plot.segment((middle, below), (middle, place + 0.6), stroke=INK, stroke_width=1.5, stroke_dasharray="3 2")
    text = " | ".join(f"{value:.1f}" for value in quartiles)
    plot.text((100, place + 0.66), text, dx=-2, text_anchor="end", fill=INK, font_size=10, halo=True)


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
            tooltip = f"{policy}, {row[by]}: {y:.1f}%, {counted(row['n'], 'pair')}"
            plot.mark((x, y), drawn.shape, 4, tooltip, fill=drawn.colour, stroke="white", stroke_width=1)
    return NamedPlot(name=f"{by}-{measure.name}".lower(), caption=measure.title, plot=plot)


def _prompt(
    prompt: str, rows: list[dict[str, Any]], moves: dict[str, dict[str, Any]], styles: dict[str, Style]
) -> NamedPlot:
    """Policies down, measures across: a ring under P0, a mark under the prompt, and below how many moved."""
    measures = [measure for measure in MEASURES if measure.name in moves]
    policies = [policy for policy in styles if any(row["policy"] == policy for row in rows)]
    step = PROMPT_CELL_PX + PROMPT_GAP_PX
    plot = Plot(
        width=150 + step * len(measures),
        height=96 + PROMPT_ROW_PX * len(policies),
        x_range=(0, step * len(measures)),
        y_range=(0, len(policies)),
        margin=(138, 34, 12, 62),
        title=f"Each measure of {len(policies)} policies under P0 and {prompt}",
    )
    for place, policy in enumerate(reversed(policies)):
        name = shortened(policy, 20)
        plot.text((0, place + 0.5), name, dx=-12, dy=4, text_anchor="end", fill=styles[policy].colour, font_size=12)
    plot.text((0, 0), "moved where", dx=-12, dy=32, text_anchor="end", fill=INK, font_size=11)
    plot.text((0, 0), "the arrow points", dx=-12, dy=46, text_anchor="end", fill=INK, font_size=11)
    for number, measure in enumerate(measures):
        own = {row["policy"]: row for row in rows if row["measure"] == measure.name and row["n"]}
        _prompt_axis(plot, measure, number * step, len(policies))
        for place, policy in enumerate(reversed(policies)):
            if policy in own:
                _prompt_change(plot, measure, own[policy], (number * step, place + 0.5), styles[policy])
        count = moves[measure.name]
        text = f"{count['moved']} of {count['policies']}"
        middle = number * step + PROMPT_CELL_PX / 2
        plot.text((middle, 0), text, dy=40, text_anchor="middle", fill=INK, font_size=13, font_weight=600)
    together = moves[ALL_PROCESS]
    text = f"in all process measures at once: {together['moved']} of {together['policies']}"
    plot.text((step * len(measures), 0), text, dx=-PROMPT_GAP_PX, dy=57, text_anchor="end", fill=INK, font_size=11)
    name = "prompt-" + "".join(c if c.isalnum() else "-" for c in prompt)
    return NamedPlot(name=name, caption=f"{prompt} against P0", plot=plot)


def _prompt_axis(plot: Plot, measure: Measure, left: float, policies: int) -> None:
    """The column of one measure, from 0 to 100 percent."""
    head = f"{measure.symbol} {arrow(measure)}"
    middle = (left + PROMPT_CELL_PX / 2, policies)
    plot.text(middle, head, dy=-12, text_anchor="middle", fill=INK, font_size=12, font_weight=600)
    for tick in (0, 50, 100):
        x = left + tick / 100 * PROMPT_CELL_PX
        plot.segment((x, 0), (x, policies), stroke=GRID)
        plot.text((x, 0), str(tick), dy=14, text_anchor="middle", fill=MUTED, font_size=10)


def _prompt_change(plot: Plot, measure: Measure, row: dict[str, Any], at: tuple[float, float], drawn: Style) -> None:
    """From ring to mark: a solid line where the arrow points, a dashed one against it."""
    left, y = at
    before, after = (left + row[name] * PROMPT_CELL_PX for name in ("P0", "under"))
    line: dict[str, Value] = {"stroke": drawn.colour, "stroke_width": 2.5}
    if favourable(row, measure) < 0:
        line |= {"stroke_dasharray": "3 2", "stroke_width": 1.5}
    plot.segment((before, y), (after, y), **line)
    values = f"{percent(row['P0'])}% under P0, {percent(row['under'])}% under {row['prompt']}"
    tooltip = f"{row['policy']}, {measure.symbol}: {values}"
    plot.mark((after, y), drawn.shape, 4.5, tooltip, fill=drawn.colour)
    plot.mark((before, y), "circle", 4.5, tooltip, fill="none", stroke=INK, stroke_width=1.3)
