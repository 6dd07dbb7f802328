"""SVG as text: the same numbers give the same bytes, and every string is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The outline of a mark: about the same area whatever its shape.

    Attributes:
        shape: One of ``styles.SHAPES``.
        x: Its middle, in px.
        y: Its middle, in px.
        size: From the middle to the edge, in px.
    """

    shape: str
    x: float
    y: float
    size: float

    def corners(self) -> tuple[Point, ...]:
        """Its corners in px; none for a circle."""
        corners: dict[str, tuple[Point, ...]] = {
            "circle": (),
            "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
            "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
            "triangle": ((0, -1.25), (1.2, 0.85), (-1.2, 0.85)),
        }
        return tuple((self.x + dx * self.size, self.y + dy * self.size) for dx, dy in corners[self.shape])


Value = str | float | tuple[Point, ...] | Outline
"""Value of an attribute: text, a number, the points of a line, or the outline of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One SVG element.

    Attributes:
        tag: Such as ``line``.
        attributes: By name; underscores become hyphens.
        text: Its text.
        tooltip: Text that is shown where it is pointed at.
    """

    tag: str
    attributes: Mapping[str, Value]
    text: str | None = None
    tooltip: str | None = None

    def svg(self) -> Markup:
        """The element as SVG text, escaped."""
        content = (escape(self.text) if self.text is not None else Markup()) + (
            Element(tag="title", attributes={}, text=self.tooltip).svg() if self.tooltip is not None else Markup()
        )
        return enclose(self.tag, self.attributes, content)


def enclose(tag: str, attributes: Mapping[str, Value], content: Markup) -> Markup:
    """An element around content that is SVG already."""
    written = [f'{name.replace("_", "-")}="{_attribute_text(value)}"' for name, value in attributes.items()]
    opening = " ".join([tag, *written])
    # The tag is ours, and values and content are escaped.
    return Markup(f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>")


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, 2) + 0.0:g}" if abs(value) < 1e4 else f"{value:.0f}"


def drawing(width: float, height: float, title: str, parts: Iterable[Markup], **attributes: str | float) -> Markup:
    """An SVG file of its own around finished parts, with a white background that also reads on a dark page."""
    ground = Element(tag="rect", attributes={"width": width, "height": height, "rx": 8.0, "fill": "white"})
    named = Element(tag="title", attributes={}, text=title)
    size: dict[str, Value] = {"width": width, "height": height, "viewBox": f"0 0 {number(width)} {number(height)}"}
    return enclose(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", **attributes},
        Markup("").join([named.svg(), ground.svg(), *parts]),
    )


def _attribute_text(value: Value) -> str:
    match value:
        case str():
            return str(escape(value))
        case Outline():
            return _path(value)
        case tuple():
            return " ".join(f"{number(x)},{number(y)}" for x, y in value)
        case _:
            return number(value)


def _path(outline: Outline) -> str:
    if outline.shape == "circle":
        x, y, r = outline.x, outline.y, outline.size
        arcs = f"a{number(r)} {number(r)} 0 1 0 {number(2 * r)} 0a{number(r)} {number(r)} 0 1 0 {number(-2 * r)} 0z"
        return f"M{number(x - r)} {number(y)}{arcs}"
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in outline.corners()) + "z"
