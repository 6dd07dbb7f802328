"""Rollouts of scripted agents in a scene, without the runner and its files: what their tests look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conflictvla.builders.cases.instances import base_instance
from conflictvla.eval.policies.interface import Episode, Policy, Refusal
from conflictvla.eval.policies.observing import observe
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import BaseTask, Instance, Prompt
from conflictvla.toolkit.simulation.observing.targets import goal_targets, target_positions
from conflictvla.toolkit.simulation.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One rollout: actions (H, 7), distances from the fingertips to each target in m (H + 1, K), and its outcome."""

    actions: FloatArray
    distances_m: FloatArray
    succeeded: bool
    target_moved_m: float


def instance_of(task: BaseTask) -> Instance:
    return base_instance(task, Prompt.P0, plan="{}", targets=goal_targets(task), tasks_version="0")


def roll_out(
    scene: Scene,
    policy: Policy,
    init_state: int,
    *,
    instance: Instance | None = None,
    seed: int = 0,
    steps: int | None = None,
) -> Trial:
    """Reset the scene and let the policy act until success, the horizon, or ``steps``."""
    task, instance = scene.task, instance or instance_of(scene.task)
    scene.reset(init_state)
    policy.reset(
        Episode(instruction=instance.instruction, init_state=init_state, seed=seed, instance=instance, scene=scene)
    )
    targets = goal_targets(task)
    start = target_positions(scene, targets)
    actions: list[FloatArray] = []
    distances, moved = [np.linalg.norm(start - scene.grip_pos(), axis=1)], 0.0
    while len(actions) < (steps or task.horizon) and not scene.succeeded():
        answer = policy.act(observe(scene, len(actions)))
        for action in np.zeros((1, 7)) if isinstance(answer, Refusal) else answer:  # at rest until the horizon
            scene.step(action)
            actions.append(action)
        positions = target_positions(scene, targets)
        distances.append(np.linalg.norm(positions - scene.grip_pos(), axis=1))
        moved = max(moved, float(np.linalg.norm(positions - start, axis=1).max()))
    return Trial(
        actions=np.array(actions), distances_m=np.array(distances), succeeded=scene.succeeded(), target_moved_m=moved
    )
