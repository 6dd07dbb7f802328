"""One pair's two motions: the grippers' paths from above, and how much the arm is commanded to move."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from ....toolkit.records import CONTROL_HZ
from ..chosen_pair import PairMotion
from .plot import Plot, nice_ticks, shortened
from .styles import CONFLICT_COLOUR, INK, MUTED, REFERENCE_COLOUR, TARGET_COLOUR


def gripper_paths(motion: PairMotion) -> Markup:
    """Both gripper paths from above, as the camera stands: right is +y, towards the viewer is +x."""
    points = np.concatenate([motion.reference_eef_m, motion.conflict_eef_m, motion.target_m])[:, :2]
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes, here and in the drawing's size, so that the paths have their true shape.
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
        line = [(float(y), float(x)) for x, y, _ in path]
        plot.curve(line, stroke=colour, stroke_width=width, stroke_linecap="round")
    _add_ends(plot, motion)
    _add_targets(plot, motion, y_middle)
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
    plot.box((0, 0), (min(1.0, longest), most * 1.15), fill="#f3ead8")
    plot.text((0, most * 1.15), "first 20 actions", dx=4, dy=12, fill=MUTED, font_size=10)
    plot.axes(nice_ticks(0, longest, 7), nice_ticks(0, most, 6), "time (s)", "norm of the arm's action")
    for norm, colour, width in (
        (motion.reference_norm, REFERENCE_COLOUR, 2.4),
        (motion.conflict_norm, CONFLICT_COLOUR, 1.4),
    ):
        line = [(step / CONTROL_HZ, float(value)) for step, value in enumerate(norm)]
        plot.curve(line, stroke=colour, stroke_width=width)
    return plot.render()


def _add_ends(plot: Plot, motion: PairMotion) -> None:
    """The common start of both paths, and the end of each."""
    x, y, _ = motion.reference_eef_m[0]
    plot.mark((float(y), float(x)), "circle", 4, "start", fill="white", stroke=INK, stroke_width=1.5)
    for path, colour, arm in (
        (motion.reference_eef_m, REFERENCE_COLOUR, "reference"),
        (motion.conflict_eef_m, CONFLICT_COLOUR, "conflict"),
    ):
        x, y, _ = path[-1]
        tooltip = f"end of the {arm} rollout"
        plot.mark((float(y), float(x)), "square", 4, tooltip, fill=colour, stroke="white", stroke_width=1)


def _add_targets(plot: Plot, motion: PairMotion, y_middle: float) -> None:
    """Each target at the start, its name on the side with more space."""
    for name, (x, y, _) in zip(motion.targets, motion.target_m, strict=True):
        at = (float(y), float(x))
        plot.mark(at, "diamond", 5, f"target at the start: {name}", fill=TARGET_COLOUR)
        side = "end" if y > y_middle else "start"
        plot.text(at, shortened(name, 24), dy=20, text_anchor=side, fill=TARGET_COLOUR, font_size=11, halo=True)
