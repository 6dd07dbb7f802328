"""LIBERO's own environment, driven by the calls that evaluations on LIBERO make, to compare scenes with.

lerobot (``envs/libero.py``), vla-eval (``benchmarks/libero``), openpi (``examples/libero/main.py``), openvla and UniVLA
(``run_libero_eval.py``) all call ``reset``, ``set_init_state`` and ten times ``step`` with the gripper open.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.libero.base_tasks import bddl_path, initial_states
from conflictvla.toolkit.libero.install import load_libero, quiet
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.scene import Scene

NO_OPS = 10
NO_OP = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]


class StockLibero:
    """The environment of a task as LIBERO's users have it, without cameras.

    Args:
        task: The base task.

    Attributes:
        env: LIBERO's wrapper.
    """

    def __init__(self, task: BaseTask) -> None:
        self._task = task
        with quiet():
            self.env: Any = load_libero().env_wrapper.ControlEnv(
                bddl_file_name=bddl_path(task), use_camera_obs=False, has_offscreen_renderer=False
            )
            self.env.seed(7)

    def begin(self, init_state: int) -> dict[str, FloatArray]:
        """Begin an episode as every peer does; gives the observation that a policy acts on first."""
        with quiet():
            self.env.reset()
        self.env.set_init_state(initial_states(self._task)[init_state])
        return self._settle()

    def begin_in(self, scene: Scene, init_state: int) -> dict[str, FloatArray]:
        """Begin an episode with the fixtures where a scene has them, and without the warm start that a reset leaves."""
        with quiet():
            self.env.reset()
        self.env.sim.model.body_pos[:], self.env.sim.model.body_quat[:] = scene.model.body_pos, scene.model.body_quat
        self.env.set_init_state(initial_states(self._task)[init_state])
        self.env.sim.data.qacc_warmstart[:] = 0.0
        return self._settle()

    def physics(self) -> FloatArray:
        """Positions and velocities now, shape (nq + nv,)."""
        data = self.env.sim.data
        return np.concatenate([data.qpos, data.qvel])

    def hand(self, scene: Scene) -> tuple[FloatArray, FloatArray]:
        """Position (3,) and orientation matrix (3, 3) of the site between the fingertips in the state as it is now."""
        data = self.env.sim.data._data  # robosuite offers no other way to MjData
        # LIBERO's step leaves what follows from positions one substep behind them.
        mujoco.mj_fwdPosition(self.env.sim.model._model, data)
        site = scene.arm.grip_site
        return np.array(data.site_xpos[site]), np.array(data.site_xmat[site]).reshape(3, 3)

    def _settle(self) -> dict[str, FloatArray]:
        for _ in range(NO_OPS):
            observation = self.env.step(NO_OP)[0]
        found: dict[str, FloatArray] = observation
        return found


def start_difference(scene: Scene, stock: StockLibero, init_state: int) -> tuple[float, float]:
    """How far apart the hands are where a policy begins: in mm, and in degrees."""
    stock.begin(init_state)
    scene.reset(init_state)
    position, orientation = stock.hand(scene)
    away_mm = 1e3 * np.linalg.norm(scene.grip_pos() - position)
    ours = scene.data.site_xmat[scene.arm.grip_site].reshape(3, 3)
    # The sine of half the angle, since the cosine of an angle this small is 1 to all digits.
    half_sine = np.linalg.norm(ours - orientation) / np.sqrt(8.0)
    return float(away_mm), float(np.degrees(2.0 * np.arcsin(min(half_sine, 1.0))))


def largest_difference(scene: Scene, stock: StockLibero, actions: FloatArray) -> float:
    """The largest difference of positions and velocities from the start on, while actions are executed in both."""
    stock.begin_in(scene, 0)
    scene.reset(0)
    difference = _difference(scene, stock)
    for action in actions:
        scene.step(action)
        stock.env.step(action)
        difference = max(difference, _difference(scene, stock))
    return difference


def _difference(scene: Scene, stock: StockLibero) -> float:
    ours = np.concatenate([scene.data.qpos, scene.data.qvel])
    return float(np.abs(ours - stock.physics()).max())
