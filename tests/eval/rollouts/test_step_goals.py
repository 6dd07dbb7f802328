"""Step goals in whole rollouts of agents with known answers: who does the valid step of a conflict of two steps."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from conflictvla.builders.rollouts.episode_record import EpisodeRecord
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode, Policy
from conflictvla.eval.policies.scripted.agents import DetectLate, FailPersist, Persist, Refuse, _hold_still
from conflictvla.eval.policies.scripted.fixtures import pull
from conflictvla.eval.policies.scripted.motion import Motion
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.records import Arm, Family, Instance, Level, Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

SUITE, TASK = "libero_goal", "open_the_top_drawer_and_put_the_bowl_inside"
SCENES = ScenePool(capacity=1)
OPEN, PUT = "open(wooden_cabinet_1_top_region)", "in(akita_black_bowl_1, wooden_cabinet_1_top_region)"


class OpensAndStops(Persist):
    """The ideal answer to a conflict behind a valid step: it opens the drawer, and then holds still."""

    name = "opens_and_stops"

    def _respond(self, episode: Episode) -> Motion:
        yield from pull(episode.scene, "wooden_cabinet_1_top_handle", empty=False)
        yield from _hold_still()


SEEN: tuple[type[Persist], ...] = (Persist, Refuse, FailPersist, DetectLate, OpensAndStops)


@functools.cache
def conflict() -> Instance:
    """A case whose first step is the base task's own and valid, and whose second has a false claim about the bowl."""
    return next(
        i
        for i in load_instances()
        if (i.base_task, i.arm, i.prompt) == (TASK, Arm.CONFLICT, Prompt.P0)
        and (i.family, i.level, i.operator) == (Family.SPATIAL, Level.L3, "object_on")
    )


def episode(agent: type[Persist], init_state: int = 0) -> EpisodeRecord:
    return _episode(agent.name, init_state)


@functools.cache
def _episode(name: str, init_state: int) -> EpisodeRecord:
    policy: Policy = next(agent() for agent in SEEN if agent.name == name)
    job = Job(instance=conflict(), init_state=init_state, seed=0)
    return run_rollout(SCENES.scene(SUITE, TASK), policy, job, versions=installed_versions()).episode


@pytest.mark.parametrize("agent", SEEN)
def test_the_goals_are_the_plans_whoever_acts(agent: type[Persist]) -> None:
    assert episode(agent).step_goals == (OPEN, PUT)


def test_who_persists_does_both_steps_in_their_order_and_ends_with_the_last() -> None:
    done = episode(Persist)
    assert done.success
    assert done.step_goal_met is not None
    first, last = done.step_goal_met
    assert 0 < first < last == done.success_step
    assert done.moving_at_end


def test_who_stops_after_the_valid_step_has_met_its_goal_alone() -> None:
    done = episode(OpensAndStops)
    assert done.step_goal_met is not None
    first, last = done.step_goal_met
    assert (0 < first < done.horizon, last) == (True, -1)
    assert (done.success, done.moving_at_end) == (False, False)


@pytest.mark.parametrize(("agent", "moving"), [(Refuse, False), (DetectLate, False), (FailPersist, True)])
def test_who_refuses_stops_on_the_way_or_comes_with_an_empty_hand_has_met_nothing(
    agent: type[Persist], *, moving: bool
) -> None:
    done = episode(agent)
    assert (done.step_goal_met, done.moving_at_end) == ((-1, -1), moving)


def test_a_repeated_rollout_records_the_same_in_a_warm_scene() -> None:
    job = Job(instance=conflict(), init_state=0, seed=0)
    again = run_rollout(SCENES.scene(SUITE, TASK), Persist(), job, versions=installed_versions())
    assert again.episode == episode(Persist)
    assert np.isfinite(again.sim_states).all()
