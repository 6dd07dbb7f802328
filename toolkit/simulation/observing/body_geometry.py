"""Bodies of a scene's model: what hangs on them, their joints, the geoms that are seen, and how large those are."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from ...arrays import FloatArray, IndexArray
from ..scene import Scene

VISUAL_GROUP = 1
"""LIBERO draws geoms of group 1, and those of group 0 collide."""


def subtree(model: Any, root: int) -> list[int]:
    """The body and everything attached below it; bodies are numbered parents first."""
    members = {root}
    for body in range(root + 1, model.nbody):
        if model.body_parentid[body] in members:
            members.add(body)
    return sorted(members)


def joints_of(model: Any, body: int) -> range:
    """Numbers of a body's own joints."""
    start = model.body_jntadr[body]
    return range(start, start + model.body_jntnum[body]) if start >= 0 else range(0)


def seen_geoms(model: Any, bodies: Iterable[int]) -> IndexArray:
    """Geoms of the bodies that are seen, or those that collide where none is."""
    of_bodies = np.isin(model.geom_bodyid, list(bodies))
    seen = np.flatnonzero(of_bodies & (model.geom_group == VISUAL_GROUP))
    return seen if len(seen) else np.flatnonzero(of_bodies)


def world_box(scene: Scene, geoms: IndexArray) -> FloatArray:
    """Lower and upper corner of the geoms in the world, in m, shape (2, 3)."""
    points = np.concatenate([geom_points(scene, int(geom)) for geom in geoms])
    return np.stack([points.min(axis=0), points.max(axis=0)])


def extents_m(scene: Scene, body: int, geoms: IndexArray) -> tuple[float, float, float]:
    """How far geoms reach along a body's own axes, in m."""
    frame = scene.data.xmat[body].reshape(3, 3)
    points = np.concatenate([geom_points(scene, int(geom)) for geom in geoms]) @ frame
    x, y, z = np.ptp(points, axis=0).tolist()
    return x, y, z


def geom_points(scene: Scene, geom: int) -> FloatArray:
    """Points in the world whose box is the geom's, in m, shape (n, 3): a mesh's vertices, or a primitive's corners."""
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
