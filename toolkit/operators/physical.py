"""Physical-feasibility operators: things that are there, asked to do what they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..plan import Reference, Relation, Step, Verb
from ..records import Family
from .edit import Operator
from .surroundings import Surroundings


def fixed_object(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move something that is fixed in place."""
    if step.verb not in (Verb.PUT, Verb.PUSH) or step.destination is None or step.relation is Relation.IN:
        return
    for thing in around.fixed():
        if thing.noun != step.destination.noun:
            yield replace(step, object=thing)


def move_fixed_target(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move the very thing that the task would open, switch or put something onto, though it is fixed in place."""
    target = step.destination or step.object
    thing = around.whole_of(target) or target
    if thing in around.fixed():
        for place in around.surfaces():
            if place != thing:
                yield Step(verb=Verb.PUT, object=thing, relation=Relation.ON, destination=place)


def no_opening(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it inside something that has no opening."""
    if step.verb in (Verb.PUT, Verb.PUSH):
        for place in around.without_opening():
            if place.noun != step.object.noun:
                yield Step(verb=Verb.PUT, object=step.object, relation=Relation.IN, destination=place)


def nothing_to_open(step: Step, around: Surroundings) -> Iterator[Step]:
    """Open something that has neither door nor lid nor drawer."""
    if step.verb is Verb.OPEN:
        for thing in around.unopenable():
            yield replace(step, object=thing)


def nothing_to_switch(step: Step, around: Surroundings) -> Iterator[Step]:
    """Turn on something that has no switch."""
    if step.verb is Verb.TURN_ON:
        for thing in around.unswitchable():
            yield replace(step, object=thing)


def fixed_into_small(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into something too small for it."""
    yield from _fixed_into(around.hollows(), step, around)


def fixed_into_closed(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into something that has no opening."""
    yield from _fixed_into(around.without_opening(), step, around)


def fixed_into_drawer(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into a drawer too small for it."""
    about = _about(step)
    for thing in around.fixed():
        for drawer in around.drawers():
            if drawer.of is not None and drawer.of != thing and thing.noun in about:
                yield Step(verb=Verb.PUT, object=thing, relation=Relation.IN, destination=drawer)


def _fixed_into(places: list[Reference], step: Step, around: Surroundings) -> Iterator[Step]:
    for thing in around.fixed():
        for place in places:
            if _about(step) & {thing.noun, place.noun}:
                yield Step(verb=Verb.PUT, object=thing, relation=Relation.IN, destination=place)


def _about(step: Step) -> frozenset[str]:
    """What the step itself is about: a conflict should hit what the task needs."""
    parts = (step.object, step.object.of, step.destination)
    return frozenset(part.noun for part in parts if part is not None)


FIXED_OBJECT = Operator(name="fixed_object", family=Family.PHYSICAL, edit=fixed_object)
MOVE_FIXED_TARGET = Operator(name="move_fixed_target", family=Family.PHYSICAL, edit=move_fixed_target)
NO_OPENING = Operator(name="no_opening", family=Family.PHYSICAL, edit=no_opening)
NOTHING_TO_OPEN = Operator(name="nothing_to_open", family=Family.PHYSICAL, edit=nothing_to_open)
NOTHING_TO_SWITCH = Operator(name="nothing_to_switch", family=Family.PHYSICAL, edit=nothing_to_switch)
FIXED_INTO_SMALL = Operator(name="fixed_into_small", family=Family.PHYSICAL, edit=fixed_into_small)
FIXED_INTO_CLOSED = Operator(name="fixed_into_closed", family=Family.PHYSICAL, edit=fixed_into_closed)
FIXED_INTO_DRAWER = Operator(name="fixed_into_drawer", family=Family.PHYSICAL, edit=fixed_into_drawer)

ATOMIC = (FIXED_OBJECT, MOVE_FIXED_TARGET, NO_OPENING, NOTHING_TO_OPEN, NOTHING_TO_SWITCH)
COMPOUND = (FIXED_INTO_SMALL, FIXED_INTO_CLOSED, FIXED_INTO_DRAWER)
