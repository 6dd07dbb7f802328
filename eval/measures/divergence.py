"""First divergence step: when do the two grippers part? Supplementary."""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import FloatArray, IntArray
from .paths import GripperPaths, blocks_of, shared_steps

PARTED_M = 0.02
"""Grippers further apart than this have parted: the least approach that counts for TAR."""


def first_divergence_step(paths: GripperPaths, reference: IntArray, conflict: IntArray) -> FloatArray:
    """The first t in 1 .. T with |a_t - b_t| > 0.02 m, T = min(H^+, H^-).

    ``a_t`` and ``b_t`` are the displacements of the gripper from its start, in the reference and the conflict
    rollout. The step says after how many executed actions the conflict shows in the motion.

    Args:
        paths: From ``gripper_paths``.
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).

    Returns:
        Executed actions, shape (P,), from 1; NaN where the grippers do not part within T. That is no missing value
        but the answer "never", so a mean over the others alone is biased: give the share that never part beside it.
    """
    first = np.full(len(reference), np.nan)
    for block in blocks_of(paths, reference, conflict):
        gap = shared_steps(paths, reference, conflict, block)
        apart = gap.reference_m - gap.conflict_m
        parted = np.einsum("si,si->s", apart, apart) > PARTED_M**2
        earliest = np.minimum.reduceat(np.where(parted, gap.step, np.iinfo(np.int64).max), gap.starts)
        first[block] = np.where(earliest < np.iinfo(np.int64).max, earliest, np.nan)
    return first
