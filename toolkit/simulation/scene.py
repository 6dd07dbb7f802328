"""One base task's scene: built once, reset completely, stepped exactly.

LIBERO's own reset either rebuilds the model, which re-draws where the fixtures stand, or restores joint positions only,
which lets the solver's warm start, the controller's goal and the clock leak from one episode into the next (both are
shown in ``tests/toolkit/simulation/test_scene.py``). A ``Scene`` pins the fixtures and resets everything that the next
state depends on, so that one action sequence from one initial state gives the same bits, whatever ran before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import mujoco
import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..libero.base_tasks import check_init_states, initial_states, task_constraints
from ..records import CONTROL_HZ, SETTLE_STEPS, BaseTask
from ..safety import Constraints, print_constraints
from .libero_environment import arm_indices, build_environment, controller_gains, nominal_hand
from .stepping.contact_check import ContactCheck
from .stepping.controller import PoseController
from .stepping.movers import MASS_FACTOR, Movers

NO_OP = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
"""Stay where you are, gripper open: what a scene settles under."""

SCENE_SEED = 0
"""Seed under which LIBERO draws the fixture poses when a scene is built; released cases were proven under it."""

STATE_SPEC = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneState:
    """The complete state of a scene: from it, equal actions give equal states.

    Attributes:
        physics: MuJoCo's full physics state (time, positions, velocities, activations), shape (n,).
        warmstart: The solver's warm start, shape (nv,).
        controller: The controller's state, shape (14,).
    """

    physics: FloatArray
    warmstart: FloatArray
    controller: FloatArray

    def sha256(self) -> str:
        """Hash of every bit of the state."""
        digest = hashlib.sha256()
        for part in (self.physics, self.warmstart, self.controller):
            digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
        return digest.hexdigest()


class SubstepWatch(Protocol):
    """Looks at every physics substep of a scene, as long as it is the scene's ``substep_watch``."""

    def begin_step(self) -> None:
        """A control step begins."""

    def end_substep(self) -> None:
        """A substep's forces are known, and its contacts are still those that they act at."""


class Scene:
    """A base task in the simulator, without rendering.

    Args:
        task: The base task.
        seed: Seed of the fixture placement; keep the default to compare with released cases.

    Attributes:
        task: The base task.
        model: MuJoCo's ``MjModel``; treat it as read-only.
        data: MuJoCo's ``MjData`` of the present state; treat it as read-only.
        hand: Number of the body whose orientation observations give.
        libero: LIBERO's environment object, for its names, regions and predicates. Never step or reset it.
        constraints: What the task's file says of costs and of objects that move by themselves.
        substep_watch: Looks at every substep as long as it is set; a reset ends it.
        scene_sha256: Hash of the model's XML (without paths), of the fixture poses, and of what moves by itself.
    """

    def __init__(self, task: BaseTask, *, seed: int = SCENE_SEED) -> None:
        self.task = task
        self.libero = build_environment(task, seed)
        self.model: Any = self.libero.sim.model._model  # noqa: SLF001  # robosuite offers no other way to MjModel
        self.data: Any = self.libero.sim.data._data  # noqa: SLF001
        # Nothing here reads MuJoCo's force sensors, and they cost a tenth of a step.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
        # Nor which bounding volumes were looked at: a byte for each triangle of each mesh, cleared in every substep.
        self.model.vis.global_.bvactive = 0
        self.libero.check_contact = ContactCheck(self.model, self.data)
        self.arm = arm_indices(self.libero)
        self.hand = int(self.model.body(self.libero.robots[0].robot_model.eef_name).id)
        self._controller = PoseController(self.model, self.data, self.arm, controller_gains(self.libero))
        self._nominal_hand = nominal_hand(self.libero, self.arm)
        self._physics_size = mujoco.mj_stateSize(self.model, STATE_SPEC)
        self._substeps = round(1.0 / CONTROL_HZ / self.model.opt.timestep)
        self._model_at_reset = tuple(np.array(part) for part in _mutable_model(self.model))
        self.constraints = task_constraints(task)
        moving = self.constraints.moving
        self._movers = Movers(moving, self.libero, self.model, self.data) if moving else None
        self.substep_watch: SubstepWatch | None = None
        self.scene_sha256 = _scene_sha256(self.libero, self.model, Constraints(moving=moving))

    @property
    def initial_state_count(self) -> int:
        """How many initial states LIBERO records for the task (50)."""
        return len(initial_states(self.task))

    @property
    def solves_constraints(self) -> bool:
        """Whether constraints are solved by ``newton``; otherwise by MuJoCo itself, which takes up to twice as long."""
        return self._controller.solves_constraints

    def reset(self, init_state: int, *, settle_steps: int = SETTLE_STEPS) -> None:
        """Put the scene into one of its initial states, completely, and let it settle under no-ops.

        The controller begins as after LIBERO's ``reset``, which every evaluation on LIBERO calls before
        ``set_init_state``: its orientation goal is the hand's at the robot's nominal posture. A no-op leaves that goal
        alone, so the no-ops turn the hand upright, and there a policy begins, as the demonstrations do.

        Args:
            init_state: LIBERO's number of the initial state, from 0.
            settle_steps: No-op control steps after the reset.

        Raises:
            InvalidInputError: There is no such initial state.
        """
        check_init_states(self.task, [init_state])
        self.substep_watch = None
        mujoco.mj_resetData(self.model, self.data)  # zeroes the warm start, the clock and all commands
        for array, value in zip(_mutable_model(self.model), self._model_at_reset, strict=True):
            array[:] = value
        state = initial_states(self.task)[init_state]
        self.data.time = 0.0
        self.data.qpos[:] = state[1 : 1 + self.model.nq]
        self.data.qvel[:] = state[1 + self.model.nq : 1 + self.model.nq + self.model.nv]
        if self._movers is not None:
            self._movers.reset()
        mujoco.mj_forward(self.model, self.data)
        self.data.qacc_warmstart[:] = 0.0
        self._controller.reset(*self._nominal_hand)
        for _ in range(settle_steps):
            self.step(NO_OP)

    def step(self, action: npt.ArrayLike) -> None:
        """Execute one control step (25 physics substeps of 2 ms).

        Args:
            action: Shape (7,): translation, axis-angle rotation, gripper (-1 opens, +1 closes); clipped to [-1, 1].
        """
        clipped = np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0)
        watch, movers = self.substep_watch, self._movers
        if watch is None and movers is None:
            self._controller.execute(clipped, self._substeps)
            return
        if watch is not None:
            watch.begin_step()
        self._controller.execute_watched(
            clipped, self._substeps, before=movers.place if movers else None, after=watch.end_substep if watch else None
        )

    @contextmanager
    def movers_paused(self) -> Iterator[None]:
        """A context in which objects that move by themselves lie where they are."""
        movers, self._movers = self._movers, None
        try:
            yield
        finally:
            self._movers = movers

    def hold_pose(self) -> None:
        """Let the controller hold the present pose; after ``reset`` it goes for that of the robot's nominal posture."""
        self._controller.hold()

    def succeeded(self) -> bool:
        """Whether the base task's goal holds now, by LIBERO's own predicates."""
        return bool(self.libero._check_success())  # noqa: SLF001  # LIBERO's only way to ask

    def holds(self, predicate: tuple[str, ...]) -> bool:
        """Whether one of LIBERO's predicates holds now, such as ``("on", "akita_black_bowl_1", "plate_1")``."""
        return bool(self.libero._eval_predicate(list(predicate)))  # noqa: SLF001

    def state(self) -> SceneState:
        """The complete state now."""
        return SceneState(
            physics=self.physics(), warmstart=np.array(self.data.qacc_warmstart), controller=self._controller.state
        )

    def physics(self) -> FloatArray:
        """MuJoCo's full physics state now (time, positions, velocities, activations), shape (n,)."""
        physics = np.empty(self._physics_size)
        mujoco.mj_getState(self.model, self.data, physics, STATE_SPEC)
        return physics

    def show(self, physics: FloatArray) -> None:
        """Put the scene into a recorded physics state to look at it. Not for stepping on: only ``reset`` is complete.

        Args:
            physics: As in ``SceneState.physics``.
        """
        show_physics(self.model, self.data, physics)

    def correct(self, physics: FloatArray) -> None:
        """Go on from a recorded physics state that differs from the present one by rounding alone.

        Warm start and controller stay as they are: they follow from the steps before.

        Args:
            physics: As in ``SceneState.physics``.
        """
        mujoco.mj_setState(self.model, self.data, np.array(physics), STATE_SPEC)
        mujoco.mj_fwdPosition(self.model, self.data)

    def grip_pos(self) -> FloatArray:
        """Position of the site between the fingertips in the world, in m, shape (3,)."""
        return np.array(self.data.site_xpos[self.arm.grip_site])

    def grip_quat_wxyz(self) -> FloatArray:
        """Orientation of the hand, as observations report it: a unit quaternion, shape (4,)."""
        return np.array(self.data.xquat[self.hand])

    def joint_pos_rad(self) -> FloatArray:
        """Arm joint angles, shape (7,)."""
        return np.array(self.data.qpos[self.arm.qpos])

    def gripper_pos_m(self) -> FloatArray:
        """Finger joint positions, shape (2,); about (0.04, -0.04) is open."""
        return np.array(self.data.qpos[self.arm.gripper_qpos])


def show_physics(model: Any, data: Any, physics: FloatArray) -> None:
    """Put MuJoCo's data into a recorded physics state, with all that follows from it, to look at it.

    Args:
        model: MuJoCo's model.
        data: MuJoCo's data.
        physics: As in ``SceneState.physics``.
    """
    mujoco.mj_setState(model, data, np.array(physics), STATE_SPEC)
    mujoco.mj_forward(model, data)


def _mutable_model(model: Any) -> tuple[Any, ...]:
    """Parts of the model that LIBERO writes to while it runs: visibility of the stove's flame, fixture poses."""
    return model.site_rgba, model.body_pos, model.body_quat


def _scene_sha256(env: Any, model: Any, moving: Constraints) -> str:
    """Hash of what the physics depends on; asset paths are cut to their file names, which no machine changes."""
    xml = re.sub(r'file="[^"]*[/\\]([^"/\\]+)"', r'file="\1"', env.model.get_xml())
    digest = hashlib.sha256(xml.encode())
    for name in sorted(env.fixtures_dict):
        if name in env.obj_body_id:
            body = env.obj_body_id[name]
            pose = np.concatenate([model.body_pos[body], model.body_quat[body]])
            digest.update(name.encode() + np.ascontiguousarray(pose, dtype="<f8").tobytes())
    if moving.moving:
        digest.update(f"{print_constraints(moving)}{MASS_FACTOR}".encode())
    return digest.hexdigest()
