"""Small drawing of plots as SVG text: the same numbers give the same bytes, and every string is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

Point = tuple[float, float]

PALETTE = ("#1f6f8b", "#c8553d", "#4b8f29", "#8a4fa3", "#b7791f", "#2b4c9b", "#a03070", "#5f6b6d")
"""Told apart also by the most common colour vision deficiencies, with the shapes below."""

SHAPES = ("circle", "square", "diamond", "triangle")

INK, MUTED, GRID = "#1d2429", "#66727a", "#e4e8ea"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a policy is drawn everywhere on the page."""

    colour: str
    shape: str


def style(index: int) -> Style:
    """Colour and shape of the policy with that number."""
    return Style(colour=PALETTE[index % len(PALETTE)], shape=SHAPES[index % len(SHAPES)])


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, 2) + 0.0:g}" if abs(value) < 1e4 else f"{value:.0f}"


@dataclass(slots=True, kw_only=True)
class Plot:
    """A rectangle of data coordinates within a drawing; elements are added, then rendered once.

    Attributes:
        width: Drawing width in px; the page scales it.
        height: Drawing height in px.
        x_range: Data at the left and right edge.
        y_range: Data at the bottom and top edge.
        margin: Room left, top, right and bottom of the rectangle, in px.
        title: What a screen reader says.
    """

    width: float
    height: float
    x_range: Point
    y_range: Point
    margin: tuple[float, float, float, float] = (44, 14, 14, 40)
    title: str
    _parts: list[str] = field(default_factory=list)

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

    def element(self, tag: str, text: str | None = None, /, **attributes: str | float) -> None:
        """Add one element; underscores in attribute names become hyphens."""
        self._parts.append(_element(tag, text, attributes))

    def segment(self, start: Point, end: Point, **attributes: str | float) -> None:
        """A straight line between two data points."""
        (x1, y1), (x2, y2) = start, end
        self.element("line", x1=self.x(x1), y1=self.y(y1), x2=self.x(x2), y2=self.y(y2), **attributes)

    def curve(self, points: Iterable[Point], **attributes: str | float) -> None:
        """A line through data points."""
        path = " ".join(f"{number(self.x(x))},{number(self.y(y))}" for x, y in points)
        self.element("polyline", points=path, fill="none", stroke_linejoin="round", **attributes)

    def text(
        self, at: Point, text: str, dx: float = 0, dy: float = 0, *, halo: bool = False, **attributes: str | float
    ) -> None:
        """Text at a data point, moved by some px; a halo keeps it legible across lines."""
        if halo:
            attributes |= {"paint_order": "stroke", "stroke": "white", "stroke_width": 3}
        self.element("text", text, x=self.x(at[0]) + dx, y=self.y(at[1]) + dy, **attributes)

    def mark(self, at: Point, shape: str, size: float, tooltip: str, **attributes: str | float) -> None:
        """A mark at a data point that says its tooltip when pointed at."""
        x, y = self.x(at[0]), self.y(at[1])
        self._parts.append(
            _element(
                "path", None, {"d": outline(shape, x, y, size), **attributes}, inner=_element("title", tooltip, {})
            )
        )

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
        """The drawing as an SVG element; within another drawing, ``place`` gives its x, y, width and height."""
        opening = _opening(
            "svg",
            {
                "viewBox": f"0 0 {number(self.width)} {number(self.height)}",
                "role": "img",
                "class": "plot",
                **place,
            },
        )
        inner = _element("title", self.title, {}) + "".join(self._parts)
        # Every part was escaped when it was made.
        return Markup(f"<{opening}>{inner}</svg>")


def element(tag: str, text: str | None = None, /, **attributes: str | float) -> Markup:
    """One SVG element, escaped; underscores in attribute names become hyphens."""
    # The parts were escaped one by one.
    return Markup(_element(tag, text, attributes))


def drawing(width: float, height: float, title: str, parts: Iterable[Markup], **attributes: str | float) -> Markup:
    """An SVG file of its own around finished parts, with a white background that also reads on a dark page."""
    size: dict[str, str | float] = {
        "width": width,
        "height": height,
        "viewBox": f"0 0 {number(width)} {number(height)}",
    }
    opening = _opening("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", **attributes})
    ground = _element("rect", None, {"width": width, "height": height, "rx": 8.0, "fill": "white"})
    return Markup(f"<{opening}>{_element('title', title, {})}{ground}{''.join(parts)}</svg>")


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


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _element(tag: str, text: str | None, attributes: dict[str, str | float], inner: str = "") -> str:
    content = (str(escape(text)) if text is not None else "") + inner
    opening = _opening(tag, attributes)
    return f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>"


def _opening(tag: str, attributes: dict[str, str | float]) -> str:
    written = [
        f'{name.replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
    ]
    return " ".join([tag, *written])


def outline(shape: str, x: float, y: float, size: float) -> str:
    """SVG path of a mark with about the same area whatever the shape, ``size`` px from its middle to its edge."""
    if shape == "circle":
        r = number(size)
        return (
            f"M{number(x - size)} {number(y)}a{r} {r} 0 1 0 {number(2 * size)} 0a{r} {r} 0 1 0 {number(-2 * size)} 0z"
        )
    corners = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
        "triangle": [(0, -1.25), (1.2, 0.85), (-1.2, 0.85)],
    }[shape]
    return "M" + "L".join(f"{number(x + dx * size)} {number(y + dy * size)}" for dx, dy in corners) + "z"
