"""Spatial-relation operators: a thing is said to be where it is not.

Only relations that do not depend on who looks are used; the checker keeps those that are false beyond dispute.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from ..plan import Claim, Reference, Relation, Step
from ..records import Family
from .edit import Operator, claiming
from .surroundings import Surroundings


def object_on(step: Step, around: Surroundings) -> Iterator[Step]:
    """The thing is said to stand on something else."""
    if _movable(step.object, around):
        for landmark in around.surfaces():
            yield from _object_claim(step, Claim(relation=Relation.ON, landmarks=(landmark,)))


def object_in(step: Step, around: Surroundings) -> Iterator[Step]:
    """The thing is said to be inside something."""
    if _movable(step.object, around):
        for landmark in (*around.drawers(), *around.hollows()):
            yield from _object_claim(step, Claim(relation=Relation.IN, landmarks=(landmark,)))


def object_under(step: Step, around: Surroundings) -> Iterator[Step]:
    """The thing is said to lie under something."""
    if _movable(step.object, around) and around.lies_flat(step.object):
        yield from _object_claim(step, Claim(relation=Relation.UNDER, landmarks=(Reference(noun="plate"),)))


def object_next_to(step: Step, around: Surroundings) -> Iterator[Step]:
    """The thing, or the whole it belongs to, is said to stand next to something far away."""
    for landmark in (*around.movable(), *around.fixed()):
        yield from _object_claim(step, Claim(relation=Relation.NEXT_TO, landmarks=(landmark,)))


def object_between(step: Step, around: Surroundings) -> Iterator[Step]:
    """The thing is said to stand between two others."""
    for pair in itertools.combinations((*around.movable(), *around.fixed()), 2):
        yield from _object_claim(step, Claim(relation=Relation.BETWEEN, landmarks=pair))


def destination_on(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is said to stand on something else."""
    if step.destination is not None and _movable(step.destination, around):
        for landmark in around.surfaces():
            yield from _destination_claim(step, Claim(relation=Relation.ON, landmarks=(landmark,)))


def destination_in(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is said to be inside something."""
    if step.destination is not None and _movable(step.destination, around):
        for landmark in around.drawers():
            yield from _destination_claim(step, Claim(relation=Relation.IN, landmarks=(landmark,)))


def destination_next_to(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is said to stand next to something far away."""
    for landmark in (*around.movable(), *around.fixed()):
        yield from _destination_claim(step, Claim(relation=Relation.NEXT_TO, landmarks=(landmark,)))


def destination_between(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is said to stand between two others."""
    for pair in itertools.combinations((*around.movable(), *around.fixed()), 2):
        yield from _destination_claim(step, Claim(relation=Relation.BETWEEN, landmarks=pair))


def _object_claim(step: Step, claim: Claim) -> Iterator[Step]:
    if _says_something_new(step, step.object, claim):
        yield replace(step, object=_attach(step.object, claim))


def _destination_claim(step: Step, claim: Claim) -> Iterator[Step]:
    if step.destination is not None and _says_something_new(step, step.destination, claim):
        yield replace(step, destination=_attach(step.destination, claim))


def _attach(reference: Reference, claim: Claim) -> Reference:
    """A part's place is its whole's: "the drawer of the cabinet that is next to the stove"."""
    if reference.of is not None:
        return replace(reference, of=claiming(reference.of, claim))
    return claiming(reference, claim)


def _says_something_new(step: Step, reference: Reference, claim: Claim) -> bool:
    """Landmarks must be other things than those that the step is about, or that were claimed already."""
    taken = {step.object.noun, reference.noun}
    taken |= {part.of.noun for part in (step.object, step.destination, reference) if part and part.of}
    taken |= {step.destination.noun} if step.destination else set()
    taken |= {landmark.noun for old in _claims(step) for landmark in old.landmarks}
    if reference.ordinal is not None and reference.of is None:
        return False  # a bare "the top drawer" has no place of its own to be wrong about
    mentioned = {landmark.noun for landmark in claim.landmarks} | {mark.of.noun for mark in claim.landmarks if mark.of}
    return not taken & mentioned


def _claims(step: Step) -> tuple[Claim, ...]:
    references = [step.object, step.object.of, step.destination, step.destination.of if step.destination else None]
    return tuple(claim for reference in references if reference for claim in reference.claims)


def _movable(reference: Reference, around: Surroundings) -> bool:
    return reference.bare.noun in {thing.noun for thing in around.movable()}


OBJECT_ON = Operator(name="object_on", family=Family.SPATIAL, edit=object_on)
OBJECT_IN = Operator(name="object_in", family=Family.SPATIAL, edit=object_in)
OBJECT_UNDER = Operator(name="object_under", family=Family.SPATIAL, edit=object_under)
OBJECT_NEXT_TO = Operator(name="object_next_to", family=Family.SPATIAL, edit=object_next_to)
OBJECT_BETWEEN = Operator(name="object_between", family=Family.SPATIAL, edit=object_between)
DESTINATION_ON = Operator(name="destination_on", family=Family.SPATIAL, edit=destination_on)
DESTINATION_IN = Operator(name="destination_in", family=Family.SPATIAL, edit=destination_in)
DESTINATION_NEXT_TO = Operator(name="destination_next_to", family=Family.SPATIAL, edit=destination_next_to)
DESTINATION_BETWEEN = Operator(name="destination_between", family=Family.SPATIAL, edit=destination_between)

ATOMIC = (
    OBJECT_ON,
    OBJECT_IN,
    OBJECT_UNDER,
    OBJECT_NEXT_TO,
    OBJECT_BETWEEN,
    DESTINATION_ON,
    DESTINATION_IN,
    DESTINATION_NEXT_TO,
    DESTINATION_BETWEEN,
)
COMPOUND = (
    OBJECT_ON.then(DESTINATION_IN),
    OBJECT_ON.then(OBJECT_NEXT_TO),
    OBJECT_IN.then(DESTINATION_NEXT_TO),
    OBJECT_NEXT_TO.then(DESTINATION_NEXT_TO),
    OBJECT_ON.then(DESTINATION_NEXT_TO),
    OBJECT_IN.then(DESTINATION_ON),
    OBJECT_NEXT_TO.then(OBJECT_NEXT_TO),
    OBJECT_UNDER.then(DESTINATION_NEXT_TO),
)
