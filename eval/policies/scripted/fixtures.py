"""Motion skills of the scripted agents for fixtures: pull a drawer out or push it in, press a door shut, turn a knob.

As in ``skills``, an ``empty`` hand goes the same way, but moves nothing.
"""

from __future__ import annotations

import mujoco
import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.simulation.observing.targets import body_box, moving_joint, opening_direction, target_positions
from ....toolkit.simulation.scene import Scene
from .grasping import ACROSS, DOWN
from .motion import (
    CLOSED,
    OPEN,
    PASSED_M,
    TOUCH_SPEED,
    HandPose,
    Motion,
    action_toward,
    go,
    reach,
    rotated,
    shift,
    stay,
)
from .skills import HOVER_M

PULL_TILT_RAD, PULL_RUN_UP_M = np.radians(75.0), 0.12
"""How far from straight down the fingers point at a handle, and how far in front of it the hand lines up."""

PRESS_RUN_UP_M, PRESS_LEAD_M, PRESS_STEPS = 0.07, 0.05, 120
"""Pressing a door: how far outside of it the hand lines up, how far inside it is sent, and for how long at most."""

PRESS_BELOW_M, PRESS_INWARD_M = 0.03, 0.06
"""Where a door is pressed: how far below its upper edge, and how far from its handle towards the hinge."""

PRESS_TILT_RAD = np.radians(60.0)
"""How far from straight down the fingers point at a handle that they push, to stay clear of the handles above it."""

SHUT_SHARE = 0.01
"""What is open by less of its travel is shut."""

TURN_TILT_RAD = np.radians(25.0)
"""How far the hand leans away from the robot over a knob, which stands too near for an upright hand."""

TURN_RAD, TURN_LEAD_RAD, TURN_STEPS = 0.8, 0.5, 60
"""How far a knob is turned, how far ahead of it the hand is sent, and for how long at most."""


def pull(scene: Scene, handle: str, *, empty: bool) -> Motion:
    """Take a drawer's handle from the front, pull the drawer out to its stop, let go and withdraw."""
    joint = moving_joint(scene, handle)
    outward = opening_direction(scene, joint)
    side = 1.0 if outward @ ACROSS >= 0.0 else -1.0
    level = HandPose(position_m=np.zeros(3), approach=DOWN, fingers=side * outward)
    level = level.turned(np.cross(DOWN, outward), -PULL_TILT_RAD)

    def before(distance_m: float) -> HandPose:
        return level.moved(target_positions(scene, [handle])[0] + outward * distance_m)

    yield from reach(scene, lambda: before(PULL_RUN_UP_M), OPEN, within_m=PASSED_M)
    yield from reach(scene, lambda: before(0.0), OPEN, speed=TOUCH_SPEED)
    gripper = OPEN if empty else CLOSED
    yield from stay(scene, gripper)
    pulled = before(float(np.ptp(scene.model.jnt_range[joint])) - abs(scene.data.qpos[scene.model.jnt_qposadr[joint]]))
    yield from go(scene, pulled, gripper)
    yield from stay(scene, OPEN)
    yield from shift(scene, outward * PULL_RUN_UP_M / 2.0)
    yield from shift(scene, [0.0, 0.0, HOVER_M])


def press(scene: Scene, handle: str, *, empty: bool) -> Motion:
    """Set closed fingertips against a drawer's handle or the outside of a door, push it shut and withdraw."""
    joint = moving_joint(scene, handle)
    address, travel = scene.model.jnt_qposadr[joint], float(np.ptp(scene.model.jnt_range[joint]))

    def outside(distance_m: float, above_m: float = 0.0) -> HandPose:
        return _press_pose(scene, handle).moved(opening_direction(scene, joint) * distance_m + [0.0, 0.0, above_m])

    yield from reach(scene, lambda: outside(PRESS_RUN_UP_M, HOVER_M), OPEN, within_m=PASSED_M)
    gripper = OPEN if empty else CLOSED
    yield from reach(scene, lambda: outside(PRESS_RUN_UP_M), gripper)
    if empty:
        yield from stay(scene, OPEN)
    else:
        for _ in range(PRESS_STEPS):
            if abs(scene.data.qpos[address]) < SHUT_SHARE * travel:
                break
            yield action_toward(scene, outside(-PRESS_LEAD_M), CLOSED)
        yield from shift(scene, opening_direction(scene, joint) * PRESS_RUN_UP_M, CLOSED)
    yield from shift(scene, [0.0, 0.0, HOVER_M], gripper)


def _press_pose(scene: Scene, handle: str) -> HandPose:
    """The hand at what it presses: a handle that slides from the front, a door that swings by its upper edge."""
    joint, at = moving_joint(scene, handle), target_positions(scene, [handle])[0]
    if not _is_hinged(scene, joint):
        outward = opening_direction(scene, joint)
        upright = HandPose(position_m=at, approach=DOWN, fingers=np.cross(outward, DOWN))
        return upright.turned(np.cross(DOWN, outward), -PRESS_TILT_RAD)
    anchor = np.array(scene.data.xanchor[joint])
    lever = (at - anchor) * [1.0, 1.0, 0.0]
    point = anchor + lever * (1.0 - PRESS_INWARD_M / np.linalg.norm(lever))
    point[2] = body_box(scene, scene.model.body(scene.model.jnt_bodyid[joint]).name)[1][2] - PRESS_BELOW_M
    return HandPose(position_m=point, approach=DOWN, fingers=ACROSS)


def way_out(scene: Scene, handle: str) -> FloatArray:
    """Direction in which a door begins to open, wherever it is now: the way out from behind it, unit vector, (3,)."""
    joint = moving_joint(scene, handle)
    turned_rad = float(scene.data.qpos[scene.model.jnt_qposadr[joint]])
    return rotated(opening_direction(scene, joint), np.array(scene.data.xaxis[joint]), -turned_rad)


def _is_hinged(scene: Scene, joint: int) -> bool:
    return bool(scene.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE)


def turn(scene: Scene, knob: str, *, empty: bool) -> Motion:
    """Take a knob from above between the fingers, turn it on, let go and withdraw."""
    joint = moving_joint(scene, knob)
    address = scene.model.jnt_qposadr[joint]
    axis = np.array(scene.data.xaxis[joint])

    def grasp(height_m: float, ahead_rad: float = 0.0) -> HandPose:
        position = target_positions(scene, [knob])[0] + np.array([0.0, 0.0, height_m])
        leaning = HandPose(position_m=position, approach=DOWN, fingers=ACROSS).turned(ACROSS, TURN_TILT_RAD)
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
