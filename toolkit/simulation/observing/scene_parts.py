"""The entities of a scene, read off LIBERO's names and the simulator's model: wholes, drawers, compartments, table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from ...facts import Entity
from ..scene import Scene
from .body_geometry import extents_m, joints_of, seen_geoms, subtree
from .openings import opening_from_above, room_under_m


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenePart:
    """An entity with what is needed to read it off the simulator.

    Attributes:
        entity: The entity.
        bodies: Ids of the bodies that belong to it.
        region: Name of the LIBERO region that is its inside, where it has one.
    """

    entity: Entity
    bodies: frozenset[int]
    region: str | None


def scene_parts(scene: Scene, *, hollows: bool = True) -> list[ScenePart]:
    """Every entity of a scene, each followed by its own parts, and the table last.

    Args:
        scene: The scene.
        hollows: Whether to look for openings and for room beneath, which takes most of the time; None without.
    """
    env, model = scene.libero, scene.model
    parts = []
    for name in sorted([*env.objects_dict, *env.fixtures_dict]):
        if name not in env.obj_body_id:
            continue  # the floor or table, for which LIBERO has no body
        root = env.obj_body_id[name]
        entity = _whole(scene, name, root, hollows=hollows)
        parts.append(ScenePart(entity=entity, bodies=frozenset(subtree(model, root)), region=_own_region(env, name)))
        parts.extend(_drawers(scene, name))
        parts.extend(_compartments(scene, name))
    return parts + _table(scene)


def _whole(scene: Scene, name: str, root: int, *, hollows: bool) -> Entity:
    model, asset = scene.model, scene.libero.get_object(name)
    bodies = subtree(model, root)
    joints = [joint for body in bodies for joint in joints_of(model, body)]
    free = any(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    switches = hasattr(asset, "turn_on")
    articulated = any(model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    geoms = seen_geoms(model, bodies)
    region = _own_region(scene.libero, name)
    # What opens by a hinge has its opening behind that door; nothing larger than LIBERO's region goes in there.
    hinged = articulated and not switches and region is not None
    opening_m = room_m = None
    if hollows:
        opening_m = _region_opening(scene, str(region)) if hinged else opening_from_above(scene, root, geoms)
        room_m = room_under_m(scene, root, geoms)
    return Entity(
        name=name,
        category=asset.category_name,
        part_of=None,
        rank=None,
        row_length=None,
        movable=free,
        opens=articulated and not switches,
        switches=switches,
        size_m=extents_m(scene, root, geoms),
        opening_m=opening_m,
        room_under_m=room_m,
    )


def _own_region(env: Any, name: str) -> str | None:
    """The one region that is the inside of an entity as a whole, such as a basket's or a microwave's."""
    regions = [region for region in _regions(env, name) if region.endswith(("contain_region", "heating_region"))]
    return regions[0] if len(regions) == 1 else None


def _regions(env: Any, whole: str) -> list[str]:
    return [region for region, site in env.object_sites_dict.items() if getattr(site, "parent_name", None) == whole]


def _region_opening(scene: Scene, region: str) -> tuple[float, float]:
    sides = sorted((2.0 * float(half) for half in scene.libero.object_sites_dict[region].size), reverse=True)
    return sides[0], sides[1]


def _drawers(scene: Scene, whole: str) -> list[ScenePart]:
    """The sliding parts of an entity that LIBERO gives an inside region, from the top down."""
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
        bodies = subtree(model, body)
        entity = Entity(
            name=region,
            category="drawer",
            part_of=whole,
            rank=rank,
            row_length=len(found),
            movable=False,
            opens=True,
            switches=False,
            size_m=extents_m(scene, body, seen_geoms(model, bodies)),
            opening_m=_region_opening(scene, region),
        )
        parts.append(ScenePart(entity=entity, bodies=frozenset(bodies), region=region))
    return parts


def _compartments(scene: Scene, whole: str) -> list[ScenePart]:
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
        parts.append(ScenePart(entity=entity, bodies=frozenset(), region=region))
    return parts


def _table(scene: Scene) -> list[ScenePart]:
    """The table, since an instruction may name it; nobody would name the floor."""
    name = str(scene.libero.workspace_name)
    roots = [b for b in range(scene.model.nbody) if scene.model.body(b).name == name.removeprefix("main_")]
    roots = roots or [b for b in range(scene.model.nbody) if scene.model.body(b).name == "table"]
    if not roots or "table" not in name:
        return []
    bodies = subtree(scene.model, roots[0])
    size = extents_m(scene, roots[0], seen_geoms(scene.model, bodies))
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
    return [ScenePart(entity=entity, bodies=frozenset(bodies), region=None)]
