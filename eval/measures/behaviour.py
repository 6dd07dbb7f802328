"""Behaviour metrics: how does a rollout move, whatever it is asked for?

Eight numbers a rollout, from its recorded control steps t = 0 .. H - 1, 1 / 20 s apart. Source: "Is Success All You
Need? Investigating the Impact of Input Perturbations on VLA Behaviour in Tabletop Manipulation Tasks", its list of
behavioural metrics.

Jerk is the third difference j_t = (x_{t+3} - 3 x_{t+2} + 3 x_{t+1} - x_t) f^3, the shortest scheme there is. It is
second-order accurate at the middle of its four steps and exact for cubic motion; a sinusoid of frequency ν comes out
smaller by (sin(πν/f) / (πν/f))^3, 5 % at 2 Hz. States come from the simulator without sensor noise, so nothing is
smoothed: smoothing would hide what is to be measured. Float32 positions of a metre add about 1e-3 m/s^3 of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from ...toolkit.records import CONTROL_HZ
from .holding import finger_gap_m


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourMetric:
    """One behaviour metric: its column, what it is called in print, and its unit."""

    name: str
    title: str
    unit: str


BEHAVIOUR_METRICS = (
    BehaviourMetric(name="duration_s", title="duration", unit="s"),
    BehaviourMetric(name="gripper_movement_m", title="gripper movement", unit="m"),
    BehaviourMetric(name="mean_cartesian_jerk_m_s3", title="mean Cartesian jerk", unit="m/s³"),
    BehaviourMetric(name="p95_cartesian_jerk_m_s3", title="P95 Cartesian jerk", unit="m/s³"),
    BehaviourMetric(name="mean_joint_jerk_rad_s3", title="mean joint jerk", unit="rad/s³"),
    BehaviourMetric(name="p95_joint_jerk_rad_s3", title="P95 joint jerk", unit="rad/s³"),
    BehaviourMetric(name="cartesian_path_m", title="Cartesian path length", unit="m"),
    BehaviourMetric(name="joint_path_rad", title="joint path length", unit="rad"),
)
"""In the paper's order. None has a better side: they describe, and are compared with a baseline."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Jerk:
    """Mean and 95th percentile of each rollout's jerk norm, shape (N,) each; NaN for fewer than four steps."""

    mean: FloatArray
    p95: FloatArray


def duration_s(offsets: IntArray) -> FloatArray:
    """(H - 1) / f: time between the first and the last recorded control step, shape (N,).

    Args:
        offsets: First frame of each rollout, then F, shape (N + 1,).

    >>> duration_s(np.array([0, 21, 22]))
    array([1., 0.])
    """
    return np.asarray((np.diff(offsets) - 1) / CONTROL_HZ, np.float64)


def gripper_movement_m(gripper_pos_m: Float32Array, offsets: IntArray) -> FloatArray:
    """Σ_t |w_{t+1} - w_t|: all opening and closing, with w the width between the fingers; shape (N,), metres.

    Args:
        gripper_pos_m: Both fingers before each action, shape (F, 2).
        offsets: First frame of each rollout, then F, shape (N + 1,).
    """
    return path_length(finger_gap_m(gripper_pos_m)[:, None], offsets)


def path_length(positions: Float32Array | FloatArray, offsets: IntArray) -> FloatArray:
    """Σ_t |x_{t+1} - x_t| of each rollout, shape (N,), in the unit of the positions.

    Args:
        positions: Positions before each action, shape (F, D): metres, or joint angles in rad.
        offsets: First frame of each rollout, then F, shape (N + 1,).
    """
    step = _norm(np.diff(positions.astype(np.float64), axis=0))
    # The step from one rollout's end to the next one's start is nobody's.
    step[offsets[1:-1] - 1] = 0.0
    return np.asarray(np.add.reduceat(np.append(step, 0.0), offsets[:-1]))


def jerk(positions: Float32Array | FloatArray, offsets: IntArray) -> Jerk:
    """Norm of the third difference of each rollout's positions, its mean and its 95th percentile.

    The percentile interpolates linearly between order statistics, as ``numpy.percentile`` does.

    Args:
        positions: Positions before each action, shape (F, D): metres, or joint angles in rad.
        offsets: First frame of each rollout, then F, shape (N + 1,).

    Returns:
        In the positions' unit over s^3.
    """
    lengths = np.diff(offsets)
    mean, p95 = np.full(len(lengths), np.nan), np.full(len(lengths), np.nan)
    rows = np.flatnonzero(lengths > 3)
    if not len(rows):
        return Jerk(mean=mean, p95=p95)
    third = _norm(np.diff(positions.astype(np.float64), n=3, axis=0)) * CONTROL_HZ**3
    counts = lengths[rows] - 3
    starts = np.cumsum(counts) - counts
    # A third difference that reaches into the next rollout is nobody's.
    own = np.arange(counts.sum()) - np.repeat(starts, counts) + np.repeat(offsets[:-1][rows], counts)
    values = third[own]
    mean[rows] = np.add.reduceat(values, starts) / counts
    p95[rows] = _percentiles(values, counts, 0.95)
    return Jerk(mean=mean, p95=p95)


def _norm(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("fi,fi->f", vectors, vectors)))


def _percentiles(values: FloatArray, counts: IntArray, share: float) -> FloatArray:
    """A percentile of each run of values, shape (runs,)."""
    starts = np.cumsum(counts) - counts
    ordered = values[np.lexsort((values, np.repeat(np.arange(len(counts)), counts)))]
    place = share * (counts - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, counts - 1)
    low, high = ordered[starts + below], ordered[starts + above]
    return np.asarray(low + (high - low) * (place - below))
