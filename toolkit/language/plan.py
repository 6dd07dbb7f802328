"""What an instruction asks for, in a form that can be checked: ordered steps, references, claims and constraints.

English is rendered from a plan (``language``), operators edit plans (``operators``), and the checker judges them
(``premises``). A *reference* is a noun phrase, a *claim* what a noun phrase presupposes about its place ("the bowl that
is on the stove"), a *constraint* what must hold besides the steps ("without moving it").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from ..errors import InvalidInputError


class Verb(StrEnum):
    """What a step does."""

    PUT = "put"
    PLACE = "pick up and place"
    PUSH = "push"
    OPEN = "open"
    CLOSE = "close"
    TURN_ON = "turn on"
    TURN_OFF = "turn off"


PLACING = (Verb.PUT, Verb.PLACE)
"""Verbs that bring an object to a place, one way or another; ``PLACE`` means that it is picked up for that."""

MOVING = (*PLACING, Verb.PUSH)
"""Verbs that have a relation and a destination."""


class Relation(StrEnum):
    """Where something is, relative to one landmark (two for ``between``)."""

    ON = "on"
    IN = "in"
    UNDER = "under"
    NEXT_TO = "next to"
    IN_FRONT_OF = "in front of"
    BEHIND = "behind"
    LEFT_OF = "to the left of"
    RIGHT_OF = "to the right of"
    BETWEEN = "between"
    AT_CENTER = "at the center of"


class Demand(StrEnum):
    """What a constraint demands of its subject.

    ``STAY``: it is not moved. ``NOT_LIFTED``: it is never picked up. ``EMPTY``: nothing is on or in it at the end.
    ``ALSO_AT``: at the end it is at the landmark too. ``NOT_AT``: at the end it is not at the landmark. ``ONLY_AT``: at
    the end it is the only object at the landmark. ``KEEP_OPEN`` ... ``KEEP_OFF``: it is in that state throughout.
    ``PICK_UP_AFTER``: it is picked up only after the step is finished. ``NOT_OPENED``: it is not opened,
    whatever its state.
    """

    STAY = "stay"
    NOT_LIFTED = "not lifted"
    EMPTY = "empty"
    ALSO_AT = "also at"
    NOT_AT = "not at"
    ONLY_AT = "only at"
    KEEP_OPEN = "keep open"
    KEEP_CLOSED = "keep closed"
    KEEP_ON = "keep on"
    KEEP_OFF = "keep off"
    PICK_UP_AFTER = "pick up after"
    NOT_OPENED = "not opened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something presupposed about where a referent is, before anything is done.

    Attributes:
        relation: The relation presupposed.
        landmarks: One reference, or two for ``between``.
    """

    relation: Relation
    landmarks: tuple[Reference, ...]

    def __post_init__(self) -> None:
        wanted = 2 if self.relation is Relation.BETWEEN else 1
        if len(self.landmarks) != wanted:
            raise InvalidInputError(
                f"'{self.relation}' takes {wanted} landmark{'s' if wanted > 1 else ''}, got {len(self.landmarks)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A noun phrase.

    Attributes:
        noun: Singular noun from the vocabulary, such as ``bowl`` or ``drawer``.
        adjective: A colour or other adjective, such as ``red``.
        ordinal: Which of several in a row or side by side, such as ``top``, ``fourth``, ``back`` or ``left``.
        of: The whole that it is part of.
        count: How many are meant, where the phrase has a number ("the two bowls").
        claims: What the phrase presupposes about the referent's place.
    """

    noun: str
    adjective: str | None = None
    ordinal: str | None = None
    of: Reference | None = None
    count: int | None = None
    claims: tuple[Claim, ...] = ()

    @property
    def bare(self) -> Reference:
        """The same without claims: what two mentions of one entity share."""
        return replace(self, claims=()) if self.claims else self

    @property
    def name(self) -> str:
        """What it is called in short, such as ``top drawer`` or ``yellow and white mug``."""
        return " ".join(part for part in (self.ordinal, self.adjective, self.noun) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Something that must hold besides the steps.

    Attributes:
        demand: What is demanded.
        subject: Of what.
        relation: Where, for ``ALSO_AT``, ``NOT_AT`` and ``ONLY_AT``.
        landmark: Relative to what, for the same.
    """

    demand: Demand
    subject: Reference
    relation: Relation | None = None
    landmark: Reference | None = None

    def __post_init__(self) -> None:
        placed = self.demand in (Demand.ALSO_AT, Demand.NOT_AT, Demand.ONLY_AT)
        if placed != (self.relation is not None) or placed != (self.landmark is not None):
            raise InvalidInputError(
                f"the demand '{self.demand}' {'needs' if placed else 'takes no'} relation and landmark"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One manipulation.

    Attributes:
        verb: What is done.
        object: To what.
        relation: Where it is brought, for the verbs in ``MOVING``.
        destination: Relative to what, for the same.
        constraints: What must hold besides.
    """

    verb: Verb
    object: Reference
    relation: Relation | None = None
    destination: Reference | None = None
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        moves = self.verb in MOVING
        if moves != (self.relation is not None) or moves != (self.destination is not None):
            raise InvalidInputError(
                f"the verb '{self.verb}' {'needs' if moves else 'takes no'} relation and destination"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An instruction's meaning: steps in order."""

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise InvalidInputError("a plan needs at least one step")

    def references(self) -> Iterator[Reference]:
        """Every reference, each before those inside its own claims, in the order of mention."""
        for step in self.steps:
            yield from _references_within(step.object)
            yield from _references_within(step.destination)
            for constraint in step.constraints:
                yield from _references_within(constraint.subject)
                yield from _references_within(constraint.landmark)

    def mapped(self, change: Callable[[Reference], Reference]) -> Plan:
        """The plan with every reference changed, those inside others first."""
        return Plan(steps=tuple(_mapped_step(step, change) for step in self.steps))


def _references_within(reference: Reference | None) -> Iterator[Reference]:
    """A reference, and those inside it."""
    if reference is None:
        return
    yield reference
    yield from _references_within(reference.of)
    for claim in reference.claims:
        for landmark in claim.landmarks:
            yield from _references_within(landmark)


def _mapped_step(step: Step, change: Callable[[Reference], Reference]) -> Step:
    constraints = (
        replace(one, subject=_mapped(one.subject, change), landmark=_mapped_if_any(one.landmark, change))
        for one in step.constraints
    )
    return replace(
        step,
        object=_mapped(step.object, change),
        destination=_mapped_if_any(step.destination, change),
        constraints=tuple(constraints),
    )


def _mapped(reference: Reference, change: Callable[[Reference], Reference]) -> Reference:
    claims = tuple(
        replace(claim, landmarks=tuple(_mapped(landmark, change) for landmark in claim.landmarks))
        for claim in reference.claims
    )
    return change(replace(reference, of=_mapped_if_any(reference.of, change), claims=claims))


def _mapped_if_any(reference: Reference | None, change: Callable[[Reference], Reference]) -> Reference | None:
    return None if reference is None else _mapped(reference, change)
