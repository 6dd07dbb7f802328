"""Spatial-relation operators: an object is claimed to be where it is not.

Left, right, front and back are those of the picture that the policy sees; the checker passes only what is false beyond
dispute.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from ..language.plan import Claim, Reference, Relation, Step
from ..records import Family
from .edit import Operator, with_claim
from .surroundings import Surroundings

BESIDE = (Relation.NEXT_TO, Relation.LEFT_OF, Relation.RIGHT_OF, Relation.IN_FRONT_OF, Relation.BEHIND)


def object_on(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to stand on something else."""
    if _is_movable(step.object, around):
        for landmark in around.surfaces():
            yield from _object_claim(step, Claim(relation=Relation.ON, landmarks=(landmark,)), around)


def object_in(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to be inside something."""
    if _is_movable(step.object, around):
        for landmark in (*around.drawers(), *around.compartments(), *around.hollows()):
            yield from _object_claim(step, Claim(relation=Relation.IN, landmarks=(landmark,)), around)


def object_under(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to lie under something."""
    if _is_movable(step.object, around) and around.lies_flat(step.object):
        for landmark in around.surfaces():
            if landmark in around.movable():
                yield from _object_claim(step, Claim(relation=Relation.UNDER, landmarks=(landmark,)), around)


def object_next_to(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object, or the whole it belongs to, is claimed to stand next to something far away."""
    for landmark in around.landmarks():
        yield from _object_claim(step, Claim(relation=Relation.NEXT_TO, landmarks=(landmark,)), around)


def object_between(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to stand between two others."""
    for pair in itertools.combinations(around.landmarks(), 2):
        yield from _object_claim(step, Claim(relation=Relation.BETWEEN, landmarks=pair), around)


def destination_on(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to stand on something else."""
    if step.destination is not None and _is_movable(step.destination, around):
        for landmark in around.surfaces():
            yield from _destination_claim(step, Claim(relation=Relation.ON, landmarks=(landmark,)), around)


def destination_in(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to be inside something."""
    if step.destination is not None and _is_movable(step.destination, around):
        for landmark in around.drawers():
            yield from _destination_claim(step, Claim(relation=Relation.IN, landmarks=(landmark,)), around)


def destination_next_to(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to stand next to something far away."""
    for landmark in around.landmarks():
        yield from _destination_claim(step, Claim(relation=Relation.NEXT_TO, landmarks=(landmark,)), around)


def destination_between(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to stand between two others."""
    for pair in itertools.combinations(around.landmarks(), 2):
        yield from _destination_claim(step, Claim(relation=Relation.BETWEEN, landmarks=pair), around)


def object_beside(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to be to the left or right of something."""
    for relation, landmark in itertools.product((Relation.LEFT_OF, Relation.RIGHT_OF), around.landmarks()):
        yield from _object_claim(step, Claim(relation=relation, landmarks=(landmark,)), around)


def object_before(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to be in front of or behind something."""
    for relation, landmark in itertools.product((Relation.IN_FRONT_OF, Relation.BEHIND), around.landmarks()):
        yield from _object_claim(step, Claim(relation=relation, landmarks=(landmark,)), around)


def destination_beside(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to be to the left or right of, in front of or behind something."""
    relations = (Relation.LEFT_OF, Relation.RIGHT_OF, Relation.IN_FRONT_OF, Relation.BEHIND)
    for relation, landmark in itertools.product(relations, around.landmarks()):
        yield from _destination_claim(step, Claim(relation=relation, landmarks=(landmark,)), around)


def object_at_center(step: Step, around: Surroundings) -> Iterator[Step]:
    """The object is claimed to be at the center of the table."""
    for table in around.scenery():
        yield from _object_claim(step, Claim(relation=Relation.AT_CENTER, landmarks=(table,)), around)


def destination_at_center(step: Step, around: Surroundings) -> Iterator[Step]:
    """The destination is claimed to be at the center of the table."""
    for table in around.scenery():
        yield from _destination_claim(step, Claim(relation=Relation.AT_CENTER, landmarks=(table,)), around)


def _object_claim(step: Step, claim: Claim, around: Surroundings) -> Iterator[Step]:
    if _says_something_new(step, step.object, claim, around):
        yield replace(step, object=_attach(step.object, claim, around))


def _destination_claim(step: Step, claim: Claim, around: Surroundings) -> Iterator[Step]:
    if step.destination is not None and _says_something_new(step, step.destination, claim, around):
        yield replace(step, destination=_attach(step.destination, claim, around))


def _attach(reference: Reference, claim: Claim, around: Surroundings) -> Reference:
    """Put a claim in the place of the base task's own claims; that of a part is about its whole."""
    if reference.of is not None:
        return replace(reference, of=_attach(reference.of, claim, around))
    others = tuple(old for old in reference.claims if old not in around.base_claims())
    return with_claim(replace(reference, claims=others), claim)


def _says_something_new(step: Step, reference: Reference, claim: Claim, around: Surroundings) -> bool:
    """Landmarks must be other entities than those that the step is about, and than those of earlier claims."""
    if reference.ordinal is not None and reference.of is None and reference.ordinal not in ("left", "right"):
        return False  # a bare "the top drawer" has no place of its own to be wrong about
    own = (step.object, step.object.of, step.destination, step.destination.of if step.destination else None)
    taken = [part for part in own if part is not None]
    comes_from = claim.relation in BESIDE and claim.relation is not step.relation
    if reference is step.object and step.destination is not None and comes_from:
        taken.remove(step.destination)  # "the bowl next to the plate" can be put on the plate
    taken += [mark for old in _claims(step) if old not in around.base_claims() for mark in old.landmarks]
    taken += [part.of for part in taken if part.of is not None]
    return not any(around.same(mark, part) for mark in claim.landmarks for part in taken)


def _claims(step: Step) -> tuple[Claim, ...]:
    references = [step.object, step.object.of, step.destination, step.destination.of if step.destination else None]
    return tuple(claim for reference in references if reference for claim in reference.claims)


def _is_movable(reference: Reference, around: Surroundings) -> bool:
    meant = [e for e in around.facts.entities if e.name in around.names_meant(reference) and e.part_of is None]
    return bool(meant) and reference.of is None and all(entity.movable for entity in meant)


OBJECT_ON = Operator(name="object_on", family=Family.SPATIAL, edit=object_on)
OBJECT_IN = Operator(name="object_in", family=Family.SPATIAL, edit=object_in)
OBJECT_UNDER = Operator(name="object_under", family=Family.SPATIAL, edit=object_under)
OBJECT_NEXT_TO = Operator(name="object_next_to", family=Family.SPATIAL, edit=object_next_to)
OBJECT_BETWEEN = Operator(name="object_between", family=Family.SPATIAL, edit=object_between)
OBJECT_BESIDE = Operator(name="object_beside", family=Family.SPATIAL, edit=object_beside)
OBJECT_BEFORE = Operator(name="object_before", family=Family.SPATIAL, edit=object_before)
OBJECT_AT_CENTER = Operator(name="object_at_center", family=Family.SPATIAL, edit=object_at_center)
DESTINATION_AT_CENTER = Operator(name="destination_at_center", family=Family.SPATIAL, edit=destination_at_center)
DESTINATION_BESIDE = Operator(name="destination_beside", family=Family.SPATIAL, edit=destination_beside)
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
    OBJECT_BESIDE,
    OBJECT_BEFORE,
    OBJECT_AT_CENTER,
    DESTINATION_AT_CENTER,
    DESTINATION_BESIDE,
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
    OBJECT_BESIDE.then(DESTINATION_BESIDE),
    OBJECT_NEXT_TO.then(DESTINATION_AT_CENTER),
    OBJECT_BEFORE.then(DESTINATION_NEXT_TO),
    OBJECT_IN.then(OBJECT_BESIDE),
    OBJECT_NEXT_TO.then(DESTINATION_BESIDE),
    OBJECT_BETWEEN.then(DESTINATION_BESIDE),
)
