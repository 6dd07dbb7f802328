"""Operational-space control of the arm: a control step is many physics substeps, each under its own torques.

The control law is robosuite 1.4.0's ``OSC_POSE`` with fixed impedance (after Khatib 1987,
https://doi.org/10.1109/JRA.1987.1087068), and its results are robosuite's to the last bit: the same compiled routines
are called on arrays of the same memory layout, since a product of matrices rounds differently in another layout. What
is ours is that a whole control step, MuJoCo's part included, is one compiled call, and that every piece of the
controller's state is explicit, so that a reset can be complete. In the stock environment the goal, the stale pose of
the last update and the gripper's accumulated command survive from one episode into the next.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from robosuite.utils.control_utils import nullspace_torques, opspace_matrices, orientation_error

from ...arrays import FloatArray, IndexArray
from ...source_hash import sources_sha256
from .compiling import cached, kernel
from .mujoco_library import (
    mj_checkAcc,
    mj_Euler,
    mj_fullM,
    mj_fwdAcceleration,
    mj_fwdActuation,
    mj_fwdPosition,
    mj_fwdVelocity,
    mj_jacSite,
)
from .newton.problem import ConstraintProblem, read_substep
from .newton.solver import smooth_cost, solve

FOLDER = Path(__file__).parent
"""All that the functions here are compiled from."""

GRIPPER_SPEED = 0.01
"""How far the gripper's normalised command moves per physics substep."""


class ArmIndices(NamedTuple):
    """Where the arm and gripper live in the MuJoCo model.

    A named tuple, like the other records here, because compiled code can take it apart.

    Attributes:
        qpos: Addresses of the seven arm joints in ``qpos``.
        qvel: Addresses of the seven arm joints in ``qvel``.
        gripper_qpos: Addresses of the two finger joints in ``qpos``.
        arm_actuators: Torque actuators of the arm.
        gripper_actuators: Position actuators of the fingers.
        grip_site: The site between the fingertips that the controller moves.
    """

    qpos: IndexArray
    qvel: IndexArray
    gripper_qpos: IndexArray
    arm_actuators: IndexArray
    gripper_actuators: IndexArray
    grip_site: int


class ControllerGains(NamedTuple):
    """Constants of the controller, as robosuite's ``OSC_POSE`` configuration sets them.

    Attributes:
        kp: Proportional gains, shape (6,): position, orientation.
        kd: Derivative gains, shape (6,).
        output_scale: Metres and radians per unit of action, shape (6,).
        lowest_torque: Lowest torques in N m, shape (7,).
        highest_torque: Highest torques in N m, shape (7,).
        nullspace_posture: Joint angles that the null space pulls to, in rad, shape (7,).
    """

    kp: FloatArray
    kd: FloatArray
    output_scale: FloatArray
    lowest_torque: FloatArray
    highest_torque: FloatArray
    nullspace_posture: FloatArray


class Buffers(NamedTuple):
    """Views of what MuJoCo has last computed, scratch for its results, and the controller's own state.

    Fetching the views anew in every substep would cost more than the arithmetic on them.

    Attributes:
        qpos: Joint positions, shape (nq,).
        qvel: Joint velocities, shape (nv,).
        bias: Bias forces, shape (nv,).
        inertia: The joint-space inertia as MuJoCo stores it, shape (nM,).
        ctrl: Actuator commands, shape (nu,).
        grip_pos: Position of the site that the controller moves, shape (3,).
        grip_ori: Its orientation matrix, shape (3, 3).
        jac_pos: Scratch for the site's translational Jacobian, shape (3, nv).
        jac_rot: Scratch for its rotational one, shape (3, nv).
        mass: Scratch for the inertia in full, shape (nv, nv).
        goal_pos: Goal position, shape (3,).
        goal_ori: Goal orientation matrix, shape (3, 3).
        finger_command: The fingers' accumulated commands in [-1, 1], shape (2,).
        finger_bias: Finger positions at command 0, shape (2,).
        finger_weight: Their change by a command of 1, shape (2,).
    """

    qpos: FloatArray
    qvel: FloatArray
    bias: FloatArray
    inertia: FloatArray
    ctrl: FloatArray
    grip_pos: FloatArray
    grip_ori: FloatArray
    jac_pos: FloatArray
    jac_rot: FloatArray
    mass: FloatArray
    goal_pos: FloatArray
    goal_ori: FloatArray
    finger_command: FloatArray
    finger_bias: FloatArray
    finger_weight: FloatArray


@numba.njit(inline="always")
def _substep(
    model: int,
    data: int,
    gripper_action: float,
    own: Buffers,
    arm: ArmIndices,
    gains: ControllerGains,
    problem: ConstraintProblem,
) -> None:
    """One physics substep; what depends on positions alone must be up to date."""
    # LIBERO's own substep is two forward passes and a step. The second pass only refines the constraint solution that
    # warm-starts the step, and of the step only what depends on the commands is left to do: the same bits for half the
    # work. The three solutions share one call because each call of so much code takes seconds to compile.
    mj_fwdVelocity(model, data)
    mj_fwdActuation(model, data)
    mj_fwdAcceleration(model, data)
    mj_jacSite(model, data, own.jac_pos.ctypes.data, own.jac_rot.ctypes.data, arm.grip_site)
    mj_fullM(model, own.mass.ctypes.data, own.inertia.ctypes.data)
    constraints, smooth = read_substep(data, problem), 0.0
    for solution in range(3):
        if solution == 2:
            _command_arm(own, arm, gains)
            _command_fingers(gripper_action, own, arm)
            mj_fwdActuation(model, data)
            mj_fwdAcceleration(model, data)
        if solution != 1:
            smooth = smooth_cost(constraints)
        solve(model, data, constraints, smooth)
    mj_checkAcc(model, data)
    mj_Euler(model, data)


@kernel
def _command_fingers(action: float, own: Buffers, arm: ArmIndices) -> None:
    """Move the fingers' accumulated command, in place, one substep towards open or closed, and command it."""
    command = own.finger_command
    for finger, towards in enumerate((-GRIPPER_SPEED, GRIPPER_SPEED)):
        command[finger] = min(max(command[finger] + towards * np.sign(action), -1.0), 1.0)
        own.ctrl[arm.gripper_actuators[finger]] = own.finger_bias[finger] + own.finger_weight[finger] * command[finger]


@numba.njit(inline="always")
def _command_arm(own: Buffers, arm: ArmIndices, gains: ControllerGains) -> None:
    """Torques of one substep, written to ``ctrl``.

    tau = J^T [Lambda_pos F; Lambda_rot M] + bias + N^T tau_posture, with F = kp (x_goal - x) - kd v, and M the
    same of the rotation. Arrays named ``jac`` and ``mass`` are column-major because robosuite's are.
    """
    joints = len(arm.qvel)
    jac_pos, jac_rot = np.empty((joints, 3)).T, np.empty((joints, 3)).T
    jac, mass = np.empty((joints, 6)).T, np.empty((joints, joints)).T
    joint_pos, joint_vel = np.empty(joints), np.empty(joints)
    _read_arm(own, arm, jac_pos, jac_rot, jac, mass, joint_pos, joint_vel)
    force, moment = np.empty(3), np.empty(3)
    velocity, spin = np.dot(own.jac_pos, own.qvel), np.dot(own.jac_rot, own.qvel)
    _feed_back(own, gains, orientation_error(own.goal_ori, own.grip_ori), velocity, spin, force, moment)
    _, lambda_pos, lambda_rot, nullspace = opspace_matrices(mass, jac, jac_pos, jac_rot)
    push, twist, wrench = np.dot(lambda_pos, force), np.dot(lambda_rot, moment), np.empty(6)
    for i in range(3):
        wrench[i], wrench[3 + i] = push[i], twist[i]
    posture = nullspace_torques(mass, nullspace, gains.nullspace_posture, joint_pos, joint_vel)
    _write_arm(own, arm, gains, np.dot(jac.T, wrench), posture)


@kernel
def _read_arm(
    own: Buffers,
    arm: ArmIndices,
    jac_pos: FloatArray,
    jac_rot: FloatArray,
    jac: FloatArray,
    mass: FloatArray,
    joint_pos: FloatArray,
    joint_vel: FloatArray,
) -> None:
    """Pick the arm's part of what MuJoCo has computed."""
    for k in range(len(arm.qvel)):
        joint_pos[k], joint_vel[k] = own.qpos[arm.qpos[k]], own.qvel[arm.qvel[k]]
        for i in range(3):
            jac_pos[i, k] = jac[i, k] = own.jac_pos[i, arm.qvel[k]]
            jac_rot[i, k] = jac[3 + i, k] = own.jac_rot[i, arm.qvel[k]]
        for i in range(len(arm.qvel)):
            mass[i, k] = own.mass[arm.qvel[i], arm.qvel[k]]


@kernel
def _feed_back(
    own: Buffers,
    gains: ControllerGains,
    turn: FloatArray,
    velocity: FloatArray,
    spin: FloatArray,
    force: FloatArray,
    moment: FloatArray,
) -> None:
    """Write the force and moment that the pose's error, whose rotation is ``turn``, and its velocity ask for."""
    for i in range(3):
        force[i] = (own.goal_pos[i] - own.grip_pos[i]) * gains.kp[i] + -velocity[i] * gains.kd[i]
        moment[i] = turn[i] * gains.kp[3 + i] + -spin[i] * gains.kd[3 + i]


@kernel
def _write_arm(own: Buffers, arm: ArmIndices, gains: ControllerGains, torques: FloatArray, posture: FloatArray) -> None:
    """Command torques within their limits, having added what holds the arm against gravity and in its posture."""
    for k in range(len(torques)):
        torque = torques[k] + own.bias[arm.qvel[k]] + posture[k]
        own.ctrl[arm.arm_actuators[k]] = min(max(torque, gains.lowest_torque[k]), gains.highest_torque[k])


@cached(sources=sources_sha256(FOLDER.parent, FOLDER.name))
def execute_substeps(
    model: int,
    data: int,
    count: int,
    current: bool,  # noqa: FBT001  # compiled code takes no keywords
    gripper_action: float,
    own: Buffers,
    arm: ArmIndices,
    gains: ControllerGains,
    problem: ConstraintProblem,
) -> None:
    """Execute physics substeps under one goal: the one function here that Python calls.

    Args:
        model: Address of MuJoCo's model.
        data: Address of MuJoCo's data.
        count: How many substeps.
        current: Whether what depends on positions alone is up to date.
        gripper_action: Opens (-1) or closes (+1) the fingers.
        own: The controller's memory.
        arm: Indices of arm and gripper.
        gains: Constants of the control law.
        problem: The constraint problem.
    """
    for substep in range(count):
        if substep > 0 or not current:
            mj_fwdPosition(model, data)
        _substep(model, data, gripper_action, own, arm, gains, problem)
