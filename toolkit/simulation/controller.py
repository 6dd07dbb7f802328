"""Operational-space control of the arm: a control step is many physics substeps, each under its own torques.

The control law is robosuite 1.4.0's ``OSC_POSE`` with fixed impedance (after Khatib 1987,
https://doi.org/10.1109/JRA.1987.1087068), and its results are robosuite's to the last bit: the same compiled routines
are called on arrays of the same memory layout, since a product of matrices rounds differently in another layout. What
is ours is that a whole control step, MuJoCo's part included, is one compiled call, and that every piece of the
controller's state is explicit, so that a reset can be complete. In the stock environment the goal, the stale pose of
the last update and the gripper's accumulated command survive from one episode into the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from robosuite.utils.control_utils import (
    nullspace_torques,
    opspace_matrices,
    orientation_error,
    set_goal_orientation,
)

from .mujoco_library import (
    mj_forward,
    mj_forwardSkip,
    mj_fullM,
    mj_fwdConstraint,
    mj_fwdPosition,
    mj_jacSite,
    mj_step2,
)

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

STAGE_POS = 1
"""MuJoCo's ``mjSTAGE_POS``: what depends on positions alone."""

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

    qpos: Indices
    qvel: Indices
    gripper_qpos: Indices
    arm_actuators: Indices
    gripper_actuators: Indices
    grip_site: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerGains:
    """Constants of the controller, as robosuite's ``OSC_POSE`` configuration sets them.

    Attributes:
        kp: Proportional gains, shape (6,): position, orientation.
        kd: Derivative gains, shape (6,).
        output_scale: Metres and radians per unit of action, shape (6,).
        lowest_torque: Lowest torques in N m, shape (7,).
        highest_torque: Highest torques in N m, shape (7,).
        nullspace_posture: Joint angles that the null space pulls to, in rad, shape (7,).
    """

    kp: Array
    kd: Array
    output_scale: Array
    lowest_torque: Array
    highest_torque: Array
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
        # Views: they show what MuJoCo has last computed, and fetching them anew in every substep costs more than the
        # arithmetic on them.
        self._qpos, self._qvel, self._bias = data.qpos, data.qvel, data.qfrc_bias
        self._inertia, self._ctrl = data.qM, data.ctrl
        self._grip_pos: Array = data.site_xpos[arm.grip_site]
        self._grip_ori: Array = data.site_xmat[arm.grip_site].reshape(3, 3)
        ctrl_range = model.actuator_ctrlrange[arm.gripper_actuators]
        self._finger_bias = 0.5 * (ctrl_range[:, 1] + ctrl_range[:, 0])
        self._finger_weight = 0.5 * (ctrl_range[:, 1] - ctrl_range[:, 0])
        self._goal_pos: Array = np.zeros(3)
        self._goal_ori: Array = np.eye(3)
        self._finger_command: Array = np.zeros(2)

    @property
    def state(self) -> Array:
        """Goal position (3), goal orientation matrix (9) and finger command (2), shape (14,)."""
        return np.concatenate([self._goal_pos, self._goal_ori.ravel(), self._finger_command])

    def reset(self) -> None:
        """Forget everything: the goal becomes the present pose, the finger command zero. Needs current kinematics."""
        self._goal_pos = np.array(self._grip_pos)
        self._goal_ori = np.array(self._grip_ori)
        self._finger_command = np.zeros(2)

    def execute(self, action: Array, substeps: int) -> None:
        """Execute one control step. Needs positions up to date, and leaves them so.

        Args:
            action: Shape (7,), in [-1, 1]: translation and axis-angle rotation relative to the present pose, and the
                gripper, whose sign opens (-1) or closes (+1) the fingers.
            substeps: Physics substeps of a control step.
        """
        self._set_goal(action[:6])
        arm, gains = self._arm, self._gains
        _execute(
            self._model._address,  # noqa: SLF001  # the bindings' way to the C structure
            self._data._address,  # noqa: SLF001
            substeps,
            float(action[6]),
            arm.grip_site,
            self._jac_pos,
            self._jac_rot,
            self._mass,
            self._inertia,
            self._qpos,
            self._qvel,
            self._bias,
            arm.qpos,
            arm.qvel,
            self._grip_pos,
            self._grip_ori,
            self._goal_pos,
            self._goal_ori,
            gains.kp,
            gains.kd,
            gains.nullspace_posture,
            gains.lowest_torque,
            gains.highest_torque,
            arm.arm_actuators,
            self._ctrl,
            self._finger_command,
            self._finger_bias,
            self._finger_weight,
            arm.gripper_actuators,
        )

    def _set_goal(self, action: Array) -> None:
        """Set the goal pose from the first six components of an action."""
        delta = action * self._gains.output_scale
        # As in robosuite: a zero rotation keeps the previous orientation goal, a zero translation does not.
        if np.any(np.abs(delta[3:]) > 0.0):
            self._goal_ori = set_goal_orientation(delta[3:], np.array(self._grip_ori))
        self._goal_pos = self._grip_pos + delta[:3]


@numba.njit(cache=True)
def _execute(
    model: int,
    data: int,
    substeps: int,
    gripper_action: float,
    grip_site: int,
    site_jac_pos: Array,
    site_jac_rot: Array,
    full_mass: Array,
    inertia: Array,
    qpos: Array,
    qvel: Array,
    bias: Array,
    qpos_of_arm: Indices,
    qvel_of_arm: Indices,
    grip_pos: Array,
    grip_ori: Array,
    goal_pos: Array,
    goal_ori: Array,
    kp: Array,
    kd: Array,
    posture: Array,
    lowest: Array,
    highest: Array,
    arm_actuators: Indices,
    ctrl: Array,
    finger_command: Array,
    finger_bias: Array,
    finger_weight: Array,
    finger_actuators: Indices,
) -> None:
    """The substeps of one control step; ``model`` and ``data`` are addresses, all arrays are MuJoCo's or scratch."""
    for substep in range(substeps):
        # LIBERO's own substep is two forward passes and a step. The second pass only refines the constraint solution
        # that warm-starts the step, and of the step only what depends on the commands is left to do: the same bits for
        # half the work. What depends on positions alone is up to date before the first substep.
        if substep == 0:
            mj_forwardSkip(model, data, STAGE_POS, 1)
        else:
            mj_forward(model, data)
        mj_fwdConstraint(model, data)
        mj_jacSite(model, data, site_jac_pos.ctypes.data, site_jac_rot.ctypes.data, grip_site)
        mj_fullM(model, full_mass.ctypes.data, inertia.ctypes.data)
        _command_arm(
            site_jac_pos,
            site_jac_rot,
            full_mass,
            qpos,
            qvel,
            bias,
            qpos_of_arm,
            qvel_of_arm,
            grip_pos,
            grip_ori,
            goal_pos,
            goal_ori,
            kp,
            kd,
            posture,
            lowest,
            highest,
            arm_actuators,
            ctrl,
        )
        _command_fingers(gripper_action, finger_command, finger_bias, finger_weight, finger_actuators, ctrl)
        mj_step2(model, data)
    # Positions have moved on since the last forward pass; readers must see the state as it is now.
    mj_fwdPosition(model, data)


@numba.njit(cache=True)
def _command_fingers(
    action: float, command: Array, bias: Array, weight: Array, actuators: Indices, ctrl: Array
) -> None:
    """Move the fingers' accumulated command, in place, one substep towards open or closed; write it to ``ctrl``."""
    for finger, towards in enumerate((-GRIPPER_SPEED, GRIPPER_SPEED)):
        command[finger] = min(max(command[finger] + towards * np.sign(action), -1.0), 1.0)
        ctrl[actuators[finger]] = bias[finger] + weight[finger] * command[finger]


@numba.njit(cache=True)
def _command_arm(
    site_jac_pos: Array,
    site_jac_rot: Array,
    full_mass: Array,
    qpos: Array,
    qvel: Array,
    bias: Array,
    qpos_of_arm: Indices,
    qvel_of_arm: Indices,
    grip_pos: Array,
    grip_ori: Array,
    goal_pos: Array,
    goal_ori: Array,
    kp: Array,
    kd: Array,
    posture: Array,
    lowest: Array,
    highest: Array,
    actuators: Indices,
    ctrl: Array,
) -> None:
    """Torques of one substep, written to ``ctrl``.

    tau = J^T [Lambda_pos F; Lambda_rot M] + bias + N^T tau_posture, with F = kp (x_goal - x) - kd v and M likewise.
    Arrays named ``jac`` and ``mass`` are column-major because robosuite's are.
    """
    joints = len(qvel_of_arm)
    jac_pos, jac_rot = np.empty((joints, 3)).T, np.empty((joints, 3)).T
    jac, mass = np.empty((joints, 6)).T, np.empty((joints, joints)).T
    joint_pos, joint_vel = np.empty(joints), np.empty(joints)
    for k in range(joints):
        joint_pos[k], joint_vel[k] = qpos[qpos_of_arm[k]], qvel[qvel_of_arm[k]]
        for i in range(3):
            jac_pos[i, k] = jac[i, k] = site_jac_pos[i, qvel_of_arm[k]]
            jac_rot[i, k] = jac[3 + i, k] = site_jac_rot[i, qvel_of_arm[k]]
        for i in range(joints):
            mass[i, k] = full_mass[qvel_of_arm[i], qvel_of_arm[k]]

    force = (goal_pos - grip_pos) * kp[:3] + (-np.dot(site_jac_pos, qvel)) * kd[:3]
    moment = orientation_error(goal_ori, grip_ori) * kp[3:] + (-np.dot(site_jac_rot, qvel)) * kd[3:]
    _, lambda_pos, lambda_rot, nullspace = opspace_matrices(mass, jac, jac_pos, jac_rot)
    wrench = np.empty(6)
    wrench[:3] = np.dot(lambda_pos, force)
    wrench[3:] = np.dot(lambda_rot, moment)
    wanted = np.dot(jac.T, wrench)
    for k in range(joints):
        wanted[k] += bias[qvel_of_arm[k]]
    wanted += nullspace_torques(mass, nullspace, posture, joint_pos, joint_vel)
    for k in range(joints):
        ctrl[actuators[k]] = min(max(wanted[k], lowest[k]), highest[k])
