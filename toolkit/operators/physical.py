"""Physical-feasibility operators: entities that are there, asked to do what they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..language.plan import MOVING, PLACING, Constraint, Demand, Reference, Relation, Step, Verb
from ..records import Family
from .edit import Operator, with_constraint
from .surroundings import Surroundings


def fixed_object(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move something that is fixed in place to where the task brings its own object."""
    if step.verb in MOVING and step.destination is not None and step.relation is not Relation.IN:
        for fixture in (*around.fixed(), *around.scenery()):
            if not around.same(fixture, step.destination):
                yield replace(step, object=fixture)


def move_fixed_target(step: Step, around: Surroundings) -> Iterator[Step]:
    """Move the very fixture that the task would open, switch or put an object onto."""
    target = step.destination or step.object
    fixture = around.whole_of(target) or target
    if fixture in around.fixed():
        for place in around.surfaces():
            if not around.same(place, fixture):
                yield _put(step, fixture, Relation.ON, place)
        for place in around.landmarks():
            if not around.same(place, fixture):
                yield _put(step, fixture, Relation.NEXT_TO, place)


def no_opening(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it inside something that has no opening for it."""
    if step.verb in MOVING and step.object.count is None:
        for place in around.sealed_containers():
            if not around.same(place, step.object):
                yield _put(step, step.object, Relation.IN, place)


def into_the_object(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put the destination, or something else, inside the very object that the task moves."""
    if step.verb in MOVING and step.destination is not None and step.object.count is None:
        for obj in around.movable():
            if not around.same(obj, step.object):
                yield _put(step, obj, Relation.IN, around.package_of(step.object))


def too_large(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it, or what it should be put on, inside something whose opening is too small."""
    for obj in around.movable():
        for place in (*around.hollows(), *around.compartments()):
            if around.concerns(step, obj) and not around.same(obj, place):
                yield _put(step, obj, Relation.IN, place)


def no_room_under(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it under something that stands flat and cannot be lifted."""
    if step.verb in MOVING:
        for place in around.fixed():
            yield replace(step, relation=Relation.UNDER, destination=place)
    elif (around.whole_of(step.object) or step.object) in around.fixed():
        for obj in around.movable():
            yield _put(step, obj, Relation.UNDER, around.whole_of(step.object) or step.object)


def nothing_to_open(step: Step, around: Surroundings) -> Iterator[Step]:
    """Open something that has neither door nor lid nor drawer."""
    for reference in around.unopenable():
        if around.concerns(step, reference) or step.verb is Verb.OPEN:
            yield Step(verb=Verb.OPEN, object=reference)


def nothing_to_close(step: Step, around: Surroundings) -> Iterator[Step]:
    """Close something that has neither door nor lid nor drawer."""
    for reference in around.unopenable():
        if around.concerns(step, reference) or step.verb is Verb.CLOSE:
            yield Step(verb=Verb.CLOSE, object=reference)


def nothing_to_switch(step: Step, around: Surroundings) -> Iterator[Step]:
    """Turn on something that has no switch."""
    for reference in around.unswitchable():
        if reference not in around.scenery() and (around.concerns(step, reference) or step.verb is Verb.TURN_ON):
            yield Step(verb=Verb.TURN_ON, object=reference)


def not_opened(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put it inside something shut without opening that."""
    if step.verb in PLACING and step.object.count is None:
        for place in around.shut_entities():
            yield _unopened(replace(step, relation=Relation.IN, destination=place), place)


def fixed_into_shut(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into something shut without opening that."""
    for place in around.shut_entities():
        for fixture in around.fixed():
            if not around.same(fixture, place.of or place) and (
                around.concerns(step, fixture) or around.concerns(step, place)
            ):
                yield _unopened(_put(step, fixture, Relation.IN, place), place)


def fixed_into_small(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into something too small for it."""
    yield from _fixed_into((*around.hollows(), *around.compartments()), step, around)


def fixed_into_closed(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into something that has no opening."""
    yield from _fixed_into(tuple(around.sealed_containers()), step, around)


def fixed_into_drawer(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into a drawer too small for it."""
    yield from _fixed_into(tuple(around.drawers()), step, around)


def fixed_into_object(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place into the very object, too small for it, that the task moves."""
    if step.verb in MOVING and _is_vessel(step.object, around):
        for fixture in (*around.fixed(), *around.scenery()):
            yield _put(step, fixture, Relation.IN, step.object)


def fixed_under_fixed(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put something fixed in place under something that stands flat and cannot be lifted."""
    for fixture in around.fixed():
        for place in around.fixed():
            if around.concerns(step, fixture) and not around.same(fixture, place):
                yield _put(step, fixture, Relation.UNDER, place)


def destination_into_closed(step: Step, around: Surroundings) -> Iterator[Step]:
    """Put the destination inside something closed that is smaller than it in every direction."""
    if step.verb in MOVING and step.destination is not None and step.destination in around.movable():
        for place in around.sealed_containers():
            if not around.same(place, step.destination) and not around.same(place, step.object):
                yield _put(step, step.destination, Relation.IN, place)


def _fixed_into(places: tuple[Reference, ...], step: Step, around: Surroundings) -> Iterator[Step]:
    for fixture in (*around.fixed(), *around.scenery()):
        for place in places:
            if around.same(fixture, place.of or place):
                continue
            if around.concerns(step, fixture) or around.concerns(step, place):
                yield _put(step, fixture, Relation.IN, place)


def _is_vessel(reference: Reference, around: Surroundings) -> bool:
    meant = [entity for entity in around.facts.entities if entity.name in around.names_meant(reference)]
    return bool(meant) and all(entity.opening_m is not None and entity.movable for entity in meant)


def _unopened(step: Step, place: Reference) -> Step:
    return with_constraint(step, Constraint(demand=Demand.NOT_OPENED, subject=place))


def _put(step: Step, reference: Reference, relation: Relation, place: Reference) -> Step:
    verb = step.verb if step.verb is Verb.PLACE else Verb.PUT
    return Step(verb=verb, object=reference, relation=relation, destination=place)


FIXED_OBJECT = Operator(name="fixed_object", family=Family.PHYSICAL, edit=fixed_object)
MOVE_FIXED_TARGET = Operator(name="move_fixed_target", family=Family.PHYSICAL, edit=move_fixed_target)
NO_OPENING = Operator(name="no_opening", family=Family.PHYSICAL, edit=no_opening)
INTO_THE_OBJECT = Operator(name="into_the_object", family=Family.PHYSICAL, edit=into_the_object)
TOO_LARGE = Operator(name="too_large", family=Family.PHYSICAL, edit=too_large)
NO_ROOM_UNDER = Operator(name="no_room_under", family=Family.PHYSICAL, edit=no_room_under)
NOTHING_TO_OPEN = Operator(name="nothing_to_open", family=Family.PHYSICAL, edit=nothing_to_open)
NOTHING_TO_CLOSE = Operator(name="nothing_to_close", family=Family.PHYSICAL, edit=nothing_to_close)
NOTHING_TO_SWITCH = Operator(name="nothing_to_switch", family=Family.PHYSICAL, edit=nothing_to_switch)
NOT_OPENED = Operator(name="not_opened", family=Family.PHYSICAL, edit=not_opened)
FIXED_INTO_SHUT = Operator(name="fixed_into_shut", family=Family.PHYSICAL, edit=fixed_into_shut)
FIXED_INTO_OBJECT = Operator(name="fixed_into_object", family=Family.PHYSICAL, edit=fixed_into_object)
FIXED_INTO_SMALL = Operator(name="fixed_into_small", family=Family.PHYSICAL, edit=fixed_into_small)
FIXED_INTO_CLOSED = Operator(name="fixed_into_closed", family=Family.PHYSICAL, edit=fixed_into_closed)
FIXED_INTO_DRAWER = Operator(name="fixed_into_drawer", family=Family.PHYSICAL, edit=fixed_into_drawer)
FIXED_UNDER_FIXED = Operator(name="fixed_under_fixed", family=Family.PHYSICAL, edit=fixed_under_fixed)
# The same edits among entities that are also larger in every direction: one more factor, which the checker has to find.
LARGER_THAN_CLOSED = Operator(name="larger_than_closed", family=Family.PHYSICAL, edit=no_opening)
SWALLOWED_BY_OBJECT = Operator(name="swallowed_by_object", family=Family.PHYSICAL, edit=into_the_object)
DESTINATION_INTO_CLOSED = Operator(name="destination_into_closed", family=Family.PHYSICAL, edit=destination_into_closed)

NO_SUCH_PART = (NOTHING_TO_OPEN.name, NOTHING_TO_CLOSE.name, NOTHING_TO_SWITCH.name)
"""Operators that are one idea, about a door, a lid or a switch."""

ATOMIC = (
    FIXED_OBJECT,
    MOVE_FIXED_TARGET,
    NO_OPENING,
    INTO_THE_OBJECT,
    TOO_LARGE,
    NO_ROOM_UNDER,
    NOTHING_TO_OPEN,
    NOTHING_TO_CLOSE,
    NOTHING_TO_SWITCH,
    NOT_OPENED,
)
COMPOUND = (
    FIXED_INTO_SHUT,
    FIXED_INTO_OBJECT,
    FIXED_INTO_SMALL,
    FIXED_INTO_CLOSED,
    FIXED_INTO_DRAWER,
    FIXED_UNDER_FIXED,
    LARGER_THAN_CLOSED,
    SWALLOWED_BY_OBJECT,
    DESTINATION_INTO_CLOSED,
)
