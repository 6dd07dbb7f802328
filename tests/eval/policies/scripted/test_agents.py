"""Scripted agents in real scenes: one always succeeds, one refuses, one fails however long it tries."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from conflictvla.eval.policies.interface import Episode, Policy
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.policies.scripted.agents import AGENTS, FailPersist, Persist, Refuse
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_task, base_tasks
from conflictvla.toolkit.simulation.scene import NO_OP, Scene

from ...trials import Trial, roll_out

SAMPLE = ("put_the_bowl_on_the_plate", "turn_on_the_stove", "put_the_wine_bottle_on_the_rack")
"""A grasp by the rim, a turn, and a grasp from above: what the default run tries."""

ALL = tuple(task.name for task in base_tasks("libero_goal"))
EARLY_STEPS = 20


def sound(_: Episode) -> bool:
    return True


def unsound(_: Episode) -> bool:
    return False


@functools.lru_cache(maxsize=len(SAMPLE))
def scene_of(name: str) -> Scene:
    return Scene(base_task("libero_goal", name))


@functools.cache
def persisting(name: str, init_state: int) -> Trial:
    return roll_out(scene_of(name), Persist(), init_state)


@functools.cache
def failing(name: str, init_state: int) -> Trial:
    return roll_out(scene_of(name), FailPersist(premises_hold=unsound), init_state)


def tasks(default: tuple[str, ...]) -> list[object]:
    """The default tasks, and the rest of the suite for the slow run."""
    return [name if name in default else pytest.param(name, marks=pytest.mark.slow) for name in ALL]


@pytest.mark.parametrize("name", tasks(SAMPLE))
def test_persist_reaches_the_reference_goal_from_at_least_four_of_five_states(name: str) -> None:
    assert sum(persisting(name, init_state).succeeded for init_state in range(5)) >= 4


@pytest.mark.parametrize("name", tasks(SAMPLE))
def test_fail_persist_never_succeeds_nor_moves_its_target(name: str) -> None:
    for init_state in range(5 if name not in SAMPLE else 2):
        trial = failing(name, init_state)
        assert not trial.succeeded
        assert len(trial.actions) == base_task("libero_goal", name).horizon
        assert trial.target_moved_m < 0.01


@pytest.mark.parametrize("name", tasks(SAMPLE))
def test_fail_persist_begins_exactly_as_persist_does(name: str) -> None:
    for init_state in range(5 if name not in SAMPLE else 2):
        expected = persisting(name, init_state).actions[:EARLY_STEPS]
        np.testing.assert_array_equal(failing(name, init_state).actions[:EARLY_STEPS], expected)


@pytest.mark.parametrize("name", tasks(SAMPLE))
def test_fail_persist_comes_as_near_to_its_target_and_keeps_moving(name: str) -> None:
    for init_state in range(5 if name not in SAMPLE else 2):
        persistent, failed = persisting(name, init_state), failing(name, init_state)
        # Nearer where the drawer that persist opened hangs over what it reaches for.
        assert (failed.distances_m.min(axis=0) <= persistent.distances_m.min(axis=0) + 0.015).all()
        magnitude = np.linalg.norm(failed.actions[:, :6], axis=1)
        assert magnitude[-100:].mean() > 0.5 * np.linalg.norm(persistent.actions[:, :6], axis=1).mean()
        assert np.all(failed.actions[:, 6] == -1.0)


def test_refuse_holds_still_with_open_hand_where_premises_do_not_hold() -> None:
    trial = roll_out(scene_of(SAMPLE[0]), Refuse(premises_hold=unsound), 0, steps=50)
    np.testing.assert_array_equal(trial.actions, np.tile(NO_OP, (50, 1)))
    assert np.ptp(trial.distances_m) < 0.005


@pytest.mark.parametrize("name", sorted(set(AGENTS) - {"persist", "noisy", "ask_first"}))
def test_agents_persist_where_premises_hold(name: str) -> None:
    trial = roll_out(scene_of(SAMPLE[0]), AGENTS[name](premises_hold=sound), 0, steps=40)
    np.testing.assert_array_equal(trial.actions, persisting(SAMPLE[0], 0).actions[:40])


@pytest.mark.parametrize("agent", [Persist, FailPersist])
def test_same_initial_state_gives_the_same_actions_whatever_ran_before(agent: type[Persist]) -> None:
    scene, policy = scene_of(SAMPLE[1]), agent(premises_hold=unsound)
    first = roll_out(scene, policy, 0, steps=80)
    roll_out(scene, policy, 1, steps=30)
    np.testing.assert_array_equal(roll_out(scene, policy, 0, steps=80).actions, first.actions)


def test_every_action_is_within_the_controllers_range() -> None:
    actions = np.concatenate([persisting(SAMPLE[0], 0).actions, failing(SAMPLE[1], 0).actions])
    assert actions.shape[1] == 7
    assert np.abs(actions).max() <= 1.0


@pytest.mark.parametrize("name", AGENTS)
def test_agents_are_policies_with_a_name_and_settings(name: str) -> None:
    policy = load_policy(name)
    assert isinstance(policy, Policy)
    assert policy.info.name == name
    assert policy.info.settings["hover_m"] == 0.08
    assert ("noise" in policy.info.settings) == (name == "noisy")


def test_goal_without_a_skill_is_refused_when_the_episode_begins() -> None:
    scene = Scene(base_task("libero_90", "KITCHEN_SCENE8_turn_off_the_stove"))
    with pytest.raises(InvalidInputError, match="turnoff"):
        roll_out(scene, Persist(), 0)
