"""Failed persistence: the share of qualified failures at or above a threshold, as a curve and as maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....toolkit.arrays import FloatArray
from ...analyses.columns import percent
from ...analyses.persistence import PERSISTENCE_LEVELS
from ...scores.scores import Scores
from .plot import PERCENT_TICKS, Plot, shortened, spread
from .styles import INK, Style, policy_styles

CURVE_MARKS = (0.25, 0.5, 0.75)
"""Thresholds at which the curve has marks."""

MAP_MARKS = (0.5, 0.8)
"""Thresholds at which a map has marks, the same for TAR and Early20."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyPersistence:
    """The failed persistence of one policy.

    Attributes:
        policy: The policy.
        share: Share of its qualified failures over ``PERSISTENCE_LEVELS`` of TAR and of Early20, shape (L, L).
        style: How the policy is drawn.
    """

    policy: str
    share: FloatArray
    style: Style


def policy_persistence(scores: Scores) -> list[PolicyPersistence]:
    """Of each policy that has qualified failures with a defined TAR."""
    found = [
        PolicyPersistence(policy=policy, share=scores.failed_persistence(policy), style=style)
        for policy, style in policy_styles(scores.policies).items()
    ]
    return [persistence for persistence in found if np.isfinite(persistence.share).all()]


def persistence_curve(policies: Sequence[PolicyPersistence]) -> Plot:
    """Share of qualified failures at or above one threshold for both TAR and Early20, as that threshold rises."""
    plot = Plot(
        width=460,
        height=300,
        x_range=(0, 100),
        y_range=(0, 100),
        margin=(44, 14, 110, 40),
        title="Failed persistence: share of qualified failures with both TAR and Early20 at least x",
    )
    plot.axes(PERCENT_TICKS, PERCENT_TICKS, "threshold x for TAR and Early20 (%)", "qualified failures (%)")
    for one in policies:
        share = np.diag(one.share)
        points = [(100 * level, 100 * part) for level, part in zip(PERSISTENCE_LEVELS, share, strict=True)]
        plot.curve(points, stroke=one.style.colour, stroke_width=2)
        for level in CURVE_MARKS:
            part = float(share[_nearest(level)])
            tooltip = f"{one.policy}: {percent(part)}% have TAR and Early20 of at least {level:.2f}"
            plot.mark((100 * level, 100 * part), one.style.shape, 4, tooltip, fill=one.style.colour)
    _add_names(plot, policies)
    return plot


def persistence_map(persistence: PolicyPersistence) -> Plot:
    """The same share of one policy over all pairs of thresholds: TAR across, Early20 upwards; darker is more."""
    plot = Plot(
        width=220,
        height=214,
        x_range=(0, 100),
        y_range=(0, 100),
        margin=(40, 10, 12, 38),
        title=f"{persistence.policy}: failed persistence",
    )
    levels, share, colour = PERSISTENCE_LEVELS, persistence.share, persistence.style.colour
    step = 100 * float(levels[1] - levels[0])
    plot.axes((0, 50, 100), (0, 50, 100), "TAR ≥ (%)", "Early20 ≥ (%)")
    for i, j in np.ndindex(len(levels) - 1, len(levels) - 1):
        if share[i, j] > 0:
            plot.element(
                "rect",
                x=plot.x(100 * levels[i]),
                y=plot.y(100 * levels[j] + step),
                width=plot.x(step) - plot.x(0),
                height=plot.y(0) - plot.y(step),
                fill=colour,
                fill_opacity=0.85 * float(share[i, j]),
                shape_rendering="crispEdges",
            )
    for level in MAP_MARKS:
        index, at = _nearest(level), (100 * level, 100 * level)
        plot.mark(at, "circle", 2.5, f"both at least {level}", fill=INK)
        plot.text(at, f"{percent(float(share[index, index]), 0)}%", dx=5, dy=-4, fill=INK, font_size=11)
    return plot


def _nearest(level: float) -> int:
    """Number of the threshold that is nearest to a level."""
    return int(np.argmin(np.abs(PERSISTENCE_LEVELS - level)))


def _add_names(plot: Plot, policies: Sequence[PolicyPersistence]) -> None:
    """Each policy's name right of the plot, with a line from the end of its curve."""
    x, right = plot.x(100 * PERSISTENCE_LEVELS[-3]), plot.x(100)
    ends = [plot.y(100 * float(one.share[-3, -3])) for one in policies]
    heights = spread(ends, 14)
    above = max(0.0, max(heights, default=0.0) - (plot.height - 8))  # curves end low, and many names need height
    for one, y, height in zip(policies, ends, [height - above for height in heights], strict=True):
        plot.element("line", x1=x, y1=y, x2=right + 6, y2=height, stroke=one.style.colour, stroke_opacity=0.4)
        plot.element("text", shortened(one.policy, 14), x=right + 9, y=height + 4, fill=one.style.colour, font_size=12)
