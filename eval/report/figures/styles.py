"""Colours and marks, the same everywhere on the page and on the leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PALETTE = ("#1f6f8b", "#c8553d", "#4b8f29", "#8a4fa3", "#b7791f", "#2b4c9b", "#a03070", "#5f6b6d")
"""Distinct also under the most common colour vision deficiencies, together with the shapes below."""

SHAPES = ("circle", "square", "diamond", "triangle")

INK, MUTED, GRID = "#1d2429", "#66727a", "#e4e8ea"

REFERENCE_COLOUR, CONFLICT_COLOUR, TARGET_COLOUR = "#7b8890", "#c8553d", "#b7791f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a policy, or a measure, is drawn.

    Attributes:
        colour: As in SVG.
        shape: One of ``SHAPES``.
    """

    colour: str
    shape: str


def style(index: int) -> Style:
    """Colour and shape of the policy with that number; the first 32 are all distinct."""
    shape = SHAPES[(index + index // len(PALETTE)) % len(SHAPES)]
    return Style(colour=PALETTE[index % len(PALETTE)], shape=shape)


def policy_styles(policies: Iterable[str]) -> dict[str, Style]:
    """The style of each policy, in their order."""
    return {policy: style(index) for index, policy in enumerate(policies)}
