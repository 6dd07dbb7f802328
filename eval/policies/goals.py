"""From a base task's goal to the skills that bring it about, planned from simulator names, not from language."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...toolkit.errors import InvalidInputError
from ...toolkit.records import BaseTask
from ...toolkit.simulation.scene import Scene
from ...toolkit.simulation.targets import (
    KNOB,
    body_box,
    goal_targets,
    handle_name,
    moving_joint,
    opening_direction,
    target_positions,
)
from .clearance import free_way, in_the_way
from .fixtures import press, pull, turn, way_out
from .grasping import ACROSS, ALONG, DOWN, GRIPPER_WIDTH_M, Grasp, Hold, choose_grasp, grasp_pose
from .motion import OPEN, Array, Motion, Pose, reach, stay
from .skills import LEVEL, LOWERING_M, insert, pick, place, tow, underside

INTO_REGION_M = 0.04
"""How far inside a region, along its upright axis, a thing is put down; LIBERO counts up to 0.10 m."""

ABOVE_M = 0.01
"""Height above the top of a thing from which another is dropped into or onto it."""

DISH_HEIGHT_M = 0.03
"""Things too wide to grasp and no higher than this are moved over the table, not lifted."""

LEAN_RAD = np.radians(30.0)
"""How far the hand leans outward to take things from under an open drawer."""

BACK_GAP_M = 0.02
"""Gap left behind a thing that is put into a chamber."""

SIDE_GAP_M = 0.006
"""Gap left between things that are put down side by side."""

FIXTURE_ABOVE_M = 0.3
"""Height above a fixture's origin at which a hand that was sent there waits."""

SPOT_SHARE = 0.6
"""How far out in a region of the table, of its half sizes, a thing may be put down."""

UP = np.array([0.0, 0.0, 1.0])

PASSING_MARGIN_M = 0.01
"""Gap to what a dish is towed past."""

CORNER_M = 0.03
"""How far beyond what a dish is towed past it goes on before it turns."""


def check_goal(task: BaseTask) -> None:
    """Make sure that there is a skill for every part of a task's goal.

    Raises:
        InvalidInputError: There is none for some part.
    """
    for predicate in task.goal:
        if predicate[0] not in ("on", "in", "open", "close", "turnon"):
            raise InvalidInputError(f"the scripted agents have no skill for {predicate} in {task.task_id}")


def pursue(scene: Scene, *, empty: bool = False) -> Motion:
    """Work on the base task's goal, part by part, again and again until it holds; then hold still.

    Args:
        scene: The scene.
        empty: Go the same ways with an empty hand, forever.
    """
    # What is to be shut is shut last, whatever the order in which LIBERO states the goal.
    parts = sorted(scene.task.goal, key=lambda predicate: predicate[0] == "close")
    while True:
        for predicate in parts:
            if empty or _is_next(scene, predicate):
                yield from _achieve(scene, predicate, empty=empty)
        if not empty and scene.succeeded():
            yield from stay(scene, OPEN, 1)


def handle_another(scene: Scene) -> Motion:
    """Take up the object that is furthest from all targets and put it down where it stood, again and again.

    Where everything that can be taken is a target, the hand goes to the fixture that is furthest from them, and waits
    above it.
    """
    targets = target_positions(scene, goal_targets(scene.task))

    def apart_m(name: str) -> float:
        return float(np.linalg.norm(targets - target_positions(scene, [name])[0], axis=1).min())

    spared = {name for part in scene.task.goal for name in part[1:]}
    sites = scene.libero.object_sites_dict
    spared |= {sites[name].parent_name for name in spared & set(sites)}
    others = [name for name in scene.libero.objects_dict if name not in spared]
    if not others:
        fixture = max((name for name in scene.libero.fixtures_dict if name in scene.libero.obj_body_id), key=apart_m)
        above = target_positions(scene, [fixture])[0] + UP * FIXTURE_ABOVE_M
        pose = Pose(position_m=above, approach=DOWN, fingers=ACROSS)
        yield from reach(scene, lambda: pose, OPEN)
        while True:
            yield from stay(scene, OPEN)
    other = max(others, key=apart_m)
    stood = underside(scene, other)
    while True:
        grasp = choose_grasp(scene, other)
        yield from pick(scene, other, grasp, empty=False)
        yield from place(scene, other, grasp, lambda: stood, empty=False)


def _is_next(scene: Scene, predicate: tuple[str, ...]) -> bool:
    """Whether a part of the goal is to be worked on: it does not hold, and nothing is shut before all else holds."""
    others = [other for other in scene.task.goal if other[0] != "close"]
    return not scene.holds(predicate) and (predicate[0] != "close" or all(scene.holds(other) for other in others))


def _achieve(scene: Scene, predicate: tuple[str, ...], *, empty: bool) -> Motion:
    relation, subject = predicate[0], predicate[1]
    if relation == "turnon":
        yield from turn(scene, subject + KNOB, empty=empty)
    elif relation == "open":
        yield from pull(scene, handle_name(subject), empty=empty)
    elif relation == "close":
        yield from press(scene, handle_name(subject), empty=empty)
    else:
        yield from _bring(scene, relation, subject, predicate[2], empty=empty)


def _bring(scene: Scene, relation: str, subject: str, place_name: str, *, empty: bool) -> Motion:
    """Bring a thing onto or into a place."""
    if _is_dish_on_table(scene, subject, place_name):
        yield from tow(scene, subject, _path_past_others(scene, subject, place_name), empty=empty)
        return
    chamber = _chamber(scene, relation, place_name)
    if chamber is not None:
        outward = way_out(scene, handle_name(chamber))
        yield from insert(scene, subject, outward, _inside(scene, subject, place_name, outward), empty=empty)
        return
    lean_rad = 0.0
    if relation == "in" and _is_drawer(scene, place_name) and not scene.holds(("open", place_name)):
        yield from pull(scene, handle_name(place_name), empty=empty)
    if relation == "in" and _is_drawer(scene, place_name):
        lean_rad = float(LEAN_RAD)
    middle = _destination(scene, relation, place_name)
    beside = _beside_others(scene, relation, subject, place_name)
    if _is_on_table(scene, place_name):
        beside = _free_spot(scene, subject, place_name, middle())

    def destination() -> Array:
        return np.asarray(middle() + beside)

    grasp = choose_grasp(scene, subject, to_m=destination() - underside(scene, subject), lean_rad=lean_rad)
    yield from pick(scene, subject, grasp, empty=empty)
    fingers, lowering_m = _fit(scene, subject, grasp, relation, place_name)
    yield from place(scene, subject, grasp, destination, empty=empty, fingers=fingers, lowering_m=lowering_m)


def _destination(scene: Scene, relation: str, place_name: str) -> Callable[[], Array]:
    """Where the underside of a thing goes that should be on or in a place: a function, since places move."""
    libero = scene.libero
    if place_name not in libero.object_sites_dict:
        return lambda: _above(scene, f"{place_name}_main", target_positions(scene, [place_name])[0])
    site = scene.model.site(place_name).id
    if _is_drawer(scene, place_name):
        joint = moving_joint(scene, handle_name(place_name))
        drawer = scene.model.body(scene.model.jnt_bodyid[joint]).name
        address, travel_m = scene.model.jnt_qposadr[joint], np.abs(scene.model.jnt_range[joint]).max()

        def above_open_drawer() -> Array:
            # For an empty hand the drawer is still shut: go where it would be.
            still_m = max(0.0, travel_m - abs(scene.data.qpos[address]))
            middle = scene.data.site_xpos[site] + opening_direction(scene, joint) * still_m
            return _above(scene, drawer, middle)

        return above_open_drawer
    parent = libero.object_sites_dict[place_name].parent_name
    if parent in libero.objects_dict or (relation == "in" and parent is not None):
        return lambda: _above(scene, f"{parent}_main", scene.data.site_xpos[site])
    return lambda: scene.data.site_xpos[site] + INTO_REGION_M * scene.data.site_xmat[site].reshape(3, 3)[:, 2]


def _beside_others(scene: Scene, relation: str, subject: str, place_name: str) -> Array:
    """Offset, in m, shape (3,), from the middle of a place that several things of the goal share, side by side."""
    sharing = [part[1] for part in scene.task.goal if part[0] == "on" == relation and part[2:] == (place_name,)]
    rank = sharing.index(subject) - 0.5 * (len(sharing) - 1) if subject in sharing else 0.0
    low, high = body_box(scene, f"{subject}_main")
    narrow = int(np.argmin((high - low)[:2]))
    return np.asarray(np.eye(3)[narrow] * rank * ((high - low)[narrow] + SIDE_GAP_M))


def _is_on_table(scene: Scene, place_name: str) -> bool:
    """Whether a place is a part of the table, and not of a fixture or an object."""
    site = scene.libero.object_sites_dict.get(place_name)
    return site is not None and scene.libero.get_object(site.parent_name) is None


def _free_spot(scene: Scene, subject: str, region: str, middle: Array) -> Array:
    """Offset, in m, shape (3,), from the middle of a region of the table to where the hand meets the least."""
    half = SPOT_SHARE * np.array(scene.libero.object_sites_dict[region].size[:2])
    spots = [np.array([x * half[0], y * half[1], 0.0]) for x, y in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))]
    pose = grasp_pose(scene, subject, choose_grasp(scene, subject)).moved(middle - underside(scene, subject))
    return min(spots, key=lambda spot: in_the_way(scene, pose.moved(spot), OPEN, subject))


def _fit(scene: Scene, subject: str, grasp: Grasp, relation: str, place_name: str) -> tuple[Array | None, float]:
    """How to turn the fingers over a narrow compartment, None if no matter, and how far to lower a thing into it."""
    region = scene.libero.object_sites_dict.get(place_name)
    parent = getattr(region, "parent_name", None)
    if relation != "in" or parent not in scene.libero.fixtures_dict or _is_drawer(scene, place_name):
        return None, LOWERING_M
    site = scene.data.site(place_name)
    halves = np.abs(site.xmat.reshape(3, 3) @ np.array(region.size))
    bottom = float(site.xpos[2] - halves[2])
    lowering_m = body_box(scene, f"{parent}_main")[1][2] - bottom
    narrow = ALONG if halves[0] < halves[1] else ACROSS
    return (narrow if grasp.hold is Hold.BETWEEN else None), float(lowering_m)


def _chamber(scene: Scene, relation: str, place_name: str) -> str | None:
    """Name of the fixture with a door whose inside a place is, such as a microwave."""
    site = scene.libero.object_sites_dict.get(place_name)
    parent = getattr(site, "parent_name", None)
    if relation != "in" or parent not in scene.libero.fixtures_dict or _is_drawer(scene, place_name):
        return None
    joints = getattr(scene.libero.fixtures_dict[parent], "joints", None) or []
    return str(parent) if len(joints) == 1 else None


def _inside(scene: Scene, subject: str, region: str, outward: Array) -> Callable[[], Array]:
    """Where the underside of a thing stands in a chamber: amid its walls, near its back."""
    middle = np.array(scene.data.site_xpos[scene.model.site(region).id])
    sideways = np.asarray(np.cross(outward, UP))
    ways = np.array([sideways, -sideways, -outward, -UP])
    span = [free_way(scene, subject, middle, way) for way in ways]
    centre = middle + sideways * 0.5 * (span[0] - span[1]) - UP * span[3]
    low, high = body_box(scene, f"{subject}_main")
    depth_m = float(np.abs(0.5 * (high - low) @ outward))

    def standing() -> Array:
        box = body_box(scene, f"{subject}_main")
        off_middle = (target_positions(scene, [subject])[0] - 0.5 * (box[0] + box[1])) * LEVEL
        return np.asarray(centre - outward * (span[2] - BACK_GAP_M - depth_m) + off_middle)

    return standing


def _above(scene: Scene, body: str, middle: Array) -> Array:
    _, high = body_box(scene, body)
    return np.array([middle[0], middle[1], high[2] + ABOVE_M])


def _is_drawer(scene: Scene, region: str) -> bool:
    site = scene.libero.object_sites_dict.get(region)
    return bool(getattr(site, "joints", None))


def _is_dish_on_table(scene: Scene, subject: str, region: str) -> bool:
    if not _is_on_table(scene, region):
        return False
    low, high = body_box(scene, f"{subject}_main")
    return bool((high - low)[2] <= DISH_HEIGHT_M and (high - low)[:2].min() > GRIPPER_WIDTH_M)


def _path_past_others(scene: Scene, dish: str, region: str) -> list[Array]:
    """Points over which a dish gets into a region of the table without jamming what stands in the straight way."""
    start = target_positions(scene, [dish])[0] * LEVEL
    goal = np.array(scene.data.site_xpos[scene.model.site(region).id])
    way = goal * LEVEL - start
    heading = way / np.linalg.norm(way)
    others = [other for other in scene.libero.objects_dict if other != dish]
    positions = target_positions(scene, others) * LEVEL
    along = np.clip((positions - start) @ heading, 0.0, np.linalg.norm(way))
    off = positions - start - along[:, np.newaxis] * heading
    rooms_m = np.array([_radius(scene, other) for other in others]) + _radius(scene, dish) + PASSING_MARGIN_M
    overlaps_m = np.where(along > 0.0, rooms_m - np.linalg.norm(off, axis=1), -np.inf)
    worst = int(np.argmax(overlaps_m))
    if overlaps_m[worst] <= 0.0:
        return [goal]
    side = np.cross(heading, [0.0, 0.0, 1.0])
    side *= -1.0 if off[worst] @ side > 0.0 else 1.0
    half_size = float(np.min(scene.libero.object_sites_dict[region].size[:2]))
    beside = positions[worst] + side * rooms_m[worst] + heading * CORNER_M
    return [beside, goal + half_size * (0.6 * side + 0.4 * heading)]


def _radius(scene: Scene, name: str) -> float:
    """Half of an object's width at its widest, in m."""
    low, high = body_box(scene, f"{name}_main")
    return float(0.5 * (high - low)[:2].max())
