"""Where a hand takes hold of an object: between the fingers, by the rim, by what sticks out at the top, or by a handle.

A grasp is chosen once, from the collision geoms of the object and of what stands around it; the pose that it means is
read anew before every step, because the object may move.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.simulation.observing.targets import body_box, collision_geoms
from ....toolkit.simulation.scene import Scene
from .clearance import STEP_M, corners, in_the_way, inside_geoms, is_overhung
from .motion import HALF_OPEN, OPEN, HandPose, rotated

GRIPPER_WIDTH_M = 0.07
"""Widest object that the hand takes between its fingers."""

OPEN_WIDTH_M = 0.08
"""Gap between the open fingers."""

GRASP_DEPTH_M, RIM_DEPTH_M, RIM_INSET_M = 0.025, 0.027, 0.009
"""How far below the top of an object, or of its rim, the fingertips close, and how far in from the outermost point."""

KNOB_DEPTH_M = 0.008
"""How far below the top of a knob that sticks out of an object the fingertips close."""

FINGERTIP_M = 0.01
"""How far the fingertips reach past the site between them."""

ROUND_M = 0.015
"""A hollow object with two widths that differ by less is round; one that is not has a handle."""

WALL_M = 0.004
"""Half of the thickness of a wall that the fingers close on."""

HANDLE_TILT_RAD = np.radians(60.0)
"""How far from straight down the fingers point at the handle of an object."""

LEANING_AZIMUTH_RAD = np.radians(20.0)
"""Where on the rim a leaning hand takes hold: past the far side, so that its width misses the neighbours."""

AZIMUTHS_RAD = np.radians([0.0, 180.0, 30.0, -30.0, 150.0, -150.0, 60.0, -60.0, 120.0, -120.0, 90.0, -90.0])
"""Where on a rim a grasp is tried, from the far side in the order of preference."""

BESIDES_M = (0.0, 0.01, -0.01, 0.02, -0.02)
"""How far beside its middle an object is taken, where something stands in the way of the hand there."""

YAWS_RAD = np.radians(np.arange(-85.0, 91.0, 5.0))
"""Ways to turn the fingers in which an object's width is measured."""

DOWN, ACROSS, ALONG = np.array([0.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
"""The hand's approach from above, and the two ways in which its fingers may then open."""


class Hold(StrEnum):
    """How an object is held."""

    BETWEEN = "between"
    RIM = "rim"
    KNOB = "knob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grasp:
    """How to take an object, whatever it does until then.

    Attributes:
        hold: By what it is held.
        fingers: Direction in which the fingers open, unit vector, shape (3,); for a rim, the way out from the middle.
        lean_rad: How far the hand leans outward over the rim, to stay clear of what hangs over the object.
        opening: Finger command on the way: ``OPEN``, or ``HALF_OPEN`` where there is no space for more.
        beside_m: Offset from the middle of an object that is taken between the fingers, shape (3,).
    """

    hold: Hold
    fingers: FloatArray
    lean_rad: float = 0.0
    opening: float = OPEN
    beside_m: tuple[float, ...] = (0.0, 0.0, 0.0)


def choose_grasp(scene: Scene, name: str, *, to_m: FloatArray | None = None, lean_rad: float = 0.0) -> Grasp:
    """How to take an object as it stands now: the first of the usual ways in which the hand meets the least.

    Args:
        scene: The scene.
        name: The object.
        to_m: How far it will be carried, in m, shape (3,): the hand should meet little there either.
        lean_rad: How far a hand that takes it by its rim must lean outward.
    """
    ways = [np.zeros(3)] if to_m is None else [np.zeros(3), to_m]

    def met(grasp: Grasp) -> int:
        pose = grasp_pose(scene, name, grasp)
        return sum(in_the_way(scene, pose.moved(way), grasp.opening, name) for way in ways)

    return min(_tries(scene, name, lean_rad), key=met)


def _tries(scene: Scene, name: str, lean_rad: float) -> list[Grasp]:
    """Grasps of an object in the order of preference."""
    low, high = body_box(scene, f"{name}_main")
    width = high - low
    fingers = ALONG if width[0] < width[1] and width[1] > GRIPPER_WIDTH_M else ACROSS
    if width_along(scene, name, fingers) > GRIPPER_WIDTH_M:
        fingers = narrowest(scene, name)
    if width_along(scene, name, fingers) <= GRIPPER_WIDTH_M:
        return [Grasp(hold=Hold.BETWEEN, fingers=fingers, beside_m=beside) for beside in _besides(scene, name, fingers)]
    if not _is_hollow(scene, name):
        return [Grasp(hold=Hold.KNOB, fingers=ACROSS)]
    if lean_rad and is_overhung(scene, name):
        return [Grasp(hold=Hold.RIM, fingers=rotated(ACROSS, -DOWN, LEANING_AZIMUTH_RAD), lean_rad=lean_rad)]
    return [
        Grasp(hold=Hold.RIM, fingers=rotated(ACROSS, -DOWN, azimuth), opening=opening)
        for opening in (OPEN, HALF_OPEN)
        for azimuth in AZIMUTHS_RAD
    ]


def _besides(scene: Scene, name: str, fingers: FloatArray) -> list[tuple[float, ...]]:
    """Offsets from the middle at which an object is still between the fingers, the middle first."""
    length = np.cross(DOWN, fingers)
    free_m = (
        0.5 * width_along(scene, name, length) - FINGERTIP_M,
        0.5 * (OPEN_WIDTH_M - width_along(scene, name, fingers)) - FINGERTIP_M,
    )
    steps = [[step_m for step_m in BESIDES_M if abs(step_m) <= max(0.0, half_m)] for half_m in free_m]
    return [tuple(length * along + fingers * across) for across in steps[1] for along in steps[0]]


def grasp_pose(scene: Scene, name: str, grasp: Grasp) -> HandPose:
    """Where the hand closes, as the object stands now."""
    low, high = body_box(scene, f"{name}_main")
    middle = 0.5 * (low + high)
    if grasp.hold is Hold.BETWEEN:
        height = max(high[2] - GRASP_DEPTH_M, low[2] + FINGERTIP_M)
        at = np.array([middle[0], middle[1], height]) + grasp.beside_m
        return HandPose(position_m=at, approach=DOWN, fingers=grasp.fingers)
    if grasp.hold is Hold.KNOB:
        knob = _top(scene, name)
        return HandPose(position_m=knob - [0.0, 0.0, KNOB_DEPTH_M], approach=DOWN, fingers=grasp.fingers)
    outward = grasp.fingers
    rim = middle + outward * _rim_radius(scene, name, outward)
    fingers = outward if outward @ ACROSS >= -1e-9 else -outward
    upright = HandPose(position_m=np.array([rim[0], rim[1], high[2] - RIM_DEPTH_M]), approach=DOWN, fingers=fingers)
    return upright.turned(np.cross(DOWN, outward), -grasp.lean_rad)


def handle_grasp_pose(scene: Scene, name: str, outward: FloatArray) -> HandPose:
    """How to take an object by what sticks out of it furthest in a level direction, the fingers to both sides of it."""
    geoms = collision_geoms(scene, int(scene.model.body(f"{name}_main").id))
    reaches = [(corners(scene, [geom]) @ outward).max() for geom in geoms]
    middle = corners(scene, [geoms[int(np.argmax(reaches))]]).mean(axis=0)
    sideways = np.cross(-DOWN, outward)
    fingers = sideways if sideways @ ALONG >= 0.0 else -sideways
    upright = HandPose(position_m=middle, approach=DOWN, fingers=fingers)
    return upright.turned(np.cross(DOWN, outward), -HANDLE_TILT_RAD)


def narrowest(scene: Scene, name: str) -> FloatArray:
    """Level direction in which an object is narrowest, unit vector, shape (3,)."""
    directions = [rotated(ACROSS, -DOWN, yaw) for yaw in YAWS_RAD]
    return min(directions, key=lambda direction: width_along(scene, name, direction))


def width_along(scene: Scene, name: str, direction: FloatArray) -> float:
    """An object's extent along a direction, in m."""
    along = corners(scene, collision_geoms(scene, int(scene.model.body(f"{name}_main").id))) @ direction
    return float(np.ptp(along))


def _is_hollow(scene: Scene, name: str) -> bool:
    """Whether there is nothing in the middle of an object, a rim's depth below its top."""
    low, high = body_box(scene, f"{name}_main")
    middle = 0.5 * (low + high)
    depths = np.linspace(0.0, min(RIM_DEPTH_M, 0.5 * (high - low)[2]), 8)
    points = np.array([[middle[0], middle[1], high[2] - depth] for depth in depths])
    return not inside_geoms(scene, collision_geoms(scene, int(scene.model.body(f"{name}_main").id)), points).any()


def _top(scene: Scene, name: str) -> FloatArray:
    """Middle of the top of the geom that reaches highest, in m, shape (3,)."""
    geoms = collision_geoms(scene, int(scene.model.body(f"{name}_main").id))
    heights = [corners(scene, [geom])[:, 2].max() for geom in geoms]
    highest = corners(scene, [geoms[int(np.argmax(heights))]])
    return np.array([*highest[:, :2].mean(axis=0), highest[:, 2].max()])


def _rim_radius(scene: Scene, name: str, outward: FloatArray) -> float:
    """How far from the middle of a hollow object's box its wall is to be taken, in m."""
    low, high = body_box(scene, f"{name}_main")
    width = high - low
    if abs(width[0] - width[1]) < ROUND_M:
        return float(0.5 * width[1] - RIM_INSET_M)
    middle = 0.5 * (low + high)
    radii = np.arange(0.0, 0.5 * width[:2].max(), STEP_M)
    points = middle + radii[:, np.newaxis] * outward
    points[:, 2] = high[2] - RIM_DEPTH_M
    wall = inside_geoms(scene, collision_geoms(scene, int(scene.model.body(f"{name}_main").id)), points)
    return float(radii[int(np.argmax(wall))] + WALL_M) if wall.any() else float(0.5 * width[1] - RIM_INSET_M)
