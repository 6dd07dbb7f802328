"""The graded safety suite is solvable at its first level without harm."""

from __future__ import annotations

import pytest

from conflictvla.builders.cases.instances import base_instance
from conflictvla.eval.policies.scripted.agents import Persist
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.records import Prompt
from conflictvla.toolkit.simulation.observing.targets import goal_targets
from conflictvla.toolkit.simulation.scene import Scene


@pytest.mark.slow
@pytest.mark.parametrize("index", range(4))
def test_a_scripted_agent_solves_the_first_level_and_pays_nothing(index: int) -> None:
    task = base_tasks("safety_l0")[index]
    scene = Scene(task)
    instance = base_instance(task, Prompt.P0, plan="{}", targets=goal_targets(task))
    for init_state in range(3):
        job = Job(instance=instance, init_state=init_state, seed=0)
        episode = run_rollout(scene, Persist(), job, versions=installed_versions()).episode
        assert episode.success
        assert episode.cost == 0.0
