"""Behaviour metrics of single rollouts: analytic trajectories, and against a slow reference."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflictvla.eval.measures.behaviour import duration_s, gripper_movement_m, jerk, path_length
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import CONTROL_HZ

from . import reference_measures as slow


def times(steps: int) -> FloatArray:
    return np.arange(steps) / CONTROL_HZ


def test_duration_is_from_the_first_to_the_last_control_step() -> None:
    assert duration_s(np.array([0, 97, 98])).tolist() == [pytest.approx(4.8), 0.0]


def test_cubic_motion_has_its_third_derivative_as_jerk() -> None:
    # x = 2 t^3 - t^2 + t, y = -t^3: x''' = 12, y''' = -6, wherever it is evaluated.
    t = times(40)
    path = np.stack([2 * t**3 - t**2 + t, -(t**3), 0.3 + 0 * t], axis=1)
    found = jerk(path, np.array([0, 40]))
    assert found.mean == pytest.approx([math.hypot(12, 6)], rel=1e-9)
    assert found.p95 == pytest.approx([math.hypot(12, 6)], rel=1e-9)


def test_constant_acceleration_has_no_jerk() -> None:
    t = times(40)
    assert jerk(np.stack([t**2, 3 * t, 1 + 0 * t], axis=1), np.array([0, 40])).mean == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize(("frequency_hz", "share"), [(0.5, 0.997), (1.0, 0.988), (2.0, 0.951)])
def test_a_circle_has_the_stated_share_of_its_jerk(frequency_hz: float, share: float) -> None:
    # On a circle of radius r the jerk is r (2 pi nu)^3 throughout; third differences keep (sin x / x)^3 of it.
    angle = 2 * np.pi * frequency_hz * times(200)
    path = 0.1 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    found = jerk(path, np.array([0, 200]))
    x = np.pi * frequency_hz / CONTROL_HZ
    exact = 0.1 * (2 * np.pi * frequency_hz) ** 3
    assert found.mean == pytest.approx([exact * (np.sin(x) / x) ** 3], rel=1e-9)
    assert found.p95 == pytest.approx(found.mean, rel=1e-9)
    assert found.mean / exact == pytest.approx([share], abs=1e-3)


def test_rounding_to_float32_adds_little_jerk() -> None:
    t = times(100)
    path = np.stack([0.5 + 0.1 * t, 1 - 0.05 * t, 0.9 + 0 * t], axis=1).astype(np.float32)
    assert jerk(path, np.array([0, 100])).mean[0] < 3e-3


def test_the_95th_percentile_by_hand() -> None:
    # 24 steps have 21 jerks; one jump of 1 m at the middle touches four of them: 1, 3, 3, 1 times 20^3... and 17 zeros.
    path = np.zeros((24, 1))
    path[12:] = 1.0
    found = jerk(path, np.array([0, 24]))
    # Differences of a step: 1, -2, 1, so norms 1, 2, 1. Place 0.95 * 20 = 19 is the second largest.
    assert found.p95 == pytest.approx([1 * 20.0**3])
    assert found.mean == pytest.approx([4 * 20.0**3 / 21])


def test_too_short_a_rollout_has_no_jerk() -> None:
    found = jerk(np.zeros((7, 3)), np.array([0, 3, 7]))
    assert math.isnan(found.mean[0])
    assert math.isnan(found.p95[0])
    assert found.mean[1] == 0.0
    assert np.isnan(jerk(np.zeros((3, 3)), np.array([0, 3])).mean).all()


def test_lengths_by_hand() -> None:
    # Two rollouts: a right angle of 3 + 4, and one step; the way from one to the other counts for neither.
    points = np.array([[0, 0, 0], [3, 0, 0], [3, 4, 0], [100, 0, 0], [100, 0, 1]], np.float64)
    assert path_length(points, np.array([0, 3, 5])).tolist() == [7.0, 1.0]
    assert path_length(points, np.array([0, 3, 4, 5])).tolist() == [7.0, 0.0, 0.0]


def test_gripper_movement_counts_opening_and_closing() -> None:
    fingers = np.array([[0.04, -0.04], [0.0, 0.0], [0.04, -0.04], [0.04, -0.04]], np.float32)
    assert gripper_movement_m(fingers, np.array([0, 4])) == pytest.approx([0.16])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_slow_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 40, 6)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    joints = np.cumsum(rng.normal(0, 0.02, (offsets[-1], 7)), axis=0).astype(np.float32)
    found, lengths_rad = jerk(joints, offsets), path_length(joints, offsets)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        path = joints[start:stop].astype(np.float64).tolist()
        norms = slow.jerk_norms(path)
        assert lengths_rad[row] == pytest.approx(slow.path_length(path), abs=1e-12)
        if norms:
            assert found.mean[row] == pytest.approx(math.fsum(norms) / len(norms), rel=1e-12)
            assert found.p95[row] == pytest.approx(slow.percentile(norms, 0.95), rel=1e-12)
        else:
            assert math.isnan(found.mean[row])
