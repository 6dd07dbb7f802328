"""From a plan's steps to what they bring about in one scene: words become LIBERO's names, and verbs predicates.

Constraints ("without moving it") are no part of a step's goal: the goal is what the verb brings about, whether or not
it may. A step has no goal where its words pick out nothing, as for an absent object or a fifth drawer, or where what
they pick out has no such state, as for a plate that is to be opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..facts import Entity, SceneFacts
from ..language.plan import Plan, Reference, Relation, Step, Verb
from ..language.vocabulary import Vocabulary
from ..premises.spatial import picked_out
from .goals import GoalPredicate, StepGoal

STATES = {
    Verb.OPEN: GoalPredicate.OPEN,
    Verb.CLOSE: GoalPredicate.CLOSE,
    Verb.TURN_ON: GoalPredicate.TURN_ON,
    Verb.TURN_OFF: GoalPredicate.TURN_OFF,
}

RELATIONS = {
    Relation.ON: GoalPredicate.RESTS_ON,
    Relation.IN: GoalPredicate.INSIDE,
    Relation.UNDER: GoalPredicate.UNDER,
    Relation.NEXT_TO: GoalPredicate.NEXT_TO,
    Relation.IN_FRONT_OF: GoalPredicate.IN_FRONT_OF,
    Relation.BEHIND: GoalPredicate.BEHIND,
    Relation.LEFT_OF: GoalPredicate.LEFT_OF,
    Relation.RIGHT_OF: GoalPredicate.RIGHT_OF,
    Relation.AT_CENTER: GoalPredicate.AT_CENTER,
}
"""What each relation is where LIBERO has no predicate for it; a step cannot bring anything between two places."""

PLACED = {"on": GoalPredicate.ON, "in": GoalPredicate.IN}

Predicate = tuple[str, ...]
Place = tuple[Relation, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedScene:
    """What a base task's scene offers words to mean.

    Attributes:
        facts: Its facts at the beginning of the rollout.
        words: The vocabulary.
        regions: LIBERO's region that is the inside of an entity, by the entity's name, where it has one.
        places: LIBERO's own predicate and name for the places that the base task's instruction names.
    """

    facts: SceneFacts
    words: Vocabulary
    regions: Mapping[str, str]
    places: Mapping[Place, tuple[GoalPredicate, str]] = field(default_factory=dict)


def base_places(
    plan: Plan, goal: Sequence[Predicate], facts: SceneFacts, words: Vocabulary
) -> dict[Place, tuple[GoalPredicate, str]]:
    """LIBERO's predicate and name for each place that a base task's instruction names.

    LIBERO has places without a word of their own: "on the stove" is on ``flat_stove_1_cook_region``, "to the front of
    the stove" a part of the table. The reference goal says which.

    Args:
        plan: The plan of the base task's own instruction.
        goal: The reference goal.
        facts: The scene's facts.
        words: The vocabulary.
    """
    found: dict[Place, tuple[GoalPredicate, str]] = {}
    scene = GroundedScene(facts=facts, words=words, regions={})
    names = _Names(scene)
    for step in plan.steps:
        if step.destination is None or step.relation is None:
            continue
        subjects, place = names.of(step.object), names.of(step.destination)
        for predicate in goal:
            if predicate[0] in PLACED and len(predicate) == 3 and predicate[1] in subjects:
                found.setdefault((step.relation, frozenset(place)), (PLACED[predicate[0]], predicate[2]))
    return found


def step_goals(plan: Plan, scene: GroundedScene) -> tuple[StepGoal | None, ...]:
    """What each step of a plan brings about in a scene; None for a step without a goal there."""
    names = _Names(scene)
    return tuple(_step_goal(step, names, scene) for step in plan.steps)


class _Names:
    """Which entities noun phrases mean; a claim once made picks them out for the rest of the sentence."""

    def __init__(self, scene: GroundedScene) -> None:
        self._scene = scene
        self._claimed: dict[Reference, tuple[str, ...]] = {}

    def of(self, reference: Reference) -> tuple[str, ...]:
        """Names of the entities that a noun phrase could mean, empty where there are too few."""
        facts, words = self._scene.facts, self._scene.words
        if not reference.claims and reference in self._claimed:
            return self._claimed[reference]
        names = tuple(facts.entities[i].name for i in picked_out(reference, facts, words))
        if reference.claims:
            self._claimed[reference.bare] = names
        return names if len(names) >= (reference.count or 1) else ()


def _step_goal(step: Step, names: _Names, scene: GroundedScene) -> StepGoal | None:
    by_name = {entity.name: entity for entity in scene.facts.entities}
    subjects, count = names.of(step.object), step.object.count or 1
    if step.destination is None or step.relation is None:
        fitting = tuple(name for name in subjects if _has_state(by_name[name], step.verb))
        return StepGoal(predicate=STATES[step.verb], subjects=fitting, count=count) if len(fitting) >= count else None
    places = names.of(step.destination)
    if not subjects or not places or step.destination.bare == step.object.bare:
        return None
    of_libero = scene.places.get((step.relation, frozenset(places)))
    if of_libero is not None:
        predicate, place = of_libero
        return StepGoal(predicate=predicate, subjects=subjects, places=(place,), count=count)
    if step.relation is Relation.IN:
        regions = [_insides(by_name[name], scene) for name in places]
        if all(regions):
            inside = tuple(dict.fromkeys(region for of_place in regions for region in of_place))
            return StepGoal(predicate=GoalPredicate.IN, subjects=subjects, places=inside, count=count)
    if step.relation not in RELATIONS:
        return None
    return StepGoal(predicate=RELATIONS[step.relation], subjects=subjects, places=places, count=count)


def _has_state(entity: Entity, verb: Verb) -> bool:
    return entity.opens if verb in (Verb.OPEN, Verb.CLOSE) else entity.switches


def _insides(place: Entity, scene: GroundedScene) -> tuple[str, ...]:
    """LIBERO's regions inside of a place: its own, or those of its drawers or compartments."""
    if place.name in scene.regions:
        return (scene.regions[place.name],)
    parts = (entity.name for entity in scene.facts.entities if entity.part_of == place.name)
    return tuple(scene.regions[part] for part in parts if part in scene.regions)
