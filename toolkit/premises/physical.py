"""Physical premises: what the step asks for can be done to these things by some motion, easy or hard.

Where words leave a way out, the premise is unclear and no conflict: such things open in daily life though this one does
not, or "in the rack" may mean on it.
"""

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
                    certain=not any(words.word(thing.category).opens_in_life for thing in things),
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
        opening = place.opening_m or _opening_of_parts(place, facts)
        for thing in things[:1]:
            yield from _fit_findings(step, thing, opening, states, surface=words.word(place.category).surface)


def _opening_of_parts(whole: Entity, facts: SceneFacts) -> tuple[float, float] | None:
    """The largest opening among the parts: in the cabinet is in one of its drawers."""
    return max((e.opening_m for e in facts.entities if e.part_of == whole.name and e.opening_m), default=None)


def _fit_findings(
    step: Step, thing: Entity, opening: tuple[float, float] | None, states: int, *, surface: bool
) -> Iterator[Finding]:
    """To pass an opening of sides w >= d, two of a thing's three extents must fit: the smallest two."""
    assert step.destination is not None
    what, where = step.object.noun, step.destination.noun
    smallest, middle, _ = sorted(thing.size_m)
    if opening is None:  # a premise about the place alone: two things that should go in there miss the same opening
        yield _finding(
            states, f"opening({phrase(step.destination)})", f"an opening in the {where} for the {what}",
            f"the {where} has no opening; the {what} measures {_centimetres(smallest, middle)} at its slimmest",
            margin=smallest, certain=not surface,
        )  # fmt: skip
        return
    width, depth = opening
    excess = max(smallest - depth, middle - width)
    if excess <= -FIT_MARGIN_M:
        return
    observed = (
        f"the opening of the {where} is {_centimetres(depth, width)}, "
        f"the {what} {_centimetres(smallest, middle)} at its slimmest"
    )
    yield _finding(
        states, f"fits({phrase(step.object)}, {phrase(step.destination)})",
        f"an opening in the {where} for the {what}", observed, margin=excess, certain=excess >= FIT_MARGIN_M,
    )  # fmt: skip


def _entities(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[Entity]:
    return [facts.entities[i] for i in candidates(reference, facts, words)]


def _finding(
    states: int, premise: str, expected: str, observed: str, *, margin: float | None = None, certain: bool = True
) -> Finding:
    return Finding(
        family=Family.PHYSICAL,
        premise=premise,
        expected=expected,
        observed=observed,
        margin=margin,
        violated=states if certain else 0,
        unclear=0 if certain else states,
        states=states,
    )


def _centimetres(short_m: float, long_m: float) -> str:
    return f"{100.0 * short_m:.1f} x {100.0 * long_m:.1f} cm"
