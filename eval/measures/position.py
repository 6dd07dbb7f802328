"""Position-space similarity: do the two grippers go the same way, equally far, at equal steps? Supplementary.

TS compares what the policy commands; this compares where the arm ends up, so a small difference of actions that adds
up shows here and one that cancels out does not. The definition is this project's own (protocol 2.0 names the measure
and leaves it open).
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import FloatArray, IntArray
from .paths import GripperPaths, blocks_of, shared_steps
from .process import clip01

STILL_M = 1e-3
"""A gripper within 1 mm of where it started counts as not having moved."""


def position_similarity(paths: GripperPaths, reference: IntArray, conflict: IntArray) -> FloatArray:
    """PS = mean of q_t over 1 <= t <= T with q_t = clip01(<a_t, b_t> / max(|a_t|, |b_t|)^2), T = min(H^+, H^-).

    ``a_t`` and ``b_t`` are the displacements of the gripper from its start, in the reference and the conflict
    rollout: q_t is the cosine between them times the shorter over the longer. Steps at which neither has moved by
    1 mm say nothing and are left out; PS is 1 where that leaves none.

    Args:
        paths: From ``gripper_paths``.
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).

    Returns:
        Shape (P,), in [0, 1], lower is a clearer response: 1 for the same path at the same pace, 0 for a gripper that
        stays where it is or goes the other way.
    """
    similarity = np.empty(len(reference))
    for block in blocks_of(paths, reference, conflict):
        gap = shared_steps(paths, reference, conflict, block)
        a, b = gap.reference_m, gap.conflict_m
        longest = np.maximum(np.einsum("si,si->s", a, a), np.einsum("si,si->s", b, b))
        moved = longest >= STILL_M**2
        q = np.zeros(len(longest))
        np.divide(np.einsum("si,si->s", a, b), longest, out=q, where=moved)
        count = np.add.reduceat(moved.astype(np.float64), gap.starts)
        total = np.add.reduceat(clip01(q), gap.starts)
        mean = np.ones(len(count))
        np.divide(total, count, out=mean, where=count > 0)
        similarity[block] = mean
    return similarity
