"""What stands in a scene: its movable objects and its fixtures, where the objects are, and what the gripper touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, IndexArray, IntArray
from ..scene import STATE_SPEC, Scene

BOTH_FINGERS = 2
"""What ``gripper_contact`` gives for an entity that both fingers touch."""

LEFT, RIGHT, HAND = 1, 2, 4
"""Parts of the gripper as bits: its two fingers, with their pads, and the rest."""

GeomPairs = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedStates:
    """Contacts and poses in T states.

    Attributes:
        contacts: The pairs of geoms that touch in each, as in MuJoCo's ``data.contact.geom``, shape (n, 2).
        body_pos_m: Position of each of B bodies in the world, in m, shape (T, B, 3).
        body_quat_wxyz: Its orientation, shape (T, B, 4).
    """

    contacts: Sequence[GeomPairs]
    body_pos_m: FloatArray
    body_quat_wxyz: FloatArray


def observe_states(model: Any, states: FloatArray, data: Any = None) -> ObservedStates:
    """Contacts and poses of recorded states, which follow from a state's positions alone.

    Args:
        model: MuJoCo's model.
        states: MuJoCo's full physics states, shape (T, n).
        data: MuJoCo's data to compute in, not a scene's own; made where not given.
    """
    data = data or mujoco.MjData(model)
    contacts, positions, orientations = [], [], []
    for state in states:
        mujoco.mj_setState(model, data, np.array(state), STATE_SPEC)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        contacts.append(data.contact.geom.copy())
        positions.append(data.xpos.copy())
        orientations.append(data.xquat.copy())
    return ObservedStates(contacts=contacts, body_pos_m=np.array(positions), body_quat_wxyz=np.array(orientations))


class SceneEntities:
    """A scene's movable objects and fixtures, the table left out, in the order of its BDDL file.

    Args:
        scene: The scene.

    Attributes:
        objects: Names of the movable objects, such as ``plate_1``; M of them.
        fixtures: Names of the fixtures, such as ``wooden_cabinet_1``; F of them.
        goal: Those of both that the reference goal names: what is moved, what it is brought to, what is opened.
        bodies: Numbers of the objects' bodies, shape (M,).
    """

    def __init__(self, scene: Scene) -> None:
        model, env = scene.model, scene.libero
        self.objects = tuple(str(name) for name in env.objects_dict)
        self.fixtures = tuple(str(name) for name in env.fixtures_dict if name in env.obj_body_id)
        named = (*self.objects, *self.fixtures)
        self.goal = tuple(name for name in named if _in_goal(name, scene.task.goal))
        self.bodies: IndexArray = np.array([env.obj_body_id[name] for name in self.objects], np.intp)
        # An entity is all that hangs on one child of the world's body, a cabinet's drawers included.
        entity_of_root = np.full(model.nbody, -1)
        entity_of_root[model.body_rootid[[env.obj_body_id[name] for name in named]]] = np.arange(len(named))
        self._entity: IndexArray = entity_of_root[model.body_rootid[model.geom_bodyid]]
        self._part = gripper_parts(scene)

    def gripper_contact(self, contacts: Sequence[GeomPairs]) -> IntArray:
        """What the gripper touches, at T moments.

        Args:
            contacts: At each moment the pairs of geoms in contact, as in MuJoCo's ``data.contact.geom``, shape (n, 2).

        Returns:
            For each object and then each fixture 0, 1 where the gripper touches it, 2 where both fingers do; shape
            (T, M + F).
        """
        moment = np.repeat(np.arange(len(contacts)), [len(pairs) for pairs in contacts])
        geoms = np.concatenate([*contacts, np.zeros((0, 2), np.int32)])
        parts = np.zeros((len(contacts), len(self.objects) + len(self.fixtures)), np.int64)
        for gripper, other in ((0, 1), (1, 0)):
            part, entity = self._part[geoms[:, gripper]], self._entity[geoms[:, other]]
            touching = (part > 0) & (entity >= 0)
            np.bitwise_or.at(parts, (moment[touching], entity[touching]), part[touching])
        return np.where(parts & (LEFT | RIGHT) == LEFT | RIGHT, BOTH_FINGERS, np.minimum(parts, 1))


def _in_goal(name: str, goal: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a goal is about an entity, or about a region of it such as ``wooden_cabinet_1_top_region``."""
    return any(argument == name or argument.startswith(name + "_") for predicate in goal for argument in predicate[1:])


def gripper_parts(scene: Scene) -> IntArray:
    """Which part of the gripper each geom is, 0 for none, shape (ngeom,)."""
    gripper = scene.libero.robots[0].gripper
    parts = np.zeros(scene.model.ngeom, np.int64)
    for names, part in (
        (gripper.contact_geoms, HAND),
        (gripper.important_geoms["left_finger"], LEFT),
        (gripper.important_geoms["right_finger"], RIGHT),
    ):
        for name in names:
            parts[scene.model.geom(name).id] = part
    return parts
