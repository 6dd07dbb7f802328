"""Gripper paths: where the gripper site is before each action and after the last, of every rollout in one array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from .process import pair_blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GripperPaths:
    """Paths of N rollouts; those of rollout i are rows ``offsets[i]:offsets[i + 1]``, H + 1 of them.

    Attributes:
        points_m: Gripper site, world frame, metres, shape (F + N, 3).
        offsets: Shape (N + 1,).
    """

    points_m: FloatArray
    offsets: IntArray

    @property
    def steps(self) -> IntArray:
        """Executed actions H of each rollout, shape (N,)."""
        return np.diff(self.offsets) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gap:
    """Both gripper paths of some pairs at equal steps t = 1 .. T with T = min(H^+, H^-), S steps in all.

    Attributes:
        pairs: Which pairs, a slice of them.
        starts: First step of each pair within the block.
        step: t, shape (S,).
        reference_m: e_t^+ - e_0^+, shape (S, 3).
        conflict_m: e_t^- - e_0^-, shape (S, 3).
    """

    pairs: slice
    starts: IntArray
    step: IntArray
    reference_m: FloatArray
    conflict_m: FloatArray


def gripper_paths(eef_pos_m: Float32Array, offsets: IntArray, final_eef_pos_m: FloatArray) -> GripperPaths:
    """Put the state after the last action behind each rollout's frames.

    Args:
        eef_pos_m: Gripper site before each action, shape (F, 3).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
    """
    longer = offsets + np.arange(len(offsets))
    points = np.empty((longer[-1], 3))
    last = np.zeros(len(points), np.bool_)
    last[longer[1:] - 1] = True
    points[last], points[~last] = final_eef_pos_m, eef_pos_m
    return GripperPaths(points_m=points, offsets=longer)


def shared_steps(paths: GripperPaths, reference: IntArray, conflict: IntArray, block: slice) -> Gap:
    """The displacements from the start of the pairs in one block, step by step.

    Args:
        paths: From ``gripper_paths``.
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).
        block: Which pairs, from ``blocks_of``.
    """
    own = np.minimum(paths.steps[reference[block]], paths.steps[conflict[block]])
    starts = np.cumsum(own) - own
    step = np.arange(own.sum()) - np.repeat(starts, own) + 1
    displaced = []
    for rows in (reference[block], conflict[block]):
        first = np.repeat(paths.offsets[rows], own)
        displaced.append(paths.points_m[first + step] - paths.points_m[first])
    return Gap(pairs=block, starts=starts, step=step, reference_m=displaced[0], conflict_m=displaced[1])


def blocks_of(paths: GripperPaths, reference: IntArray, conflict: IntArray) -> list[slice]:
    """Slices of pairs whose shared steps fit the cache, whatever the number of pairs."""
    return [*pair_blocks(np.minimum(paths.steps[reference], paths.steps[conflict]))]
