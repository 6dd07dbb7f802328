"""The result in one picture: outcome against process, on the page and as a file of its own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ....toolkit.atomic_files import write_atomic
from ...measures import DRAWN_PROCESS_MEASURES
from ...scores.scores import Scores
from .outcome_plot import MOST_NAMED, PolicySpots, Spot, outcome_against_process, outcome_note
from .plot import Plot
from .styles import INK, MUTED, Style, policy_styles, style
from .svg import Element, Outline, drawing

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
"""A file of its own inherits no font; these are the page's."""

GAP = 12.0
"""Space between panels and around them, in px."""

LEGEND_COLUMNS = 4
"""Policies side by side in the legend."""


def write_picture(scores: Scores, path: Path | str) -> Path:
    """Write outcome against process as one SVG file: three panels side by side, white behind, no other file needed.

    Args:
        scores: What to show.
        path: Where to write; folders are made as needed.

    Returns:
        The path written. The same scores give the same bytes.
    """
    path = Path(path)
    write_atomic(path, render_picture(scores) + "\n")
    return path


def render_picture(scores: Scores) -> Markup:
    """The picture as text; see ``write_picture``."""
    panels = outcome_panels(scores)
    width = sum(panel.width for panel in panels) + GAP * (len(panels) + 1)
    bottom = max(panel.height for panel in panels) + GAP
    parts = []
    left = GAP
    for panel in panels:
        parts.append(panel.render(x=left, y=GAP, width=panel.width, height=panel.height))
        left += panel.width + GAP
    policies = scores.policies if len(scores.policies) > MOST_NAMED else ()
    for index, policy in enumerate(policies):
        column, row = index % LEGEND_COLUMNS, index // LEGEND_COLUMNS
        at = (4 * GAP + column * (width - 5 * GAP) / LEGEND_COLUMNS, bottom + 20 * row + 22)
        parts.append(_legend_entry(policy, style(index), at))
    bottom += 20 * math.ceil(len(policies) / LEGEND_COLUMNS)
    note = outcome_note(len(scores.policies))
    place = {"x": 4 * GAP, "y": bottom + 24}
    parts.append(Element(tag="text", text=note, attributes={**place, "fill": MUTED, "font_size": 12}).svg())
    title = "Outcome against process: " + ", ".join(scores.policies)
    return drawing(width, bottom + 24 + GAP, title, parts, font_family=FONTS)


def outcome_panels(scores: Scores) -> list[Plot]:
    """RGSR across and one process measure upwards, a panel for each of ``DRAWN_PROCESS_MEASURES``."""
    styles = policy_styles(scores.policies)
    families = scores.table("family").to_pylist()
    panels = []
    for measure in DRAWN_PROCESS_MEASURES:
        policies = [
            PolicySpots(
                policy=_spot(row, measure.name, row["policy"]),
                families=tuple(
                    _spot(family, measure.name, family["family"])
                    for family in families
                    if family["policy"] == row["policy"] and not math.isnan(family[measure.name])
                ),
                style=styles[row["policy"]],
            )
            for row in scores.table("overall").to_pylist()
            if not math.isnan(row[measure.name])
        ]
        panels.append(outcome_against_process(measure, policies))
    return panels


def _spot(row: dict[str, Any], measure: str, name: str) -> Spot:
    def interval(of: str) -> tuple[float, float]:
        return 100 * row[f"{of}_lo"], 100 * row[f"{of}_hi"]

    return Spot(
        name=name,
        at=(100 * row["RGSR"], 100 * row[measure]),
        x_interval=interval("RGSR"),
        y_interval=interval(measure),
    )


def _legend_entry(policy: str, drawn: Style, at: tuple[float, float]) -> Markup:
    x, y = at
    outline = Outline(shape=drawn.shape, x=x + 5, y=y - 4, size=5)
    mark = Element(tag="path", attributes={"d": outline, "fill": drawn.colour})
    name = Element(tag="text", attributes={"x": x + 16, "y": y, "fill": INK, "font_size": 13}, text=policy)
    return mark.svg() + name.svg()
