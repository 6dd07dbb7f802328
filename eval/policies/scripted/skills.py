"""Motion skills of the scripted agents for objects: pick, place, insert, tow a dish.

Every skill takes ``empty``: an empty hand goes the same way, but never closes, and stops short of moving what it
reaches for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.simulation.observing.targets import body_box, target_positions
from ....toolkit.simulation.scene import Scene
from .clearance import way_over
from .grasping import ACROSS, DOWN, FINGERTIP_M, Grasp, grasp_pose, handle_grasp_pose
from .motion import (
    ARRIVED_M,
    CLOSED,
    HALF_OPEN,
    HALF_OPEN_STEPS,
    OPEN,
    PASSED_M,
    TOUCH_SPEED,
    HandPose,
    Motion,
    action_toward,
    go,
    present_pose,
    reach,
    shift,
    stay,
)

HOVER_M = 0.08
"""Height above a grasp from which the hand comes down straight, and to which it lifts."""

CLEARANCE_M = 0.03
"""Gap between what is carried and what it is carried over."""

LOWERING_M = 0.07
"""How far below a destination an object is lowered if nothing stops it earlier."""

SLIPPED_M = 0.04
"""An object that has moved this far in the hand has slipped from it."""

LEANING_HOVER_M = 0.16
"""How far back along its approach a leaning hand lines up, to come in under what hangs over the object."""

SIDESTEP_M = 0.13
"""How far an object is brought out from under what hangs over it, before it is lifted."""

INSERT_RISE_M, INSERT_RUN_UP_M, INSERT_SPEED = 0.015, 0.1, 0.4
"""Inserting: gap under the object, how far in front of the opening it is lined up, and the speed going in."""

TOW_AHEAD_M, TOW_LEAD_M, TOW_SHORT_M, TOW_LOST_M = 0.02, 0.03, 0.018, 0.08
TOW_PRESS_M = 0.004
"""Towing: how far ahead of the middle the fingertips go down, how far ahead of themselves they are sent, how far
above the dish an empty hand stays, how far off the dish counts as having lost it, and how much below where they
stand the fingertips are sent, so that they do not slip over the rim."""

TOW_SPEED = 0.4
"""Largest translation component of an empty hand that tows nothing: about the pace of one that does."""

LEVEL = np.array([1.0, 1.0, 0.0])
"""Keeps the part of a vector that lies in the plane of the table."""


def pick(scene: Scene, name: str, grasp: Grasp, *, empty: bool) -> Motion:
    """Take an object from above and lift it."""

    def back(distance_m: float) -> HandPose:
        pose = grasp_pose(scene, name, grasp)
        return pose.moved(-distance_m * pose.approach)

    opening = grasp.opening
    yield from _over(scene, name, back(LEANING_HOVER_M if grasp.lean_rad else HOVER_M), OPEN)
    if grasp.lean_rad:
        yield from reach(scene, lambda: back(LEANING_HOVER_M), opening, within_m=PASSED_M)
    yield from reach(scene, lambda: back(HOVER_M), OPEN)
    if opening == HALF_OPEN:
        yield from stay(scene, CLOSED, HALF_OPEN_STEPS)
    yield from reach(scene, lambda: back(0.0), opening, speed=TOUCH_SPEED)
    gripper = opening if empty else CLOSED
    yield from stay(scene, gripper)
    if grasp.lean_rad:
        # What hangs over the object is in the way of lifting it straight: bring it out from under first.
        aside = back(0.0).fingers * [SIDESTEP_M, SIDESTEP_M, 0.0] + [0.0, 0.0, CLEARANCE_M]
        yield from shift(scene, aside, gripper)
    yield from shift(scene, [0.0, 0.0, HOVER_M], gripper)


def place(
    scene: Scene,
    name: str,
    grasp: Grasp,
    destination: Callable[[], FloatArray],
    *,
    empty: bool,
    fingers: FloatArray | None = None,
    lowering_m: float = LOWERING_M,
) -> Motion:
    """Carry an object over a destination, lower it until something stops it, let go and withdraw.

    Args:
        scene: The scene.
        name: The object in hand.
        grasp: How it was taken.
        destination: Where the object's underside should come to lie at the highest, in m, shape (3,); asked before
            every step.
        empty: The hand holds nothing, and goes where it would if it did.
        fingers: How the hand should be turned there; by default as it is.
        lowering_m: How far below the destination it is lowered if nothing stops it earlier.
    """
    held = present_pose(scene)
    carried = grasp_pose(scene, name, grasp).position_m - underside(scene, name)
    turned = held.fingers if fingers is None else fingers

    def over(height_m: float) -> HandPose:
        offset = carried if empty else scene.grip_pos() - underside(scene, name)
        position = destination() + offset + np.array([0.0, 0.0, height_m])
        return HandPose(position_m=position, approach=held.approach, fingers=turned)

    def carry(gripper: float) -> Motion:
        rise_m = max(over(CLEARANCE_M).position_m[2] - scene.grip_pos()[2], 0.0)
        yield from shift(scene, [0.0, 0.0, rise_m], gripper)
        yield from _over(scene, name, over(CLEARANCE_M), gripper, carried=not empty)
        yield from reach(scene, lambda: over(CLEARANCE_M), gripper)
        if not empty:
            yield from reach(scene, lambda: over(-lowering_m), gripper)

    yield from carry(grasp.opening) if empty else _while_held(scene, name, carry(CLOSED))
    yield from stay(scene, OPEN)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def insert(scene: Scene, name: str, outward: FloatArray, resting: Callable[[], FloatArray], *, empty: bool) -> Motion:
    """Take an object by its handle, bring it into a chamber through the opening at its side, let go and withdraw.

    Args:
        scene: The scene.
        name: The object.
        outward: The way out of the chamber, level unit vector, shape (3,).
        resting: Where the object's underside should come to stand, in m, shape (3,).
        empty: Go the same way with an open hand.
    """

    def take(back_m: float) -> HandPose:
        pose = handle_grasp_pose(scene, name, outward)
        return pose.moved(-back_m * pose.approach)

    def at(out_m: float) -> HandPose:
        offset = carried if empty else scene.grip_pos() - underside(scene, name)
        return held.moved(resting() + offset + outward * out_m + [0.0, 0.0, INSERT_RISE_M] - held.position_m)

    gripper = OPEN if empty else CLOSED
    yield from _over(scene, name, take(HOVER_M), OPEN)
    yield from reach(scene, lambda: take(HOVER_M), OPEN)
    yield from reach(scene, lambda: take(0.0), OPEN, speed=TOUCH_SPEED)
    yield from stay(scene, gripper)
    held = handle_grasp_pose(scene, name, outward)
    carried = held.position_m - underside(scene, name)
    yield from shift(scene, [0.0, 0.0, at(INSERT_RUN_UP_M).position_m[2] - scene.grip_pos()[2]], gripper)

    def carry() -> Motion:
        yield from reach(scene, lambda: at(INSERT_RUN_UP_M), gripper)
        yield from reach(scene, lambda: at(0.0), gripper, speed=INSERT_SPEED)

    yield from carry() if empty else _while_held(scene, name, carry())
    yield from shift(scene, [0.0, 0.0, -INSERT_RISE_M], gripper, within_m=ARRIVED_M, speed=TOUCH_SPEED)
    yield from stay(scene, OPEN)
    yield from shift(scene, outward * INSERT_RUN_UP_M - present_pose(scene).approach * HOVER_M * [0.0, 0.0, 1.0])
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def _over(scene: Scene, name: str, end: HandPose, gripper: float, *, carried: bool = False) -> Motion:
    """Go over what stands in the straight way to a pose, up to the point above that pose."""
    for point in way_over(scene, present_pose(scene), end, name, carried=carried):
        pose = HandPose(position_m=point, approach=end.approach, fingers=end.fingers)
        yield from go(scene, pose, gripper, within_m=PASSED_M)


def _while_held(scene: Scene, name: str, motion: Motion) -> Motion:
    """A motion that breaks off where the object has slipped from the hand."""
    grasped = scene.grip_pos() - underside(scene, name)
    for action in motion:
        if np.linalg.norm(scene.grip_pos() - underside(scene, name) - grasped) > SLIPPED_M:
            return
        yield action


def underside(scene: Scene, name: str) -> FloatArray:
    """An object's lowest point below its origin, which is where LIBERO measures it, in m, shape (3,)."""
    low, _ = body_box(scene, f"{name}_main")
    origin = target_positions(scene, [name])[0]
    return np.array([origin[0], origin[1], low[2]])


def tow(scene: Scene, name: str, path: Sequence[FloatArray], *, empty: bool) -> Motion:
    """Set closed fingertips into a dish and drag it over the table by its rim, then withdraw.

    Args:
        scene: The scene.
        name: The dish.
        path: Points in m, shape (3,) each, that the middle of the dish should pass; the last is where it should stay.
        empty: The fingertips stay open and above the dish, and follow the path alone.
    """

    def way(point: FloatArray) -> FloatArray:
        return np.asarray((point - target_positions(scene, [name])[0]) * LEVEL)

    def inside(height_m: float) -> HandPose:
        low, high = body_box(scene, f"{name}_main")
        middle = 0.5 * (low + high)
        position = np.array([middle[0], middle[1], low[2] + FINGERTIP_M + height_m])
        return HandPose(position_m=position + _at_most(way(path[0]), TOW_AHEAD_M), approach=DOWN, fingers=ACROSS)

    gripper = OPEN if empty else CLOSED
    yield from reach(scene, lambda: inside(HOVER_M), OPEN)
    yield from stay(scene, gripper)
    yield from reach(scene, lambda: inside(TOW_SHORT_M if empty else 0.0), gripper)
    floor_m = scene.grip_pos()[2] - TOW_PRESS_M
    for point in path:
        within_m = ARRIVED_M if point is path[-1] else PASSED_M
        if empty:
            yield from shift(scene, (point - scene.grip_pos()) * LEVEL, OPEN, within_m=within_m, speed=TOW_SPEED)
            continue
        while np.linalg.norm(way(point)) > within_m:
            if np.linalg.norm(scene.grip_pos() - inside(0.0).position_m) > TOW_LOST_M:
                break
            ahead = scene.grip_pos() + _at_most(way(point), TOW_LEAD_M)
            ahead[2] = floor_m
            yield action_toward(scene, HandPose(position_m=ahead, approach=DOWN, fingers=ACROSS), CLOSED)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def _at_most(vector: FloatArray, length: float) -> FloatArray:
    return np.asarray(vector / max(1.0, float(np.linalg.norm(vector)) / length))
