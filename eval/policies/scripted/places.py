"""Where objects go: on or in a place, side by side, into a compartment or a chamber, and past what stands around."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.simulation.observing.targets import (
    body_box,
    handle_name,
    moving_joint,
    opening_direction,
    target_positions,
)
from ....toolkit.simulation.scene import Scene
from .clearance import free_way, in_the_way
from .grasping import ACROSS, ALONG, GRIPPER_WIDTH_M, Grasp, Hold, choose_grasp, grasp_pose
from .motion import OPEN
from .skills import LEVEL, LOWERING_M, underside

INTO_REGION_M = 0.04
"""How far inside a region, along its upright axis, an object is put down; LIBERO counts up to 0.10 m."""

ABOVE_M = 0.01
"""Height above the top of an object from which another is dropped into or onto it."""

DISH_HEIGHT_M = 0.03
"""Objects too wide to grasp and no higher than this are moved over the table, not lifted."""

BACK_GAP_M = 0.02
"""Gap left behind an object that is put into a chamber."""

SIDE_GAP_M = 0.006
"""Gap left between objects that are put down side by side."""

SPOT_SHARE = 0.6
"""How far out in a region of the table, of its half sizes, an object may be put down."""

UP = np.array([0.0, 0.0, 1.0])

PASSING_MARGIN_M = 0.01
"""Gap to what a dish is towed past."""

CORNER_M = 0.03
"""How far beyond what a dish is towed past it goes on before it turns."""


def resting_place(scene: Scene, relation: str, subject: str, place_name: str) -> Callable[[], FloatArray]:
    """Where the underside of an object goes that should be on or in a place, in m, shape (3,), as a function of now.

    A function, since places move: a drawer is pulled out, a plate is pushed.
    """
    middle = _middle(scene, relation, place_name)
    beside = _beside_others(scene, relation, subject, place_name)
    if _is_on_table(scene, place_name):
        beside = _free_spot(scene, subject, place_name, middle())
    return lambda: np.asarray(middle() + beside)


def _middle(scene: Scene, relation: str, place_name: str) -> Callable[[], FloatArray]:
    libero = scene.libero
    if place_name not in libero.object_sites_dict:
        return lambda: _above(scene, f"{place_name}_main", target_positions(scene, [place_name])[0])
    site = scene.model.site(place_name).id
    if is_drawer(scene, place_name):
        joint = moving_joint(scene, handle_name(place_name))
        drawer = scene.model.body(scene.model.jnt_bodyid[joint]).name
        address, travel_m = scene.model.jnt_qposadr[joint], np.abs(scene.model.jnt_range[joint]).max()

        def above_open_drawer() -> FloatArray:
            # For an empty hand the drawer is still shut: go where it would be.
            still_m = max(0.0, travel_m - abs(scene.data.qpos[address]))
            middle = scene.data.site_xpos[site] + opening_direction(scene, joint) * still_m
            return _above(scene, drawer, middle)

        return above_open_drawer
    parent = libero.object_sites_dict[place_name].parent_name
    if parent in libero.objects_dict or (relation == "in" and parent is not None):
        return lambda: _above(scene, f"{parent}_main", scene.data.site_xpos[site])
    return lambda: scene.data.site_xpos[site] + INTO_REGION_M * scene.data.site_xmat[site].reshape(3, 3)[:, 2]


def _beside_others(scene: Scene, relation: str, subject: str, place_name: str) -> FloatArray:
    """Offset, in m, shape (3,), from the middle of a place that several objects of the goal share, side by side."""
    sharing = [part[1] for part in scene.task.goal if part[0] == "on" == relation and part[2:] == (place_name,)]
    rank = sharing.index(subject) - 0.5 * (len(sharing) - 1) if subject in sharing else 0.0
    low, high = body_box(scene, f"{subject}_main")
    narrow = int(np.argmin((high - low)[:2]))
    return np.asarray(np.eye(3)[narrow] * rank * ((high - low)[narrow] + SIDE_GAP_M))


def _is_on_table(scene: Scene, place_name: str) -> bool:
    """Whether a place is a part of the table, and not of a fixture or an object."""
    site = scene.libero.object_sites_dict.get(place_name)
    return site is not None and scene.libero.get_object(site.parent_name) is None


def _free_spot(scene: Scene, subject: str, region: str, middle: FloatArray) -> FloatArray:
    """Offset, in m, shape (3,), from the middle of a region of the table to where the hand meets the least."""
    half = SPOT_SHARE * np.array(scene.libero.object_sites_dict[region].size[:2])
    spots = [np.array([x * half[0], y * half[1], 0.0]) for x, y in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))]
    pose = grasp_pose(scene, subject, choose_grasp(scene, subject)).moved(middle - underside(scene, subject))
    return min(spots, key=lambda spot: in_the_way(scene, pose.moved(spot), OPEN, subject))


def fit(scene: Scene, subject: str, grasp: Grasp, relation: str, place_name: str) -> tuple[FloatArray | None, float]:
    """How to turn the fingers over a narrow compartment, None for any way, and how far to lower an object into it."""
    region = scene.libero.object_sites_dict.get(place_name)
    parent = getattr(region, "parent_name", None)
    if relation != "in" or parent not in scene.libero.fixtures_dict or is_drawer(scene, place_name):
        return None, LOWERING_M
    site = scene.data.site(place_name)
    halves = np.abs(site.xmat.reshape(3, 3) @ np.array(region.size))
    bottom = float(site.xpos[2] - halves[2])
    lowering_m = body_box(scene, f"{parent}_main")[1][2] - bottom
    narrow = ALONG if halves[0] < halves[1] else ACROSS
    return (narrow if grasp.hold is Hold.BETWEEN else None), float(lowering_m)


def chamber(scene: Scene, relation: str, place_name: str) -> str | None:
    """Name of the fixture with a door that a place is inside of, such as a microwave."""
    site = scene.libero.object_sites_dict.get(place_name)
    parent = getattr(site, "parent_name", None)
    if relation != "in" or parent not in scene.libero.fixtures_dict or is_drawer(scene, place_name):
        return None
    joints = getattr(scene.libero.fixtures_dict[parent], "joints", None) or []
    return str(parent) if len(joints) == 1 else None


def standing_place(scene: Scene, subject: str, region: str, outward: FloatArray) -> Callable[[], FloatArray]:
    """Where the underside of an object stands in a chamber: amid its walls, near its back."""
    middle = np.array(scene.data.site_xpos[scene.model.site(region).id])
    sideways = np.asarray(np.cross(outward, UP))
    ways = np.array([sideways, -sideways, -outward, -UP])
    span = [free_way(scene, subject, middle, way) for way in ways]
    centre = middle + sideways * 0.5 * (span[0] - span[1]) - UP * span[3]
    low, high = body_box(scene, f"{subject}_main")
    depth_m = float(np.abs(0.5 * (high - low) @ outward))

    def standing() -> FloatArray:
        box = body_box(scene, f"{subject}_main")
        off_middle = (target_positions(scene, [subject])[0] - 0.5 * (box[0] + box[1])) * LEVEL
        return np.asarray(centre - outward * (span[2] - BACK_GAP_M - depth_m) + off_middle)

    return standing


def _above(scene: Scene, body: str, middle: FloatArray) -> FloatArray:
    _, high = body_box(scene, body)
    return np.array([middle[0], middle[1], high[2] + ABOVE_M])


def is_drawer(scene: Scene, region: str) -> bool:
    """Whether a place is inside of a drawer."""
    site = scene.libero.object_sites_dict.get(region)
    return bool(getattr(site, "joints", None))


def is_dish_on_table(scene: Scene, subject: str, region: str) -> bool:
    """Whether an object is a dish, too flat and wide to grasp, that belongs to a region of the table."""
    if not _is_on_table(scene, region):
        return False
    low, high = body_box(scene, f"{subject}_main")
    return bool((high - low)[2] <= DISH_HEIGHT_M and (high - low)[:2].min() > GRIPPER_WIDTH_M)


def path_past_others(scene: Scene, dish: str, region: str) -> list[FloatArray]:
    """Points over which a dish gets into a region of the table without jamming what stands in the straight way."""
    start = target_positions(scene, [dish])[0] * LEVEL
    goal = np.array(scene.data.site_xpos[scene.model.site(region).id])
    way = goal * LEVEL - start
    heading = way / np.linalg.norm(way)
    others = [other for other in scene.libero.objects_dict if other != dish]
    positions = target_positions(scene, others) * LEVEL
    along = np.clip((positions - start) @ heading, 0.0, np.linalg.norm(way))
    off = positions - start - along[:, np.newaxis] * heading
    apart_m = np.array([_radius(scene, other) for other in others]) + _radius(scene, dish) + PASSING_MARGIN_M
    overlaps_m = np.where(along > 0.0, apart_m - np.linalg.norm(off, axis=1), -np.inf)
    worst = int(np.argmax(overlaps_m))
    if overlaps_m[worst] <= 0.0:
        return [goal]
    side = np.cross(heading, [0.0, 0.0, 1.0])
    side *= -1.0 if off[worst] @ side > 0.0 else 1.0
    half_size = float(np.min(scene.libero.object_sites_dict[region].size[:2]))
    beside = positions[worst] + side * apart_m[worst] + heading * CORNER_M
    return [beside, goal + half_size * (0.6 * side + 0.4 * heading)]


def _radius(scene: Scene, name: str) -> float:
    """Half of an object's width at its widest, in m."""
    low, high = body_box(scene, f"{name}_main")
    return float(0.5 * (high - low)[:2].max())
