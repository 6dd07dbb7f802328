"""All 40 base instructions are parsed, rendered again in the benchmark's words, and valid in their scenes."""

from __future__ import annotations

import numpy as np
import pytest

from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Relation, Verb
from conflictvla.toolkit.language.render import render
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.premises import check
from conflictvla.toolkit.records import BaseTask

from ..goal_scene import facts_of

TASKS = base_tasks()
SAMPLE = [TASKS[index] for index in (0, 2, 4, 5, 10, 33, 34, 35, 38, 39)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_base_instruction_comes_back_in_the_benchmarks_own_words(task: BaseTask) -> None:
    assert render(parse_base_instruction(task.instruction), 0) == task.instruction


@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: task.task_id)
def test_base_instruction_is_valid(task: BaseTask) -> None:
    assert check(parse_base_instruction(task.instruction), facts_of(task)) == ()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_base_instruction_is_valid_in_every_initial_state(task: BaseTask) -> None:
    from conflictvla.toolkit.simulation.observing.scene_facts import measure_facts
    from conflictvla.toolkit.simulation.scene import Scene

    scene = Scene(task)
    facts = measure_facts(scene, range(scene.initial_state_count))

    assert check(parse_base_instruction(task.instruction), facts) == ()


def test_both_objects_become_two_steps_and_both_of_a_kind_one() -> None:
    two = parse_base_instruction("put both the alphabet soup and the tomato sauce in the basket").steps
    one = parse_base_instruction("put both moka pots on the stove").steps

    assert [step.object.noun for step in two] == ["alphabet soup", "tomato sauce"]
    assert [(step.object.noun, step.object.count) for step in one] == [("moka pot", 2)]


def test_it_means_the_drawer_that_was_just_filled() -> None:
    first, second = parse_base_instruction("put the black bowl in the bottom drawer of the cabinet and close it").steps

    assert (second.verb, second.object) == (Verb.CLOSE, first.destination)


def test_claim_of_a_base_instruction_is_read_as_one() -> None:
    (step,) = parse_base_instruction("pick up the black bowl from table center and place it on the plate").steps

    assert [claim.relation for claim in step.object.claims] == [Relation.AT_CENTER]


def test_what_is_open_lit_stacked_or_inside_at_the_start_is_seen() -> None:
    in_drawer, lit = facts_of(TASKS[4]), facts_of(TASKS[38])
    names = [entity.name for entity in in_drawer.entities]
    bowl, drawer = names.index("akita_black_bowl_1"), names.index("wooden_cabinet_1_top_region")

    assert in_drawer.inside[0, bowl, drawer]
    assert in_drawer.is_open[0, drawer]
    assert [e.name for e, on in zip(lit.entities, lit.is_on[0], strict=True) if on] == ["flat_stove_1"]


def test_microwave_opens_by_its_hinge_and_has_an_inside() -> None:
    facts = facts_of(TASKS[39])
    microwave = facts.entities[facts.index("microwave_1")]

    assert (microwave.opens, microwave.switches, microwave.movable) == (True, False, False)
    assert microwave.opening_m == pytest.approx((0.24, 0.168), abs=0.005)
    assert facts.is_open[0, facts.index("microwave_1")]


def test_compartments_of_the_caddy_are_named_by_their_sides() -> None:
    facts = facts_of(TASKS[35])
    sides = {entity.side: entity for entity in facts.entities if entity.side}

    assert set(sides) == {"left", "right", "front", "back"}
    assert sides["back"].opening_m == pytest.approx((0.124, 0.056), abs=0.002)


def test_opening_of_a_turned_object_is_measured_along_its_own_axes() -> None:
    """The basket stands askew in some states; its opening is the same as seen along its own sides."""
    facts = facts_of(TASKS[10])
    basket = facts.entities[facts.index("basket_1")]

    assert basket.opening_m is not None
    assert np.all(np.array(basket.opening_m) < np.array(sorted(basket.size_m[:2], reverse=True)) + 0.002)
