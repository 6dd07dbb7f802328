"""Gripper paths: where the gripper site is before each action and after the last, of every rollout in one array.

After a refusal it stays where it is until the horizon, as for the process measures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from .process import pair_blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GripperPaths:
    """Paths of N rollouts; those of rollout i are rows ``offsets[i]:offsets[i + 1]``, H + 1 of them.

    Attributes:
        points_m: Gripper site, world frame, metres, shape (sum of H + 1, 3).
        offsets: Shape (N + 1,).
    """

    points_m: FloatArray
    offsets: IntArray

    @property
    def steps(self) -> IntArray:
        """Control steps H that each rollout stands for, shape (N,)."""
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


def gripper_paths(
    eef_pos_m: Float32Array, offsets: IntArray, final_eef_pos_m: FloatArray, steps: IntArray | None = None
) -> GripperPaths:
    """Put the state after the last action behind each rollout's frames, as often as it stays there.

    Args:
        eef_pos_m: Gripper site before each action, shape (F, 3).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        steps: Control steps that each rollout stands for, no fewer than its frames, shape (N,); its frames by default.
    """
    lengths = np.diff(offsets)
    counts = (lengths if steps is None else steps) + 1
    longer = np.concatenate([[0], np.cumsum(counts)])
    points = np.empty((longer[-1], 3))
    state = np.arange(longer[-1]) - np.repeat(longer[:-1], counts)
    last = state >= np.repeat(lengths, counts)
    points[last], points[~last] = np.repeat(final_eef_pos_m, counts - lengths, axis=0), eef_pos_m
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
