"""Object-grounding operators: noun phrases that pick out nothing in the scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..language.plan import MOVING, Claim, Reference, Relation, Step, Verb
from ..records import Family
from .edit import Operator, with_claim
from .surroundings import Surroundings

ROLES: dict[Relation, tuple[str, ...]] = {Relation.ON: ("surface",), Relation.IN: ("hollow",)}
"""What an absent destination must be for the relation to make sense."""


def absent_object(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on something that is not there."""
    switches = step.verb in (Verb.TURN_ON, Verb.TURN_OFF)
    roles = ("movable",) if step.verb in MOVING else ("appliance", "switch") if switches else ("appliance",)
    if step.object.of is None:
        for absent in around.absent_objects(*roles):
            yield replace(step, object=absent)


def absent_whole(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on a part of something that is not there."""
    if step.object.of is not None:
        for absent in around.absent_objects("appliance"):
            if absent.noun == "fridge":  # the only absent object that has drawers
                yield replace(step, object=replace(step.object, of=absent))


def absent_destination(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it to something that is not there."""
    if step.destination is not None and step.relation is not None:
        for absent in around.absent_objects(*ROLES.get(step.relation, ("surface", "appliance"))):
            yield replace(step, destination=absent)


def absent_landmark(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on the object next to something that is not there."""
    if step.verb in MOVING and step.object.count is None:
        for absent in around.absent_objects("movable", "hollow", "appliance"):
            claim = Claim(relation=Relation.NEXT_TO, landmarks=(absent,))
            yield replace(step, object=with_claim(step.object.bare, claim))


def absent_landmark_destination(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it to the one next to something that is not there."""
    if step.destination is not None and step.destination.ordinal is None:
        for absent in around.absent_objects("movable", "switch"):
            claim = Claim(relation=Relation.NEXT_TO, landmarks=(absent,))
            yield replace(step, destination=with_claim(step.destination.bare, claim))


def other_colour(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on a variant in a colour that is not there."""
    for reference in _in_unseen_colours(step.object, around):
        yield replace(step, object=reference)


def other_colour_destination(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it to a variant in a colour that is not there."""
    if step.destination is not None:
        for reference in _in_unseen_colours(step.destination, around):
            yield replace(step, destination=reference)


def too_many(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on more of a kind than there are."""
    noun = around.countable(step.object)
    if step.object.of is None and step.object.ordinal is None and noun is not None:
        for count in (2, 3, 4):
            yield replace(step, object=replace(step.object.bare, noun=noun, count=count))


def absent_part(step: Step, around: Surroundings) -> Iterator[Step]:
    """Act on a drawer beyond the last."""
    if step.object.ordinal in around.words.ordinals:
        for ordinal in ("fourth", "fifth", "sixth"):
            yield replace(step, object=replace(step.object, ordinal=ordinal, of=around.whole_of(step.object)))


def absent_part_destination(step: Step, around: Surroundings) -> Iterator[Step]:
    """Bring it to a drawer beyond the last."""
    if step.destination is not None and step.destination.ordinal in around.words.ordinals:
        for ordinal in ("fourth", "fifth", "sixth"):
            whole = around.whole_of(step.destination)
            yield replace(step, destination=replace(step.destination, ordinal=ordinal, of=whole))


def _in_unseen_colours(reference: Reference, around: Surroundings) -> Iterator[Reference]:
    """The reference in every unseen colour; a part is coloured by its whole."""
    if reference.of is not None:
        for whole in _in_unseen_colours(reference.of, around):
            yield replace(reference, of=whole)
        return
    noun = around.countable(reference)
    if reference.ordinal is None and reference.noun not in around.words.absent and noun is not None:
        for colour in around.unseen_colours(noun):
            yield replace(reference.bare, noun=noun, adjective=colour)


ABSENT_OBJECT = Operator(name="absent_object", family=Family.GROUNDING, edit=absent_object)
ABSENT_WHOLE = Operator(name="absent_whole", family=Family.GROUNDING, edit=absent_whole)
ABSENT_DESTINATION = Operator(name="absent_destination", family=Family.GROUNDING, edit=absent_destination)
ABSENT_LANDMARK = Operator(name="absent_landmark", family=Family.GROUNDING, edit=absent_landmark)
ABSENT_LANDMARK_DESTINATION = Operator(
    name="absent_landmark_destination", family=Family.GROUNDING, edit=absent_landmark_destination
)
OTHER_COLOUR = Operator(name="other_colour", family=Family.GROUNDING, edit=other_colour)
OTHER_COLOUR_DESTINATION = Operator(
    name="other_colour_destination", family=Family.GROUNDING, edit=other_colour_destination
)
TOO_MANY = Operator(name="too_many", family=Family.GROUNDING, edit=too_many)
ABSENT_PART = Operator(name="absent_part", family=Family.GROUNDING, edit=absent_part)
ABSENT_PART_DESTINATION = Operator(
    name="absent_part_destination", family=Family.GROUNDING, edit=absent_part_destination
)

ATOMIC = (
    ABSENT_OBJECT,
    ABSENT_WHOLE,
    ABSENT_DESTINATION,
    ABSENT_LANDMARK,
    ABSENT_LANDMARK_DESTINATION,
    OTHER_COLOUR,
    OTHER_COLOUR_DESTINATION,
    TOO_MANY,
    ABSENT_PART,
    ABSENT_PART_DESTINATION,
)
COMPOUND = (
    ABSENT_OBJECT.then(ABSENT_DESTINATION),
    OTHER_COLOUR.then(ABSENT_DESTINATION),
    ABSENT_OBJECT.then(OTHER_COLOUR_DESTINATION),
    OTHER_COLOUR.then(TOO_MANY),
    TOO_MANY.then(ABSENT_DESTINATION),
    ABSENT_PART.then(OTHER_COLOUR),
    ABSENT_OBJECT.then(ABSENT_PART_DESTINATION),
    OTHER_COLOUR.then(OTHER_COLOUR_DESTINATION),
    TOO_MANY.then(OTHER_COLOUR_DESTINATION),
    ABSENT_LANDMARK.then(ABSENT_DESTINATION),
)
