"""Scene facts measured in the simulator: joints, meshes, contacts and regions, in every initial state asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...facts import SceneFacts
from ..scene import Scene
from .body_geometry import seen_geoms, world_box
from .scene_parts import ScenePart, scene_parts


def measure_facts(scene: Scene, init_states: Iterable[int]) -> SceneFacts:
    """Reset the scene to each initial state, let it settle, and measure. Leaves the scene in the last state.

    Args:
        scene: The scene.
        init_states: Numbers of the initial states.
    """
    states = tuple(init_states)
    snapshots = []
    parts: Sequence[ScenePart] = ()
    for state in states:
        scene.reset(state)
        parts = parts or scene_parts(scene)
        snapshots.append(_snapshot(scene, parts))
    return _facts(scene, states, parts, snapshots)


def observe_facts(scene: Scene, init_state: int, parts: Sequence[ScenePart] = ()) -> SceneFacts:
    """Measure the scene as it stands, without touching it: facts of one state.

    Args:
        scene: The scene, at the beginning of a rollout.
        init_state: The initial state it was reset to.
        parts: The scene's parts from ``scene_parts``, which take longest to find; found anew where not given.
    """
    parts = parts or scene_parts(scene)
    return _facts(scene, (init_state,), parts, [_snapshot(scene, parts)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """Facts of one state, over E entities: the fields of ``SceneFacts`` without their first axis."""

    position_m: FloatArray
    box_m: FloatArray
    on: BoolArray
    inside: BoolArray
    is_open: BoolArray
    is_on: BoolArray


def _facts(scene: Scene, states: tuple[int, ...], parts: Sequence[ScenePart], snapshots: list[_Snapshot]) -> SceneFacts:
    return SceneFacts(
        task_id=scene.task.task_id,
        scene_sha256=scene.scene_sha256,
        workspace=str(scene.libero.workspace_name),
        init_states=states,
        entities=tuple(part.entity for part in parts),
        position_m=np.stack([snapshot.position_m for snapshot in snapshots]),
        box_m=np.stack([snapshot.box_m for snapshot in snapshots]),
        on=np.stack([snapshot.on for snapshot in snapshots]),
        inside=np.stack([snapshot.inside for snapshot in snapshots]),
        is_open=np.stack([snapshot.is_open for snapshot in snapshots]),
        is_on=np.stack([snapshot.is_on for snapshot in snapshots]),
    )


def _snapshot(scene: Scene, parts: Sequence[ScenePart]) -> _Snapshot:
    env, data = scene.libero, scene.data
    boxes = np.stack([_part_box(scene, part) for part in parts])
    position = np.stack(
        [_region_centre(scene, part) if part.entity.part_of else data.xpos[min(part.bodies)] for part in parts]
    )
    states = env.object_states_dict
    is_open = np.array([part.entity.opens and _is_open(states, part, parts) for part in parts])
    is_on = np.array([part.entity.switches and states[part.entity.name].turn_on() for part in parts])
    return _Snapshot(
        position_m=position,
        box_m=boxes,
        on=_resting_on(scene, parts, boxes),
        inside=_inside(scene, parts, position),
        is_open=is_open,
        is_on=is_on,
    )


def _region_centre(scene: Scene, part: ScenePart) -> FloatArray:
    return np.array(scene.data.site(part.region).xpos)


def _part_box(scene: Scene, part: ScenePart) -> FloatArray:
    if part.bodies:
        return world_box(scene, seen_geoms(scene.model, part.bodies))
    half = np.array(scene.libero.object_sites_dict[part.region].size, dtype=np.float64)
    reach = np.abs(scene.data.site(part.region).xmat.reshape(3, 3)) @ half
    centre = _region_centre(scene, part)
    return np.stack([centre - reach, centre + reach])


def _is_open(states: Any, part: ScenePart, parts: Sequence[ScenePart]) -> bool:
    if part.entity.part_of:
        return bool(states[part.region].is_open())
    drawers = [other for other in parts if other.entity.part_of == part.entity.name]
    if drawers:
        return any(states[other.region].is_open() for other in drawers)
    return bool(states[part.entity.name].is_open())


def _inside(scene: Scene, parts: Sequence[ScenePart], position: FloatArray) -> BoolArray:
    """A movable entity is inside another when its body's origin lies in LIBERO's region of that one's inside."""
    inside = np.zeros((len(parts), len(parts)), dtype=np.bool_)
    for j, part in enumerate(parts):
        if part.region is None:
            continue
        site = scene.libero.object_sites_dict[part.region]
        centre = scene.data.site(part.region).xpos
        rotation = scene.data.site(part.region).xmat.reshape(3, 3)
        for i, other in enumerate(parts):
            inside[i, j] = i != j and other.entity.movable and bool(site.in_box(centre, rotation, position[i]))
    return inside


def _resting_on(scene: Scene, parts: Sequence[ScenePart], boxes: FloatArray) -> BoolArray:
    """A movable entity rests on another when they touch, its middle is above the other's and over the other's box."""
    owner = np.full(scene.model.nbody, -1)
    for index, part in enumerate(parts):
        for body in part.bodies:
            owner[body] = index  # parts come after their whole, so a drawer's contacts are the drawer's
    on = np.zeros((len(parts), len(parts)), dtype=np.bool_)
    contacts = scene.data.contact
    for geom_a, geom_b in contacts.geom[: scene.data.ncon]:
        pair = owner[scene.model.geom_bodyid[geom_a]], owner[scene.model.geom_bodyid[geom_b]]
        for i, j in (pair, pair[::-1]):
            if i < 0 or j < 0 or i == j or not parts[i].entity.movable:
                continue
            middle = boxes[i].mean(axis=0)
            over = np.all((boxes[j, 0, :2] <= middle[:2]) & (middle[:2] <= boxes[j, 1, :2]))
            on[i, j] |= bool(over and middle[2] > boxes[j].mean(axis=0)[2])
    return on
