"""The arm's controller: turns actions into goals, and executes control steps of many physics substeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from robosuite.utils.control_utils import set_goal_orientation

from ...arrays import FloatArray
from .control_law import ArmIndices, Buffers, ControllerGains, execute_substeps
from .newton.problem import constraint_problem


class PoseController:
    """Turns a 7-D action into actuator commands; its whole state is the goal pose and the gripper's command.

    Args:
        model: The MuJoCo model.
        data: The MuJoCo data that the controller reads, commands and steps.
        arm: IndexArray of arm and gripper.
        gains: Constants of the control law.
    """

    def __init__(self, model: Any, data: Any, arm: ArmIndices, gains: ControllerGains) -> None:
        self._model, self._data, self._arm, self._gains = model, data, arm, gains
        low, high = model.actuator_ctrlrange[arm.gripper_actuators].T
        self._buffers = Buffers(
            qpos=data.qpos,
            qvel=data.qvel,
            bias=data.qfrc_bias,
            inertia=data.qM,
            ctrl=data.ctrl,
            grip_pos=data.site_xpos[arm.grip_site],
            grip_ori=data.site_xmat[arm.grip_site].reshape(3, 3),
            jac_pos=np.zeros((3, model.nv)),
            jac_rot=np.zeros((3, model.nv)),
            mass=np.zeros((model.nv, model.nv)),
            goal_pos=np.zeros(3),
            goal_ori=np.eye(3),
            finger_command=np.zeros(2),
            finger_bias=0.5 * (high + low),
            finger_weight=0.5 * (high - low),
        )

        self._problem = constraint_problem(model, data, self._buffers.mass)
        self._believes_reset_pose = False

    @property
    def solves_constraints(self) -> bool:
        """Whether constraints are solved by ``newton``; otherwise by MuJoCo itself. The bits are the same."""
        return self._problem.supported

    @property
    def state(self) -> FloatArray:
        """Goal position (3), goal orientation matrix (9) and finger command (2), shape (14,)."""
        own = self._buffers
        return np.concatenate([own.goal_pos, own.goal_ori.ravel(), own.finger_command])

    def reset(self, position: FloatArray, orientation: FloatArray) -> None:
        """Forget everything, and begin as robosuite's controller does after LIBERO's reset.

        It then believes the hand to be where LIBERO's reset left it, whatever state the simulator was put into since:
        its goals are that pose, the first action is relative to it, and the first substep sees no error to act upon.

        Args:
            position: Where the reset left the hand, in m, shape (3,).
            orientation: Its orientation matrix there, shape (3, 3).
        """
        own = self._buffers
        own.goal_pos[:], own.goal_ori[:], own.finger_command[:] = position, orientation, 0.0
        self._believes_reset_pose = True

    def hold(self) -> None:
        """Forget everything: the goal becomes the present pose, the finger command zero. Needs current kinematics."""
        own = self._buffers
        own.goal_pos[:], own.goal_ori[:], own.finger_command[:] = own.grip_pos, own.grip_ori, 0.0
        self._believes_reset_pose = False

    def execute(self, action: FloatArray, substeps: int) -> None:
        """Execute one control step. Needs positions up to date, and leaves them so.

        Args:
            action: Shape (7,), in [-1, 1]: translation and axis-angle rotation relative to the present pose, and the
                gripper, whose sign opens (-1) or closes (+1) the fingers.
            substeps: Physics substeps of a control step.
        """
        self._set_goal(action[:6])
        self._step(substeps, float(action[6]), current=True)
        # Positions have moved on since the last forward pass; readers must see the state as it is now.
        mujoco.mj_fwdPosition(self._model, self._data)

    def execute_watched(
        self,
        action: FloatArray,
        substeps: int,
        *,
        before: Callable[[int], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Execute one control step with a call at every substep; the same bits, only slower.

        Args:
            action: As for ``execute``.
            substeps: As for ``execute``.
            before: Called with the number of the substep, from 0, to move what moves by itself, and once more with
                ``substeps`` in the end; positions may have changed then.
            after: Called when a substep's forces are known and its contacts are still those that they act at.
        """
        self._set_goal(action[:6])
        for substep in range(substeps):
            if before is not None:
                before(substep)
            self._step(1, float(action[6]), current=substep == 0 and before is None)
            if after is not None:
                after()
        if before is not None:
            before(substeps)
        mujoco.mj_fwdPosition(self._model, self._data)

    def _step(self, substeps: int, gripper_action: float, *, current: bool) -> None:
        """Execute physics substeps; ``current`` says whether what depends on positions alone is up to date."""
        if self._believes_reset_pose:
            self._believes_reset_pose = False
            self._execute(1, gripper_action, self._gains_without_error(), current=current)
            substeps, current = substeps - 1, False
        self._execute(substeps, gripper_action, self._gains, current=current)

    def _execute(self, substeps: int, gripper_action: float, gains: ControllerGains, *, current: bool) -> None:
        # The bindings' own way to the C structures.
        model, data = self._model._address, self._data._address  # noqa: SLF001
        execute_substeps(model, data, substeps, current, gripper_action, self._buffers, self._arm, gains, self._problem)

    def _gains_without_error(self) -> ControllerGains:
        """Gains under which nothing but gravity is compensated."""
        none = np.zeros(6)
        here = np.array(self._buffers.qpos[self._arm.qpos])
        return self._gains._replace(kp=none, kd=none, nullspace_posture=here)

    def _set_goal(self, action: FloatArray) -> None:
        """Set the goal pose from the first six components of an action."""
        own, delta = self._buffers, action * self._gains.output_scale
        believed = self._believes_reset_pose
        position, orientation = (own.goal_pos, own.goal_ori) if believed else (own.grip_pos, own.grip_ori)
        # As in robosuite: a zero rotation keeps the previous orientation goal, a zero translation does not.
        if np.any(np.abs(delta[3:]) > 0.0):
            own.goal_ori[:] = set_goal_orientation(delta[3:], np.array(orientation))
        own.goal_pos[:] = position + delta[:3]
