"""Operators propose, for every family and always the same; what they claim is no evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from conflictvla.builders.cases.candidates import conflict_level
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Plan, Reference, Relation
from conflictvla.toolkit.language.plan_json import plan_to_json
from conflictvla.toolkit.language.vocabulary import load_vocabulary
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.operators import Proposal, propose
from conflictvla.toolkit.operators.propose import ATOMIC, COMPOUND, side_steps
from conflictvla.toolkit.operators.surroundings import Surroundings
from conflictvla.toolkit.premises import check
from conflictvla.toolkit.records import BaseTask, Family

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    GOAL_TASKS,
    RACK,
    STOVE,
    facts_of,
    measured_facts,
    put,
    scene_by_hand,
)

WORDS = load_vocabulary()
BY_HAND = scene_by_hand()
BARE_TOP = Reference(noun="drawer", ordinal="top")


def _proposals(task: BaseTask) -> list[Proposal]:
    base = parse_base_instruction(task.instruction)
    return list(propose(base, measured_facts(task.instruction), WORDS))


@pytest.fixture(scope="module")
def proposals() -> dict[str, list[Proposal]]:
    return {task.name: _proposals(task) for task in GOAL_TASKS}


def test_every_operator_proposes_something_somewhere(proposals: dict[str, list[Proposal]]) -> None:
    proposed = {proposal.operator for of_task in proposals.values() for proposal in of_task}
    for task in (base_tasks("libero_object")[0], base_tasks("libero_spatial")[0]):
        base = parse_base_instruction(task.instruction)
        proposed |= {proposal.operator for proposal in propose(base, facts_of(task), WORDS)}

    assert {operator.name for operator in (*ATOMIC, *COMPOUND)} - proposed == set()


def test_operator_names_are_unique() -> None:
    names = Counter(operator.name for operator in (*ATOMIC, *COMPOUND))

    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("family", list(Family))
def test_every_family_has_operators_for_one_factor_and_for_several(family: Family) -> None:
    assert any(operator.family is family for operator in ATOMIC)
    assert any(operator.family is family for operator in COMPOUND)


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_no_plan_is_proposed_twice_by_one_operator(task: BaseTask, proposals: dict[str, list[Proposal]]) -> None:
    seen = Counter((proposal.operator, proposal.plan) for proposal in proposals[task.name])

    assert [(name, plan_to_json(plan)) for (name, plan), count in seen.items() if count > 1] == []


@pytest.mark.parametrize("task", [GOAL_TASKS[0], GOAL_TASKS[3]], ids=lambda task: task.name)
def test_proposals_are_always_the_same_and_in_the_same_order(
    task: BaseTask, proposals: dict[str, list[Proposal]]
) -> None:
    assert _proposals(task) == proposals[task.name]


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_side_steps_are_valid_and_leave_the_tasks_own_objects_alone(task: BaseTask) -> None:
    base, facts = parse_base_instruction(task.instruction), measured_facts(task.instruction)
    around = Surroundings.of(base, facts, WORDS)
    own = set(base.references())

    steps = side_steps(around)

    assert len(steps) >= 3
    for step in steps:
        assert check(Plan(steps=(step,)), facts) == ()
        assert step.object not in own
        assert step.destination not in own or step.relation in (Relation.NEXT_TO, Relation.IN)


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_plans_of_several_steps_keep_the_base_tasks_other_steps(
    task: BaseTask, proposals: dict[str, list[Proposal]]
) -> None:
    base = parse_base_instruction(task.instruction)

    assert {len(proposal.plan.steps) for proposal in proposals[task.name]} == {1, 2}
    if len(base.steps) > 1:
        simple = [p for p in proposals[task.name] if not p.compound and len(p.plan.steps) > 1]
        changed = [sum(a != b for a, b in zip(p.plan.steps, base.steps, strict=True)) for p in simple]
        assert set(changed) == {1}


def test_claim_of_an_operator_is_no_evidence(proposals: dict[str, list[Proposal]]) -> None:
    """Many proposals are no conflicts at all, and the checker says so, whoever proposed them."""
    task = GOAL_TASKS[0]
    facts = measured_facts(task.instruction)

    rejected = [
        proposal
        for proposal in proposals[task.name]
        if conflict_level(len(proposal.plan.steps), check(proposal.plan, facts), proposal.family) is None
    ]
    assert len(rejected) > 100


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.PHYSICAL])
def test_proposal_under_another_familys_name_is_no_case(family: Family) -> None:
    found = check(Plan(steps=(put(STOVE, Relation.ON, CABINET),)), BY_HAND)

    assert conflict_level(1, found, Family.PHYSICAL) is not None
    assert conflict_level(1, found, family) is None


def test_valid_plan_from_a_wrong_operator_is_judged_valid() -> None:
    """An operator that says "fixed" of what can be moved gets nowhere."""
    wrong = Proposal(
        plan=Plan(steps=(put(BOWL, Relation.ON, STOVE),)),
        operator="fixed_object",
        family=Family.PHYSICAL,
        compound=False,
    )

    assert check(wrong.plan, BY_HAND) == ()


def test_operators_ask_the_scene_not_the_names() -> None:
    """Once the rack has a free joint, nobody proposes to move it as something fixed."""
    freed = replace(
        BY_HAND,
        entities=tuple(
            replace(entity, movable=True) if entity.category == "wine_rack" else entity for entity in BY_HAND.entities
        ),
    )
    base = Plan(steps=(put(BOWL, Relation.ON, STOVE),))

    def fixed(facts) -> set[str]:
        found = propose(base, facts, WORDS)
        return {p.plan.steps[0].object.noun for p in found if p.operator == "fixed_object" and len(p.plan.steps) == 1}

    assert fixed(BY_HAND) == {"rack", "cabinet"}
    assert fixed(freed) == {"cabinet"}


def test_drawer_named_without_its_cabinet_belongs_to_it_where_there_is_one() -> None:
    base = Plan(steps=(put(BOWL, Relation.IN, BARE_TOP),))
    without = replace(
        BY_HAND, entities=tuple(replace(e, row_length=2) if e.rank is not None else e for e in BY_HAND.entities)
    )

    assert Surroundings.of(base, BY_HAND, WORDS).whole_of(BARE_TOP) == CABINET
    assert Surroundings.of(base, without, WORDS).whole_of(BARE_TOP) is None
    assert list(propose(base, without, WORDS))


def test_surroundings_sort_entities_by_what_can_be_done_with_them() -> None:
    around = Surroundings.of(Plan(steps=(put(BOWL, Relation.ON, STOVE),)), BY_HAND, WORDS)

    assert around.busy == {"akita_black_bowl_1", "flat_stove_1"}
    assert around.fixed() == [STOVE, RACK, CABINET]
    assert around.hollows() == [BOWL]
    assert around.sealed_containers() == [replace(CHEESE, noun="cream cheese box"), BOTTLE]
    assert [drawer.ordinal for drawer in around.shut_entities()] == ["top", "middle", "bottom"]
    assert [drawer.ordinal for drawer in around.drawers()] == ["top", "middle", "bottom"]
    assert {reference.noun for reference in around.unopenable()} == {"bowl", "plate", "rack"}
    assert around.fits(CHEESE, BOWL)
    assert not around.fits(RACK, BOWL)
    assert around.unseen_colours("wine bottle") == ["blue", "purple"]


def test_no_plan_moves_one_object_twice_or_claims_two_places_of_each_other(
    proposals: dict[str, list[Proposal]],
) -> None:
    plans = [proposal.plan for of_task in proposals.values() for proposal in of_task]
    moved = [[step.object.bare for step in plan.steps if step.destination is not None] for plan in plans]
    claimed = [
        {(r.bare, mark.bare) for r in plan.references() for claim in r.claims for mark in claim.landmarks}
        for plan in plans
    ]

    assert [objects for objects in moved if len(objects) != len(set(objects))] == []
    assert [pairs for pairs in claimed if pairs & {(mark, obj) for obj, mark in pairs}] == []


def test_object_is_not_claimed_to_be_where_it_is_to_go(proposals: dict[str, list[Proposal]]) -> None:
    for proposal in (p for of_task in proposals.values() for p in of_task if p.family is Family.SPATIAL):
        for step in proposal.plan.steps:
            places = [(claim.relation, claim.landmarks) for claim in step.object.claims]
            assert (step.relation, (step.destination,)) not in places


def test_left_and_right_objects_are_distinguished_from_parts() -> None:
    task = base_tasks("libero_10")[4]
    around = Surroundings.of(parse_base_instruction(task.instruction), facts_of(task), WORDS)
    left = Reference(noun="plate", ordinal="left")

    assert len(around.names_meant(left)) == 2
    assert around.is_busy(left)
    assert not around.same(left, Reference(noun="plate", ordinal="right"))
