"""Instruction premises: the steps and constraints can all be met, judged from the words alone.

Each step has effects, each constraint forbids some: a constraint that forbids an effect of a step of the same plan
contradicts it. Of the scene only that counts which a listener knows of such objects in general: what is fixed, what
can carry what, and what can reach across a gap. A bowl can stand on a plate and, with the plate, on the stove; it
cannot stand on the stove and the cabinet.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import SceneFacts
from ..language.plan import PLACING, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from ..language.vocabulary import Vocabulary
from ..records import Family
from .grounding import entities_named, phrase
from .violation import Violation

STATE_AFTER = {Verb.OPEN: "open", Verb.CLOSE: "closed", Verb.TURN_ON: "on", Verb.TURN_OFF: "off"}
STATE_DEMANDED = {
    Demand.KEEP_OPEN: "open",
    Demand.KEEP_CLOSED: "closed",
    Demand.KEEP_ON: "on",
    Demand.KEEP_OFF: "off",
}
OPPOSITE = {"open": "closed", "closed": "open", "on": "off", "off": "on"}
HOLDING = (Relation.ON, Relation.IN)
OUTSIDE = (Relation.NEXT_TO, Relation.UNDER)

BRIDGING_MARGIN_M = 0.04
"""An object cannot lie on two fixed places at once where the gap between them exceeds its length by at least this."""

SLIDING_HEIGHT_M = 0.03
"""An object could be slid, not picked up, onto a place that is lower than this, such as a plate."""


def instruction_violations(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    """Violations about every constraint that contradicts a step."""
    states = len(facts.init_states)
    for step in plan.steps:
        if _goes_to_itself(step):
            yield Violation(
                family=Family.INSTRUCTION,
                premise=f"distinct({phrase(step.object)}, destination)",
                expected="a destination other than the thing itself",
                observed=f"the {step.object.name} is to be brought to itself",
                violated=states,
                states=states,
            )
        for constraint in step.constraints:
            yield from _constraint_violations(constraint, plan, facts, words)


def _constraint_violations(
    constraint: Constraint, plan: Plan, facts: SceneFacts, words: Vocabulary
) -> Iterator[Violation]:
    """What contradicts one constraint; where two steps do, it is a factor of neither."""
    states = len(facts.init_states)
    reasons = [
        (step, _contradiction(constraint, step, last_for_object=_is_last_move(plan, index)))
        for index, step in enumerate(plan.steps)
    ]
    against = [(step, reason) for step, reason in reasons if reason]
    for step, reason in against[:1]:
        disputed = len(against) > 1 or _has_a_way_out(constraint, step, facts, words)
        yield Violation(
            family=Family.INSTRUCTION,
            premise=f"compatible({effect(step)}, {_demand(constraint)})",
            expected="one execution that does both",
            observed=reason,
            violated=0 if disputed else states,
            unclear=states if disputed else 0,
            states=states,
        )


def _goes_to_itself(step: Step) -> bool:
    return step.destination is not None and step.destination.bare == step.object.bare


def effect(step: Step) -> str:
    """What the step brings about, in functional notation, such as ``on(bowl, plate)`` or ``open(drawer(top))``."""
    if step.destination is not None:
        return f"{step.relation}({phrase(step.object)}, {phrase(step.destination)})"
    return f"{STATE_AFTER[step.verb]}({phrase(step.object)})"


def _demand(constraint: Constraint) -> str:
    if constraint.landmark is None:
        return f"{constraint.demand}({phrase(constraint.subject)})"
    return f"{constraint.demand}({phrase(constraint.subject)}, {constraint.relation}, {phrase(constraint.landmark)})"


def _has_a_way_out(constraint: Constraint, step: Step, facts: SceneFacts, words: Vocabulary) -> bool:
    """Whether somebody could meet both, because objects can be slid, stacked, nested or laid across a gap."""
    if step.destination is None:
        return False
    there = entities_named(step.destination, facts, words)
    match constraint.demand:
        case Demand.PICK_UP_AFTER:
            if step.relation not in HOLDING:
                return True  # beside something it can be slid, and picked up afterwards
            flat = all(facts.entities[place].size_m[2] < SLIDING_HEIGHT_M for place in there)
            return flat and bool(there) and step.relation is Relation.ON
        case Demand.ONLY_AT:
            return any(_carries(other, facts, words) for other in entities_named(constraint.subject, facts, words))
        case Demand.ALSO_AT if constraint.landmark is not None and constraint.landmark.bare != step.destination.bare:
            return _spans(step.object, there, entities_named(constraint.landmark, facts, words), facts, words)
    return False


def _spans(obj: Reference, there: list[int], also_there: list[int], facts: SceneFacts, words: Vocabulary) -> bool:
    """Whether the object could be at both places: one stands on the other, or the object reaches across."""
    if any(facts.entities[place].movable for place in (*there, *also_there)):
        return True
    reach = max((max(facts.entities[i].size_m) for i in entities_named(obj, facts, words)), default=0.0)
    gaps = [facts.gap_m(i, j).min() for i in there for j in also_there]
    return any(gap < reach + BRIDGING_MARGIN_M for gap in gaps)


def _carries(place: int, facts: SceneFacts, words: Vocabulary) -> bool:
    """Whether objects can be put on or into it: it may then be the only one at its place, and they with it."""
    entity = facts.entities[place]
    return words.word(entity.category).surface or entity.opening_m is not None


def _is_last_move(plan: Plan, index: int) -> bool:
    """Whether no later step moves the same object: then where this step puts it is where it ends up."""
    moved = plan.steps[index].object.bare
    return not any(step.destination is not None and step.object.bare == moved for step in plan.steps[index + 1 :])


def _contradiction(constraint: Constraint, step: Step, *, last_for_object: bool) -> str | None:
    """Why the constraint and the step exclude each other, or None."""
    if step.destination is None:
        return _state_contradiction(constraint, step)
    subject, obj, destination = constraint.subject.bare, step.object.bare, step.destination.bare
    match constraint.demand:
        case Demand.STAY if subject == obj:
            return f"the {obj.name} must be moved, and must not be moved"
        case Demand.NOT_LIFTED if subject == obj and step.verb is Verb.PLACE:
            return f"the {obj.name} must be picked up, and must never be picked up"
        case Demand.PICK_UP_AFTER if subject == obj and step.verb in PLACING:
            return f"the {obj.name} must be picked up before it can be put anywhere, and only after it has been"
    if not last_for_object:
        return None
    return _end_contradiction(constraint, step, obj, destination)


def _end_contradiction(constraint: Constraint, step: Step, obj: Reference, destination: Reference) -> str | None:
    subject = constraint.subject.bare
    landmark = None if constraint.landmark is None else constraint.landmark.bare
    same_place = landmark == destination and constraint.relation == step.relation
    match constraint.demand:
        case Demand.EMPTY if subject == destination and step.relation in HOLDING:
            return f"at the end the {obj.name} is {step.relation} the {destination.name}, and nothing is"
        case Demand.ALSO_AT if subject == obj and landmark == destination:
            if step.relation in HOLDING and constraint.relation in OUTSIDE:
                return f"the {obj.name} is {step.relation} the {destination.name}, and {constraint.relation} it"
        case Demand.ALSO_AT if subject == obj and landmark is not None and not _overlap(landmark, destination):
            return f"at the end the {obj.name} is in two places, at the {destination.name} and at the {landmark.name}"
        case Demand.NOT_AT if subject == obj and same_place:
            return f"at the end the {obj.name} is {step.relation} the {destination.name}, and is not"
        case Demand.ONLY_AT if subject != obj and same_place:
            return (
                f"at the end the {obj.name} is {step.relation} the {destination.name}, and only the {subject.name} is"
            )
    return None


def _state_contradiction(constraint: Constraint, step: Step) -> str | None:
    demanded = STATE_DEMANDED.get(constraint.demand)
    after, subject = STATE_AFTER[step.verb], constraint.subject.bare
    slides = step.verb in (Verb.OPEN, Verb.CLOSE)
    drawer = step.object.ordinal is not None  # a door moves, but what it belongs to stays where it is
    if constraint.demand is Demand.STAY and slides and drawer and subject == step.object.bare:
        return f"the {step.object.name} must move to become {after}, and must not be moved"
    if constraint.demand is Demand.NOT_OPENED and step.verb is Verb.OPEN and subject == step.object.bare:
        return f"the {step.object.name} must be opened, and must not be opened"
    if demanded == OPPOSITE[after] and subject == step.object.bare:
        return f"the {step.object.name} must become {after}, and must stay {demanded}"
    return None


def _overlap(a: Reference, b: Reference) -> bool:
    """Whether one place is the other or a part of it: being at both is then no contradiction."""
    return a == b or a.of == b or b.of == a
