"""A release is judged again from the simulator alone, and what does not hold is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from conflictvla.builders.cases.case import content_hash
from conflictvla.builders.cases.check import check_release, judge
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.toolkit.prompts import RELEASED
from conflictvla.toolkit.records import Arm, Family, Instance, Level, Prompt

from ...toolkit.goal_scene import measured_facts

INSTANCES = load_instances()
SAMPLE = "put_the_bowl_on_the_plate"
FACTS_OF = "put the bowl on the plate"
OF_SAMPLE = [instance for instance in INSTANCES if instance.base_task == SAMPLE]


def _case(family: Family, level: Level) -> Instance:
    return next(i for i in OF_SAMPLE if (i.family, i.level) == (family, level))


def _reference() -> Instance:
    return next(i for i in OF_SAMPLE if i.arm is Arm.REFERENCE)


def _with_plan(case: Instance, plan: str, instruction: str) -> Instance:
    """Tampered with care: the id fits the new content."""
    prefix = str(case.case_id).rpartition("-")[0]
    return replace(case, plan=plan, instruction=instruction, case_id=f"{prefix}-{content_hash(plan, instruction)}")


def test_sample_of_the_shipped_release_holds() -> None:
    reported: list[str] = []

    assert check_release(OF_SAMPLE, 2, reported.append) == ()
    assert reported == [f"libero_goal/{SAMPLE}"]


@pytest.mark.slow
def test_whole_shipped_release_holds_in_every_initial_state() -> None:
    assert check_release(INSTANCES, 50) == ()


@pytest.mark.parametrize("prompt", RELEASED)
def test_tampered_instance_is_named_and_no_other(prompt: Prompt) -> None:
    index = next(n for n, i in enumerate(OF_SAMPLE) if i.arm is Arm.CONFLICT and i.prompt == prompt)
    tampered = [*OF_SAMPLE]
    tampered[index] = replace(OF_SAMPLE[index], instruction="put the bowl on the plate")

    problems = check_release(tampered, 1)

    assert [problem.instance_id for problem in problems] == [OF_SAMPLE[index].instance_id]


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (lambda c: replace(c, instruction=c.instruction + " now"), "not those that the case's id was made of"),
        (lambda c: replace(c, level=Level.L3), "the conflict is L1, not L3"),
        (lambda c: replace(c, family=Family.SPATIAL), "no certain conflict of the family spatial"),
        (
            lambda c: replace(c, factors=(replace(c.factors[0], premise="exists(unicorn)"),)),
            r"other premises are violated: .*exists\(unicorn\)",
        ),
        (lambda c: replace(c, factors=()), "other premises are violated"),
        (lambda c: _with_plan(c, _reference().plan, _reference().instruction), "no premise is violated"),
    ],
    ids=["words", "level", "family", "factor", "no factors", "valid plan"],
)
def test_case_that_does_not_hold_what_it_promises_is_told_why(
    tamper: Callable[[Instance], Instance], reason: str
) -> None:
    case = _case(Family.GROUNDING, Level.L1)
    facts = measured_facts(FACTS_OF)

    assert judge(case, facts) is None
    found = judge(tamper(case), facts)
    assert found is not None
    assert re.search(reason, found)


def test_reference_with_a_conflict_is_told_its_premise() -> None:
    conflict = _case(Family.PHYSICAL, Level.L1)
    facts = measured_facts(FACTS_OF)

    assert judge(_reference(), facts) is None
    found = judge(replace(_reference(), plan=conflict.plan), facts)
    assert found is not None
    assert found.startswith("the plan is not what the instruction says")


def test_case_that_no_longer_holds_in_a_changed_world_is_told() -> None:
    """Were the scene's bowl in the drawer, "the bowl that is inside the drawer" would be no conflict."""
    facts = measured_facts(FACTS_OF)
    case = next(i for i in OF_SAMPLE if i.family is Family.SPATIAL and i.level is Level.L1)
    world = replace(facts, on=facts.on | True, inside=facts.inside | True)

    assert judge(case, facts) is None
    assert judge(case, world) == "no premise is violated"
