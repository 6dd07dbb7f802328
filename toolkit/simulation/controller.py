"""Operational-space control of the arm, one torque command a physics substep.

The control law and its compiled small-matrix routines are robosuite 1.4.0's (``OSC_POSE`` with fixed impedance, after
Khatib 1987, https://doi.org/10.1109/JRA.1987.1087068); what is ours is that every piece of its state is explicit, so
that a reset can be complete. In the stock environment the goal, the stale pose of the last update and the gripper's
accumulated command survive from one episode into the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from robosuite.utils.control_utils import (
    nullspace_torques,
    opspace_matrices,
    orientation_error,
    set_goal_orientation,
)

Array = npt.NDArray[np.float64]

GRIPPER_SPEED = 0.01
"""How far the gripper's normalised command moves per physics substep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmIndices:
    """Where the arm and gripper live in the MuJoCo model.

    Attributes:
        qpos: Addresses of the seven arm joints in ``qpos``.
        qvel: Addresses of the seven arm joints in ``qvel``.
        gripper_qpos: Addresses of the two finger joints in ``qpos``.
        arm_actuators: Torque actuators of the arm.
        gripper_actuators: Position actuators of the fingers.
        grip_site: The site between the fingertips that the controller moves.
    """

    qpos: npt.NDArray[np.intp]
    qvel: npt.NDArray[np.intp]
    gripper_qpos: npt.NDArray[np.intp]
    arm_actuators: npt.NDArray[np.intp]
    gripper_actuators: npt.NDArray[np.intp]
    grip_site: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerGains:
    """Constants of the controller, as robosuite's ``OSC_POSE`` configuration sets them.

    Attributes:
        kp: Proportional gains, shape (6,): position, orientation.
        kd: Derivative gains, shape (6,).
        output_scale: Metres and radians per unit of action, shape (6,).
        torque_limits: Lowest and highest torque in N m, shape (2, 7).
        nullspace_posture: Joint angles that the null space pulls to, in rad, shape (7,).
    """

    kp: Array
    kd: Array
    output_scale: Array
    torque_limits: Array
    nullspace_posture: Array


class PoseController:
    """Turns a 7-D action into actuator commands; its whole state is the goal pose and the gripper's command.

    Args:
        model: The MuJoCo model.
        data: The MuJoCo data that the controller reads and commands.
        arm: Indices of arm and gripper.
        gains: Constants of the control law.
    """

    def __init__(self, model: Any, data: Any, arm: ArmIndices, gains: ControllerGains) -> None:
        self._model, self._data, self._arm, self._gains = model, data, arm, gains
        self._jac_pos = np.zeros((3, model.nv))
        self._jac_rot = np.zeros((3, model.nv))
        self._mass = np.zeros((model.nv, model.nv))
        self._dof = np.ix_(arm.qvel, arm.qvel)
        ctrl_range = model.actuator_ctrlrange[arm.gripper_actuators]
        self._finger_bias = 0.5 * (ctrl_range[:, 1] + ctrl_range[:, 0])
        self._finger_weight = 0.5 * (ctrl_range[:, 1] - ctrl_range[:, 0])
        self._goal_pos: Array = np.zeros(3)
        self._goal_ori: Array = np.eye(3)
        self._finger_command = np.zeros(2)

    @property
    def state(self) -> Array:
        """Goal position (3), goal orientation matrix (9) and finger command (2), shape (14,)."""
        return np.concatenate([self._goal_pos, self._goal_ori.ravel(), self._finger_command])

    def reset(self) -> None:
        """Forget everything: the goal becomes the present pose, the finger command zero.

        Kinematics must be up to date.
        """
        self._goal_pos = self._grip_pos()
        self._goal_ori = self._grip_ori()
        self._finger_command = np.zeros(2)

    def set_goal(self, action: Array) -> None:
        """Set the goal pose from an action, once a control step.

        Args:
            action: Shape (6,), in [-1, 1]: translation and axis-angle rotation relative to the present pose.
        """
        delta = action * self._gains.output_scale
        # As in robosuite: a zero rotation keeps the previous orientation goal, a zero translation does not.
        if np.any(np.abs(delta[3:]) > 0.0):
            self._goal_ori = set_goal_orientation(delta[3:], self._grip_ori())
        self._goal_pos = self._grip_pos() + delta[:3]

    def command(self, gripper_action: float) -> None:
        """Write the actuator commands of one physics substep. Needs positions and velocities up to date.

        Args:
            gripper_action: Its sign opens (-1) or closes (+1) the fingers.
        """
        model, data, arm, gains = self._model, self._data, self._arm, self._gains
        mujoco.mj_jacSite(model, data, self._jac_pos, self._jac_rot, arm.grip_site)
        mujoco.mj_fullM(model, self._mass, data.qM)
        jac_pos = np.ascontiguousarray(self._jac_pos[:, arm.qvel])
        jac_rot = np.ascontiguousarray(self._jac_rot[:, arm.qvel])
        jacobian = np.vstack([jac_pos, jac_rot])
        mass = np.ascontiguousarray(self._mass[self._dof])
        joint_pos, joint_vel = data.qpos[arm.qpos], data.qvel[arm.qvel]

        pos_error = self._goal_pos - self._grip_pos()
        ori_error = orientation_error(self._goal_ori, self._grip_ori())
        velocity = np.concatenate([self._jac_pos @ data.qvel, self._jac_rot @ data.qvel])
        wrench = gains.kp * np.concatenate([pos_error, ori_error]) - gains.kd * velocity
        _, lambda_pos, lambda_ori, nullspace = opspace_matrices(mass, jacobian, jac_pos, jac_rot)
        decoupled = np.concatenate([lambda_pos @ wrench[:3], lambda_ori @ wrench[3:]])
        torques = jacobian.T @ decoupled + data.qfrc_bias[arm.qvel]
        torques += nullspace_torques(mass, nullspace, gains.nullspace_posture, joint_pos, joint_vel)
        data.ctrl[arm.arm_actuators] = np.clip(torques, *gains.torque_limits)

        step = np.array([-1.0, 1.0]) * GRIPPER_SPEED * np.sign(gripper_action)
        self._finger_command = np.clip(self._finger_command + step, -1.0, 1.0)
        data.ctrl[arm.gripper_actuators] = self._finger_bias + self._finger_weight * self._finger_command

    def _grip_pos(self) -> Array:
        return np.array(self._data.site_xpos[self._arm.grip_site])

    def _grip_ori(self) -> Array:
        return np.array(self._data.site_xmat[self._arm.grip_site]).reshape(3, 3)
