"""The judge: a valid plan has no violation, a conflict exactly one, and what is disputable is never a factor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conflictvla.toolkit.facts import SceneFacts
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Demand, Reference, Relation, Step
from conflictvla.toolkit.premises import check, factors
from conflictvla.toolkit.records import BaseTask, Family

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    ENTITIES,
    GOAL_TASKS,
    IN,
    ON,
    OPEN_TOP,
    PLATE,
    RACK,
    SCENE,
    STOVE,
    TOP_DRAWER,
    TURN_ON,
    claimed,
    demand,
    measured_facts,
    only_violation,
    plan,
    put,
    scene_by_hand,
)


def _with_second_bowl(place_m: tuple[float, float, float]) -> SceneFacts:
    """The plate becomes a second bowl."""
    facts = scene_by_hand(moved_m={"plate": [place_m] * 2})
    second = replace(ENTITIES[3], category="akita_black_bowl", name="akita_black_bowl_2")
    return replace(facts, entities=(*ENTITIES[:3], second, *ENTITIES[4:]))


@pytest.mark.parametrize(
    ("step", "premise"),
    [
        (put(BOWL, ON, STOVE, demand(Demand.STAY, BOWL)), "compatible(on(bowl, stove), stay(bowl))"),
        (put(BOWL, ON, STOVE, demand(Demand.EMPTY, STOVE)), "compatible(on(bowl, stove), empty(stove))"),
        (
            put(BOWL, ON, STOVE, demand(Demand.ALSO_AT, BOWL, CABINET)),
            "compatible(on(bowl, stove), also at(bowl, on, cabinet))",
        ),
        (
            put(BOWL, ON, STOVE, demand(Demand.NOT_AT, BOWL, STOVE)),
            "compatible(on(bowl, stove), not at(bowl, on, stove))",
        ),
        (
            put(BOWL, ON, STOVE, demand(Demand.ONLY_AT, CHEESE, STOVE)),
            "compatible(on(bowl, stove), only at(cream cheese, on, stove))",
        ),
        (put(BOWL, ON, STOVE, demand(Demand.PICK_UP_AFTER, BOWL)), "compatible(on(bowl, stove), pick up after(bowl))"),
        (
            replace(OPEN_TOP, constraints=(demand(Demand.KEEP_CLOSED, TOP_DRAWER),)),
            "compatible(open(drawer(top, cabinet)), keep closed(drawer(top, cabinet)))",
        ),
        (
            replace(OPEN_TOP, constraints=(demand(Demand.STAY, TOP_DRAWER),)),
            "compatible(open(drawer(top, cabinet)), stay(drawer(top, cabinet)))",
        ),
        (
            replace(OPEN_TOP, constraints=(demand(Demand.NOT_OPENED, TOP_DRAWER),)),
            "compatible(open(drawer(top, cabinet)), not opened(drawer(top, cabinet)))",
        ),
        (replace(TURN_ON, constraints=(demand(Demand.KEEP_OFF, STOVE),)), "compatible(on(stove), keep off(stove))"),
    ],
)
def test_demand_that_the_step_excludes_is_a_contradiction(step: Step, premise: str) -> None:
    violation = only_violation(plan(step))

    assert (violation.family, violation.premise, violation.margin) == (Family.INSTRUCTION, premise, None)
    assert violation.certain
    assert violation.observed


@pytest.mark.parametrize(
    "step",
    [
        put(BOWL, ON, STOVE, demand(Demand.STAY, PLATE)),
        put(BOWL, ON, STOVE, demand(Demand.EMPTY, PLATE)),
        put(BOWL, ON, STOVE, demand(Demand.NOT_AT, BOWL, CABINET)),
        put(BOWL, ON, STOVE, demand(Demand.NOT_AT, CHEESE, STOVE)),
        put(BOWL, ON, STOVE, demand(Demand.ONLY_AT, BOWL, STOVE)),
        put(BOWL, ON, STOVE, demand(Demand.PICK_UP_AFTER, CHEESE)),
        put(BOWL, IN, TOP_DRAWER, demand(Demand.ALSO_AT, BOWL, CABINET)),
        replace(OPEN_TOP, constraints=(demand(Demand.KEEP_OPEN, TOP_DRAWER),)),
        replace(TURN_ON, constraints=(demand(Demand.KEEP_ON, STOVE),)),
        replace(TURN_ON, constraints=(demand(Demand.STAY, STOVE),)),
    ],
)
def test_demand_that_the_step_can_meet_gives_no_finding(step: Step) -> None:
    assert check(plan(step), SCENE) == ()


def test_demand_that_contradicts_two_steps_is_a_factor_of_neither() -> None:
    nothing_else = demand(Demand.ONLY_AT, BOTTLE, STOVE)

    violation = only_violation(plan(put(BOWL, ON, STOVE), put(CHEESE, ON, STOVE, nothing_else)))

    assert violation.family is Family.INSTRUCTION
    assert not violation.certain


def test_place_that_a_later_step_clears_may_end_up_empty() -> None:
    there = put(BOWL, ON, STOVE, demand(Demand.EMPTY, STOVE))

    assert check(plan(there, put(BOWL, ON, PLATE)), SCENE) == ()
    assert only_violation(plan(there, put(CHEESE, ON, PLATE))).certain


def test_demand_of_one_step_can_contradict_another() -> None:
    first = replace(TURN_ON, constraints=(demand(Demand.STAY, BOWL),))

    assert only_violation(plan(first, put(BOWL, ON, PLATE))).premise == "compatible(on(bowl, plate), stay(bowl))"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(put(BOWL, ON, PLATE, demand(Demand.ALSO_AT, BOWL, STOVE)), id="the plate can stand on the stove"),
        pytest.param(put(BOTTLE, ON, RACK, demand(Demand.ALSO_AT, BOTTLE, CABINET)), id="the bottle reaches across"),
        pytest.param(put(CHEESE, ON, STOVE, demand(Demand.ONLY_AT, BOWL, STOVE)), id="the bowl can hold the cheese"),
        pytest.param(put(BOWL, ON, STOVE, demand(Demand.ONLY_AT, PLATE, STOVE)), id="the plate can carry the bowl"),
        pytest.param(put(BOWL, ON, PLATE, demand(Demand.PICK_UP_AFTER, BOWL)), id="the bowl can be slid"),
    ],
)
def test_demands_with_a_way_out_are_unclear_and_never_a_factor(step: Step) -> None:
    violation = only_violation(plan(step))

    assert not violation.certain
    assert (violation.violated, violation.unclear, violation.states) == (0, 2, 2)


def test_object_shorter_than_the_gap_cannot_be_at_both_places() -> None:
    """Between rack and cabinet lie 13 cm: the bottle of 16 cm reaches across, the cheese of 8 cm does not."""
    both = demand(Demand.ALSO_AT, CHEESE, CABINET)

    assert only_violation(plan(put(CHEESE, ON, RACK, both))).certain


@pytest.mark.parametrize(
    ("reference", "premise"),
    [
        (Reference(noun="mug"), "exists(mug)"),
        (Reference(noun="cup"), "exists(cup)"),
        (Reference(noun="bowl", adjective="purple"), "colour(bowl, purple)"),
        (Reference(noun="bowl", count=2), "count(bowl, 2)"),
        (Reference(noun="drawer", ordinal="fourth", of=CABINET), "exists(drawer(fourth, cabinet))"),
        (Reference(noun="drawer", ordinal="top", of=Reference(noun="fridge")), "exists(fridge)"),
        (Reference(noun="drawer", of=STOVE), "exists(drawer(stove))"),
        (Reference(noun="bowl", ordinal="top"), "exists(bowl(top))"),
    ],
)
def test_noun_phrase_that_picks_out_nothing_is_a_grounding_conflict(reference: Reference, premise: str) -> None:
    violation = only_violation(plan(put(CHEESE, Relation.NEXT_TO, reference)))

    assert (violation.family, violation.premise, violation.margin) == (Family.GROUNDING, premise, None)
    assert violation.certain


@pytest.mark.parametrize(
    "reference",
    [
        BOWL,
        TOP_DRAWER,
        Reference(noun="drawer", ordinal="middle"),
        Reference(noun="bowl", adjective="black"),
        Reference(noun="bowl", adjective="yellow"),  # its rim
        Reference(noun="wine bottle", adjective="red"),  # of red wine
        Reference(noun="bottle"),
        Reference(noun="hob"),
        Reference(noun="bowl", count=1),
    ],
)
def test_noun_phrase_that_picks_out_one_entity_gives_no_finding(reference: Reference) -> None:
    assert check(plan(put(CHEESE, Relation.NEXT_TO, reference)), SCENE) == ()


@pytest.mark.parametrize(
    ("reference", "premise"),
    [
        (Reference(noun="dish"), "unique(dish)"),  # bowl and plate
        (Reference(noun="drawer"), "unique(drawer)"),
        (Reference(noun="gizmo"), "exists(gizmo)"),  # no word of the vocabulary's
        (Reference(noun="bowl", adjective="lovely"), "colour(bowl, lovely)"),
    ],
)
def test_noun_phrase_that_could_mean_several_entities_is_unclear(reference: Reference, premise: str) -> None:
    violation = only_violation(plan(put(CHEESE, Relation.NEXT_TO, reference)))

    assert violation.premise == premise
    assert (violation.violated, violation.unclear) == (0, 2)


def test_colour_and_count_are_two_premises() -> None:
    both = check(plan(put(Reference(noun="bowl", adjective="blue", count=2), ON, PLATE)), SCENE)

    assert [violation.premise for violation in both] == ["colour(bowl, blue)", "count(bowl, 2)"]


def test_absent_object_is_one_premise_however_often_it_is_mentioned() -> None:
    mug = Reference(noun="mug")

    assert only_violation(plan(put(mug, ON, STOVE, demand(Demand.NOT_AT, mug, CABINET)))).premise == "exists(mug)"


def test_two_bowls_satisfy_a_count_of_two_and_leave_one_bowl_ambiguous() -> None:
    facts = _with_second_bowl((0.2, 0.0, 0.025))

    assert check(plan(put(Reference(noun="bowl", count=2), ON, STOVE)), facts) == ()
    assert only_violation(plan(put(BOWL, ON, STOVE)), facts).premise == "unique(bowl)"


@pytest.mark.parametrize(
    ("obj", "relation", "landmarks", "margin"),
    [
        (BOWL, ON, (PLATE,), 0.08),  # boxes end at 0.05 and begin at 0.13
        (BOWL, IN, (TOP_DRAWER,), np.hypot(0.30, 0.12)),  # from the bowl's middle to the shut drawer's box
        (BOWL, Relation.UNDER, (PLATE,), 0.08),
        (BOWL, Relation.NEXT_TO, (STOVE,), np.hypot(0.10, 0.25) - 0.06),
        (BOTTLE, Relation.IN_FRONT_OF, (BOWL,), 0.23),
        # The circle on stove and rack has its middle at (-0.35, 0) and a radius of half their 0.8062 m.
        (PLATE, Relation.BETWEEN, (STOVE, RACK), 0.65 - np.hypot(0.1, 0.8) / 2 - 0.07),
    ],
)
def test_claim_that_is_off_by_a_margin_is_a_spatial_conflict(
    obj: Reference, relation: Relation, landmarks: tuple[Reference, ...], margin: float
) -> None:
    far_plate = [(0.30, 0.0, 0.01)] * 2 if relation is Relation.BETWEEN else [(0.20, 0.0, 0.01)] * 2
    facts = scene_by_hand(moved_m={"plate": far_plate})

    violation = only_violation(plan(put(claimed(obj, relation, *landmarks), ON, CABINET)), facts)

    assert violation.family is Family.SPATIAL
    assert violation.premise.startswith(f"{relation}({obj.noun}, {landmarks[0].noun}")
    assert violation.margin == pytest.approx(margin)
    assert violation.certain
    (factor,) = factors((violation,))
    assert factor.margin == round(margin, 3)


@pytest.mark.parametrize("relation", [Relation.IN_FRONT_OF, Relation.BEHIND])
@pytest.mark.parametrize("landmark", [STOVE, CABINET])
def test_object_with_a_front_of_its_own_has_two_fronts(relation: Relation, landmark: Reference) -> None:
    """What stands before a cabinet's drawers may be called in front of it, wherever the camera is."""
    far = (-0.8, 0.0, 0.025) if relation is Relation.IN_FRONT_OF else (0.8, 0.0, 0.025)
    facts = scene_by_hand(moved_m={"akita_black_bowl": [far] * 2})

    assert not only_violation(plan(put(claimed(BOWL, relation, landmark), ON, PLATE)), facts).certain
    assert only_violation(plan(put(claimed(BOWL, relation, RACK), ON, PLATE)), facts).certain


@pytest.mark.parametrize(
    ("moved", "claim"),
    [
        ({"plate": (0.14, 0.0, 0.01)}, (BOWL, ON, PLATE)),  # 2 cm between the boxes
        ({"wine_bottle": (-0.09, 0.0, 0.08)}, (BOTTLE, IN, BOWL)),  # right behind the bowl, as if it stood in it
        ({}, (CHEESE, Relation.NEXT_TO, BOWL)),  # 13 cm between them
        ({"wine_bottle": (-0.03, 0.0, 0.08)}, (BOTTLE, Relation.IN_FRONT_OF, BOWL)),
        ({}, (BOWL, Relation.BETWEEN, STOVE, RACK)),  # off their line, but with one to the left and one to the right
    ],
)
def test_claim_inside_the_margin_is_unclear_and_never_a_factor(
    moved: dict[str, tuple[float, float, float]], claim: tuple[Reference, Relation, *tuple[Reference, ...]]
) -> None:
    facts = scene_by_hand(moved_m={category: [place] * 2 for category, place in moved.items()})
    obj, relation, *landmarks = claim

    violation = only_violation(plan(put(claimed(obj, relation, *landmarks), ON, CABINET)), facts)

    assert (violation.violated, violation.unclear) == (0, 2)


@pytest.mark.parametrize(
    ("moved", "claim"),
    [
        ({}, (CHEESE, Relation.IN_FRONT_OF, BOTTLE)),
        ({"cream_cheese": (0.0, 0.10, 0.01)}, (CHEESE, Relation.NEXT_TO, BOWL)),  # 3 cm between them
        ({"wine_bottle": (-0.35, 0.0, 0.08)}, (BOTTLE, Relation.BETWEEN, STOVE, RACK)),
    ],
)
def test_claim_that_holds_gives_no_finding(
    moved: dict[str, tuple[float, float, float]], claim: tuple[Reference, Relation, *tuple[Reference, ...]]
) -> None:
    facts = scene_by_hand(moved_m={category: [place] * 2 for category, place in moved.items()})
    obj, relation, *landmarks = claim

    assert check(plan(put(claimed(obj, relation, *landmarks), ON, CABINET)), facts) == ()


@pytest.mark.parametrize(("relation", "place"), [(ON, PLATE), (IN, TOP_DRAWER)])
def test_contact_and_containment_come_from_the_simulator(relation: Relation, place: Reference) -> None:
    held = np.ones_like(SCENE.on)
    facts = replace(SCENE, on=held, inside=held)

    assert check(plan(put(claimed(BOWL, relation, place), ON, CABINET)), facts) == ()


def test_claim_false_in_some_states_only_is_not_certain() -> None:
    facts = scene_by_hand(states=3, moved_m={"plate": [(0.20, 0.0, 0.01), (0.14, 0.0, 0.01), (0.20, 0.0, 0.01)]})

    violation = only_violation(plan(put(claimed(BOWL, ON, PLATE), ON, CABINET)), facts)

    assert (violation.violated, violation.unclear, violation.states) == (2, 1, 3)
    assert not violation.certain
    assert violation.margin == pytest.approx(0.02)  # that of the closest state


def test_claim_true_in_one_state_is_not_certain() -> None:
    on = SCENE.on.copy()
    on[1, SCENE.index("akita_black_bowl_1"), SCENE.index("plate_1")] = True

    violation = only_violation(plan(put(claimed(BOWL, ON, PLATE), ON, CABINET)), replace(SCENE, on=on))

    assert (violation.violated, violation.unclear) == (1, 0)
    assert not violation.certain


def test_claim_must_be_false_of_every_bowl() -> None:
    facts = _with_second_bowl((0.20, 0.0, 0.025))
    on = facts.on.copy()
    on[:, facts.index("akita_black_bowl_2"), facts.index("flat_stove_1")] = True
    claim = plan(put(claimed(BOWL, ON, STOVE), ON, CABINET))

    assert only_violation(claim, facts).certain
    assert check(claim, replace(facts, on=on)) == ()


def test_claim_about_what_an_earlier_step_moves_is_unclear() -> None:
    claiming = put(claimed(BOWL, ON, PLATE), ON, CABINET)

    assert only_violation(plan(TURN_ON, claiming)).certain
    assert not only_violation(plan(put(BOWL, ON, PLATE), claiming)).certain
    assert not only_violation(plan(put(PLATE, ON, STOVE), claiming)).certain


def test_goal_relation_of_a_step_is_never_a_premise() -> None:
    assert check(plan(put(BOWL, ON, PLATE)), SCENE) == ()


def test_premises_of_what_is_not_there_are_not_judged() -> None:
    assert only_violation(plan(put(Reference(noun="mug"), IN, BOTTLE))).premise == "exists(mug)"


def test_findings_come_in_the_order_of_the_families() -> None:
    mixed = put(claimed(RACK, Relation.NEXT_TO, STOVE), ON, Reference(noun="tray"), demand(Demand.STAY, RACK))

    assert [violation.family for violation in check(plan(mixed), SCENE)] == list(Family)


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_base_instruction_is_valid_in_its_real_scene(task: BaseTask) -> None:
    assert check(parse_base_instruction(task.instruction), measured_facts(task.instruction)) == ()


def test_real_scene_gives_the_measured_margin() -> None:
    """The bowl stands on the table: its rim is about 9 cm wide and 5 cm high, the stove 10 cm away at least."""
    facts = measured_facts("put the bowl on the plate")

    on_stove = only_violation(plan(put(claimed(BOWL, ON, STOVE), ON, PLATE)), facts)
    in_bottle = only_violation(plan(put(BOWL, IN, BOTTLE)), facts)

    assert on_stove.margin == pytest.approx(0.06, abs=0.03)
    assert in_bottle.margin == pytest.approx(0.053, abs=0.001)
    assert "no opening" in in_bottle.observed


def test_plate_on_edge_in_a_bowl_is_unclear_though_most_of_it_sticks_out() -> None:
    (violation,) = check(plan(put(PLATE, IN, BOWL)), SCENE)

    assert (violation.premise, violation.violated, violation.unclear) == ("fits(plate, bowl)", 0, violation.states)
