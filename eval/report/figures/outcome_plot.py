"""Outcome against process: RGSR across, a process measure upwards, a mark for each policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....toolkit.records import Family
from ...measures import Measure
from .plot import PERCENT_TICKS, Plot, shortened, spread
from .styles import MUTED, Style
from .svg import Point, Value

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
"""What the corners of a panel stand for, where that is known: where, at which side, in words."""

MOST_NAMED = 4
"""Up to this many policies are named beside their marks; more are named in the legend alone."""


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
    for (height, shift), side, words in CORNERS.get(measure.name, ()):
        x = 1.5 if side == "start" else 98.5
        plot.text((x, height), words, dy=shift, text_anchor=side, fill=MUTED, font_size=10, font_style="italic")
    crowded = len(policies) > MOST_NAMED
    for spots in policies:
        for family in spots.families:
            _add_family(plot, spots, family, crowded=crowded)
    for spots in policies:
        _add_policy(plot, spots)
    if not crowded:
        _add_names(plot, policies)
    return plot


def outcome_note(policies: int) -> str:
    """What the marks of ``outcome_against_process`` mean, for that many policies."""
    if policies > MOST_NAMED:
        return "Large marks: all pairs, with 95% intervals. Small marks: the policy's four conflict families."
    letters = ", ".join(f"{family.value[0].upper()} {family.value}" for family in Family)
    return f"Marks: all pairs, with 95% intervals. Letters: conflict families ({letters})."


def _add_family(plot: Plot, spots: PolicySpots, family: Spot, *, crowded: bool) -> None:
    """A letter for a conflict family, or a small mark where there are many policies."""
    shape, colour = spots.style.shape, spots.style.colour
    if crowded:
        tooltip = f"{spots.policy.name}, {family.name}: {family.at[0]:.1f}% and {family.at[1]:.1f}%"
        plot.mark(family.at, shape, 2, tooltip, fill=colour, fill_opacity=0.45)
    else:
        letter = family.name[0].upper()
        plot.text(family.at, letter, dy=4, text_anchor="middle", font_size=11, fill=colour, fill_opacity=0.7)


def _add_policy(plot: Plot, spots: PolicySpots) -> None:
    """A policy's mark, with its two intervals as thin lines."""
    spot, colour = spots.policy, spots.style.colour
    x, y = spot.at
    line: dict[str, Value] = {"stroke": colour, "stroke_width": 1.5, "stroke_opacity": 0.7}
    if np.isfinite(spot.x_interval).all():
        plot.segment((spot.x_interval[0], y), (spot.x_interval[1], y), **line)
    if np.isfinite(spot.y_interval).all():
        plot.segment((x, spot.y_interval[0]), (x, spot.y_interval[1]), **line)
    tooltip = f"{spot.name}: {x:.1f}% and {y:.1f}%"
    plot.mark(spot.at, spots.style.shape, 6, tooltip, fill=colour, stroke="white", stroke_width=1.5)


def _add_names(plot: Plot, policies: Sequence[PolicySpots]) -> None:
    """Each policy's name beside its mark, moved apart where names would overlap."""
    # Names on either side of their marks do not meet, so each side is spread for itself.
    for to_the_left in (False, True):
        side = [spots for spots in policies if (spots.policy.at[0] > 60) == to_the_left]
        _add_names_on_one_side(plot, side, to_the_left=to_the_left)


def _add_names_on_one_side(plot: Plot, policies: Sequence[PolicySpots], *, to_the_left: bool) -> None:
    heights = spread(_name_heights(plot, policies), 13)
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


def _name_heights(plot: Plot, policies: Sequence[PolicySpots]) -> list[float]:
    """Best height of each name, in px: beside its mark and a little above it, away from frame and corner words.

    Names at the lower edge are stacked above the words there, and so do not touch them when they are moved apart.
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
