"""The page's plots: outcome against process, failed persistence, and one pair's two motions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ...toolkit.arrays import FloatArray
from ...toolkit.records import CONTROL_HZ, Family
from ..analyses.columns import percent
from ..measures import Measure
from .chosen_pair import PairMotion
from .plot import PERCENT_TICKS, Plot, nice_ticks, shortened, spread
from .styles import CONFLICT_COLOUR, INK, MUTED, REFERENCE_COLOUR, TARGET_COLOUR, Style
from .svg import Point

ABOVE, BELOW = (100.0, -6.0), (0.0, -5.0)
"""Height in percent and shift in px of words above the frame and just above its lower edge."""

CORNERS = {
    "TAR": ((ABOVE, "start", "fails, yet approaches"), (ABOVE, "end", "completes"), (BELOW, "start", "stays away")),
    "Early20_TS": (
        (ABOVE, "start", "fails, starts alike"),
        (ABOVE, "end", "completes"),
        (BELOW, "start", "starts otherwise"),
    ),
    "AMS": (
        (ABOVE, "start", "fails, moves less"),
        (BELOW, "end", "completes"),
        (BELOW, "start", "fails, moves as much"),
    ),
}
"""What the corners of each panel stand for: where, at which side, in words."""


MOST_NAMED = 4
"""Up to this many policies are named beside their marks; more are told apart by the legend alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A policy or one of its conflict families in the plane of outcome and process, all in percent.

    Attributes:
        name: The policy, or the family.
        at: RGSR and the process measure.
        x_interval: 95% interval of RGSR; NaN where undefined.
        y_interval: 95% interval of the process measure; NaN where undefined.
    """

    name: str
    at: Point
    x_interval: Point
    y_interval: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpots:
    """A policy's own spot and those of its families."""

    policy: Spot
    families: tuple[Spot, ...]
    style: Style


def outcome_against_process(measure: Measure, policies: Sequence[PolicySpots]) -> Plot:
    """RGSR across, a process measure upwards: a mark with its intervals for each policy, letters for its families."""
    title = f"{measure.title} against reference goal success rate under conflict"
    plot = Plot(width=340, height=322, x_range=(0, 100), y_range=(0, 100), margin=(44, 26, 14, 40), title=title)
    plot.axes(PERCENT_TICKS, PERCENT_TICKS, "RGSR (%): completes although it should not", f"{measure.symbol} (%)")
    for (height, shift), side, words in CORNERS[measure.name]:
        x = 1.5 if side == "start" else 98.5
        plot.text((x, height), words, dy=shift, text_anchor=side, fill=MUTED, font_size=10, font_style="italic")
    crowded = len(policies) > MOST_NAMED
    for spots in policies:
        for family in spots.families:
            said = f"{spots.policy.name}, {family.name}: {family.at[0]:.1f}% and {family.at[1]:.1f}%"
            if crowded:
                plot.mark(family.at, spots.style.shape, 2, said, fill=spots.style.colour, fill_opacity=0.45)
                continue
            letter = family.name[0].upper()
            plot.text(
                family.at, letter, dy=4, text_anchor="middle", font_size=11, fill=spots.style.colour, fill_opacity=0.7
            )
    for spots in policies:
        _cross(plot, spots)
    if not crowded:
        _labels(plot, policies)
    return plot


def picture_note(policies: int) -> str:
    """What the marks of ``outcome_against_process`` mean, for that many policies."""
    if policies > MOST_NAMED:
        return "Large marks: all pairs, with 95% intervals. Small marks: the policy's four conflict families."
    letters = ", ".join(f"{family.value[0].upper()} {family.value}" for family in Family)
    return f"Marks: all pairs, with 95% intervals. Letters: conflict families ({letters})."


def persistence_curve(curves: Sequence[tuple[str, FloatArray, Style]], levels: FloatArray) -> Plot:
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
    shown = [(name, np.diag(curve), style) for name, curve, style in curves if np.isfinite(curve).all()]
    for name, share, style in shown:
        points = [(100 * level, 100 * part) for level, part in zip(levels, share, strict=True)]
        plot.curve(points, stroke=style.colour, stroke_width=2)
        for level in (0.25, 0.5, 0.75):
            part = float(share[int(np.argmin(np.abs(levels - level)))])
            said = f"{name}: {percent(part)}% have TAR and Early20 of at least {level:.2f}"
            plot.mark((100 * level, 100 * part), style.shape, 4, said, fill=style.colour)
    heights = spread([plot.y(100 * float(share[-3])) for _, share, _ in shown], 14)
    for (name, share, style), height in zip(shown, heights, strict=True):
        tip = (100 * levels[-3], 100 * float(share[-3]))
        plot.element(
            "line",
            x1=plot.x(tip[0]),
            y1=plot.y(tip[1]),
            x2=plot.x(100) + 6,
            y2=height,
            stroke=style.colour,
            stroke_opacity=0.4,
        )
        plot.element("text", shortened(name, 14), x=plot.x(100) + 9, y=height + 4, fill=style.colour, font_size=12)
    return plot


def persistence_map(name: str, curve: FloatArray, levels: FloatArray, style: Style) -> Markup:
    """The same share over all pairs of thresholds: TAR across, Early20 upwards; darker is more."""
    plot = Plot(
        width=220,
        height=214,
        x_range=(0, 100),
        y_range=(0, 100),
        margin=(40, 10, 12, 38),
        title=f"{name}: failed persistence",
    )
    step = 100 * float(levels[1] - levels[0])
    plot.axes((0, 50, 100), (0, 50, 100), "TAR ≥ (%)", "Early20 ≥ (%)")
    for i, j in np.ndindex(curve.shape):
        if i == len(levels) - 1 or j == len(levels) - 1 or not curve[i, j] > 0:
            continue
        plot.element(
            "rect",
            x=plot.x(100 * levels[i]),
            y=plot.y(100 * levels[j] + step),
            width=plot.x(step) - plot.x(0),
            height=plot.y(0) - plot.y(step),
            fill=style.colour,
            fill_opacity=0.85 * float(curve[i, j]),
            shape_rendering="crispEdges",
        )
    for level in (0.5, 0.8):
        index = int(np.argmin(np.abs(levels - level)))
        at = (100 * level, 100 * level)
        plot.mark(at, "circle", 2.5, f"both at least {level}", fill=INK)
        plot.text(at, f"{percent(float(curve[index, index]), 0)}%", dx=5, dy=-4, fill=INK, font_size=11)
    return plot.render()


def gripper_paths(motion: PairMotion) -> Markup:
    """Both gripper paths from above, as the camera stands: right is +y, towards the viewer is +x."""
    points = np.concatenate([motion.reference_eef_m, motion.conflict_eef_m, motion.target_m])[:, :2]
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes, here and in the drawing's size, so that the paths keep their shape.
    half = max(float((high - low).max()) / 2, 0.05) * 1.15
    (x_middle, y_middle) = (low + high) / 2
    plot = Plot(
        width=400,
        height=390,
        x_range=(y_middle - half, y_middle + half),
        y_range=(x_middle + half, x_middle - half),
        margin=(52, 12, 12, 42),
        title="Gripper paths from above",
    )
    ticks = nice_ticks(y_middle - half, y_middle + half), nice_ticks(x_middle - half, x_middle + half)
    plot.axes(ticks[0], ticks[1], "y (m), to the right", "x (m), towards the viewer")
    for path, colour, width in (
        (motion.reference_eef_m, REFERENCE_COLOUR, 4),
        (motion.conflict_eef_m, CONFLICT_COLOUR, 1.8),
    ):
        plot.curve(
            [(float(y), float(x)) for x, y, _ in path], stroke=colour, stroke_width=width, stroke_linecap="round"
        )
    _path_ends(plot, motion)
    for name, (x, y, _) in zip(motion.targets, motion.target_m, strict=True):
        plot.mark((float(y), float(x)), "diamond", 5, f"target at the start: {name}", fill=TARGET_COLOUR)
        side = "end" if y > y_middle else "start"
        label = shortened(name, 24)
        plot.text((float(y), float(x)), label, dy=20, text_anchor=side, fill=TARGET_COLOUR, font_size=11, halo=True)
    return plot.render()


def action_norms(motion: PairMotion) -> Markup:
    """Norm of the arm's action over time in both rollouts; the first 20 actions are shaded."""
    longest = max(len(motion.reference_norm), len(motion.conflict_norm)) / CONTROL_HZ
    most = max(float(motion.reference_norm.max()), float(motion.conflict_norm.max())) or 1.0
    plot = Plot(
        width=400,
        height=300,
        margin=(54, 14, 14, 40),
        x_range=(0, longest),
        y_range=(0, most * 1.15),
        title="Norm of the arm's action over time",
    )
    early = min(1.0, longest)
    plot.element(
        "rect",
        x=plot.x(0),
        y=plot.y(most * 1.15),
        width=plot.x(early) - plot.x(0),
        height=plot.y(0) - plot.y(most * 1.15),
        fill="#f3ead8",
    )
    plot.text((0, most * 1.15), "first 20 actions", dx=4, dy=12, fill=MUTED, font_size=10)
    plot.axes(nice_ticks(0, longest, 7), nice_ticks(0, most, 6), "time (s)", "norm of the arm's action")
    for norm, colour, width in (
        (motion.reference_norm, REFERENCE_COLOUR, 2.4),
        (motion.conflict_norm, CONFLICT_COLOUR, 1.4),
    ):
        plot.curve(
            [(step / CONTROL_HZ, float(value)) for step, value in enumerate(norm)], stroke=colour, stroke_width=width
        )
    return plot.render()


def _cross(plot: Plot, spots: PolicySpots) -> None:
    """A policy's mark, with its two intervals as thin lines."""
    spot, colour = spots.policy, spots.style.colour
    x, y = spot.at
    if np.isfinite(spot.x_interval).all():
        plot.segment(
            (spot.x_interval[0], y), (spot.x_interval[1], y), stroke=colour, stroke_width=1.5, stroke_opacity=0.7
        )
    if np.isfinite(spot.y_interval).all():
        plot.segment(
            (x, spot.y_interval[0]), (x, spot.y_interval[1]), stroke=colour, stroke_width=1.5, stroke_opacity=0.7
        )
    said = f"{spot.name}: {x:.1f}% and {y:.1f}%"
    plot.mark(spot.at, spots.style.shape, 6, said, fill=colour, stroke="white", stroke_width=1.5)


def _labels(plot: Plot, policies: Sequence[PolicySpots]) -> None:
    """Each policy's name beside its mark, moved apart where names would overlap."""
    # Names on either side of their marks do not meet, so each side is spread for itself.
    for to_the_left in (False, True):
        side = [spots for spots in policies if (spots.policy.at[0] > 60) == to_the_left]
        _labels_on_one_side(plot, side, to_the_left=to_the_left)


def _labels_on_one_side(plot: Plot, policies: Sequence[PolicySpots], *, to_the_left: bool) -> None:
    heights = spread(_label_heights(plot, policies), 13)
    for spots, height in zip(policies, heights, strict=True):
        plot.text(
            spots.policy.at,
            shortened(spots.policy.name, 18),
            dx=-11 if to_the_left else 11,
            dy=height - plot.y(spots.policy.at[1]),
            text_anchor="end" if to_the_left else "start",
            fill=spots.style.colour,
            font_size=12,
            font_weight=600,
            halo=True,
        )


def _label_heights(plot: Plot, policies: Sequence[PolicySpots]) -> list[float]:
    """Where each name would like to be, in px: beside its mark and a little above it, away from frame and corner words.

    Names at the lower edge are stacked above the words there, and so keep clear of them when they are moved apart.
    """
    heights = []
    at_the_edge = 0
    for spots in policies:
        height = plot.y(spots.policy.at[1])
        if spots.policy.at[1] > 90:
            height += 18
        elif spots.policy.at[1] < 8:
            height = plot.y(0) - 22 - 13 * at_the_edge
            at_the_edge += 1
        else:
            height -= 6
        heights.append(height)
    return heights


def _path_ends(plot: Plot, motion: PairMotion) -> None:
    x, y, _ = motion.reference_eef_m[0]
    plot.mark((float(y), float(x)), "circle", 4, "start", fill="white", stroke=INK, stroke_width=1.5)
    for path, colour, who in (
        (motion.reference_eef_m, REFERENCE_COLOUR, "reference"),
        (motion.conflict_eef_m, CONFLICT_COLOUR, "conflict"),
    ):
        x, y, _ = path[-1]
        plot.mark(
            (float(y), float(x)), "square", 4, f"end of the {who} rollout", fill=colour, stroke="white", stroke_width=1
        )
