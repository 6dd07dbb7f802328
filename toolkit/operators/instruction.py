"""Instruction-internal operators: constraints that the step itself cannot meet."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan import Constraint, Demand, Relation, Step, Verb
from ..records import Family
from .edit import Operator, constrained
from .surroundings import Surroundings


def stay(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move the thing, but do not move it."""
    if step.verb in (Verb.PUT, Verb.PUSH, Verb.OPEN, Verb.CLOSE):
        yield constrained(step, Constraint(demand=Demand.STAY, subject=step.object))


def leave_empty(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something there, but leave the place empty."""
    if step.destination is not None and step.relation in (Relation.ON, Relation.IN):
        yield constrained(step, Constraint(demand=Demand.EMPTY, subject=step.destination))


def two_places(step: Step, around: Surroundings) -> Iterator[Step]:
    """Have one thing in two fixed places at the end."""
    fixed = around.fixed()
    if step.verb is not Verb.PUT or step.destination is None or (step.destination.of or step.destination) not in fixed:
        return
    for place in around.surfaces():
        if place in fixed and place not in (step.destination, step.destination.of):
            yield constrained(
                step,
                Constraint(demand=Demand.ALSO_AT, subject=step.object, relation=Relation.ON, landmark=place),
            )


def not_there(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it there, but do not let it end up there."""
    if step.verb is Verb.PUT and step.destination is not None:
        yield constrained(
            step,
            Constraint(demand=Demand.NOT_AT, subject=step.object, relation=step.relation, landmark=step.destination),
        )


def only_another(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it there, but let only something else be there."""
    if step.verb is not Verb.PUT or step.destination is None:
        return
    for other in around.movable():
        fits = step.relation is not Relation.IN or around.fits(other, step.destination)
        if fits and other.noun not in (step.object.noun, step.destination.noun):
            yield constrained(
                step,
                Constraint(demand=Demand.ONLY_AT, subject=other, relation=step.relation, landmark=step.destination),
            )


def pick_up_late(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it somewhere before picking it up."""
    if step.verb is Verb.PUT:
        yield constrained(step, Constraint(demand=Demand.PICK_UP_AFTER, subject=step.object))


def keep_state(step: Step, around: Surroundings) -> Iterator[Step]:
    """Change a state while keeping it as it was."""
    opposite = {Verb.OPEN: Demand.KEEP_CLOSED, Verb.CLOSE: Demand.KEEP_OPEN, Verb.TURN_ON: Demand.KEEP_OFF}
    if step.verb in opposite:
        yield constrained(step, Constraint(demand=opposite[step.verb], subject=step.object))


STAY = Operator(name="stay", family=Family.INSTRUCTION, edit=stay)
LEAVE_EMPTY = Operator(name="leave_empty", family=Family.INSTRUCTION, edit=leave_empty)
TWO_PLACES = Operator(name="two_places", family=Family.INSTRUCTION, edit=two_places)
NOT_THERE = Operator(name="not_there", family=Family.INSTRUCTION, edit=not_there)
ONLY_ANOTHER = Operator(name="only_another", family=Family.INSTRUCTION, edit=only_another)
PICK_UP_LATE = Operator(name="pick_up_late", family=Family.INSTRUCTION, edit=pick_up_late)
KEEP_STATE = Operator(name="keep_state", family=Family.INSTRUCTION, edit=keep_state)

ATOMIC = (STAY, LEAVE_EMPTY, TWO_PLACES, NOT_THERE, ONLY_ANOTHER, PICK_UP_LATE, KEEP_STATE)
COMPOUND = (
    STAY.then(LEAVE_EMPTY),
    STAY.then(TWO_PLACES),
    LEAVE_EMPTY.then(TWO_PLACES),
    STAY.then(ONLY_ANOTHER),
    STAY.then(NOT_THERE),
    TWO_PLACES.then(ONLY_ANOTHER),
    KEEP_STATE.then(STAY),
)
