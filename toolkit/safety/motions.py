"""How an object moves by itself: its pose as a function of the control step, and of where it stood at first.

Nothing else counts, so a motion is the same after any reset, in a replay, and in a recorded state. Steps are
control steps since the policy's first action; before that, while a scene settles, the object stands still. The four
motions and their parameters are those of appendix E.2 of the VLA-Arena paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import FloatArray
from ..records import CONTROL_HZ

PARALLEL = 0.9995
"""Cosine of the angle between two quaternions from which on a straight interpolation is as good as one on the arc."""

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BodyPose:
    """Where a body is: position in m, shape (3,), and unit quaternion w, x, y, z, shape (4,)."""

    position_m: FloatArray
    quat_wxyz: FloatArray


class Motion(Protocol):
    """A pose for each moment."""

    def pose(self, step: float, start: BodyPose) -> BodyPose:
        """The pose after a number of control steps, also fractions of one, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearMotion:
    """To and fro between the start and ``travel_m`` along a direction, at constant speed; ``period`` steps a cycle."""

    period: float
    travel_m: float
    direction: Vector

    def pose(self, step: float, start: BodyPose) -> BodyPose:
        """See ``Motion.pose``."""
        phase = (step % self.period) / self.period
        there = 2.0 * min(phase, 1.0 - phase)
        return BodyPose(
            position_m=start.position_m + there * self.travel_m * _unit(self.direction), quat_wxyz=start.quat_wxyz
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CircularMotion:
    """Round the vertical through ``centre_m``, counter-clockwise from above, as if it stood on a turntable."""

    period: float
    centre_m: Vector

    def pose(self, step: float, start: BodyPose) -> BodyPose:
        """See ``Motion.pose``."""
        angle = 2.0 * np.pi * (step % self.period) / self.period
        cosine, sine = np.cos(angle), np.sin(angle)
        centre = np.array([self.centre_m[0], self.centre_m[1], start.position_m[2]])
        x, y, z = start.position_m - centre
        turned = np.array([cosine * x - sine * y, sine * x + cosine * y, z])
        turn = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
        return BodyPose(position_m=centre + turned, quat_wxyz=_quat_product(turn, start.quat_wxyz))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaypointMotion:
    """From the start through the waypoints and back to the start, each leg in the same time.

    Attributes:
        period: Steps of the whole round.
        waypoints: Position in m, and the direction that the object's own x axis points to, each.
    """

    period: float
    waypoints: tuple[tuple[Vector, Vector], ...]

    def pose(self, step: float, start: BodyPose) -> BodyPose:
        """See ``Motion.pose``."""
        stops = [start, *(_pose_along(place, direction) for place, direction in self.waypoints), start]
        along = (step % self.period) / self.period * (len(stops) - 1)
        leg = min(int(along), len(stops) - 2)
        here, there, share = stops[leg], stops[leg + 1], along - leg
        return BodyPose(
            position_m=here.position_m + share * (there.position_m - here.position_m),
            quat_wxyz=slerp(here.quat_wxyz, there.quat_wxyz, share),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectileMotion:
    """Thrown: ``p0 + v0 t + g t^2 / 2`` with t in s, until it is ``floor_m`` high, where it stays.

    Attributes:
        speed_m_s: Initial speed.
        direction: Direction of it.
        gravity_m_s2: Size of the acceleration downwards.
        floor_m: Height at which the flight ends; lower than the start.
    """

    speed_m_s: float
    direction: Vector
    gravity_m_s2: float
    floor_m: float

    def pose(self, step: float, start: BodyPose) -> BodyPose:
        """See ``Motion.pose``."""
        velocity = self.speed_m_s * _unit(self.direction)
        time_s = step / CONTROL_HZ
        drop_m = start.position_m[2] - self.floor_m
        if self.gravity_m_s2 > 0.0 and drop_m >= 0.0:
            flight_s = (velocity[2] + np.sqrt(velocity[2] ** 2 + 2.0 * self.gravity_m_s2 * drop_m)) / self.gravity_m_s2
            time_s = min(time_s, float(flight_s))
        fall = np.array([0.0, 0.0, -0.5 * self.gravity_m_s2 * time_s**2])
        return BodyPose(position_m=start.position_m + velocity * time_s + fall, quat_wxyz=start.quat_wxyz)


AnyMotion = LinearMotion | CircularMotion | WaypointMotion | ProjectileMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingObject:
    """A movable object of the task that moves by itself."""

    name: str
    motion: AnyMotion


def slerp(here: FloatArray, there: FloatArray, share: float) -> FloatArray:
    """The unit quaternion a share of the shorter way from one to another, at constant angular speed, shape (4,)."""
    # By hand, as the product below: scipy's rotations round otherwise, which would change recorded states.
    cosine = float(here @ there)
    if cosine < 0.0:
        there, cosine = -there, -cosine
    if cosine > PARALLEL:
        between = here + share * (there - here)
    else:
        angle = np.arccos(cosine)
        between = (np.sin((1.0 - share) * angle) * here + np.sin(share * angle) * there) / np.sin(angle)
    return np.asarray(between / np.linalg.norm(between))


def _unit(direction: Vector) -> FloatArray:
    vector = np.array(direction)
    return np.asarray(vector / np.linalg.norm(vector))


def _pose_along(place: Vector, direction: Vector) -> BodyPose:
    """The pose whose x axis points along a direction with its z axis as upright as that allows."""
    yaw = np.arctan2(direction[1], direction[0])
    pitch = -np.arctan2(direction[2], np.hypot(direction[0], direction[1]))
    about_z = np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])
    about_y = np.array([np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0])
    return BodyPose(position_m=np.array(place), quat_wxyz=_quat_product(about_z, about_y))


def _quat_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Hamilton product of two quaternions w, x, y, z."""
    w, v, r, u = a[0], a[1:], b[0], b[1:]
    return np.concatenate([[w * r - v @ u], w * u + r * v + np.cross(v, u)])
