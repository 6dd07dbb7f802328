"""What the learned policy receives of a scene: where hand, objects and joints of fixtures are, as one vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....toolkit.arrays import Float32Array, FloatArray
from ....toolkit.errors import InvalidInputError
from ....toolkit.simulation.observing.scene_entities import SceneEntities
from ....toolkit.simulation.scene import Scene

ROTATION = 6
"""Numbers that give an orientation: the first two columns of its matrix, which have no jumps."""

HAND = 3 + ROTATION + 2
"""Numbers that give the hand: position in m, orientation, fingers in m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneNames:
    """What the scene is expected to hold, in the order of the vector.

    Attributes:
        objects: Movable objects, such as ``plate_1``; M of them.
        joints: Joints of fixtures, such as ``flat_stove_1_button``; J of them.
    """

    objects: tuple[str, ...]
    joints: tuple[str, ...]

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return HAND + len(self.objects) * (3 + ROTATION) + len(self.joints)


def scene_names(scene: Scene) -> SceneNames:
    """What a scene holds: its movable objects, and the joints that are neither theirs nor the robot's."""
    env = scene.libero
    robot = {*env.robots[0].robot_joints, *env.robots[0].gripper.joints}
    free = {joint for body in env.objects_dict.values() for joint in body.joints}
    joints = tuple(scene.model.joint(number).name for number in range(scene.model.njnt))
    return SceneNames(
        objects=SceneEntities(scene).objects, joints=tuple(name for name in joints if name not in robot | free)
    )


def nearest_object(vectors: Float32Array, names: SceneNames) -> tuple[Float32Array, Float32Array]:
    """How the hand stands to the object that is nearest to it.

    Args:
        vectors: Shape (N, width).
        names: What the scene holds.

    Returns:
        Where the object is from the hand, in m, and the direction in which the fingers open, shape (N, 3) each.
    """
    objects = vectors[:, HAND : HAND + 3 * len(names.objects)].reshape(len(vectors), -1, 3)
    apart = objects - vectors[:, np.newaxis, :3]
    nearest = np.linalg.norm(apart, axis=2).argmin(axis=1)
    return apart[np.arange(len(vectors)), nearest], vectors[:, 3 : 3 + ROTATION : 2]


class SceneVector:
    """Reads the vector off a scene, from the simulator's present state.

    Args:
        scene: The scene.
        names: What it must hold.

    Raises:
        InvalidInputError: The scene holds something else.
    """

    def __init__(self, scene: Scene, names: SceneNames) -> None:
        present = scene_names(scene)
        if present != names:
            wanted = ", ".join((*names.objects, *names.joints))
            raise InvalidInputError(
                f"{scene.task.task_id}: the learned policy knows scenes with {wanted} only; run it on the suite that "
                "it was trained on"
            )
        self._scene = scene
        self._bodies = [scene.libero.obj_body_id[name] for name in names.objects]
        self._joints = [int(scene.model.joint(name).qposadr[0]) for name in names.joints]

    def read(self) -> Float32Array:
        """Hand (position in m, orientation, fingers in m), objects (positions in m, then orientations), joints.

        Returns:
            Shape (HAND + 9 M + J,).
        """
        scene, data = self._scene, self._scene.data
        parts = [
            scene.grip_pos(),
            _orientations(data.site_xmat[[scene.arm.grip_site]]),
            scene.gripper_pos_m(),
            data.xpos[self._bodies].ravel(),
            _orientations(data.xmat[self._bodies]),
            data.qpos[self._joints],
        ]
        return np.asarray(np.concatenate(parts), np.float32)


def _orientations(matrices: FloatArray) -> FloatArray:
    """First two columns of rotation matrices, shape (n, 9) as MuJoCo stores them, one after the other."""
    return np.asarray(matrices.reshape(-1, 3, 3)[:, :, :2].reshape(-1))
