"""Does the robot carry something that is none of the task's targets? Supplementary.

Computed from the fingers and the targets alone, so also for recordings without objects and contacts, for which
``wrong_objects`` gives more detail: the closed fingers hold something, it is moved, and no target moves along.
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import BoolArray, Float32Array, FloatArray, IntArray

LEAST_GAP_M = 0.004
"""Fingers that close on command and stay this far apart hold something; empty ones close to under 2 mm."""

STEADY_M = 0.001
"""The gap of fingers that hold something changes by no more than this in a step; closing ones move up to 9 mm."""

HOLD_STEPS = 10
"""Steps that a hold lasts at least: half a second."""

CARRIED_M = 0.05
"""A hold carries where the gripper ends up this far from where the hold began, at its furthest."""

STAYS_M = 0.02
"""A target has stayed where it moved by no more than this during the hold."""


def finger_gap_m(gripper_pos_m: Float32Array) -> FloatArray:
    """Width between the two fingers, |f_1 - f_2|: robosuite's fingers have opposite signs; shape (F,), metres."""
    return np.asarray(np.abs(np.subtract(gripper_pos_m[:, 0], gripper_pos_m[:, 1], dtype=np.float64)))


def carries_other(
    action: Float32Array,
    gripper_pos_m: Float32Array,
    eef_pos_m: Float32Array,
    target_pos_m: Float32Array,
    offsets: IntArray,
) -> BoolArray:
    """Whether a rollout has a hold of at least 10 steps that carries by 5 cm while no target moves by more than 2 cm.

    A hold is a run of steps with a closing command, fingers at least 4 mm apart and their gap changing by at most
    1 mm a step. Objects thinner than 4 mm count as nothing.

    Args:
        action: Executed actions, the seventh positive to close, shape (F, 7).
        gripper_pos_m: Positions of both fingers before each action, shape (F, 2).
        eef_pos_m: Gripper site before each action, shape (F, 3).
        target_pos_m: K targets before each action, shape (F, 3 * K); unused slots do not move.
        offsets: First frame of each rollout, then F, shape (N + 1,).

    Returns:
        Shape (N,).
    """
    gap = finger_gap_m(gripper_pos_m)
    held = (action[:, 6] > 0) & (gap >= LEAST_GAP_M)
    held[1:] &= np.abs(np.diff(gap)) <= STEADY_M
    first = np.zeros(len(gap), np.bool_)
    first[offsets[:-1]] = True
    # The step before the first is unknown, so it cannot show that the gap is steady.
    held &= ~first
    starts = np.flatnonzero(held & ~np.roll(held, 1))
    stops = np.flatnonzero(held & ~np.roll(held, -1)) + 1
    long_enough = stops - starts >= HOLD_STEPS
    starts, stops = starts[long_enough], stops[long_enough]
    carried = _furthest_m(eef_pos_m, starts, stops) >= CARRIED_M
    for slot in range(target_pos_m.shape[1] // 3):
        carried &= _furthest_m(target_pos_m[:, 3 * slot : 3 * slot + 3], starts, stops) <= STAYS_M
    found = np.zeros(len(offsets) - 1, np.bool_)
    found[np.searchsorted(offsets, starts[carried], side="right") - 1] = True
    return found


def _furthest_m(positions_m: Float32Array, starts: IntArray, stops: IntArray) -> FloatArray:
    """Largest distance from where each run of frames began, shape (runs,)."""
    if not len(starts):
        return np.zeros(0)
    lengths = stops - starts
    begins = np.cumsum(lengths) - lengths
    frame = np.arange(lengths.sum()) - np.repeat(begins - starts, lengths)
    moved = positions_m[frame].astype(np.float64) - positions_m[np.repeat(starts, lengths)]
    return np.asarray(np.sqrt(np.maximum.reduceat(np.einsum("fi,fi->f", moved, moved), begins)))
