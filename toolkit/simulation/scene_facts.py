"""Scene facts measured in the simulator: joints, meshes, contacts and regions, in every initial state asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from scipy import ndimage

from ..facts import Array, Entity, Mask, SceneFacts
from .scene import Scene

VISUAL_GROUP = 1
"""LIBERO keeps what is seen in geom group 1 and what collides in group 0."""

GRID = 48
"""Rays across each side of an object when its opening is measured."""

HOLLOW_DEPTH_M = 0.015
"""A hollow is at least this deep below the rim."""


@dataclass(frozen=True, slots=True)
class _Part:
    """An entity with what is needed to read it off the simulator.

    Attributes:
        entity: The entity.
        bodies: Ids of the bodies that belong to it.
        region: Name of the LIBERO region that is its inside, where it has one.
    """

    entity: Entity
    bodies: frozenset[int]
    region: str | None


def measure_facts(scene: Scene, init_states: Iterable[int]) -> SceneFacts:
    """Reset the scene to each initial state, let it settle, and measure. Leaves the scene in the last state.

    Args:
        scene: The scene.
        init_states: Numbers of the initial states.
    """
    states = tuple(init_states)
    snapshots = []
    parts: Sequence[_Part] = ()
    for state in states:
        scene.reset(state)
        parts = parts or _parts(scene)
        snapshots.append(_snapshot(scene, parts))
    return _facts(scene, states, parts, snapshots)


def observe_facts(scene: Scene, init_state: int) -> SceneFacts:
    """Measure the scene as it stands, without touching it: facts of one state.

    Args:
        scene: The scene, at the beginning of a rollout.
        init_state: The initial state it was reset to.
    """
    parts = _parts(scene)
    return _facts(scene, (init_state,), parts, [_snapshot(scene, parts)])


@dataclass(frozen=True, slots=True)
class _Snapshot:
    position_m: Array
    box_m: Array
    on: Mask
    inside: Mask
    is_open: Mask
    is_on: Mask


def _facts(scene: Scene, states: tuple[int, ...], parts: Sequence[_Part], snapshots: list[_Snapshot]) -> SceneFacts:
    return SceneFacts(
        task_id=scene.task.task_id,
        scene_sha256=scene.scene_sha256,
        init_states=states,
        entities=tuple(part.entity for part in parts),
        position_m=np.stack([snapshot.position_m for snapshot in snapshots]),
        box_m=np.stack([snapshot.box_m for snapshot in snapshots]),
        on=np.stack([snapshot.on for snapshot in snapshots]),
        inside=np.stack([snapshot.inside for snapshot in snapshots]),
        is_open=np.stack([snapshot.is_open for snapshot in snapshots]),
        is_on=np.stack([snapshot.is_on for snapshot in snapshots]),
    )


def _parts(scene: Scene) -> list[_Part]:
    env, model = scene.libero, scene.model
    parts = []
    for name in sorted([*env.objects_dict, *env.fixtures_dict]):
        if name not in env.obj_body_id:
            continue  # the table: furniture that LIBERO keeps no body for
        root = env.obj_body_id[name]
        thing = env.get_object(name)
        parts.append(_Part(_whole(scene, name, root, thing), frozenset(_subtree(model, root)), None))
        parts.extend(_drawers(scene, name, thing))
    return parts


def _whole(scene: Scene, name: str, root: int, thing: Any) -> Entity:
    model = scene.model
    bodies = _subtree(model, root)
    joints = [joint for body in bodies for joint in _joints(model, body)]
    free = any(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    switches = hasattr(thing, "turn_on")
    articulated = any(model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    geoms = _geoms(model, bodies)
    return Entity(
        name=name,
        category=thing.category_name,
        part_of=None,
        rank=None,
        row_length=None,
        movable=free,
        opens=articulated and not switches,
        switches=switches,
        size_m=_own_size(scene, root, geoms),
        opening_m=_opening(scene, geoms),
    )


def _drawers(scene: Scene, whole: str, thing: Any) -> list[_Part]:
    """The sliding parts of a thing that LIBERO gives an inside region, from the top down."""
    env, model = scene.libero, scene.model
    found: list[tuple[float, str, int, Any]] = []
    for region, site in env.object_sites_dict.items():
        if getattr(site, "parent_name", None) != whole or not site.joints:
            continue
        joint = model.joint(site.joints[0])
        if joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE:
            found.append((float(scene.data.site(region).xpos[2]), region, int(joint.bodyid[0]), site))
    found.sort(key=lambda item: -item[0])
    parts = []
    for rank, (_, region, body, site) in enumerate(found):
        sides = sorted((2.0 * float(half) for half in site.size), reverse=True)
        bodies = _subtree(model, body)
        entity = Entity(
            name=region,
            category="drawer",
            part_of=whole,
            rank=rank,
            row_length=len(found),
            movable=False,
            opens=True,
            switches=False,
            size_m=_own_size(scene, body, _geoms(model, bodies)),
            opening_m=(sides[0], sides[1]),
        )
        parts.append(_Part(entity, frozenset(bodies), region))
    return parts


def _snapshot(scene: Scene, parts: Sequence[_Part]) -> _Snapshot:
    env, data = scene.libero, scene.data
    boxes = np.stack([_world_box(scene, _geoms(scene.model, part.bodies)) for part in parts])
    position = np.stack(
        [data.site_xpos[data.site(part.region).id] if part.region else data.xpos[min(part.bodies)] for part in parts]
    )
    states = env.object_states_dict
    is_open = np.array([part.entity.opens and _is_open(states, part, parts) for part in parts])
    is_on = np.array([part.entity.switches and states[part.entity.name].turn_on() for part in parts])
    inside = _inside(scene, parts, position)
    return _Snapshot(position, boxes, _resting_on(scene, parts, boxes), inside, is_open, is_on)


def _is_open(states: Any, part: _Part, parts: Sequence[_Part]) -> bool:
    if part.region:
        return bool(states[part.region].is_open())
    return any(states[other.region].is_open() for other in parts if other.entity.part_of == part.entity.name)


def _inside(scene: Scene, parts: Sequence[_Part], position: Array) -> Mask:
    """A movable thing is inside a drawer when its body's origin lies in LIBERO's region of it."""
    inside = np.zeros((len(parts), len(parts)), dtype=np.bool_)
    for j, part in enumerate(parts):
        if part.region is None:
            continue
        site = scene.libero.object_sites_dict[part.region]
        centre = scene.data.site(part.region).xpos
        rotation = scene.data.site(part.region).xmat.reshape(3, 3)
        for i, other in enumerate(parts):
            inside[i, j] = other.entity.movable and bool(site.in_box(centre, rotation, position[i]))
    return inside


def _resting_on(scene: Scene, parts: Sequence[_Part], boxes: Array) -> Mask:
    """A movable thing rests on another when they touch, its middle is above the other's and over the other's box."""
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


def _subtree(model: Any, root: int) -> list[int]:
    """The body and everything attached below it; bodies are numbered parents first."""
    members = {root}
    for body in range(root + 1, model.nbody):
        if model.body_parentid[body] in members:
            members.add(body)
    return sorted(members)


def _joints(model: Any, body: int) -> range:
    start = model.body_jntadr[body]
    return range(start, start + model.body_jntnum[body]) if start >= 0 else range(0)


def _geoms(model: Any, bodies: Iterable[int]) -> npt.NDArray[np.intp]:
    """What is seen of the bodies, or what collides where nothing is seen."""
    of_bodies = np.isin(model.geom_bodyid, list(bodies))
    seen = np.flatnonzero(of_bodies & (model.geom_group == VISUAL_GROUP))
    return seen if len(seen) else np.flatnonzero(of_bodies)


def _world_box(scene: Scene, geoms: npt.NDArray[np.intp]) -> Array:
    """Lower and upper corner of the geoms in the world, shape (2, 3)."""
    points = np.concatenate([_corners(scene, int(geom)) for geom in geoms])
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _own_size(scene: Scene, body: int, geoms: npt.NDArray[np.intp]) -> tuple[float, float, float]:
    frame = scene.data.xmat[body].reshape(3, 3)
    points = np.concatenate([_corners(scene, int(geom)) for geom in geoms]) @ frame
    x, y, z = np.ptp(points, axis=0).tolist()
    return x, y, z


def _corners(scene: Scene, geom: int) -> Array:
    """Points in the world whose box is the geom's: a mesh's own vertices, or the corners of a primitive's box."""
    model, data = scene.model, scene.data
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        local = model.mesh_vert[start : start + model.mesh_vertnum[mesh]].astype(np.float64)
    else:
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        local = centre + half * np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    rotation = data.geom_xmat[geom].reshape(3, 3)
    points: Array = data.geom_xpos[geom] + local @ rotation.T
    return points


def _opening(scene: Scene, geoms: npt.NDArray[np.intp]) -> tuple[float, float] | None:
    """The largest hollow that is open to the top: rays fall from above, low cells ringed by high ones are a hollow."""
    low, high = _world_box(scene, geoms)
    xs, ys = np.linspace(low[0], high[0], GRID), np.linspace(low[1], high[1], GRID)
    top = high[2] + 0.01
    heights = np.full((GRID, GRID), -np.inf)
    down = np.array([0.0, 0.0, -1.0])
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            start = np.array([x, y, top])
            distances = [_ray(scene, int(geom), start, down) for geom in geoms]
            hit = [distance for distance in distances if distance >= 0.0]
            if hit:
                heights[i, j] = top - min(hit)
    rim = heights.max()
    labels, count = ndimage.label(np.pad(heights < rim - HOLLOW_DEPTH_M, 1, constant_values=True))
    best: tuple[float, float] | None = None
    for label in range(1, count + 1):
        cells = labels == label
        if cells[0, 0]:
            continue  # what lies around the object
        wide, deep = (np.ptp(np.flatnonzero(cells.any(axis=axis))) + 1 for axis in (1, 0))
        sides = sorted((float(wide * (xs[1] - xs[0])), float(deep * (ys[1] - ys[0]))), reverse=True)
        if best is None or sides[0] * sides[1] > best[0] * best[1]:
            best = sides[0], sides[1]
    return best


def _ray(scene: Scene, geom: int, start: Array, direction: Array) -> float:
    model, data = scene.model, scene.data
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        return float(mujoco.mj_rayMesh(model, data, geom, start, direction))
    return float(
        mujoco.mju_rayGeom(
            data.geom_xpos[geom], data.geom_xmat[geom], model.geom_size[geom], start, direction, model.geom_type[geom]
        )
    )
