"""Physical premises: what the step asks for can be done to these things by some motion, easy or hard."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Entity, SceneFacts
from ..plan import Plan, Reference, Relation, Step, Verb
from ..records import Family
from ..vocabulary import Vocabulary
from .finding import Finding
from .grounding import candidates, phrase

FIT_MARGIN_M = 0.01
"""A thing is too large for an opening only where it is larger by at least this much, however it is turned."""


def physical_findings(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Finding]:
    """Findings about every step whose noun phrases are grounded."""
    for step in plan.steps:
        yield from _step_findings(step, facts, words)


def _step_findings(step: Step, facts: SceneFacts, words: Vocabulary) -> Iterator[Finding]:
    things = _entities(step.object, facts, words)
    if not things:
        return
    states, noun = len(facts.init_states), step.object.noun
    match step.verb:
        case Verb.OPEN | Verb.CLOSE:
            if not any(thing.opens for thing in things):
                yield _finding(
                    states, f"opens({phrase(step.object)})", f"a door, lid or drawer of the {noun}",
                    f"no hinge and no slide in the simulator's model of the {noun}",
                )  # fmt: skip
        case Verb.TURN_ON | Verb.TURN_OFF:
            if not any(thing.switches for thing in things):
                yield _finding(
                    states, f"switches({phrase(step.object)})", f"a switch of the {noun}",
                    f"nothing on the {noun} turns on or off in the simulator",
                )  # fmt: skip
        case Verb.PUT | Verb.PUSH:
            yield from _move_findings(step, things, facts, words)


def _move_findings(step: Step, things: list[Entity], facts: SceneFacts, words: Vocabulary) -> Iterator[Finding]:
    states = len(facts.init_states)
    if not any(thing.movable for thing in things):
        yield _finding(
            states, f"movable({phrase(step.object)})", f"a {step.object.noun} that can be moved",
            f"the {step.object.noun} is fixed in place: it has no free joint",
        )  # fmt: skip
    if step.destination is None or step.relation is not Relation.IN:
        return
    places = _entities(step.destination, facts, words)
    for place in places[:1]:
        for thing in things[:1]:
            yield from _fit_findings(step, thing, place, states)


def _fit_findings(step: Step, thing: Entity, place: Entity, states: int) -> Iterator[Finding]:
    """To pass an opening of sides w >= d, two of a thing's three extents must fit: the smallest two."""
    assert step.destination is not None
    what, where = step.object.noun, step.destination.noun
    premise = f"fits({phrase(step.object)}, {phrase(step.destination)})"
    smallest, middle, _ = sorted(thing.size_m)
    if place.opening_m is None:
        yield _finding(
            states, premise, f"an opening in the {where} for the {what}",
            f"the {where} has no opening; the {what} measures {_centimetres(smallest, middle)} at its slimmest",
            margin=smallest,
        )  # fmt: skip
        return
    width, depth = place.opening_m
    excess = max(smallest - depth, middle - width)
    if excess <= -FIT_MARGIN_M:
        return
    observed = (
        f"the opening of the {where} is {_centimetres(depth, width)}, "
        f"the {what} {_centimetres(smallest, middle)} at its slimmest"
    )
    if excess >= FIT_MARGIN_M:
        yield _finding(states, premise, f"an opening in the {where} for the {what}", observed, margin=excess)
    else:
        yield Finding(
            family=Family.PHYSICAL, premise=premise, expected=f"an opening in the {where} for the {what}",
            observed=observed, margin=excess, violated=0, unclear=states, states=states,
        )  # fmt: skip


def _entities(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[Entity]:
    return [facts.entities[i] for i in candidates(reference, facts, words)]


def _finding(states: int, premise: str, expected: str, observed: str, *, margin: float | None = None) -> Finding:
    return Finding(
        family=Family.PHYSICAL,
        premise=premise,
        expected=expected,
        observed=observed,
        margin=margin,
        violated=states,
        states=states,
    )


def _centimetres(short_m: float, long_m: float) -> str:
    return f"{100.0 * short_m:.1f} x {100.0 * long_m:.1f} cm"
