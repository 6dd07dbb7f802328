"""Initial states of a task, drawn as LIBERO draws them when it resets, but from a seed and only where they hold.

Fixtures stay where the scene has them; objects are placed by LIBERO's own samplers and come to rest. A draw counts
where everything has stayed on its feet and what the task file says of objects on or in one another holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from ..arrays import FloatArray
from ..errors import InvalidInputError
from ..libero.install import quiet
from .libero_environment import numpy_seed
from .observing.cost_evidence import entities_of
from .scene import NO_OP, Scene

REST_STEPS = 40
"""Control steps in which objects come to rest: two seconds."""

DRAWS_PER_STATE = 50
"""Draws after which a task whose states never hold is given up."""

UPRIGHT = np.cos(np.radians(10.0))
"""Cosine of how far an object may lean from how it was placed."""

SUNK_M = 0.03
"""How much lower than what everything stands on the middle of an object may come to rest."""


def draw_initial_states(
    scene: Scene, count: int, *, seed: int = 0, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """Initial states of a scene's task; the same for the same seed.

    Args:
        scene: The scene; it may have no initial states yet.
        count: How many states.
        seed: Seed of the draws.
        progress: Called with the number of states after each.

    Returns:
        Shape (count, 1 + nq + nv): time (0), joint positions and velocities (0), as MuJoCo orders them.

    Raises:
        InvalidInputError: The task's states do not hold, whatever is drawn.
    """
    states: list[FloatArray] = []
    draw = 0
    while len(states) < count:
        if draw == DRAWS_PER_STATE * (len(states) + 1):
            raise InvalidInputError(
                f"{scene.task.task_id}: of {draw} draws only {len(states)} hold: objects fall over, or are not on or "
                "in one another as (:init ...) says; move their regions apart"
            )
        with numpy_seed(1_000_000 * seed + draw), quiet():
            state = _draw_state(scene)
        draw += 1
        if state is not None:
            states.append(state)
            if progress:
                progress(len(states))
    return np.array(states)


def _draw_state(scene: Scene) -> FloatArray | None:
    """One state at rest; None where it does not hold."""
    env, model, data = scene.libero, scene.model, scene.data
    robot = env.robots[0]
    mujoco.mj_resetData(model, data)
    data.qpos[scene.arm.qpos] = robot.init_qpos
    data.qpos[scene.arm.gripper_qpos] = robot.gripper.init_qpos
    for initializer in env.object_property_initializers:
        env.object_states_dict[initializer.name].set_joint(initializer.sample())
    mujoco.mj_forward(model, data)
    placed = _placements(scene)
    for position, quat, asset in placed.values():
        if asset.name in env.objects_dict:
            env.sim.data.set_joint_qpos(asset.joints[-1], np.concatenate([position, quat]))
    mujoco.mj_forward(model, data)
    up = _up_axes(scene)
    _come_to_rest(scene)
    if not _holds(scene, up):
        return None
    qpos = np.array(data.qpos)
    qpos[scene.arm.qpos] = robot.init_qpos
    qpos[scene.arm.gripper_qpos] = robot.gripper.init_qpos
    return np.concatenate([[0.0], qpos, np.zeros(model.nv)])


def _placements(scene: Scene) -> dict[str, Any]:
    """Where LIBERO's samplers put everything, with the fixtures where they are."""
    env, model = scene.libero, scene.model
    placed = env.placement_initializer.sample()
    for name, (_, _, fixture) in [*placed.items()]:
        if name in env.fixtures_dict:
            body = env.obj_body_id[name]
            placed[name] = tuple(model.body_pos[body]), np.array(model.body_quat[body]), fixture
    placed = env.conditional_placement_initializer.sample(env.sim, placed)
    found: dict[str, Any] = env.conditional_placement_on_objects_initializer.sample(placed)
    return found


def _come_to_rest(scene: Scene) -> None:
    with scene.movers_paused():
        scene.hold_pose()
        for _ in range(REST_STEPS):
            scene.step(NO_OP)


def _up_axes(scene: Scene) -> FloatArray:
    """Where the world's upward axis points in each object's own frame, shape (M, 3)."""
    bodies = [scene.libero.obj_body_id[name] for name in scene.libero.objects_dict]
    return np.array(scene.data.xmat[bodies]).reshape(-1, 3, 3)[:, 2]


def _holds(scene: Scene, placed_up: FloatArray) -> bool:
    env = scene.libero
    heights = scene.data.xpos[[env.obj_body_id[name] for name in env.objects_dict], 2]
    leaning = np.sum(_up_axes(scene) * placed_up, axis=1) < UPRIGHT
    if leaning.any() or (heights < env.workspace_offset[2] - SUNK_M).any():
        return False
    entities = {name for name, parts in entities_of(scene).items() if parts.main is not None}
    for predicate in env.parsed_problem["initial_state"]:
        # A region of the table is where an object is placed, and no entity to be on.
        if predicate[-1] in entities and not scene.holds(tuple(predicate)):
            return False
    return True
