"""Motion skills of the scripted agents: pick, place, pull a drawer, turn a knob, tow a dish.

Every skill takes ``empty``: an empty hand goes the same way, but never closes, and stops short of moving what it
reaches for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...toolkit.simulation.scene import Scene
from ...toolkit.simulation.targets import body_box, moving_joint, opening_direction, target_positions
from .motion import (
    ARRIVED_M,
    CLOSED,
    OPEN,
    PASSED_M,
    TOUCH_SPEED,
    Array,
    Motion,
    Pose,
    action_toward,
    present_pose,
    reach,
    rotated,
    shift,
    stay,
)

GRIPPER_WIDTH_M = 0.07
"""Widest thing that the hand takes between its fingers; anything wider is taken by its rim."""

GRASP_DEPTH_M, RIM_DEPTH_M, RIM_INSET_M = 0.025, 0.027, 0.009
"""How far below the top of a thing, or of its rim, the fingertips close, and how far in from the outermost point."""

FINGERTIP_M = 0.01
"""How far the fingertips reach past the site between them."""

HOVER_M = 0.08
"""Height above a grasp from which the hand comes down straight, and to which it lifts."""

CLEARANCE_M = 0.03
"""Gap kept between what is carried and what it is carried over."""

LOWERING_M = 0.07
"""How far below a destination a thing is lowered if nothing stops it earlier."""

SLIPPED_M = 0.04
"""A thing that has moved this far in the hand has slipped from it."""

LEANING_AZIMUTH_RAD = np.radians(20.0)
"""Where on the rim a leaning hand takes hold: past the far side, so that its width misses the neighbours."""

LEANING_HOVER_M = 0.16
"""How far back along its approach a leaning hand lines up, to come in under what hangs over the object."""

SIDESTEP_M = 0.13
"""How far an object is brought out from under what hangs over it, before it is lifted."""

PULL_TILT_RAD, PULL_RUN_UP_M = np.radians(75.0), 0.12
"""How far from straight down the fingers point at a handle, and how far in front of it the hand lines up."""

TURN_TILT_RAD = np.radians(25.0)
"""How far the hand leans away from the robot over a knob, which stands too near for an upright hand."""

TURN_RAD, TURN_LEAD_RAD, TURN_STEPS = 0.8, 0.5, 60
"""How far a knob is turned, how far ahead of it the hand is sent, and for how long at most."""

TOW_AHEAD_M, TOW_LEAD_M, TOW_SHORT_M, TOW_LOST_M = 0.02, 0.03, 0.018, 0.08
TOW_PRESS_M = 0.004
"""Towing: how far ahead of the middle the fingertips go down, how far ahead of themselves they are sent, how far
above the dish an empty hand stays, how far off the dish counts as having lost it, and how much below where they
stand the fingertips are sent, lest they slip over the rim."""

TOW_SPEED = 0.4
"""Largest translation component of an empty hand that tows nothing: about the pace of one that does."""

DOWN, ACROSS, ALONG = np.array([0.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
"""The hand's approach from above, and the two ways in which its fingers may then open."""

LEVEL = np.array([1.0, 1.0, 0.0])
"""Keeps the part of a vector that lies in the plane of the table."""


def grasp_pose(scene: Scene, name: str, lean_rad: float = 0.0) -> Pose:
    """How to take an object from above: between the fingers where it is narrow enough, else by its rim.

    Args:
        scene: The scene.
        name: The object.
        lean_rad: How far the hand leans outward over the rim, to keep clear of what hangs over the object.
    """
    low, high = body_box(scene, f"{name}_main")
    width, middle = high - low, 0.5 * (low + high)
    if width[:2].min() <= GRIPPER_WIDTH_M:
        height = max(high[2] - GRASP_DEPTH_M, low[2] + FINGERTIP_M)
        fingers = ALONG if width[0] < width[1] and width[1] > GRIPPER_WIDTH_M else ACROSS
        return Pose(position_m=np.array([middle[0], middle[1], height]), approach=DOWN, fingers=fingers)
    outward = rotated(ACROSS, -DOWN, LEANING_AZIMUTH_RAD) if lean_rad else ACROSS
    rim = middle + outward * (0.5 * width[1] - RIM_INSET_M)
    upright = Pose(position_m=np.array([rim[0], rim[1], high[2] - RIM_DEPTH_M]), approach=DOWN, fingers=outward)
    return upright.turned(np.cross(DOWN, outward), -lean_rad)


def pick(scene: Scene, name: str, *, empty: bool, lean_rad: float = 0.0) -> Motion:
    """Take an object from above and lift it."""

    def grasp(back_m: float) -> Pose:
        pose = grasp_pose(scene, name, lean_rad)
        return pose.moved(-back_m * pose.approach)

    if lean_rad:
        yield from reach(scene, lambda: grasp(LEANING_HOVER_M), OPEN, within_m=PASSED_M)
    yield from reach(scene, lambda: grasp(HOVER_M), OPEN)
    yield from reach(scene, lambda: grasp(0.0), OPEN, speed=TOUCH_SPEED)
    gripper = OPEN if empty else CLOSED
    yield from stay(scene, gripper)
    if lean_rad:
        # What hangs over the object is in the way of lifting it straight: bring it out from under first.
        aside = grasp(0.0).fingers * [SIDESTEP_M, SIDESTEP_M, 0.0] + [0.0, 0.0, CLEARANCE_M]
        yield from shift(scene, aside, gripper)
    yield from shift(scene, [0.0, 0.0, HOVER_M], gripper)


def place(scene: Scene, name: str, destination: Callable[[], Array], *, empty: bool) -> Motion:
    """Carry an object over a destination, lower it until something stops it, let go and withdraw.

    Args:
        scene: The scene.
        name: The object in hand.
        destination: Where the object's underside should come to lie at the highest, in m, shape (3,); asked before
            every step.
        empty: The hand holds nothing, and goes where it would if it did.
    """
    held = present_pose(scene)
    carried = grasp_pose(scene, name).position_m - underside(scene, name)

    def over(height_m: float) -> Pose:
        offset = carried if empty else scene.grip_pos() - underside(scene, name)
        position = destination() + offset + np.array([0.0, 0.0, height_m])
        return Pose(position_m=position, approach=held.approach, fingers=held.fingers)

    def carry(gripper: float) -> Motion:
        rise_m = max(over(CLEARANCE_M).position_m[2] - scene.grip_pos()[2], 0.0)
        yield from shift(scene, [0.0, 0.0, rise_m], gripper)
        yield from reach(scene, lambda: over(CLEARANCE_M), gripper)
        if not empty:
            yield from reach(scene, lambda: over(-LOWERING_M), gripper)

    yield from carry(OPEN) if empty else _while_held(scene, name, carry(CLOSED))
    yield from stay(scene, OPEN)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def _while_held(scene: Scene, name: str, motion: Motion) -> Motion:
    """A motion that breaks off where the object has slipped from the hand."""
    grasped = scene.grip_pos() - underside(scene, name)
    for action in motion:
        if np.linalg.norm(scene.grip_pos() - underside(scene, name) - grasped) > SLIPPED_M:
            return
        yield action


def underside(scene: Scene, name: str) -> Array:
    """An object's lowest point below its origin, which is where LIBERO measures it, in m, shape (3,)."""
    low, _ = body_box(scene, f"{name}_main")
    origin = target_positions(scene, [name])[0]
    return np.array([origin[0], origin[1], low[2]])


def pull(scene: Scene, handle: str, *, empty: bool) -> Motion:
    """Take a drawer's handle from the front, pull the drawer out to its stop, let go and withdraw."""
    joint = moving_joint(scene, handle)
    outward = opening_direction(scene, joint)
    side = 1.0 if outward @ ACROSS >= 0.0 else -1.0
    level = Pose(position_m=np.zeros(3), approach=DOWN, fingers=side * outward)
    level = level.turned(np.cross(DOWN, outward), -PULL_TILT_RAD)

    def before(distance_m: float) -> Pose:
        return level.moved(target_positions(scene, [handle])[0] + outward * distance_m)

    yield from reach(scene, lambda: before(PULL_RUN_UP_M), OPEN, within_m=PASSED_M)
    yield from reach(scene, lambda: before(0.0), OPEN, speed=TOUCH_SPEED)
    gripper = OPEN if empty else CLOSED
    yield from stay(scene, gripper)
    pulled = before(float(np.ptp(scene.model.jnt_range[joint])) - scene.data.qpos[scene.model.jnt_qposadr[joint]])
    yield from reach(scene, lambda: pulled, gripper)
    yield from stay(scene, OPEN)
    yield from shift(scene, outward * PULL_RUN_UP_M / 2.0)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def turn(scene: Scene, knob: str, *, empty: bool) -> Motion:
    """Take a knob from above between the fingers, turn it on, let go and withdraw."""
    joint = moving_joint(scene, knob)
    address = scene.model.jnt_qposadr[joint]
    axis = np.array(scene.data.xaxis[joint])

    def grasp(height_m: float, ahead_rad: float = 0.0) -> Pose:
        position = target_positions(scene, [knob])[0] + np.array([0.0, 0.0, height_m])
        leaning = Pose(position_m=position, approach=DOWN, fingers=ACROSS).turned(ACROSS, TURN_TILT_RAD)
        return leaning.turned(axis, float(scene.data.qpos[address]) + ahead_rad)

    yield from reach(scene, lambda: grasp(HOVER_M), OPEN)
    yield from reach(scene, lambda: grasp(0.0), OPEN, speed=TOUCH_SPEED)
    if empty:
        yield from stay(scene, OPEN)
        yield from shift(scene, [0.0, 0.0, HOVER_M / 2.0])
        yield from reach(scene, lambda: grasp(HOVER_M / 2.0, TURN_RAD), OPEN)
    else:
        yield from stay(scene, CLOSED)
        for _ in range(TURN_STEPS):
            if scene.data.qpos[address] > TURN_RAD:
                break
            yield action_toward(scene, grasp(0.0, TURN_LEAD_RAD), CLOSED)
        yield from stay(scene, OPEN)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def tow(scene: Scene, name: str, path: Sequence[Array], *, empty: bool) -> Motion:
    """Set closed fingertips into a dish and drag it over the table by its rim, then withdraw.

    Args:
        scene: The scene.
        name: The dish.
        path: Points in m, shape (3,) each, that the middle of the dish should pass; the last is where it should stay.
        empty: The fingertips stay open and above the dish, and follow the path alone.
    """

    def way(point: Array) -> Array:
        return np.asarray((point - target_positions(scene, [name])[0]) * LEVEL)

    def inside(height_m: float) -> Pose:
        low, high = body_box(scene, f"{name}_main")
        middle = 0.5 * (low + high)
        position = np.array([middle[0], middle[1], low[2] + FINGERTIP_M + height_m])
        return Pose(position_m=position + _at_most(way(path[0]), TOW_AHEAD_M), approach=DOWN, fingers=ACROSS)

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
            yield action_toward(scene, Pose(position_m=ahead, approach=DOWN, fingers=ACROSS), CLOSED)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def _at_most(vector: Array, length: float) -> Array:
    return np.asarray(vector / max(1.0, float(np.linalg.norm(vector)) / length))
