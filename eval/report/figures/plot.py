"""A plot: a rectangle of data coordinates, filled with SVG elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from .styles import GRID, INK, MUTED
from .svg import Element, Outline, Point, Value, enclose, number

PERCENT_TICKS = (0, 25, 50, 75, 100)


@dataclass(slots=True, kw_only=True)
class Plot:
    """A rectangle of data coordinates within a drawing; elements are added, then rendered once.

    Attributes:
        width: Drawing width in px; the page scales it.
        height: Drawing height in px.
        x_range: Data at the left and right edge.
        y_range: Data at the bottom and top edge.
        margin: Space left, top, right and bottom of the rectangle, in px.
        title: What a screen reader reads out.
        elements: What is drawn, in order.
    """

    width: float
    height: float
    x_range: Point
    y_range: Point
    margin: tuple[float, float, float, float] = (44, 14, 14, 40)
    title: str
    elements: list[Element] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Horizontal position of a data value, in px."""
        left, _, right, _ = self.margin
        low, high = self.x_range
        return left + (value - low) / (high - low) * (self.width - left - right)

    def y(self, value: float) -> float:
        """Vertical position of a data value, in px."""
        _, top, _, bottom = self.margin
        low, high = self.y_range
        return self.height - bottom - (value - low) / (high - low) * (self.height - top - bottom)

    def element(self, tag: str, text: str | None = None, /, **attributes: Value) -> None:
        """Add one element at a place in px; underscores in attribute names become hyphens."""
        self.elements.append(Element(tag=tag, attributes=attributes, text=text))

    def segment(self, start: Point, end: Point, **attributes: Value) -> None:
        """A straight line between two data points."""
        (x1, y1), (x2, y2) = start, end
        self.element("line", x1=self.x(x1), y1=self.y(y1), x2=self.x(x2), y2=self.y(y2), **attributes)

    def box(self, low: Point, high: Point, **attributes: Value) -> None:
        """A rectangle between two data points, the lower left and the upper right corner."""
        (x1, y1), (x2, y2) = low, high
        width, height = self.x(x2) - self.x(x1), self.y(y1) - self.y(y2)
        self.element("rect", x=self.x(x1), y=self.y(y2), width=width, height=height, **attributes)

    def curve(self, points: Iterable[Point], **attributes: Value) -> None:
        """A line through data points."""
        path = tuple((self.x(x), self.y(y)) for x, y in points)
        self.element("polyline", points=path, fill="none", stroke_linejoin="round", **attributes)

    def text(
        self, at: Point, text: str, dx: float = 0, dy: float = 0, *, halo: bool = False, **attributes: Value
    ) -> None:
        """Text at a data point, moved by some px; a halo keeps it legible across lines."""
        if halo:
            attributes |= {"paint_order": "stroke", "stroke": "white", "stroke_width": 3}
        self.element("text", text, x=self.x(at[0]) + dx, y=self.y(at[1]) + dy, **attributes)

    def mark(self, at: Point, shape: str, size: float, tooltip: str, **attributes: Value) -> None:
        """A mark at a data point that shows its tooltip when pointed at."""
        outline = Outline(shape=shape, x=self.x(at[0]), y=self.y(at[1]), size=size)
        self.elements.append(Element(tag="path", attributes={"d": outline, **attributes}, tooltip=tooltip))

    def axes(
        self, x_ticks: Sequence[float], y_ticks: Sequence[float], x_label: str, y_label: str, unit: str = ""
    ) -> None:
        """Grid lines, tick labels and axis titles; ``unit`` follows each tick's number."""
        (left, right), (bottom, top) = self.x_range, self.y_range
        for tick in x_ticks:
            self.segment((tick, bottom), (tick, top), stroke=GRID)
            self.text((tick, bottom), _tick(tick) + unit, dy=16, text_anchor="middle", fill=MUTED, font_size=11)
        for tick in y_ticks:
            self.segment((left, tick), (right, tick), stroke=GRID)
            self.text((left, tick), _tick(tick) + unit, dx=-6, dy=4, text_anchor="end", fill=MUTED, font_size=11)
        self.text(((left + right) / 2, bottom), x_label, dy=33, text_anchor="middle", fill=INK, font_size=12)
        middle = self.y((bottom + top) / 2)
        turned = f"rotate(-90 11 {number(middle)})"
        self.element("text", y_label, x=11, y=middle, transform=turned, text_anchor="middle", fill=INK, font_size=12)

    def render(self, **place: float) -> Markup:
        """The plot as an SVG element; within another drawing, ``place`` gives its x, y, width and height."""
        title = Element(tag="title", attributes={}, text=self.title)
        box = f"0 0 {number(self.width)} {number(self.height)}"
        return enclose(
            "svg",
            {"viewBox": box, "role": "img", "class": "plot", **place},
            Markup("").join(element.svg() for element in (title, *self.elements)),
        )


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Positions moved as little as needed so that neighbours are ``gap`` apart, in the order given."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    moved = [positions[index] for index in order]
    for _ in range(50):
        for lower in range(len(moved) - 1):
            lacking = gap - (moved[lower + 1] - moved[lower])
            if lacking > 0:
                moved[lower] -= lacking / 2
                moved[lower + 1] += lacking / 2
    result = [0.0] * len(moved)
    for place, index in enumerate(order):
        result[index] = moved[place]
    return result


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a range, at most ``most``, at least the one nearest to its middle."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0):
        first, last = -(-low // step), high // step
        ticks = [round(index * step, 6) + 0.0 for index in range(int(first), int(last) + 1)]
        if len(ticks) <= most:
            return ticks
    return [round((low + high) / 2)]


def shortened(text: str, most: int) -> str:
    """A name cut in its middle to at most so many characters, since names differ at their ends."""
    ending = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - ending]}…{text[-ending:]}"


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")
