"""Plots as PNG: the few SVG elements that this package draws, drawn once more with matplotlib."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from .svg import Plot

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"

PX_PER_INCH = 96.0
"""As browsers take it; font sizes in px become points by 72 / 96."""

SCALE = 3.0
"""Pixels of the file to one px of the plot."""


def write_png(plot: Plot, path: Path) -> None:
    """Write a plot as a PNG file, three times as large as it is in px, with a white background."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(plot.width / PX_PER_INCH, plot.height / PX_PER_INCH), dpi=PX_PER_INCH * SCALE)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, plot.width)
    axes.set_ylim(plot.height, 0)
    axes.axis("off")
    for order, element in enumerate(ElementTree.fromstring(plot.render())):
        draw = {"line": _line, "polyline": _polyline, "rect": _rect, "path": _path, "text": _text}.get(element.tag)
        if draw is not None:
            draw(axes, element, order)
    # No software name and date inside: the same scores give the same bytes.
    figure.savefig(path, format="png", metadata={"Software": None}, facecolor="white")


def _number(element: ElementTree.Element, name: str, default: float = 0.0) -> float:
    return float(element.attrib.get(name, default))


def _stroke(element: ElementTree.Element) -> dict[str, Any]:
    dashes = element.attrib.get("stroke-dasharray")
    return {
        "color": element.attrib.get("stroke", "none"),
        "linewidth": _number(element, "stroke-width", 1.0) * 72 / PX_PER_INCH,
        "alpha": _number(element, "stroke-opacity", 1.0),
        "linestyle": (0, tuple(map(float, dashes.split()))) if dashes else "-",
    }


def _line(axes: Any, element: ElementTree.Element, order: int) -> None:
    x, y = ([_number(element, f"{axis}{end}") for end in (1, 2)] for axis in "xy")
    axes.plot(x, y, zorder=order, solid_capstyle="butt", **_stroke(element))


def _polyline(axes: Any, element: ElementTree.Element, order: int) -> None:
    points = [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, y, zorder=order, solid_joinstyle="round", **_stroke(element))


def _rect(axes: Any, element: ElementTree.Element, order: int) -> None:
    from matplotlib.patches import Rectangle

    corner = _number(element, "x"), _number(element, "y")
    size = _number(element, "width"), _number(element, "height")
    axes.add_patch(Rectangle(corner, *size, zorder=order, linewidth=0, **_fill(element)))


def _path(axes: Any, element: ElementTree.Element, order: int) -> None:
    from matplotlib.patches import Circle, Polygon

    drawn = element.attrib["d"]
    edge: dict[str, Any] = {"edgecolor": element.attrib.get("stroke", "none")}
    edge |= {"linewidth": _number(element, "stroke-width", 1.0) * 72 / PX_PER_INCH if "stroke" in element.attrib else 0}
    numbers = [float(text) for text in re.findall(NUMBER, drawn)]
    if "a" in drawn:
        left, y, radius = numbers[:3]
        axes.add_patch(Circle((left + radius, y), radius, zorder=order, **_fill(element), **edge))
        return
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    axes.add_patch(Polygon(corners, closed=True, zorder=order, **_fill(element), **edge))


def _fill(element: ElementTree.Element) -> dict[str, Any]:
    return {"facecolor": element.attrib.get("fill", "black"), "alpha": _number(element, "fill-opacity", 1.0)}


def _text(axes: Any, element: ElementTree.Element, order: int) -> None:
    from matplotlib.patheffects import withStroke

    turned = element.attrib.get("transform", "").startswith("rotate(-90")
    anchor = {"middle": "center", "end": "right"}.get(element.attrib.get("text-anchor", ""), "left")
    drawn = axes.text(
        _number(element, "x"),
        _number(element, "y"),
        (element.text or "").replace("$", r"\$"),
        color=element.attrib.get("fill", "black"),
        alpha=_number(element, "fill-opacity", 1.0),
        fontsize=_number(element, "font-size", 12.0) * 72 / PX_PER_INCH,
        fontstyle=element.attrib.get("font-style", "normal"),
        fontweight="bold" if _number(element, "font-weight", 400.0) >= 600 else "normal",
        horizontalalignment=anchor,
        verticalalignment="baseline",
        rotation=90 if turned else 0,
        rotation_mode="anchor",
        zorder=order,
    )
    if "paint-order" in element.attrib:
        width = 2 * _number(element, "stroke-width", 3.0) * 72 / PX_PER_INCH / 2
        drawn.set_path_effects([withStroke(linewidth=width, foreground=element.attrib["stroke"])])
