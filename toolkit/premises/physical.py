"""Physical premises: what the step asks for can be done with these entities by some motion, easy or hard.

Where words leave a way out, the premise is unclear and no conflict: such an object opens in daily life though this one
does not, or "in the rack" may mean on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Entity, SceneFacts
from ..language.plan import MOVING, Demand, Plan, Reference, Relation, Step, Verb
from ..language.vocabulary import Vocabulary, Word
from ..language.word_forms import with_article
from ..records import Family
from .grounding import candidates, phrase
from .violation import Violation

FIT_MARGIN_M = 0.01
"""An object is too large for an opening only where it is larger by at least this much, however it is turned."""

FAR_TOO_WIDE = 2.0
"""Or where it is no thin sheet and its middle extent is this many times the opening's width."""

MOST_ROOM_M = 0.03
"""Where there is more room beneath than this, something flexible or thin might be wedged in after all."""


def physical_violations(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    """Violations about every step whose noun phrases are grounded."""
    for number, step in enumerate(plan.steps):
        yield from _step_violations(step, facts, words)
        yield from _shut_violations(step, plan.steps[:number], facts, words)


def _step_violations(step: Step, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    entities = _entities(step.object, facts, words)
    if not entities:
        return
    states, noun = len(facts.init_states), step.object.name
    match step.verb:
        case Verb.OPEN | Verb.CLOSE:
            if not any(entity.opens for entity in entities):
                yield _violation(
                    states, f"opens({phrase(step.object)})", f"a door, lid or drawer of the {noun}",
                    f"no hinge and no slide in the simulator's model of the {noun}",
                    certain=not any(words.word(entity.category).opens_in_life for entity in entities),
                )  # fmt: skip
        case Verb.TURN_ON | Verb.TURN_OFF:
            if not any(entity.switches for entity in entities):
                yield _violation(
                    states, f"switches({phrase(step.object)})", f"a switch of the {noun}",
                    f"nothing on the {noun} turns on or off in the simulator",
                    certain=not any(words.word(entity.category).switches_in_life for entity in entities),
                )  # fmt: skip
        case verb if verb in MOVING:
            yield from _move_violations(step, entities, facts, words)


def _move_violations(step: Step, entities: list[Entity], facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    states = len(facts.init_states)
    if not any(entity.movable for entity in entities):
        yield _violation(
            states, f"movable({phrase(step.object)})", f"{with_article(step.object.name)} that can be moved",
            f"the {step.object.name} is fixed in place: it has no free joint",
            certain=not any(words.word(entity.category).looks_movable for entity in entities),
        )  # fmt: skip
    if step.destination is None or step.destination.bare == step.object.bare:
        return
    places = _entities(step.destination, facts, words)
    for place in places[:1]:
        for obj in entities[:1]:
            if step.relation is Relation.IN:
                opening = place.opening_m or _opening_of_parts(place, facts)
                if opening is None:
                    yield from _closed_violations(step, obj, place, words.word(place.category), states)
                else:
                    yield from _fit_violations(step, obj, opening, states)
            if step.relation is Relation.UNDER:
                yield from _under_violations(step, obj, place, words.word(place.category), states)


def _shut_violations(step: Step, before: tuple[Step, ...], facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    """Nothing gets into what is shut and must not be opened; the scene shows whether it is shut."""
    place = step.destination
    if place is None or step.relation is not Relation.IN:
        return
    ruled_out = any(c.demand is Demand.NOT_OPENED and c.subject.bare == place.bare for c in step.constraints)
    found = candidates(place, facts, words)
    opened = any(earlier.verb is Verb.OPEN and candidates(earlier.object, facts, words) == found for earlier in before)
    if not ruled_out or opened or len(found) != 1 or not facts.entities[found[0]].opens:
        return
    shut, states = int((~facts.is_open[:, found[0]]).sum()), len(facts.init_states)
    if shut:
        yield Violation(
            family=Family.PHYSICAL,
            premise=f"accessible({phrase(place)})",
            expected=f"the {place.name} open already, for the {step.object.name} to go in",
            observed=f"the {place.name} is shut in {shut} of {states} initial states, and opening it is ruled out",
            violated=shut,
            states=states,
        )


def _under_violations(step: Step, obj: Entity, place: Entity, word: Word, states: int) -> Iterator[Violation]:
    """Under something fixed goes only what is lower than the room there; what can be lifted, or a table, has room."""
    assert step.destination is not None
    if place.movable or place.room_under_m is None or word.stands_open:
        return
    lacking = min(obj.size_m) - place.room_under_m
    if lacking <= 0.0:
        return
    where = step.destination.name
    yield _violation(
        states, f"room_under({phrase(step.destination)})", f"room under the {where} for the {step.object.name}",
        f"the {where} is fixed in place with at most {100.0 * place.room_under_m:.1f} cm of room under most of it, "
        f"the {step.object.name} is {100.0 * min(obj.size_m):.1f} cm at its thinnest",
        margin=lacking, certain=lacking >= FIT_MARGIN_M and place.room_under_m <= MOST_ROOM_M,
    )  # fmt: skip


def _opening_of_parts(whole: Entity, facts: SceneFacts) -> tuple[float, float] | None:
    """The largest opening among the parts: in the cabinet is in one of its drawers."""
    return max((e.opening_m for e in facts.entities if e.part_of == whole.name and e.opening_m), default=None)


def _closed_violations(step: Step, obj: Entity, place: Entity, word: Word, states: int) -> Iterator[Violation]:
    """What has no opening holds nothing; what could be opened in daily life holds at most what is smaller than it.

    A surface that never opens may be meant as one: in the rack, in the plate.
    """
    assert step.destination is not None
    what, where = step.object.name, step.destination.name
    slim, mid, long = sorted(obj.size_m)
    place_slim, place_mid, place_long = sorted(place.size_m)
    excess = slim - min(place_slim, word.mouth_m or place_slim)
    # A premise about the place alone: two objects that should go in there miss the same opening.
    yield _violation(
        states, f"opening({phrase(step.destination)})", f"an opening in the {where} for the {what}",
        f"the {where} has no opening; the {what} measures {_centimetres(slim, mid)} at its slimmest",
        margin=slim, certain=excess >= FIT_MARGIN_M if word.opens_in_life else not word.surface,
    )  # fmt: skip
    larger = min(slim - place_slim, mid - place_mid, long - place_long)
    if larger >= FIT_MARGIN_M:
        yield _violation(
            states, f"smaller({phrase(step.object)}, {phrase(step.destination)})",
            f"{with_article(what)} smaller than the {where}",
            f"the {what} is larger in every direction: {_centimetres(slim, mid, long)} "
            f"against {_centimetres(place_slim, place_mid, place_long)}", margin=larger,
        )  # fmt: skip


def _fit_violations(step: Step, obj: Entity, opening: tuple[float, float], states: int) -> Iterator[Violation]:
    """To pass an opening of sides w >= d, two of an object's three extents must fit: the smallest two."""
    assert step.destination is not None
    what, where = step.object.name, step.destination.name
    smallest, middle, _ = sorted(obj.size_m)
    width, depth = opening
    excess = max(smallest - depth, middle - width)
    if excess <= -FIT_MARGIN_M:
        return
    # What fits on edge, or nearly, might be called in there while most of it sticks out.
    certain = smallest - depth >= FIT_MARGIN_M or (middle >= FAR_TOO_WIDE * width and smallest >= 0.5 * depth)
    observed = (
        f"the opening of the {where} is {_centimetres(depth, width)}, "
        f"the {what} {_centimetres(smallest, middle)} at its slimmest"
    )
    yield _violation(
        states, f"fits({phrase(step.object)}, {phrase(step.destination)})",
        f"an opening in the {where} for the {what}", observed, margin=excess, certain=certain,
    )  # fmt: skip


def _entities(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[Entity]:
    return [facts.entities[i] for i in candidates(reference, facts, words)]


def _violation(
    states: int, premise: str, expected: str, observed: str, *, margin: float | None = None, certain: bool = True
) -> Violation:
    return Violation(
        family=Family.PHYSICAL,
        premise=premise,
        expected=expected,
        observed=observed,
        margin=margin,
        violated=states if certain else 0,
        unclear=0 if certain else states,
        states=states,
    )


def _centimetres(*lengths_m: float) -> str:
    return " x ".join(f"{100.0 * length:.1f}" for length in lengths_m) + " cm"
