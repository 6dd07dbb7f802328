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
    handle_name,
    moving_joint,
    opening_direction,
    target_positions,
)
from .motion import OPEN, Array, Motion, stay
from .skills import GRIPPER_WIDTH_M, LEVEL, pick, place, pull, tow, turn

INTO_REGION_M = 0.04
"""How far inside a region, along its upright axis, a thing is put down; LIBERO counts up to 0.10 m."""

ABOVE_M = 0.01
"""Height above the top of a thing from which another is dropped into or onto it."""

DISH_HEIGHT_M = 0.03
"""Things too wide to grasp and no higher than this are moved over the table, not lifted."""

LEAN_RAD = np.radians(30.0)
"""How far the hand leans outward to take things from under an open drawer."""

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
        if predicate[0] not in ("on", "in", "open", "turnon"):
            raise InvalidInputError(f"the scripted agents have no skill for {predicate} in {task.task_id}")


def pursue(scene: Scene, *, empty: bool = False) -> Motion:
    """Work on the base task's goal, part by part, again and again until it holds; then hold still.

    Args:
        scene: The scene.
        empty: Go the same ways with an empty hand, forever.
    """
    while True:
        for predicate in scene.task.goal:
            if empty or not scene.holds(predicate):
                yield from _achieve(scene, predicate, empty=empty)
        if not empty and scene.succeeded():
            yield from stay(scene, OPEN, 1)


def _achieve(scene: Scene, predicate: tuple[str, ...], *, empty: bool) -> Motion:
    relation, subject = predicate[0], predicate[1]
    if relation == "open":
        yield from pull(scene, handle_name(subject), empty=empty)
    elif relation == "turnon":
        yield from turn(scene, subject + KNOB, empty=empty)
    elif _is_dish_on_table(scene, subject, predicate[2]):
        yield from tow(scene, subject, _path_past_others(scene, subject, predicate[2]), empty=empty)
    else:
        lean_rad = 0.0
        if relation == "in" and _is_drawer(scene, predicate[2]):
            lean_rad = float(LEAN_RAD)
            if not scene.holds(("open", predicate[2])):
                yield from pull(scene, handle_name(predicate[2]), empty=empty)
        yield from pick(scene, subject, empty=empty, lean_rad=lean_rad)
        yield from place(scene, subject, _destination(scene, predicate[2]), empty=empty)


def _destination(scene: Scene, place_name: str) -> Callable[[], Array]:
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
    if parent in libero.objects_dict:
        return lambda: _above(scene, f"{parent}_main", scene.data.site_xpos[site])
    return lambda: scene.data.site_xpos[site] + INTO_REGION_M * scene.data.site_xmat[site].reshape(3, 3)[:, 2]


def _above(scene: Scene, body: str, middle: Array) -> Array:
    _, high = body_box(scene, body)
    return np.array([middle[0], middle[1], high[2] + ABOVE_M])


def _is_drawer(scene: Scene, region: str) -> bool:
    site = scene.libero.object_sites_dict.get(region)
    return bool(getattr(site, "joints", None))


def _is_dish_on_table(scene: Scene, subject: str, region: str) -> bool:
    site = scene.libero.object_sites_dict.get(region)
    if site is None or scene.libero.get_object(site.parent_name) is not None:
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
