"""Words become LIBERO's names, and verbs what a scene can show; what picks out nothing has no goal."""

from __future__ import annotations

import pytest

from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Claim, Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.vocabulary import load_vocabulary
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.step_goals.grounding import GroundedScene, base_places, step_goals

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    IN,
    ON,
    PLATE,
    RACK,
    SCENE,
    STOVE,
    TOP_DRAWER,
    claimed,
    demand,
    facts_of,
    plan,
    put,
)

WORDS = load_vocabulary()
MUG, DRAWER = Reference(noun="mug"), Reference(noun="drawer")
BY_HAND = GroundedScene(
    facts=SCENE,
    words=WORDS,
    regions={f"drawer_{rank}": f"drawer_{rank}" for rank in range(3)},
)


def texts(checked: Plan, scene: GroundedScene = BY_HAND) -> list[str]:
    return [str(goal or "") for goal in step_goals(checked, scene)]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (put(BOWL, ON, PLATE), "rests_on(akita_black_bowl_1, plate_1)"),
        (put(BOWL, IN, TOP_DRAWER), "in(akita_black_bowl_1, drawer_0)"),
        (put(BOWL, IN, CABINET), "in(akita_black_bowl_1, drawer_0|drawer_1|drawer_2)"),
        (put(CHEESE, IN, BOWL), "inside(cream_cheese_1, akita_black_bowl_1)"),
        (put(BOWL, Relation.UNDER, STOVE), "under(akita_black_bowl_1, flat_stove_1)"),
        (put(BOWL, Relation.NEXT_TO, RACK), "next_to(akita_black_bowl_1, wine_rack_1)"),
        (put(BOWL, Relation.IN_FRONT_OF, RACK), "in_front_of(akita_black_bowl_1, wine_rack_1)"),
        (put(BOWL, Relation.BEHIND, RACK), "behind(akita_black_bowl_1, wine_rack_1)"),
        (put(BOWL, Relation.LEFT_OF, RACK), "left_of(akita_black_bowl_1, wine_rack_1)"),
        (put(BOWL, Relation.RIGHT_OF, RACK), "right_of(akita_black_bowl_1, wine_rack_1)"),
        (Step(verb=Verb.PLACE, object=BOWL, relation=ON, destination=PLATE), "rests_on(akita_black_bowl_1, plate_1)"),
        (Step(verb=Verb.PUSH, object=PLATE, relation=ON, destination=STOVE), "rests_on(plate_1, flat_stove_1)"),
        (Step(verb=Verb.OPEN, object=TOP_DRAWER), "open(drawer_0)"),
        (Step(verb=Verb.OPEN, object=DRAWER), "open(drawer_0|drawer_1|drawer_2)"),
        (Step(verb=Verb.CLOSE, object=CABINET), "close(wooden_cabinet_1)"),
        (Step(verb=Verb.TURN_ON, object=STOVE), "turnon(flat_stove_1)"),
        (Step(verb=Verb.TURN_OFF, object=STOVE), "turnoff(flat_stove_1)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_verb_and_relation_has_a_goal(step: Step, text: str) -> None:
    assert texts(plan(step)) == [text]


@pytest.mark.parametrize(
    "step",
    [
        put(MUG, ON, PLATE),
        put(BOWL, ON, Reference(noun="tray")),
        put(Reference(noun="bowl", adjective="red"), ON, PLATE),
        put(Reference(noun="bowl", count=2), ON, PLATE),
        put(BOWL, IN, Reference(noun="drawer", ordinal="fifth", of=CABINET)),
        put(BOWL, ON, BOWL),
        Step(verb=Verb.OPEN, object=PLATE),
        Step(verb=Verb.TURN_ON, object=CABINET),
    ],
    ids=["absent", "absent place", "colour", "number", "part", "itself", "nothing to open", "nothing to switch"],
)
def test_what_picks_out_nothing_or_has_no_such_state_has_no_goal(step: Step) -> None:
    assert texts(plan(Step(verb=Verb.TURN_ON, object=STOVE), step)) == ["turnon(flat_stove_1)", ""]


@pytest.mark.parametrize("kind", [Demand.STAY, Demand.NOT_LIFTED, Demand.PICK_UP_AFTER, Demand.ALSO_AT, Demand.NOT_AT])
def test_a_constraint_is_no_part_of_the_goal(kind: Demand) -> None:
    place = RACK if kind in (Demand.ALSO_AT, Demand.NOT_AT) else None

    assert texts(plan(put(BOTTLE, ON, STOVE, demand(kind, BOTTLE, place)))) == ["rests_on(wine_bottle_1, flat_stove_1)"]


def test_a_false_claim_or_one_about_what_is_absent_leaves_the_goal_as_it_is() -> None:
    for landmark in (STOVE, MUG):
        step = put(claimed(BOWL, Relation.NEXT_TO, landmark), ON, PLATE)
        assert texts(plan(step)) == ["rests_on(akita_black_bowl_1, plate_1)"]


def _scene_of(index: int) -> GroundedScene:
    task = base_tasks("libero_spatial")[index]
    facts = facts_of(task)
    places = base_places(parse_base_instruction(task.instruction), task.goal, facts, WORDS)
    return GroundedScene(facts=facts, words=WORDS, regions={}, places=places)


def test_of_two_bowls_a_true_claim_picks_out_one_and_a_false_claim_none() -> None:
    scene = _scene_of(3)  # the black bowl on the cookie box
    box, bowl = Reference(noun="cookie box"), Reference(noun="bowl", adjective="black")
    there, elsewhere = (
        Reference(noun="bowl", adjective="black", claims=(Claim(relation=ON, landmarks=(mark,)),))
        for mark in (box, STOVE)
    )

    assert texts(plan(put(there, ON, PLATE)), scene) == ["on(akita_black_bowl_1, plate_1)"]
    assert texts(plan(put(elsewhere, ON, PLATE)), scene) == ["on(akita_black_bowl_1|akita_black_bowl_2, plate_1)"]
    assert texts(plan(put(there, ON, PLATE), put(bowl, ON, STOVE)), scene)[1] == (
        "rests_on(akita_black_bowl_1, flat_stove_1)"
    )  # once picked out, it is "the black bowl" for the rest of the sentence


def test_a_number_of_objects_is_meant_all_at_once() -> None:
    scene = _scene_of(3)
    both = Reference(noun="bowl", adjective="black", count=2)

    assert texts(plan(put(both, ON, STOVE)), scene) == ["rests_on(akita_black_bowl_1&akita_black_bowl_2, flat_stove_1)"]
