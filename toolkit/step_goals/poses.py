"""Where sites and boxes of a scene were in observed states, from the poses of bodies alone."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from ..arrays import BoolArray, FloatArray
from ..simulation.observing.body_geometry import seen_geoms
from ..simulation.observing.scene_entities import ObservedStates
from ..simulation.observing.scene_parts import ScenePart
from ..simulation.scene import Scene

FEW_POINTS = 16
"""A hull of no more points is not made smaller."""


def rotation_matrices(quat_wxyz: FloatArray) -> FloatArray:
    """Rotations of unit quaternions, shape (..., 4) to (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(quat_wxyz), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def site_poses(model: Any, site: str, observed: ObservedStates) -> tuple[FloatArray, FloatArray]:
    """Position, shape (T, 3), and orientation, shape (T, 3, 3), of a site in T states."""
    number = model.site(site).id
    body = model.site_bodyid[number]
    rotation = rotation_matrices(observed.body_quat_wxyz[:, body])
    position = observed.body_pos_m[:, body] + rotation @ model.site_pos[number]
    return position, rotation @ rotation_matrices(model.site_quat[number])


class PartBox:
    """The upright box around a part of a scene, in whatever states.

    Args:
        scene: The scene.
        part: The part: an entity with its bodies, or a region.
    """

    def __init__(self, scene: Scene, part: ScenePart) -> None:
        model = scene.model
        if not part.bodies:
            site = model.site(part.region)
            corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * site.size
            local = site.pos + corners @ rotation_matrices(site.quat).T
            self._points = {int(model.site_bodyid[site.id]): local}
            return
        geoms = seen_geoms(model, part.bodies)
        self._points = {
            int(body): _hull(
                np.concatenate([_points_on_body(model, int(g)) for g in geoms[model.geom_bodyid[geoms] == body]])
            )
            for body in np.unique(model.geom_bodyid[geoms])
        }

    def corners_m(self, observed: ObservedStates) -> FloatArray:
        """Lower and upper corner in each of T states, in m, shape (T, 2, 3)."""
        low, high = np.inf, -np.inf
        for body, local in self._points.items():
            position, quat = observed.body_pos_m[:, body], observed.body_quat_wxyz[:, body]
            if np.all(position == position[0]) and np.all(quat == quat[0]):
                position, quat = position[:1], quat[:1]  # what never moves is looked at once
            along = rotation_matrices(quat) @ local.T  # each axis's values lie side by side, which is fast to search
            low = np.minimum(low, position + along.min(axis=2))
            high = np.maximum(high, position + along.max(axis=2))
        corners = np.stack([low, high], axis=1)
        return np.broadcast_to(corners, (len(observed.contacts), 2, 3))


def touching(observed: ObservedStates, first: BoolArray, second: BoolArray) -> BoolArray:
    """Whether any geom of the first is in contact with any of the second, shape (T,).

    Args:
        observed: T states.
        first: Which geoms of the model are meant, shape (ngeom,).
        second: The same.
    """
    moment = np.repeat(np.arange(len(observed.contacts)), [len(pairs) for pairs in observed.contacts])
    a, b = np.concatenate([*observed.contacts, np.zeros((0, 2), np.int32)]).T
    touch = np.zeros(len(observed.contacts), np.bool_)
    touch[moment[(first[a] & second[b]) | (first[b] & second[a])]] = True
    return touch


def _points_on_body(model: Any, geom: int) -> FloatArray:
    """Points whose box is a geom's, in the frame of its body, shape (n, 3)."""
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        local = model.mesh_vert[start : start + model.mesh_vertnum[mesh]].astype(np.float64)
    else:
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        local = centre + half * np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    return np.asarray(model.geom_pos[geom] + local @ rotation_matrices(model.geom_quat[geom]).T)


def _hull(points: FloatArray) -> FloatArray:
    """Those of the points that can be outermost in some direction, and so decide about boxes."""
    if len(points) <= FEW_POINTS:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # all in one plane
        return points
