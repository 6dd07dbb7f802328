"""Targets: what a reference goal requires the robot to manipulate, and where that is.

A target is an object, the handle of a drawer or door, or the knob of a stove. Names come from the task alone, without
a simulator; positions come from the scene and move with what they name.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from ...arrays import FloatArray
from ...errors import InvalidInputError
from ...libero.base_tasks import bddl_path
from ...libero.install import quiet
from ...records import BaseTask
from ..scene import Scene

REGION, HANDLE, KNOB = "_region", "_handle", "_knob"

LEVEL_TOLERANCE_M = 0.001
"""Geoms whose outermost points differ by less stand equally far out, and make up one handle or knob together."""


def goal_targets(task: BaseTask) -> tuple[str, ...]:
    """Names of what the reference goal requires the robot to manipulate, in the order of the goal.

    Parts of the goal that the BDDL file declares to hold from the start need nothing done and add no target. An object
    that belongs into a drawer which starts closed adds the drawer's handle too, before the object.

    Returns:
        Simulator names for objects (``akita_black_bowl_1``); ``wooden_cabinet_1_middle_handle`` for a drawer's or
        door's handle; ``flat_stove_1_knob`` for a stove's knob.

    Raises:
        InvalidInputError: The goal has a predicate that this function does not know.
    """
    initial, fixtures = _initial_facts(task)
    names: list[str] = []
    for predicate in task.goal:
        if predicate in initial:
            continue
        relation, subject = predicate[0], predicate[1]
        if relation in ("on", "in"):
            if relation == "in" and _is_drawer(predicate[2], fixtures) and ("open", predicate[2]) not in initial:
                names.append(handle_name(predicate[2]))
            names.append(subject)
        elif relation in ("open", "close"):
            names.append(handle_name(subject))
        elif relation in ("turnon", "turnoff"):
            names.append(subject + KNOB)
        else:
            raise InvalidInputError(f"{task.task_id}: no target is known for the goal predicate {predicate}")
    return tuple(dict.fromkeys(names))


def target_positions(scene: Scene, targets: Sequence[str]) -> FloatArray:
    """Where the targets are now, in the world, in m, shape (K, 3).

    An object's position is that of its body; a handle's or knob's is the middle of its collision geoms.

    Raises:
        InvalidInputError: The scene has no such target.
    """
    return np.array([_position(scene, target) for target in targets]).reshape(len(targets), 3)


def handle_name(opening: str) -> str:
    """Name of the handle of a drawer's region or of a fixture with one door."""
    return opening.removesuffix(REGION) + HANDLE


def moving_joint(scene: Scene, target: str) -> int:
    """Number of the joint that a handle or knob moves, such as a drawer's slide.

    Raises:
        InvalidInputError: The scene has no such handle or knob.
    """
    if target.endswith(HANDLE):
        owner = target.removesuffix(HANDLE)
        site = scene.libero.object_sites_dict.get(owner + REGION)
    else:
        owner, site = target.removesuffix(KNOB), None
    fixture = scene.libero.fixtures_dict.get(owner)
    joints: list[str] = list(getattr(site or fixture, "joints", None) or [])
    if len(joints) != 1:
        raise InvalidInputError(f"{scene.task.task_id} has no '{target}': nothing with one joint is named '{owner}'")
    return int(scene.model.joint(joints[0]).id)


def opening_direction(scene: Scene, joint: int) -> FloatArray:
    """Direction in which the outermost part of a drawer or door moves when it opens: unit vector, shape (3,)."""
    low, high = scene.model.jnt_range[joint]
    axis = np.array(scene.data.xaxis[joint]) * (1.0 if high > -low else -1.0)
    if scene.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        return axis
    body = scene.model.jnt_bodyid[joint]
    lever = _box_centres(scene, collision_geoms(scene, body)).mean(axis=0) - scene.data.xanchor[joint]
    direction = np.cross(axis, lever)
    return np.asarray(direction / np.linalg.norm(direction))


def body_box(scene: Scene, body: str) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest corner of the upright box around a body's collision geoms, in m, shape (3,) each."""
    geoms = collision_geoms(scene, int(scene.model.body(body).id))
    centres, extents = _box_centres(scene, geoms), _box_extents(scene, geoms)
    return (centres - extents).min(axis=0), (centres + extents).max(axis=0)


def _position(scene: Scene, target: str) -> FloatArray:
    if target in scene.libero.obj_body_id:
        return np.array(scene.data.xpos[scene.libero.obj_body_id[target]])
    if not target.endswith((HANDLE, KNOB)):
        raise InvalidInputError(f"{scene.task.task_id} has no target '{target}'")
    joint = moving_joint(scene, target)
    outward = np.array([0.0, 0.0, 1.0]) if target.endswith(KNOB) else opening_direction(scene, joint)
    geoms = collision_geoms(scene, scene.model.jnt_bodyid[joint])
    centres, extents = _box_centres(scene, geoms), _box_extents(scene, geoms)
    # What sticks out furthest is what a hand takes hold of: the bar of a handle, the grip of a knob.
    reach = centres @ outward + extents @ np.abs(outward)
    return np.asarray(centres[reach > reach.max() - LEVEL_TOLERANCE_M].mean(axis=0))


def collision_geoms(scene: Scene, body: int) -> list[int]:
    """Numbers of the geoms of a body that collide."""
    model = scene.model
    owned = range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])
    return [geom for geom in owned if model.geom_contype[geom] or model.geom_conaffinity[geom]]


def _box_centres(scene: Scene, geoms: list[int]) -> FloatArray:
    rotations = np.array(scene.data.geom_xmat[geoms]).reshape(-1, 3, 3)
    offsets = np.einsum("gij,gj->gi", rotations, scene.model.geom_aabb[geoms, :3])
    return np.asarray(scene.data.geom_xpos[geoms] + offsets)


def _box_extents(scene: Scene, geoms: list[int]) -> FloatArray:
    rotations = np.array(scene.data.geom_xmat[geoms]).reshape(-1, 3, 3)
    return np.asarray(np.einsum("gij,gj->gi", np.abs(rotations), scene.model.geom_aabb[geoms, 3:]))


def _is_drawer(region: str, fixtures: dict[str, str]) -> bool:
    """Whether a region is inside one of a cabinet's drawers, by LIBERO's naming."""
    owner = region.removesuffix(REGION).rpartition("_")[0]
    return region.endswith(REGION) and "cabinet" in fixtures.get(owner, "")


@functools.cache
def _initial_facts(task: BaseTask) -> tuple[frozenset[tuple[str, ...]], dict[str, str]]:
    """Predicates that the BDDL file declares for the start, and the category of each fixture."""
    problem = _parse_task_file(task)
    initial = frozenset(tuple(predicate) for predicate in problem["initial_state"])
    return initial, {name: kind for kind, names in problem["fixtures"].items() for name in names}


def _parse_task_file(task: BaseTask) -> dict[str, Any]:
    from libero.libero.envs.bddl_utils import robosuite_parse_problem

    with quiet():
        problem: dict[str, Any] = robosuite_parse_problem(bddl_path(task))
    return problem
