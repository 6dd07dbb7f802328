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

from ...arrays import BoolArray, FloatArray
from ...facts import Entity, SceneFacts
from ..scene import Scene

VISUAL_GROUP = 1
"""LIBERO keeps what is seen in geom group 1 and what collides in group 0."""

GRID = 48
"""Rays across each side of an object when its opening is measured."""

CLEARANCE_M = 0.01
"""Rays start this far outside of the thing that they are to meet."""

HOLLOW_DEPTH_M = 0.015
"""A hollow is at least this deep below the rim."""

LEVEL_STEP_M = 0.004
"""Rims are sought at levels this far apart."""

SMALLEST_OPENING_M = 0.02
"""Narrower gaps, such as that between two pages or in a handle, are no openings to put things in."""


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
    position_m: FloatArray
    box_m: FloatArray
    on: BoolArray
    inside: BoolArray
    is_open: BoolArray
    is_on: BoolArray


def _facts(scene: Scene, states: tuple[int, ...], parts: Sequence[_Part], snapshots: list[_Snapshot]) -> SceneFacts:
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


def _parts(scene: Scene) -> list[_Part]:
    env, model = scene.libero, scene.model
    parts = []
    for name in sorted([*env.objects_dict, *env.fixtures_dict]):
        if name not in env.obj_body_id:
            continue  # the floor or table, which LIBERO keeps no body for
        root = env.obj_body_id[name]
        thing = env.get_object(name)
        parts.append(_Part(_whole(scene, name, root, thing), frozenset(_subtree(model, root)), _own_region(env, name)))
        parts.extend(_drawers(scene, name, thing))
        parts.extend(_compartments(scene, name))
    return parts + _table(scene)


def _whole(scene: Scene, name: str, root: int, thing: Any) -> Entity:
    model = scene.model
    bodies = _subtree(model, root)
    joints = [joint for body in bodies for joint in _joints(model, body)]
    free = any(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    switches = hasattr(thing, "turn_on")
    articulated = any(model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    geoms = _geoms(model, bodies)
    region = _own_region(scene.libero, name)
    # What opens by a hinge has its opening behind that door; nothing larger than LIBERO's region goes in there.
    hinged = articulated and not switches and region is not None
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
        opening_m=_region_opening(scene, str(region)) if hinged else opening_from_above(scene, root, geoms),
        room_under_m=_room_under(scene, root, geoms),
    )


def _own_region(env: Any, name: str) -> str | None:
    """The one region that is the inside of the thing as a whole, such as a basket's or a microwave's."""
    regions = [region for region in _regions(env, name) if region.endswith(("contain_region", "heating_region"))]
    return regions[0] if len(regions) == 1 else None


def _regions(env: Any, whole: str) -> list[str]:
    return [region for region, site in env.object_sites_dict.items() if getattr(site, "parent_name", None) == whole]


def _region_opening(scene: Scene, region: str) -> tuple[float, float]:
    sides = sorted((2.0 * float(half) for half in scene.libero.object_sites_dict[region].size), reverse=True)
    return sides[0], sides[1]


def _drawers(scene: Scene, whole: str, thing: Any) -> list[_Part]:
    """The sliding parts of a thing that LIBERO gives an inside region, from the top down."""
    env, model = scene.libero, scene.model
    found: list[tuple[float, str, int]] = []
    for region in _regions(env, whole):
        site = env.object_sites_dict[region]
        joint = model.joint(site.joints[0]) if site.joints else None
        if joint is not None and joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE:
            found.append((float(scene.data.site(region).xpos[2]), region, int(joint.bodyid[0])))
    found.sort(key=lambda item: -item[0])
    parts = []
    for rank, (_, region, body) in enumerate(found):
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
            opening_m=_region_opening(scene, region),
        )
        parts.append(_Part(entity, frozenset(bodies), region))
    return parts


def _compartments(scene: Scene, whole: str) -> list[_Part]:
    """The open compartments of a caddy, by LIBERO's names for their sides."""
    regions = [region for region in _regions(scene.libero, whole) if region.endswith("_contain_region")]
    if len(regions) < 2:
        return []
    parts = []
    for region in sorted(regions):
        half = scene.libero.object_sites_dict[region].size
        upright = int(np.argmax(np.abs(scene.data.site(region).xmat.reshape(3, 3)[2])))
        across = sorted((2.0 * float(half[axis]) for axis in range(3) if axis != upright), reverse=True)
        entity = Entity(
            name=region,
            category="compartment",
            part_of=whole,
            rank=None,
            row_length=None,
            movable=False,
            opens=False,
            switches=False,
            size_m=(2.0 * float(half[0]), 2.0 * float(half[1]), 2.0 * float(half[2])),
            opening_m=(across[0], across[1]),
            side=region.removeprefix(f"{whole}_").partition("_")[0],
        )
        parts.append(_Part(entity, frozenset(), region))
    return parts


def _table(scene: Scene) -> list[_Part]:
    """The table, as what stands on it is on it; a floor is nothing that anybody would name."""
    name = str(scene.libero.workspace_name)
    roots = [b for b in range(scene.model.nbody) if scene.model.body(b).name == name.removeprefix("main_")]
    roots = roots or [b for b in range(scene.model.nbody) if scene.model.body(b).name == "table"]
    if not roots or "table" not in name:
        return []
    bodies = _subtree(scene.model, roots[0])
    size = _own_size(scene, roots[0], _geoms(scene.model, bodies))
    entity = Entity(
        name=name,
        category="table",
        part_of=None,
        rank=None,
        row_length=None,
        movable=False,
        opens=False,
        switches=False,
        size_m=size,
        opening_m=None,
    )
    return [_Part(entity, frozenset(bodies), None)]


def _snapshot(scene: Scene, parts: Sequence[_Part]) -> _Snapshot:
    env, data = scene.libero, scene.data
    boxes = np.stack([_part_box(scene, part) for part in parts])
    position = np.stack(
        [_region_centre(scene, part) if part.entity.part_of else data.xpos[min(part.bodies)] for part in parts]
    )
    states = env.object_states_dict
    is_open = np.array([part.entity.opens and _is_open(states, part, parts) for part in parts])
    is_on = np.array([part.entity.switches and states[part.entity.name].turn_on() for part in parts])
    inside = _inside(scene, parts, position)
    return _Snapshot(position, boxes, _resting_on(scene, parts, boxes), inside, is_open, is_on)


def _region_centre(scene: Scene, part: _Part) -> FloatArray:
    return np.array(scene.data.site(part.region).xpos)


def _part_box(scene: Scene, part: _Part) -> FloatArray:
    if part.bodies:
        return _world_box(scene, _geoms(scene.model, part.bodies))
    half = np.array(scene.libero.object_sites_dict[part.region].size, dtype=np.float64)
    reach = np.abs(scene.data.site(part.region).xmat.reshape(3, 3)) @ half
    centre = _region_centre(scene, part)
    return np.stack([centre - reach, centre + reach])


def _is_open(states: Any, part: _Part, parts: Sequence[_Part]) -> bool:
    if part.entity.part_of:
        return bool(states[part.region].is_open())
    drawers = [other for other in parts if other.entity.part_of == part.entity.name]
    if drawers:
        return any(states[other.region].is_open() for other in drawers)
    return bool(states[part.entity.name].is_open())


def _inside(scene: Scene, parts: Sequence[_Part], position: FloatArray) -> BoolArray:
    """A movable thing is inside another when its body's origin lies in LIBERO's region of that one's inside."""
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


def _resting_on(scene: Scene, parts: Sequence[_Part], boxes: FloatArray) -> BoolArray:
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


def _world_box(scene: Scene, geoms: npt.NDArray[np.intp]) -> FloatArray:
    """Lower and upper corner of the geoms in the world, shape (2, 3)."""
    points = np.concatenate([_corners(scene, int(geom)) for geom in geoms])
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _own_size(scene: Scene, body: int, geoms: npt.NDArray[np.intp]) -> tuple[float, float, float]:
    frame = scene.data.xmat[body].reshape(3, 3)
    points = np.concatenate([_corners(scene, int(geom)) for geom in geoms]) @ frame
    x, y, z = np.ptp(points, axis=0).tolist()
    return x, y, z


def _corners(scene: Scene, geom: int) -> FloatArray:
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
    points: FloatArray = data.geom_xpos[geom] + local @ rotation.T
    return points


def opening_from_above(scene: Scene, body: int, geoms: npt.NDArray[np.intp]) -> tuple[float, float] | None:
    """The largest hollow that is open to the top: rays fall from above, deep cells ringed by shallow ones are a hollow.

    The grid follows the body's own axes, so that the opening is the same however the thing is turned. Every level is
    tried as the rim's, since a handle may rise above it.
    """
    depths, step = _fall(scene, body, geoms, upwards=False)
    ground = float(np.max(depths[np.isfinite(depths)], initial=0.0))
    best: tuple[float, float] | None = None
    for level in np.arange(0.0, ground - HOLLOW_DEPTH_M, LEVEL_STEP_M):
        labels, count = ndimage.label(np.pad(depths > level, 1, constant_values=True))
        for label in range(1, count + 1):
            cells = labels == label
            if cells[0, 0] or np.max(depths[cells[1:-1, 1:-1]]) < level + HOLLOW_DEPTH_M:
                continue  # what lies around the object, or a mere dent
            wide, deep = (np.ptp(np.flatnonzero(cells.any(axis=axis))) + 1 for axis in (1, 0))
            sides = sorted((float(wide * step[0]), float(deep * step[1])), reverse=True)
            if sides[1] >= SMALLEST_OPENING_M and (best is None or sides[0] * sides[1] > best[0] * best[1]):
                best = sides[0], sides[1]
    return best


def _room_under(scene: Scene, body: int, geoms: npt.NDArray[np.intp]) -> float:
    """Room between the lowest point of a thing and its underside: that which half of its footprint does not exceed."""
    depths, _ = _fall(scene, body, geoms, upwards=True)
    return float(np.median(depths[np.isfinite(depths)])) if np.isfinite(depths).any() else 0.0


def _fall(
    scene: Scene, body: int, geoms: npt.NDArray[np.intp], *, upwards: bool
) -> tuple[FloatArray, tuple[float, float]]:
    """Depth below the highest point (or above the lowest) at which rays meet the thing, over a grid of its own axes.

    Returns:
        Depths in m, infinite where a ray meets nothing, shape (GRID, GRID); and the grid's steps.
    """
    frame = np.array(scene.data.xmat[body]).reshape(3, 3)
    vertical = int(np.argmax(np.abs(frame[2])))
    up = frame[:, vertical] * np.sign(frame[2, vertical])
    first, second = (frame[:, axis] for axis in range(3) if axis != vertical)
    points = np.concatenate([_corners(scene, int(geom)) for geom in geoms])
    direction = up if upwards else -up
    level = float((points @ direction).min()) - CLEARANCE_M
    a = np.linspace((points @ first).min(), (points @ first).max(), GRID)
    b = np.linspace((points @ second).min(), (points @ second).max(), GRID)
    depths = np.full((GRID, GRID), np.inf)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            start = x * first + y * second + level * direction
            distances = [_ray(scene, int(geom), start, direction) for geom in geoms]
            depths[i, j] = min((distance for distance in distances if distance >= 0.0), default=np.inf) - CLEARANCE_M
    return depths, (float(a[1] - a[0]), float(b[1] - b[0]))


def _ray(scene: Scene, geom: int, start: FloatArray, direction: FloatArray) -> float:
    model, data = scene.model, scene.data
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        return float(mujoco.mj_rayMesh(model, data, geom, start, direction))
    return float(
        mujoco.mju_rayGeom(
            data.geom_xpos[geom], data.geom_xmat[geom], model.geom_size[geom], start, direction, model.geom_type[geom]
        )
    )
