"""What a hand would meet on its way: points of the hand against the boxes of the scene's collision geoms."""

from __future__ import annotations

import itertools

import numpy as np

from ....toolkit.arrays import BoolArray, FloatArray
from ....toolkit.simulation.observing.targets import body_box, collision_geoms
from ....toolkit.simulation.scene import Scene
from .motion import OPEN, HandPose

STEP_M = 0.001
"""How finely the next wall is sought along a line."""

FINGER_M = 0.026
"""Thickness of a finger."""

MARGIN_M, WAY_MARGIN_M = 0.005, 0.015
"""Gap at a grasp and on the way: objects may be thinner than the points are apart, and ways not quite straight."""

WAY_STEP_M = 0.02
"""How finely a way is looked at."""

RISES_M = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2)
"""How much higher than its ends a way over obstacles is tried."""

OVERHANG_M = 0.3
"""What is up to this height above an object hangs over it."""

ROBOT = ("robot0", "gripper0", "mount0")
"""How the names of the robot's bodies begin."""


def inside_geoms(scene: Scene, geoms: list[int], points: FloatArray, margin_m: float = 0.0) -> BoolArray:
    """Which points, shape (P, 3), lie within the geoms' own boxes, made larger by a margin, shape (P,)."""
    geoms = _near(scene, geoms, points, margin_m)
    rotations = np.array(scene.data.geom_xmat[geoms]).reshape(-1, 3, 3)
    local = np.einsum("gji,gpj->gpi", rotations, points - scene.data.geom_xpos[geoms][:, np.newaxis])
    box = scene.model.geom_aabb[geoms, np.newaxis]
    return np.asarray(np.all(np.abs(local - box[..., :3]) <= box[..., 3:] + margin_m, axis=2).any(axis=0))


def _near(scene: Scene, geoms: list[int], points: FloatArray, margin_m: float) -> list[int]:
    """Those of the geoms whose boxes, made larger by a margin, any of the points may lie in: most are far from all."""
    centres, halves = scene.model.geom_aabb[geoms, :3], scene.model.geom_aabb[geoms, 3:]
    reach = np.linalg.norm(np.abs(centres) + halves + margin_m, axis=1)
    origins = scene.data.geom_xpos[geoms]
    beyond = np.maximum(points.min(axis=0) - origins, origins - points.max(axis=0)).max(axis=1)
    return [geom for geom, near in zip(geoms, beyond <= reach, strict=True) if near]


def corners(scene: Scene, geoms: list[int]) -> FloatArray:
    """Corners of the geoms' own boxes in the world, in m, shape (8 N, 3)."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
    local = scene.model.geom_aabb[geoms, np.newaxis, :3] + signs * scene.model.geom_aabb[geoms, np.newaxis, 3:]
    rotations = np.array(scene.data.geom_xmat[geoms]).reshape(-1, 3, 3)
    world = scene.data.geom_xpos[geoms][:, np.newaxis] + np.einsum("gij,gcj->gci", rotations, local)
    return np.asarray(world.reshape(-1, 3))


def free_way(scene: Scene, name: str, start: FloatArray, direction: FloatArray, longest_m: float = 0.5) -> float:
    """How far it is from a point along a direction until something is met, other than the robot and one object."""
    distances = np.arange(0.0, longest_m, STEP_M)
    met = inside_geoms(scene, _surroundings(scene, name), start + distances[:, np.newaxis] * direction)
    return float(distances[int(np.argmax(met))]) if met.any() else longest_m


def is_overhung(scene: Scene, name: str) -> bool:
    """Whether anything hangs over an object."""
    low, high = body_box(scene, f"{name}_main")
    axes = (
        np.linspace(low[0], high[0], 5),
        np.linspace(low[1], high[1], 5),
        high[2] + np.arange(0.01, OVERHANG_M, 0.01),
    )
    points = np.array(np.meshgrid(*axes)).reshape(3, -1).T
    return bool(inside_geoms(scene, _surroundings(scene, name), points).any())


def in_the_way(scene: Scene, pose: HandPose, opening: float, name: str) -> int:
    """How many points of a hand in a pose are within something other than one object.

    Args:
        scene: The scene.
        pose: The pose.
        opening: Finger command.
        name: The object that it may touch.
    """
    points = pose.position_m + hand_points(opening) @ pose.rotation.T
    return int(inside_geoms(scene, _surroundings(scene, name), points, MARGIN_M).sum())


def way_over(scene: Scene, start: HandPose, end: HandPose, name: str, *, carried: bool) -> list[FloatArray]:
    """Points in m, shape (3,), over which a hand gets from pose to pose without meeting what stands in between.

    Args:
        scene: The scene.
        start: Where the hand is.
        end: Where it should be.
        name: An object that it may touch.
        carried: Whether it carries that object.

    Returns:
        Nothing where the straight way is the clearest, else a point above the start and one above the end.
    """
    around = _surroundings(scene, name)
    body = hand_points(OPEN) @ end.rotation.T
    if carried:
        own = corners(scene, collision_geoms(scene, int(scene.model.body(f"{name}_main").id)))
        body = np.concatenate([body, own - scene.grip_pos()])
    ways: list[list[FloatArray]] = []
    met: list[int] = []
    for rise_m in RISES_M:
        height = max(start.position_m[2], end.position_m[2]) + rise_m
        ways.append([np.array([*pose.position_m[:2], height]) for pose in (start, end)] if rise_m else [])
        swept = _swept(body, [start.position_m, *ways[-1], end.position_m])
        met.append(int(inside_geoms(scene, around, swept, WAY_MARGIN_M).sum()))
        if not met[-1]:
            break
    return ways[int(np.argmin(met))]


def hand_points(opening: float) -> FloatArray:
    """Points on the outside of fingers, palm and wrist, from the site between the fingertips, in m, shape (P, 3)."""
    gap_m = 0.04 if opening == OPEN else 0.02
    finger = gap_m + np.linspace(0.0, FINGER_M, 3)
    across = [*-finger, *finger]
    fingers = np.array(np.meshgrid(across, [-0.012, 0.0, 0.012], [-0.04, -0.015, 0.01]))
    palm = np.array(np.meshgrid(np.linspace(-0.107, 0.107, 15), np.linspace(-0.035, 0.035, 5), [-0.12, -0.075, -0.031]))
    wrist = np.array(np.meshgrid([-0.05, 0.05], [-0.05, 0.05], [-0.22, -0.16]))
    return np.asarray(np.concatenate([part.reshape(3, -1) for part in (fingers, palm, wrist)], axis=1).T)


def _swept(body: FloatArray, way: list[FloatArray]) -> FloatArray:
    """Points of a body along a way, from its second step on: where it stands now, it may well touch something."""
    stops = []
    for here, there in itertools.pairwise(way):
        count = max(2, int(np.linalg.norm(there - here) / WAY_STEP_M))
        stops.append(here + np.linspace(0.0, 1.0, count)[1:, np.newaxis] * (there - here))
    return np.asarray((np.concatenate(stops)[:, np.newaxis] + body).reshape(-1, 3))


def _surroundings(scene: Scene, name: str) -> list[int]:
    """Collision geoms of everything but the robot and one object."""
    model = scene.model
    own = int(model.body(f"{name}_main").id)
    bodies = [b for b in range(model.nbody) if b != own and not model.body(b).name.startswith(ROBOT)]
    return [geom for body in bodies for geom in collision_geoms(scene, body)]
