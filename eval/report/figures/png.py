"""Plots as PNG: their SVG elements, drawn with matplotlib."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from ....toolkit.errors import MissingExtraError
from .plot import Plot
from .svg import Element, Outline, number

# Weighed against matplotlib's 34 MB: resvg-py (3 MB, but without fonts on the system all text is lost), cairosvg (needs
# the system's cairo) and Pillow (no smooth lines). So it is an extra.
EXTRA, PACKAGE = "figures", "matplotlib"

PX_PER_INCH = 96.0
"""As browsers take it; font sizes in px become points by 72 / 96."""

SCALE = 3.0
"""Pixels of the file to one px of the plot."""


def check_png() -> None:
    """Make sure, before anything is scored, that PNG files can be written.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingExtraError("writing figures as PNG", EXTRA, PACKAGE)


def write_png(plot: Plot, path: Path) -> None:
    """Write a plot as a PNG file, three times as large as it is in px, with a white background.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    check_png()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(plot.width / PX_PER_INCH, plot.height / PX_PER_INCH), dpi=PX_PER_INCH * SCALE)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, plot.width)
    axes.set_ylim(plot.height, 0)
    axes.axis("off")
    draw = {"line": _line, "polyline": _polyline, "rect": _rect, "path": _path, "text": _text}
    for order, element in enumerate(plot.elements, 1):
        draw[element.tag](axes, element, order)
    # No software name and date inside: the same scores give the same bytes.
    figure.savefig(path, format="png", metadata={"Software": None}, facecolor="white")


def _px(value: Any) -> float:
    """A coordinate as the SVG file has it."""
    return float(number(value))


def _number(element: Element, name: str, default: float = 0.0) -> float:
    return _px(element.attributes.get(name, default))


def _stroke(element: Element) -> dict[str, Any]:
    dashes = element.attributes.get("stroke_dasharray")
    return {
        "color": element.attributes.get("stroke", "none"),
        "linewidth": _number(element, "stroke_width", 1.0) * 72 / PX_PER_INCH,
        "alpha": _number(element, "stroke_opacity", 1.0),
        "linestyle": (0, tuple(map(float, str(dashes).split()))) if dashes else "-",
    }


def _line(axes: Any, element: Element, order: int) -> None:
    x, y = ([_number(element, f"{axis}{end}") for end in (1, 2)] for axis in "xy")
    axes.plot(x, y, zorder=order, solid_capstyle="butt", **_stroke(element))


def _polyline(axes: Any, element: Element, order: int) -> None:
    points = element.attributes["points"]
    if isinstance(points, tuple) and points:
        x, y = zip(*((_px(x), _px(y)) for x, y in points), strict=True)
        axes.plot(x, y, zorder=order, solid_joinstyle="round", **_stroke(element))


def _rect(axes: Any, element: Element, order: int) -> None:
    from matplotlib.patches import Rectangle

    corner = _number(element, "x"), _number(element, "y")
    size = _number(element, "width"), _number(element, "height")
    axes.add_patch(Rectangle(corner, *size, zorder=order, linewidth=0, **_fill(element)))


def _path(axes: Any, element: Element, order: int) -> None:
    from matplotlib.patches import Circle, Polygon

    outline = element.attributes["d"]
    if not isinstance(outline, Outline):
        return
    edge: dict[str, Any] = {"edgecolor": element.attributes.get("stroke", "none"), "linewidth": 0.0}
    if "stroke" in element.attributes:
        edge["linewidth"] = _number(element, "stroke_width", 1.0) * 72 / PX_PER_INCH
    if outline.shape == "circle":
        middle = _px(outline.x - outline.size) + _px(outline.size), _px(outline.y)
        axes.add_patch(Circle(middle, _px(outline.size), zorder=order, **_fill(element), **edge))
    else:
        corners = [(_px(x), _px(y)) for x, y in outline.corners()]
        axes.add_patch(Polygon(corners, closed=True, zorder=order, **_fill(element), **edge))


def _fill(element: Element) -> dict[str, Any]:
    return {"facecolor": element.attributes.get("fill", "black"), "alpha": _number(element, "fill_opacity", 1.0)}


def _text(axes: Any, element: Element, order: int) -> None:
    from matplotlib.patheffects import withStroke

    anchors = {"middle": "center", "end": "right"}
    upright = str(element.attributes.get("transform", "")).startswith("rotate(-90")
    drawn = axes.text(
        _number(element, "x"),
        _number(element, "y"),
        (element.text or "").replace("$", r"\$"),
        color=element.attributes.get("fill", "black"),
        alpha=_number(element, "fill_opacity", 1.0),
        fontsize=_number(element, "font_size", 12.0) * 72 / PX_PER_INCH,
        fontstyle=element.attributes.get("font_style", "normal"),
        fontweight="bold" if _number(element, "font_weight", 400.0) >= 600 else "normal",
        horizontalalignment=anchors.get(str(element.attributes.get("text_anchor", "")), "left"),
        verticalalignment="baseline",
        rotation=90 if upright else 0,
        rotation_mode="anchor",
        zorder=order,
    )
    if "paint_order" in element.attributes:
        width = 2 * _number(element, "stroke_width", 3.0) * 72 / PX_PER_INCH / 2
        drawn.set_path_effects([withStroke(linewidth=width, foreground=element.attributes["stroke"])])
