"""How large the opening of an entity is, and how much room is under it: measured by rays that fall onto it."""

from __future__ import annotations

import mujoco
import numpy as np
from scipy import ndimage

from ...arrays import FloatArray, IndexArray
from ..scene import Scene
from .body_geometry import geom_points

GRID = 48
"""Rays across each side of an entity when its opening is measured."""

CLEARANCE_M = 0.01
"""Rays start this far outside of the entity that they are to meet."""

HOLLOW_DEPTH_M = 0.015
"""A hollow is at least this deep below the rim."""

LEVEL_STEP_M = 0.004
"""Rims are sought at levels this far apart."""

SMALLEST_OPENING_M = 0.02
"""Narrower gaps, such as that between two pages or in a handle, are no openings to put objects in."""


def opening_from_above(scene: Scene, body: int, geoms: IndexArray) -> tuple[float, float] | None:
    """The largest hollow that is open to the top, longer side first, in m; None without one.

    Rays fall from above; deep cells ringed by shallow ones are a hollow. The grid follows the body's own axes, so that
    the opening is the same however the entity is turned. Every level is tried as the rim's, since a handle may rise
    above it.
    """
    depths, step = _ray_depths(scene, body, geoms, upwards=False)
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


def room_under_m(scene: Scene, body: int, geoms: IndexArray) -> float:
    """Height of an entity's underside over its lowest point: the one that half of its footprint does not exceed."""
    depths, _ = _ray_depths(scene, body, geoms, upwards=True)
    return float(np.median(depths[np.isfinite(depths)])) if np.isfinite(depths).any() else 0.0


def _ray_depths(scene: Scene, body: int, geoms: IndexArray, *, upwards: bool) -> tuple[FloatArray, tuple[float, float]]:
    """Depth below the highest point (or above the lowest) at which rays meet the entity, over a grid of its own axes.

    Returns:
        Depths in m, infinite where a ray meets nothing, shape (GRID, GRID); and the grid's steps.
    """
    frame = np.array(scene.data.xmat[body]).reshape(3, 3)
    vertical = int(np.argmax(np.abs(frame[2])))
    up = frame[:, vertical] * np.sign(frame[2, vertical])
    first, second = (frame[:, axis] for axis in range(3) if axis != vertical)
    points = np.concatenate([geom_points(scene, int(geom)) for geom in geoms])
    direction = up if upwards else -up
    level = float((points @ direction).min()) - CLEARANCE_M
    a = np.linspace((points @ first).min(), (points @ first).max(), GRID)
    b = np.linspace((points @ second).min(), (points @ second).max(), GRID)
    depths = np.full((GRID, GRID), np.inf)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            start = x * first + y * second + level * direction
            distances = [_ray_distance(scene, int(geom), start, direction) for geom in geoms]
            depths[i, j] = min((distance for distance in distances if distance >= 0.0), default=np.inf) - CLEARANCE_M
    return depths, (float(a[1] - a[0]), float(b[1] - b[0]))


def _ray_distance(scene: Scene, geom: int, start: FloatArray, direction: FloatArray) -> float:
    """How far a ray goes until it meets a geom, in m; negative where it does not."""
    model, data = scene.model, scene.data
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        return float(mujoco.mj_rayMesh(model, data, geom, start, direction))
    return float(
        mujoco.mju_rayGeom(
            data.geom_xpos[geom], data.geom_xmat[geom], model.geom_size[geom], start, direction, model.geom_type[geom]
        )
    )
