"""What is recorded of a rollout while it runs: a frame before each action, and the state after the last.

While the rollout runs, the simulator's own arrays are copied and nothing more; the frame features are made of them at
the end, all frames at once, which costs a fraction of making them step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...builders.rollouts.schema import ENTITY_SLOTS, FIXTURE_SLOTS, FRAME_FEATURES, OBJECT_SLOTS, TARGET_SLOTS
from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from ...toolkit.errors import InvalidInputError
from ...toolkit.simulation.observing.scene_entities import GeomPairs, ObservedStates, SceneEntities
from ...toolkit.simulation.observing.targets import target_positions
from ...toolkit.simulation.scene import Scene
from ..policies.observing import axis_angle


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A finished rollout's frames.

    Attributes:
        frames: For each name in ``FRAME_FEATURES`` an array of shape (H, width), float32.
        final: For each feature but ``action`` the same after the last action, shape (width,).
        sim_states: MuJoCo's full physics state before each action and after the last, shape (H + 1, n).
    """

    frames: dict[str, Float32Array]
    final: dict[str, Float32Array]
    sim_states: FloatArray


class Recorder:
    """Collects the frames of one rollout.

    Args:
        scene: The scene, already reset.
        targets: The instance's targets.

    Attributes:
        entities: The scene's objects and fixtures, in the order of their slots.

    Raises:
        InvalidInputError: The scene has more objects, fixtures or targets than a recording has slots for.
    """

    def __init__(self, scene: Scene, targets: tuple[str, ...]) -> None:
        self.entities = SceneEntities(scene)
        for what, names, slots in (
            ("movable objects", self.entities.objects, OBJECT_SLOTS),
            ("fixtures", self.entities.fixtures, FIXTURE_SLOTS),
            ("targets", targets, TARGET_SLOTS),
        ):
            if len(names) > slots:
                raise InvalidInputError(
                    f"{scene.task.task_id}: {len(names)} {what}, but a recording has slots for {slots}: "
                    f"{', '.join(names)}"
                )
        self._scene, self._data = scene, scene.data
        bodies: dict[str, int] = scene.libero.obj_body_id
        # Positions of bodies are in one array; those of handles and knobs, which are parts of bodies, are computed.
        self._target_bodies = {slot: bodies[name] for slot, name in enumerate(targets) if name in bodies}
        self._target_parts = {slot: name for slot, name in enumerate(targets) if name not in bodies}
        self._xpos, self._xquat = scene.data.xpos, scene.data.xquat
        self._actions: list[Float32Array] = []
        self._states: list[FloatArray] = []
        self._grip_pos: list[FloatArray] = []
        self._body_pos: list[FloatArray] = []
        self._body_quat: list[FloatArray] = []
        self._part_pos: list[FloatArray] = []
        self._contacts: list[GeomPairs] = []

    def append(self, executed: Float32Array) -> None:
        """Record the present state and the action about to be executed, shape (7,)."""
        self._store_state()
        self._actions.append(executed)

    def finish(self) -> Recording:
        """Record the present state as the last, and make the frames."""
        self._store_state()
        made = self._features()
        frames = {name: values[:-1] for name, values in made.items()}
        frames["action"] = np.array(self._actions, np.float32).reshape(-1, FRAME_FEATURES["action"][0])
        return Recording(
            frames=frames,
            final={name: values[-1] for name, values in made.items()},
            sim_states=np.array(self._states),
        )

    def contacts_and_poses(self) -> ObservedStates:
        """What touched, and where each body was, in each state so far."""
        return ObservedStates(
            contacts=self._contacts, body_pos_m=np.array(self._body_pos), body_quat_wxyz=np.array(self._body_quat)
        )

    def _store_state(self) -> None:
        self._states.append(self._scene.physics())
        self._grip_pos.append(self._scene.grip_pos())
        self._body_pos.append(self._xpos.copy())
        self._body_quat.append(self._xquat.copy())
        self._contacts.append(self._data.contact.geom.copy())
        if self._target_parts:
            self._part_pos.append(target_positions(self._scene, [*self._target_parts.values()]))

    def _features(self) -> dict[str, Float32Array]:
        """All features but ``action``, at every state seen, shape (H + 1, width)."""
        scene, bodies = self._scene, self.entities.bodies
        qpos = np.array(self._states)[:, 1 : 1 + scene.model.nq]
        grip_pos, pos, quat = (np.array(seen) for seen in (self._grip_pos, self._body_pos, self._body_quat))
        hand, fingers = quat[:, scene.hand], qpos[:, scene.arm.gripper_qpos]
        made: dict[str, npt.NDArray[np.generic]] = {
            "observation.state": np.concatenate([grip_pos, axis_angle(hand), fingers], axis=1),
            "observation.eef_pos_m": grip_pos,
            "observation.eef_quat_wxyz": hand,
            "observation.joint_pos_rad": qpos[:, scene.arm.qpos],
            "observation.gripper_pos_m": fingers,
            "observation.target_pos_m": self._targets_by_slot(pos),
            "observation.object_pos_m": _in_slots(pos[:, bodies], OBJECT_SLOTS),
            "observation.object_quat_wxyz": _in_slots(quat[:, bodies], OBJECT_SLOTS),
            "observation.gripper_contact": self._contact_by_slot(),
        }
        return {name: values.astype(np.float32) for name, values in made.items()}

    def _targets_by_slot(self, body_pos: FloatArray) -> FloatArray:
        by_slot = np.zeros((len(body_pos), TARGET_SLOTS, 3))
        by_slot[:, [*self._target_bodies]] = body_pos[:, [*self._target_bodies.values()]]
        if self._target_parts:
            by_slot[:, [*self._target_parts]] = np.array(self._part_pos)
        return by_slot.reshape(len(body_pos), -1)

    def _contact_by_slot(self) -> IntArray:
        contact, objects = self.entities.gripper_contact(self._contacts), len(self.entities.objects)
        by_slot = np.zeros((len(contact), ENTITY_SLOTS), np.int64)
        by_slot[:, :objects] = contact[:, :objects]
        by_slot[:, OBJECT_SLOTS : OBJECT_SLOTS + len(self.entities.fixtures)] = contact[:, objects:]
        return by_slot


def _in_slots(values: FloatArray, slots: int) -> FloatArray:
    """Values of shape (T, K, width) with zeros for the unused of the slots, shape (T, slots * width)."""
    padded = np.zeros((len(values), slots, values.shape[2]))
    padded[:, : values.shape[1]] = values
    return padded.reshape(len(values), -1)
