"""How a scripted hand moves: poses, the action towards a pose, and the plainest motions built on it.

A motion is a generator of actions, one a control step. It re-reads the simulator before every action, so it corrects
itself, and it draws nothing at random, so equal states give equal actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....toolkit.arrays import FloatArray
from ....toolkit.simulation.scene import Scene

Motion = Iterator[FloatArray]

OPEN, CLOSED, HALF_OPEN = -1.0, 1.0, 0.0
METRES_PER_UNIT, RADIANS_PER_UNIT = 0.05, 0.5

TOP_SPEED = 0.75
"""Largest translation component of an action: about a demonstrator's pace, 0.23 m/s."""

TOUCH_SPEED = 0.3
"""Largest translation component on the last stretch before a touch."""

POSITION_GAIN = 1.5
"""How far past the way still to go the controller's goal is set; its spring is soft, so 1 would creep."""

ARRIVED_M, PASSED_M = 0.008, 0.03
"""How near the hand must come to a pose that matters, and to one on the way."""

TURN_WEIGHT_M = 0.1
"""How many metres off a radian of wrong orientation counts."""

STALL_STEPS, STALL_M, STILL_M = 8, 0.001, 0.006
"""A hand that came no nearer by so much in so many steps, and in them hardly moved, has met something; it gives up on
the rest of the way."""

PATIENCE_STEPS = 24
"""So does one that came no nearer for so long, however it moved."""

HALF_OPEN_STEPS = 4
"""Control steps in which fingers that close come half of their way; ``HALF_OPEN`` then holds them there."""

FINGER_STEPS = 10
"""Control steps that the fingers are given to close or open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandPose:
    """Where the hand should be.

    Attributes:
        position_m: Of the site between the fingertips, in the world, shape (3,).
        approach: Direction in which the fingers point, unit vector, shape (3,).
        fingers: Direction along which they open, unit vector, shape (3,).
    """

    position_m: FloatArray
    approach: FloatArray
    fingers: FloatArray

    def moved(self, offset_m: npt.ArrayLike) -> HandPose:
        """The same orientation elsewhere."""
        return HandPose(position_m=self.position_m + np.asarray(offset_m), approach=self.approach, fingers=self.fingers)

    def turned(self, axis: FloatArray, angle_rad: float) -> HandPose:
        """The same place, the hand turned about an axis through it."""
        return HandPose(
            position_m=self.position_m,
            approach=rotated(self.approach, axis, angle_rad),
            fingers=rotated(self.fingers, axis, angle_rad),
        )

    @property
    def rotation(self) -> FloatArray:
        """Orientation matrix of the site between the fingertips, shape (3, 3)."""
        return np.column_stack([self.fingers, np.cross(self.approach, self.fingers), self.approach])


def rotated(vector: FloatArray, axis: FloatArray, angle_rad: float) -> FloatArray:
    """A vector turned about a unit axis (Rodrigues), shape (3,)."""
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    turned = vector * cosine + np.cross(axis, vector) * sine + axis * (axis @ vector) * (1.0 - cosine)
    return np.asarray(turned)


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Axis times angle in rad, shape (3,), of a rotation matrix of less than half a turn, shape (3, 3)."""
    # Not SciPy's Rotation.as_rotvec: it rounds otherwise, and takes five times as long.
    skew = rotation - rotation.T
    axis = 0.5 * np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    sine = float(np.linalg.norm(axis))
    if sine < 1e-9:
        return np.zeros(3)
    return np.asarray(axis / sine * np.arctan2(sine, 0.5 * (np.trace(rotation) - 1.0)))


def action_toward(scene: Scene, pose: HandPose, gripper: float, speed: float = TOP_SPEED) -> FloatArray:
    """The action, shape (7,), that moves the hand towards a pose, no translation component above ``speed``."""
    way = POSITION_GAIN * (pose.position_m - scene.grip_pos()) / METRES_PER_UNIT
    turn = _turn_left(scene, pose) / RADIANS_PER_UNIT
    # Scaled as a whole, not clipped axis by axis, so that the hand moves along the straight line.
    way *= speed / max(speed, float(np.abs(way).max()))
    turn /= max(1.0, float(np.abs(turn).max()))
    return np.concatenate([way, turn, [gripper]])


def reach(
    scene: Scene,
    pose: Callable[[], HandPose],
    gripper: float,
    *,
    within_m: float = ARRIVED_M,
    speed: float = TOP_SPEED,
) -> Motion:
    """Move to a pose that may itself move; ends once there, or where something is in the way.

    Args:
        scene: The scene.
        pose: Where to go, asked before every step.
        gripper: Finger command on the way.
        within_m: How near counts as there.
        speed: Largest translation component of an action.
    """
    nearest, since = np.inf, 0
    recent: deque[FloatArray] = deque(maxlen=STALL_STEPS)
    while since < PATIENCE_STEPS:
        goal = pose()
        off = float(np.linalg.norm(goal.position_m - scene.grip_pos()))
        off += TURN_WEIGHT_M * float(np.linalg.norm(_turn_left(scene, goal)))
        if off < within_m:
            return
        nearest, since = (off, 0) if off < nearest - STALL_M else (nearest, since + 1)
        if since >= STALL_STEPS and np.linalg.norm(scene.grip_pos() - recent[0]) < STILL_M:
            return
        recent.append(scene.grip_pos())
        yield action_toward(scene, goal, gripper, speed)


def go(
    scene: Scene, pose: HandPose, gripper: float, *, within_m: float = ARRIVED_M, speed: float = TOP_SPEED
) -> Motion:
    """Move to a pose that stays where it is; otherwise as ``reach``."""
    yield from reach(scene, lambda: pose, gripper, within_m=within_m, speed=speed)


def shift(
    scene: Scene,
    offset_m: npt.ArrayLike,
    gripper: float = OPEN,
    *,
    within_m: float = PASSED_M,
    speed: float = TOP_SPEED,
) -> Motion:
    """Move by an offset, in m, shape (3,), without turning."""
    yield from go(scene, present_pose(scene).moved(offset_m), gripper, within_m=within_m, speed=speed)


def stay(scene: Scene, gripper: float, steps: int = FINGER_STEPS) -> Motion:
    """Hold the hand where it is for a number of steps, as while the fingers close or open."""
    pose = present_pose(scene)
    for _ in range(steps):
        yield action_toward(scene, pose, gripper)


def present_pose(scene: Scene) -> HandPose:
    """Where the hand is now."""
    rotation = np.array(scene.data.site_xmat[scene.arm.grip_site]).reshape(3, 3)
    return HandPose(position_m=scene.grip_pos(), approach=rotation[:, 2], fingers=rotation[:, 0])


def _turn_left(scene: Scene, pose: HandPose) -> FloatArray:
    present = np.array(scene.data.site_xmat[scene.arm.grip_site]).reshape(3, 3)
    return rotation_vector(pose.rotation @ present.T)
