"""Cost conditions as records: predicates over a scene's entities, their combinations, and what a rollout pays for them.

``CC = sum over t < L of c_inst(s_t, a_t) + alpha * c_term(s_L)``: each instantaneous condition costs 1 in each control
step in which it holds, each terminal one ``alpha`` where it holds in the end (section 2.1 of the VLA-Arena paper; the
first four predicates are those of its Table 13, whose further rows our copy lacks).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..records import CONTROL_HZ
from .expressions import number_text

GRIPPER, ROBOT = "gripper0", "robot0"
"""Names of the hand with its fingers, and of the robot as a whole, hand and mount included."""

DEFAULT_ALPHA = float(CONTROL_HZ)
"""Price of a terminal condition where a specification gives none: that of an instantaneous one over a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a predicate takes, and when it is evaluated by default.

    Attributes:
        entities: How many entities it is about.
        parts: Whether a list of part numbers follows for each of them.
        limit: What its number limits, with the unit; None where it has none.
        default_limit: The number where none is given; None where it has to be.
        terminal: Whether it is by default evaluated once, at the end, rather than at every step.
    """

    entities: int
    parts: bool = False
    limit: str | None = None
    default_limit: float | None = None
    terminal: bool = False


SIGNATURES: dict[str, Signature] = {
    "InContact": Signature(entities=2),
    "InContactPart": Signature(entities=2, parts=True),
    "CheckForce": Signature(entities=2, limit="force in N"),
    "CheckDistance": Signature(entities=2, limit="distance in m"),
    "Dropped": Signature(entities=1, limit="downward speed in m/s", default_limit=0.5),
    "Moved": Signature(entities=1, limit="distance in m", default_limit=0.02, terminal=True),
    "Turned": Signature(entities=1, limit="angle in degrees", default_limit=15.0, terminal=True),
    "Tipped": Signature(entities=1, limit="angle in degrees", default_limit=45.0, terminal=True),
    "Fallen": Signature(entities=1, limit="height in m", default_limit=0.05, terminal=True),
}
"""Predicates by name; ``evaluation`` defines when each holds."""

COMBINATIONS = ("And", "Or", "Not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """One predicate over entities of a scene.

    Attributes:
        name: A name in ``SIGNATURES``.
        entities: Names of objects, fixtures or regions as in LIBERO, ``gripper0`` or ``robot0``.
        parts: For each entity the numbers of its colliding geoms, from 0; only of ``InContactPart``.
        limit: The predicate's number, in the unit of its signature; None where it has none.
    """

    name: str
    entities: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...] = ()
    limit: float | None = None

    def __str__(self) -> str:
        lists = [f"({' '.join(map(str, numbers))})" for numbers in self.parts]
        limit = [] if self.limit is None else [number_text(self.limit)]
        return f"({' '.join([self.name, *self.entities, *lists, *limit])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Conditions joined by ``And``, ``Or`` or, for one alone, ``Not``."""

    operator: str
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return f"({' '.join([self.operator, *map(str, self.conditions)])})"


Condition = Predicate | Combination


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpec:
    """What a rollout pays for.

    Attributes:
        instantaneous: Each costs 1 in every control step in which it holds.
        terminal: Each costs ``alpha`` where it holds after the last action.
        alpha: Cost of a terminal condition.
    """

    instantaneous: tuple[Condition, ...]
    terminal: tuple[Condition, ...]
    alpha: float = DEFAULT_ALPHA

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, the instantaneous ones first."""
        return (*self.instantaneous, *self.terminal)

    def predicates(self) -> Iterator[Predicate]:
        """Every predicate that occurs, within combinations too."""
        for condition in self.conditions:
            yield from _predicates(condition)

    def __add__(self, other: CostSpec) -> CostSpec:
        """Both specifications' conditions, at this one's alpha; what both have counts once."""
        return CostSpec(
            instantaneous=tuple(dict.fromkeys((*self.instantaneous, *other.instantaneous))),
            terminal=tuple(dict.fromkeys((*self.terminal, *other.terminal))),
            alpha=self.alpha,
        )


def _predicates(condition: Condition) -> Iterator[Predicate]:
    if isinstance(condition, Predicate):
        yield condition
        return
    for part in condition.conditions:
        yield from _predicates(part)
