"""The lite selection: one case of each base task and family, as many of each family and level."""

from __future__ import annotations

from collections import Counter, defaultdict

from conflictvla.builders.cases.lite import lite_cases
from conflictvla.builders.tasks_dataset.reading import load_instances, load_lite_cases, load_tasks
from conflictvla.toolkit.records import SUITES, Arm, Family, Instance, Level, Prompt

CASES = tuple(i for i in load_instances() if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0)
BASE_TASKS, PER_CELL = 40, 10


def _chosen(cases: tuple[Instance, ...], lite: frozenset[str]) -> list[Instance]:
    return [case for case in cases if case.case_id in lite]


def test_the_release_has_160_lite_cases_and_10_of_each_family_and_level() -> None:
    chosen = _chosen(CASES, load_lite_cases())
    assert len(chosen) == BASE_TASKS * len(Family)
    cells = Counter((case.family, case.level) for case in chosen)
    assert cells == dict.fromkeys([(family, level) for family in Family for level in Level], PER_CELL)
    assert Counter(case.suite for case in chosen) == dict.fromkeys(SUITES, len(chosen) // len(SUITES))


def test_every_base_task_has_one_lite_case_of_each_family_that_it_has_cases_of() -> None:
    available = {(case.suite, case.base_task, case.family) for case in CASES}
    taken = Counter((case.suite, case.base_task, case.family) for case in _chosen(CASES, load_lite_cases()))
    assert set(taken) == available
    missing = BASE_TASKS * len(Family) - len(available)
    # A base task without a family leaves its case to one of the same suite, which then has two, of different levels.
    assert sum(count - 1 for count in taken.values()) == missing


def test_the_marked_cases_are_those_that_the_rule_chooses() -> None:
    assert load_lite_cases() == lite_cases(CASES)
    rows = load_tasks("instances").select_columns(["case_id", "lite"])
    marked = defaultdict(set)
    for row in rows:
        marked[row["case_id"]].add(row["lite"])
    assert {case for case, values in marked.items() if values == {True}} == load_lite_cases()
    assert all(load_tasks("references")["lite"])


def test_where_a_level_is_missing_another_base_task_takes_it_and_the_counts_stay() -> None:
    suite = tuple(case for case in CASES if case.suite == "libero_goal")
    tasks = list(dict.fromkeys(case.base_task for case in suite))[:4]
    four = tuple(case for case in suite if case.base_task in tasks and case.family is Family.PHYSICAL)
    complete = {case.base_task: case.level for case in _chosen(four, lite_cases(four))}
    assert sorted(map(str, complete.values())) == ["L1", "L2", "L3", "L4"]
    first = tasks[0]
    without = tuple(case for case in four if (case.base_task, case.level) != (first, complete[first]))
    changed = {case.base_task: case.level for case in _chosen(without, lite_cases(without))}
    assert sorted(map(str, changed.values())) == ["L1", "L2", "L3", "L4"]
    assert changed[first] is not complete[first]
    assert sum(changed[task] is not complete[task] for task in tasks) == 2


def test_a_base_task_without_a_family_leaves_its_level_to_one_of_its_suite() -> None:
    lost = tuple(c for c in CASES if c.suite == "libero_goal" and c.family is Family.PHYSICAL)
    tasks = list(dict.fromkeys(case.base_task for case in lost))[:4]
    other = tuple(
        case
        for case in CASES
        if case.suite == "libero_goal"
        and case.base_task in tasks
        and (case.family is Family.GROUNDING or (case.family is Family.PHYSICAL and case.base_task != tasks[0]))
    )
    chosen = [case for case in _chosen(other, lite_cases(other)) if case.family is Family.PHYSICAL]
    assert sorted(str(case.level) for case in chosen) == ["L1", "L2", "L3", "L4"]
    assert max(Counter(case.base_task for case in chosen).values()) == 2
