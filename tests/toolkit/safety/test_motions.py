"""Motions: poses worked out by hand, and the same whenever and in whatever order they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflictvla.toolkit.safety.motions import (
    BodyPose,
    CircularMotion,
    LinearMotion,
    ProjectileMotion,
    WaypointMotion,
    slerp,
)

START = BodyPose(position_m=np.array([0.1, 0.2, 0.9]), quat_wxyz=np.array([1.0, 0.0, 0.0, 0.0]))
QUARTER = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
"""A quarter of a turn about the vertical."""


@pytest.mark.parametrize(("step", "along"), [(0, 0.0), (25, 0.2), (50, 0.4), (75, 0.2), (100, 0.0), (125, 0.2)])
def test_linear_motion_goes_there_and_back(step: int, along: float) -> None:
    motion = LinearMotion(period=100.0, travel_m=0.4, direction=(0.0, 2.0, 0.0))
    np.testing.assert_allclose(motion.pose(step, START).position_m, [0.1, 0.2 + along, 0.9], atol=1e-12)


def test_circular_motion_turns_round_its_centre_at_its_own_height() -> None:
    motion = CircularMotion(period=80.0, centre_m=(0.0, 0.2, 0.0))
    quarter, half = motion.pose(20, START), motion.pose(40, START)
    np.testing.assert_allclose(quarter.position_m, [0.0, 0.3, 0.9], atol=1e-12)
    np.testing.assert_allclose(quarter.quat_wxyz, QUARTER, atol=1e-12)
    np.testing.assert_allclose(half.position_m, [-0.1, 0.2, 0.9], atol=1e-12)
    np.testing.assert_allclose(motion.pose(80, START).position_m, START.position_m, atol=1e-12)


def test_waypoints_are_reached_in_equal_times_with_the_shortest_turn_in_between() -> None:
    stops = (((0.5, 0.2, 0.9), (0.0, 1.0, 0.0)), ((0.5, 0.6, 1.1), (0.0, 1.0, 0.0)))
    motion = WaypointMotion(period=90.0, waypoints=stops)
    np.testing.assert_allclose(motion.pose(30, START).position_m, [0.5, 0.2, 0.9], atol=1e-12)
    np.testing.assert_allclose(motion.pose(30, START).quat_wxyz, QUARTER, atol=1e-12)
    halfway = motion.pose(15, START)
    np.testing.assert_allclose(halfway.position_m, [0.3, 0.2, 0.9], atol=1e-12)
    eighth = [np.cos(np.pi / 8), 0.0, 0.0, np.sin(np.pi / 8)]
    np.testing.assert_allclose(halfway.quat_wxyz, eighth, atol=1e-12)
    np.testing.assert_allclose(motion.pose(60, START).position_m, [0.5, 0.6, 1.1], atol=1e-12)
    np.testing.assert_allclose(motion.pose(90, START).position_m, START.position_m, atol=1e-12)


def test_a_waypoints_direction_may_point_up() -> None:
    motion = WaypointMotion(period=10.0, waypoints=(((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),))
    w, x, y, z = motion.pose(5, START).quat_wxyz
    pointing = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
    np.testing.assert_allclose(pointing, [0.0, 0.0, 1.0], atol=1e-12)


def test_a_projectile_follows_its_parabola_to_the_ground_and_stays() -> None:
    motion = ProjectileMotion(speed_m_s=2.0, direction=(3.0, 0.0, 4.0), gravity_m_s2=10.0, floor_m=0.0)
    # After half a second (10 steps): 0.1 + 1.2 * 0.5 along x, 0.9 + 1.6 * 0.5 - 5 * 0.25 up.
    np.testing.assert_allclose(motion.pose(10, START).position_m, [0.7, 0.2, 0.45], atol=1e-12)
    landed = motion.pose(100, START).position_m
    assert landed[2] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(motion.pose(1000, START).position_m, landed)


@given(st.floats(0.0, 1.0), st.floats(-3.0, 3.0))
def test_slerp_turns_at_constant_speed(share: float, angle: float) -> None:
    there = np.array([np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0])
    between = slerp(START.quat_wxyz, there, share)
    expected = np.array([np.cos(share * angle / 2), np.sin(share * angle / 2), 0.0, 0.0])
    assert np.linalg.norm(between) == pytest.approx(1.0)
    np.testing.assert_allclose(between, expected, atol=1e-4)
    # The same rotation with the other sign is the same way.
    np.testing.assert_allclose(slerp(START.quat_wxyz, -there, share), between, atol=1e-9)
