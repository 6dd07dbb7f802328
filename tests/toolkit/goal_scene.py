"""What the tests of cases share: the goal suite's facts in one initial state, and a small scene made by hand."""

import functools
from collections.abc import Sequence

import numpy as np

from conflictvla.toolkit.facts import Entity, SceneFacts
from conflictvla.toolkit.language.plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.premises import Violation, check
from conflictvla.toolkit.records import BaseTask

GOAL_TASKS = base_tasks("libero_goal")

BOWL, PLATE, CHEESE, BOTTLE, CABINET, STOVE, RACK = (
    Reference(noun=noun) for noun in ("bowl", "plate", "cream cheese", "wine bottle", "cabinet", "stove", "rack")
)
TOP_DRAWER = Reference(noun="drawer", ordinal="top", of=CABINET)
TURN_ON = Step(verb=Verb.TURN_ON, object=STOVE)
OPEN_TOP = Step(verb=Verb.OPEN, object=TOP_DRAWER)
ON, IN = Relation.ON, Relation.IN


def goal_task(instruction: str) -> BaseTask:
    """The goal suite's task with this instruction."""
    return next(task for task in GOAL_TASKS if task.instruction == instruction)


@functools.cache
def facts_of(task: BaseTask) -> SceneFacts:
    """Facts of any task's scene in its first initial state, measured once a process."""
    from conflictvla.toolkit.simulation.observing.scene_facts import measure_facts
    from conflictvla.toolkit.simulation.scene import Scene

    return measure_facts(Scene(task), [0])


@functools.cache
def measured_facts(instruction: str, init_states: int = 1) -> SceneFacts:
    """Facts of a goal task's scene from the simulator, measured once a process."""
    from conflictvla.toolkit.simulation.observing.scene_facts import measure_facts
    from conflictvla.toolkit.simulation.scene import Scene

    return measure_facts(Scene(goal_task(instruction)), range(init_states))


def put(obj: Reference, relation: Relation, place: Reference, *constraints: Constraint) -> Step:
    """A step that brings an object to a place."""
    return Step(verb=Verb.PUT, object=obj, relation=relation, destination=place, constraints=constraints)


def plan(*steps: Step) -> Plan:
    """A plan of these steps."""
    return Plan(steps=steps)


def claimed(obj: Reference, relation: Relation, *landmarks: Reference) -> Reference:
    """The object, claimed to be there."""
    return Reference(noun=obj.noun, claims=(Claim(relation=relation, landmarks=landmarks),))


def demand(kind: Demand, subject: Reference, place: Reference | None = None) -> Constraint:
    """A constraint; with a place, about being on it."""
    relation = None if place is None else Relation.ON
    return Constraint(demand=kind, subject=subject, relation=relation, landmark=place)


def entity(
    category: str,
    size_m: tuple[float, float, float],
    *,
    movable: bool = True,
    opens: bool = False,
    switches: bool = False,
    opening_m: tuple[float, float] | None = None,
    drawer_rank: int | None = None,
) -> Entity:
    """An entity named after its category; a drawer of the three of ``wooden_cabinet_1`` where it has a rank."""
    part = drawer_rank is not None
    return Entity(
        name=f"{category}_{drawer_rank}" if part else f"{category}_1",
        category=category,
        part_of="wooden_cabinet_1" if part else None,
        rank=drawer_rank,
        row_length=3 if part else None,
        movable=movable,
        opens=opens,
        switches=switches,
        size_m=size_m,
        opening_m=opening_m,
    )


ENTITIES = (
    entity("akita_black_bowl", (0.10, 0.10, 0.05), opening_m=(0.09, 0.09)),
    entity("cream_cheese", (0.08, 0.04, 0.02)),
    entity("wine_bottle", (0.04, 0.04, 0.16)),
    entity("plate", (0.14, 0.14, 0.02)),
    entity("flat_stove", (0.30, 0.20, 0.08), movable=False, switches=True),
    entity("wine_rack", (0.28, 0.28, 0.32), movable=False),
    entity("wooden_cabinet", (0.26, 0.22, 0.22), movable=False, opens=True),
    *(
        entity("drawer", (0.22, 0.20, 0.07), movable=False, opens=True, opening_m=(0.20, 0.15), drawer_rank=rank)
        for rank in range(3)
    ),
)
"""Entities of round sizes, about as large as LIBERO's."""

PLACES_M = {
    "akita_black_bowl": (0.0, 0.0, 0.025),
    "cream_cheese": (0.0, 0.20, 0.01),
    "wine_bottle": (-0.30, 0.0, 0.08),
    "plate": (0.20, 0.0, 0.01),
    "flat_stove": (-0.30, 0.40, 0.04),
    "wine_rack": (-0.40, -0.40, 0.16),
    "wooden_cabinet": (0.0, -0.40, 0.11),
}
"""Middles of the entities; between the boxes of cabinet and rack lie 0.13 m, of stove and rack 0.56 m."""


def scene_by_hand(
    *, states: int = 2, moved_m: dict[str, Sequence[tuple[float, float, float]]] | None = None
) -> SceneFacts:
    """Facts of a scene on paper: nothing is on or in anything, all is shut and off.

    Args:
        states: How many initial states.
        moved_m: Other middles for some categories, one a state.
    """
    middles = np.zeros((states, len(ENTITIES), 3))
    for index, entity in enumerate(ENTITIES):
        if entity.rank is not None:
            middles[:, index] = np.add(PLACES_M["wooden_cabinet"], (0.0, 0.0, 0.07 * (1 - entity.rank)))
        else:
            middles[:, index] = (moved_m or {}).get(entity.category, [PLACES_M[entity.category]] * states)
    half = 0.5 * np.array([entity.size_m for entity in ENTITIES])
    nothing = np.zeros((states, len(ENTITIES), len(ENTITIES)), dtype=np.bool_)
    none = np.zeros((states, len(ENTITIES)), dtype=np.bool_)
    return SceneFacts(
        task_id="by/hand",
        scene_sha256="0" * 64,
        workspace="main_table",
        init_states=tuple(range(states)),
        entities=ENTITIES,
        position_m=middles,
        box_m=np.stack([middles - half, middles + half], axis=2),
        on=nothing,
        inside=nothing.copy(),
        is_open=none,
        is_on=none.copy(),
    )


SCENE = scene_by_hand()
"""The scene on paper with everything where it belongs."""


def only_violation(checked: Plan, facts: SceneFacts = SCENE) -> Violation:
    """The one violation of a plan."""
    violations = check(checked, facts)
    assert len(violations) == 1, violations
    return violations[0]
