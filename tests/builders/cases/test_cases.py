"""Cases are proposed, judged and selected the same way everywhere."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest

from conflictvla.builders.cases.candidates import conflict_level, judge_candidates, task_candidates
from conflictvla.builders.cases.case import Case, TaskCandidates, content_hash
from conflictvla.builders.cases.instances import conflict_instance, reference_instance
from conflictvla.builders.cases.selection import select_cases
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.premises import Violation
from conflictvla.toolkit.records import Arm, Family, Instance, Level, Prompt

from ...toolkit.goal_scene import GOAL_TASKS, goal_task

SHIPPED = [i for i in load_instances() if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0]
DRAWER_AND_BOWL = goal_task("open the top drawer and put the bowl inside")
TURN_ON = goal_task("turn on the stove")
PER_CELL = 2


@functools.cache
def _candidates() -> tuple[TaskCandidates, ...]:
    return tuple(judge_candidates([DRAWER_AND_BOWL, TURN_ON], init_states=1))


@functools.cache
def _cases() -> tuple[Case, ...]:
    return select_cases(_candidates(), per_cell=PER_CELL)


def _violation(family: Family, *, violated: int, states: int = 2, unclear: int = 0) -> Violation:
    return Violation(
        family=family,
        premise=f"p({violated})",
        expected="",
        observed="",
        violated=violated,
        unclear=unclear,
        states=states,
    )


@pytest.mark.parametrize(
    ("steps", "factors", "level"),
    [(1, 1, Level.L1), (1, 2, Level.L2), (1, 3, Level.L2), (2, 1, Level.L3), (3, 1, Level.L3), (2, 2, Level.L4)],
)
def test_level_follows_from_steps_and_factors(steps: int, factors: int, level: Level) -> None:
    assert conflict_level(steps, [_violation(Family.SPATIAL, violated=2)] * factors, Family.SPATIAL) is level


@pytest.mark.parametrize(
    "violations",
    [
        [],
        [_violation(Family.GROUNDING, violated=2)],
        [_violation(Family.SPATIAL, violated=2), _violation(Family.GROUNDING, violated=2)],
        [_violation(Family.SPATIAL, violated=1)],
        [_violation(Family.SPATIAL, violated=1, unclear=1)],
        [_violation(Family.SPATIAL, violated=2), _violation(Family.SPATIAL, violated=0, unclear=2)],
    ],
    ids=["none", "another family", "two families", "not in every state", "unclear in one", "one of two is unclear"],
)
def test_what_is_not_certain_and_of_one_family_has_no_level(violations: list[Violation]) -> None:
    assert conflict_level(1, violations, Family.SPATIAL) is None


def test_two_processes_find_the_same_candidates_as_one() -> None:
    assert judge_candidates([TURN_ON, DRAWER_AND_BOWL], init_states=1, workers=2) == [*_candidates()][::-1]


@pytest.mark.slow
def test_build_of_a_suite_does_not_depend_on_the_worker_count() -> None:
    one, two = (judge_candidates(GOAL_TASKS, init_states=2, workers=workers) for workers in (1, 2))

    assert select_cases(one, per_cell=1) == select_cases(two, per_cell=1)


def test_progress_is_told_of_every_task_in_order() -> None:
    reported: list[TaskCandidates] = []

    judged = judge_candidates([DRAWER_AND_BOWL], init_states=1, progress=reported.append)

    assert reported == judged
    assert reported[0] == _candidates()[0]


def test_selection_is_deterministic_and_leaves_the_candidates_alone() -> None:
    before = [task.candidates for task in _candidates()]

    assert select_cases(_candidates(), per_cell=PER_CELL) == _cases()
    assert [task.candidates for task in _candidates()] == before


@pytest.mark.parametrize("per_cell", [0, 1, 3])
def test_no_cell_holds_more_cases_than_asked_for(per_cell: int) -> None:
    cells = Counter(
        (case.task.name, case.candidate.family, case.candidate.level)
        for case in select_cases(_candidates(), per_cell=per_cell)
    )

    assert max(cells.values(), default=0) == per_cell


def test_only_confirmed_candidates_are_selected() -> None:
    confirmed = {candidate for task in _candidates() for candidate in task.candidates}

    assert {case.candidate for case in _cases()} <= confirmed
    assert all(task.proposals > len(task.candidates) > 0 for task in _candidates())


def test_base_instruction_that_makes_no_sense_is_refused_with_its_evidence() -> None:
    with pytest.raises(InvalidInputError, match=r"'open the bowl' of libero_goal/\S+ is not valid: opens\(bowl\)"):
        task_candidates(replace(DRAWER_AND_BOWL, instruction="open the bowl"), init_states=1)


def test_base_instruction_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no rule for 'wave at the bowl'"):
        task_candidates(replace(DRAWER_AND_BOWL, instruction="wave at the bowl"), init_states=1)


def test_case_id_is_readable_and_ends_with_its_content() -> None:
    for case in _cases():
        suite, task, family, level, last = case.case_id.split("/")
        assert (suite, task) == (case.task.suite, case.task.name)
        assert (family, level) == (case.candidate.family, case.candidate.level)
        assert last[2:] == f"-{content_hash(case.candidate.plan, case.candidate.instruction)}"


@pytest.mark.parametrize("prompt", list(Prompt))
def test_case_is_paired_with_the_reference_of_its_prompt(prompt: Prompt) -> None:
    case = _cases()[0]
    conflict, reference = conflict_instance(case, prompt), reference_instance(case, prompt)

    assert conflict.pair_id == reference.instance_id == reference.pair_id
    assert reference.instruction == case.task.instruction
    assert (reference.arm, reference.family, reference.level, reference.factors) == (Arm.REFERENCE, None, None, ())
    assert (conflict.arm, conflict.case_id) == (Arm.CONFLICT, case.case_id)


# The release as it is shipped.


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_no_two_cases_of_a_base_task_violate_the_same_premises(task) -> None:
    sets = Counter(frozenset(f.premise for f in case.factors) for case in SHIPPED if case.base_task == task.name)

    assert [sorted(premises) for premises, count in sets.items() if count > 1] == []


def test_no_instruction_occurs_twice_within_a_base_task() -> None:
    instructions = Counter((case.base_task, case.instruction) for case in SHIPPED)

    assert [words for words, count in instructions.items() if count > 1] == []


@pytest.mark.parametrize("case", SHIPPED, ids=lambda case: case.case_id)
def test_level_and_family_of_a_case_are_those_of_its_plan_and_factors(case: Instance) -> None:
    several_steps, several_factors = len(plan_from_json(case.plan).steps) > 1, len(case.factors) > 1
    level = {
        (False, False): Level.L1,
        (False, True): Level.L2,
        (True, False): Level.L3,
        (True, True): Level.L4,
    }[several_steps, several_factors]

    assert case.level is level
    assert {factor.family for factor in case.factors} == {case.family}
    assert all(factor.premise and factor.expected and factor.observed for factor in case.factors)


def test_every_family_and_level_is_covered_on_many_base_tasks() -> None:
    cells = Counter((case.family, case.level) for case in SHIPPED)

    assert set(cells) == {(family, level) for family in Family for level in Level}
    assert min(cells.values()) >= 10
    assert {case.base_task for case in SHIPPED} == {task.name for task in base_tasks()}


@pytest.mark.parametrize("family", list(Family))
def test_no_operator_supplies_more_than_a_fifth_of_its_family(family: Family) -> None:
    operators = Counter(case.operator for case in SHIPPED if case.family is family)

    assert max(operators.values()) <= operators.total() / 5


def test_absent_things_are_spread_over_many() -> None:
    absent = Counter(
        f.premise
        for case in SHIPPED
        for f in case.factors
        if f.premise.startswith("exists(") and "drawer" not in f.premise
    )

    assert len(absent) >= 15
    assert max(absent.values()) <= absent.total() / 8
