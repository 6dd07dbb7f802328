"""Instruction-internal operators: constraints that the step itself cannot meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..language.plan import MOVING, PLACING, Constraint, Demand, Relation, Step, Verb
from ..records import Family
from .edit import Operator, with_constraint
from .surroundings import Surroundings


def stay(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move the object, but do not move it."""
    slides = step.verb in (Verb.OPEN, Verb.CLOSE) and step.object.ordinal is not None
    if step.verb in MOVING or slides:
        yield with_constraint(step, Constraint(demand=Demand.STAY, subject=step.object))


def leave_empty(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something there, but leave the place empty."""
    if step.destination is not None and step.relation in (Relation.ON, Relation.IN):
        yield with_constraint(step, Constraint(demand=Demand.EMPTY, subject=step.destination))


def two_places(step: Step, around: Surroundings) -> Iterator[Step]:
    """Have one object in two fixed places at the end."""
    fixed = around.fixed()
    if (
        step.verb not in PLACING
        or step.destination is None
        or (around.whole_of(step.destination) or step.destination) not in fixed
    ):
        return
    for place in around.surfaces():
        if place in fixed and place not in (step.destination, around.whole_of(step.destination)):
            yield with_constraint(
                step,
                Constraint(demand=Demand.ALSO_AT, subject=step.object, relation=Relation.ON, landmark=place),
            )


def not_there(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it there, but do not let it end up there."""
    if step.verb in PLACING and step.destination is not None:
        yield with_constraint(
            step,
            Constraint(demand=Demand.NOT_AT, subject=step.object, relation=step.relation, landmark=step.destination),
        )


def only_another(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it there, but let only something else be there."""
    if step.verb not in PLACING or step.destination is None:
        return
    for other in around.movable():
        fits = step.relation is not Relation.IN or around.fits(other, step.destination)
        if fits and not around.same(other, step.object) and not around.same(other, step.destination):
            yield with_constraint(
                step,
                Constraint(demand=Demand.ONLY_AT, subject=other, relation=step.relation, landmark=step.destination),
            )


def pick_up_late(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it somewhere before picking it up."""
    if step.verb in PLACING:
        yield with_constraint(step, Constraint(demand=Demand.PICK_UP_AFTER, subject=step.object))


def never_lifted(step: Step, around: Surroundings) -> Iterator[Step]:
    """Pick it up, but never pick it up."""
    if step.verb is Verb.PLACE:
        yield with_constraint(step, Constraint(demand=Demand.NOT_LIFTED, subject=step.object))


def beside_too(step: Step, around: Surroundings) -> Iterator[Step]:
    """Have it on or in something and next to that at the same time."""
    yield from _also(step, Relation.NEXT_TO)


def beneath_too(step: Step, around: Surroundings) -> Iterator[Step]:
    """Have it on or in something and under that at the same time."""
    yield from _also(step, Relation.UNDER)


def _also(step: Step, relation: Relation) -> Iterator[Step]:
    if step.verb in PLACING and step.destination is not None and step.relation in (Relation.ON, Relation.IN):
        yield with_constraint(
            step,
            Constraint(demand=Demand.ALSO_AT, subject=step.object, relation=relation, landmark=step.destination),
        )


def to_itself(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it to itself."""
    if step.verb in PLACING and step.destination is not None and step.object.count is None:
        relation = Relation.IN if step.relation is Relation.IN else Relation.ON
        yield replace(step, relation=relation, destination=step.object.bare)


def keep_state(step: Step, around: Surroundings) -> Iterator[Step]:
    """Change a state while keeping it as it was."""
    opposite = {Verb.OPEN: Demand.KEEP_CLOSED, Verb.CLOSE: Demand.KEEP_OPEN, Verb.TURN_ON: Demand.KEEP_OFF}
    if step.verb in opposite:
        yield with_constraint(step, Constraint(demand=opposite[step.verb], subject=step.object))


STAY = Operator(name="stay", family=Family.INSTRUCTION, edit=stay)
LEAVE_EMPTY = Operator(name="leave_empty", family=Family.INSTRUCTION, edit=leave_empty)
TWO_PLACES = Operator(name="two_places", family=Family.INSTRUCTION, edit=two_places)
NOT_THERE = Operator(name="not_there", family=Family.INSTRUCTION, edit=not_there)
ONLY_ANOTHER = Operator(name="only_another", family=Family.INSTRUCTION, edit=only_another)
PICK_UP_LATE = Operator(name="pick_up_late", family=Family.INSTRUCTION, edit=pick_up_late)
NEVER_LIFTED = Operator(name="never_lifted", family=Family.INSTRUCTION, edit=never_lifted)
BESIDE_TOO = Operator(name="beside_too", family=Family.INSTRUCTION, edit=beside_too)
BENEATH_TOO = Operator(name="beneath_too", family=Family.INSTRUCTION, edit=beneath_too)
TO_ITSELF = Operator(name="to_itself", family=Family.INSTRUCTION, edit=to_itself)
KEEP_STATE = Operator(name="keep_state", family=Family.INSTRUCTION, edit=keep_state)

ATOMIC = (
    STAY,
    LEAVE_EMPTY,
    TWO_PLACES,
    NOT_THERE,
    ONLY_ANOTHER,
    PICK_UP_LATE,
    NEVER_LIFTED,
    BESIDE_TOO,
    BENEATH_TOO,
    TO_ITSELF,
    KEEP_STATE,
)
COMPOUND = (
    STAY.then(LEAVE_EMPTY),
    STAY.then(TWO_PLACES),
    LEAVE_EMPTY.then(TWO_PLACES),
    STAY.then(ONLY_ANOTHER),
    STAY.then(NOT_THERE),
    TWO_PLACES.then(ONLY_ANOTHER),
    NEVER_LIFTED.then(LEAVE_EMPTY),
    NEVER_LIFTED.then(ONLY_ANOTHER),
    NEVER_LIFTED.then(NOT_THERE),
    LEAVE_EMPTY.then(PICK_UP_LATE),
    KEEP_STATE.then(STAY),
)
