"""Objects that move by themselves: put where their motion says before every physics substep.

They are driven through their joints, so a recorded state holds them like all other objects; contacts act on what they
meet, and never on them. Their clock is the simulator's own, so a reset needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from ...records import CONTROL_HZ, SETTLE_STEPS
from ...safety.motions import BodyPose, MovingObject

MASS_FACTOR = 1000.0
"""How much heavier a driven object is than LIBERO's: what it runs into must give way."""


class Movers:
    """The moving objects of a scene.

    Args:
        moving: Which objects move, and how.
        libero: LIBERO's environment object.
        model: MuJoCo's model; the driven bodies become heavy in it.
        data: MuJoCo's data.
    """

    def __init__(self, moving: Sequence[MovingObject], libero: Any, model: Any, data: Any) -> None:
        self._moving, self._data = tuple(moving), data
        joints = [model.joint(libero.objects_dict[mover.name].joints[-1]) for mover in moving]
        self._qpos = [int(joint.qposadr[0]) for joint in joints]
        self._qvel = [int(joint.dofadr[0]) for joint in joints]
        self._timestep_s = float(model.opt.timestep)
        self._substeps = round(1.0 / CONTROL_HZ / self._timestep_s)
        self._start: list[BodyPose] = []
        for mover, dof in zip(moving, self._qvel, strict=True):
            body = libero.obj_body_id[mover.name]
            model.body_mass[body] *= MASS_FACTOR
            model.body_inertia[body] *= MASS_FACTOR
            model.body_subtreemass[body] *= MASS_FACTOR
            model.body_invweight0[body] /= MASS_FACTOR
            model.dof_invweight0[dof : dof + 6] /= MASS_FACTOR

    def reset(self) -> None:
        """Note where the objects stand at the start of an episode."""
        qpos = self._data.qpos
        self._start = [
            BodyPose(position_m=np.array(qpos[at : at + 3]), quat_wxyz=np.array(qpos[at + 3 : at + 7]))
            for at in self._qpos
        ]

    def place(self, _substep: int = 0) -> None:
        """Put the objects where they are at the simulator's present time, with the velocity that they have there."""
        substep = round(self._data.time / self._timestep_s)
        for mover, start, at, dof in zip(self._moving, self._start, self._qpos, self._qvel, strict=True):
            here, there = (mover.motion.pose(self._step(substep + more), start) for more in (0, 1))
            self._data.qpos[at : at + 3] = here.position_m
            self._data.qpos[at + 3 : at + 7] = here.quat_wxyz
            self._data.qvel[dof : dof + 3] = (there.position_m - here.position_m) / self._timestep_s
            turn = np.zeros(3)
            mujoco.mju_subQuat(turn, there.quat_wxyz, here.quat_wxyz)
            self._data.qvel[dof + 3 : dof + 6] = turn / self._timestep_s

    def _step(self, substep: int) -> float:
        """Control steps since the scene had settled, 0 before."""
        return max(0.0, substep / self._substeps - SETTLE_STEPS)
