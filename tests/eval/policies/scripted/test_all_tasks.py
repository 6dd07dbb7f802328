"""The scripted agents on all 40 base tasks: a sample for every skill by default, 200 rollouts in the slow run."""

from __future__ import annotations

import functools

import pytest

from conflictvla.eval.policies.scripted.agents import FailPersist, Persist
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.scene import Scene

from ...trials import roll_out

TASKS = base_tasks()
SAMPLE = [TASKS[index] for index in (4, 33, 35, 38, 39)]
"""Out of a drawer; into one and shut it; into a compartment; two by their knobs, side by side; by a handle into a
chamber and shut its door."""

INIT_STATES = range(5)


@functools.lru_cache(maxsize=1)
def scene_of(task: BaseTask) -> Scene:
    return Scene(task)


@functools.cache
def successes(task: BaseTask) -> int:
    return sum(roll_out(scene_of(task), Persist(), init_state).succeeded for init_state in INIT_STATES)


@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: task.task_id)
def test_persist_has_the_skills_for_the_other_suites(task: BaseTask) -> None:
    assert roll_out(scene_of(task), Persist(), 1).succeeded


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_persist_completes_a_task_from_at_least_three_of_five_states(task: BaseTask) -> None:
    assert successes(task) >= 3


@pytest.mark.slow
def test_persist_completes_nine_of_ten_rollouts() -> None:
    assert sum(successes(task) for task in TASKS) >= 180


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_fail_persist_fails_to_the_horizon_on_every_task(task: BaseTask) -> None:
    trial = roll_out(scene_of(task), FailPersist(premises_hold=lambda _: False), 0)
    assert not trial.succeeded
    assert len(trial.actions) == task.horizon


@pytest.mark.slow
@pytest.mark.parametrize("init_state", [0, 1])
def test_fail_persist_moves_neither_mug_nor_door_of_the_microwave(init_state: int) -> None:
    trial = roll_out(scene_of(TASKS[39]), FailPersist(premises_hold=lambda _: False), init_state)
    assert trial.target_moved_m < 0.001
