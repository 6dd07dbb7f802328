"""Dynamic-time-warping similarity: is it the same path, at whatever pace? Supplementary.

TS and PS compare equal steps, so a policy that hesitates and then does the same scores low. Warping lets each point of
one path meet any later point of the other. The distance is the textbook one (H. Sakoe and S. Chiba, IEEE Trans. ASSP
26 (1978) 43-49, unweighted steps, no window); its scale is this project's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...toolkit.arrays import FloatArray, IntArray
from .paths import GripperPaths
from .process import EPSILON, clip01

STRIDE = 4
"""Every fourth state is compared (5 Hz), and the last: the cost is quadratic, and grippers are slow."""

BATCH_CELLS = 1 << 15
"""Pairs times points of one diagonal that are computed at once; bounds memory and fits the cache."""


def warping_similarity(paths: GripperPaths, reference: IntArray, conflict: IntArray) -> FloatArray:
    """WS = clip01(1 - D(τ^+, τ^-) / (Σ_i |a_i| + ε)).

    ``D`` is the least sum of distances |a_i - b_j| over all warping paths that begin at both starts, end at both ends,
    and advance by one point in either or both; ``a_i`` and ``b_j`` are displacements of the gripper from its start at
    steps 0, 4, 8, ... and the last. The denominator is D against a gripper that stays at the start.

    Args:
        paths: From ``gripper_paths``.
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).

    Returns:
        Shape (P,), in [0, 1], lower is a clearer response: 1 for the same path at any pace, 0 for one that is no
        nearer to the reference rollout's than staying at the start.
    """
    points, offsets = _sampled(paths)
    counts = np.diff(offsets)
    scale = np.add.reduceat(np.sqrt(np.einsum("fi,fi->f", points, points)), offsets[:-1])
    distance = np.empty(len(reference))
    order = np.lexsort((counts[conflict], counts[reference]))
    for batch in _batches(order, counts[reference]):
        first = _padded(points, offsets, reference[batch])
        second = _padded(points, offsets, conflict[batch])
        distance[batch] = _warped(first, second, counts[reference[batch]], counts[conflict[batch]])
    return clip01(1.0 - distance / (scale[reference] + EPSILON))


def _sampled(paths: GripperPaths) -> tuple[FloatArray, IntArray]:
    """Displacements from the start at every fourth state and the last, and their offsets."""
    counts = -(-paths.steps // STRIDE) + 1
    offsets = np.concatenate([[0], np.cumsum(counts)])
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    state = np.minimum(STRIDE * number, np.repeat(paths.steps, counts))
    first = np.repeat(paths.offsets[:-1], counts)
    return paths.points_m[first + state] - paths.points_m[first], offsets


def _batches(order: IntArray, counts: IntArray) -> Iterator[IntArray]:
    """Pairs of similar lengths together, so that little of a batch is padding."""
    start = 0
    while start < len(order):
        stop = start + max(1, BATCH_CELLS // int(counts[order[start]]))
        yield order[start:stop]
        start = stop


def _padded(points: FloatArray, offsets: IntArray, rows: IntArray) -> FloatArray:
    """The rows' points, shape (3, most points, rows); after a path's end its last point is repeated."""
    counts = offsets[rows + 1] - offsets[rows]
    number = np.minimum(np.arange(counts.max())[:, None], counts - 1)
    return np.ascontiguousarray(np.moveaxis(points[offsets[rows] + number], 2, 0))


def _warped(first: FloatArray, second: FloatArray, first_count: IntArray, second_count: IntArray) -> FloatArray:
    """D of each pair, shape (B,): dynamic programming along anti-diagonals, all pairs of a batch at once.

    Args:
        first: Shape (3, n, B).
        second: Shape (3, m, B).
        first_count: Points that are no padding, shape (B,).
        second_count: Those of the second path, shape (B,).
    """
    n, m = first.shape[1], second.shape[1]
    backwards = second[:, ::-1]
    ends = first_count + second_count - 2
    result = np.empty(first.shape[2])
    # Cost of the cells (i, d - i) of one diagonal d, by i + 1; infinity stands for cells outside the table.
    before, last, costs = (np.full((n + 1, first.shape[2]), np.inf) for _ in range(3))
    for diagonal in range(int(ends.max()) + 1):
        low, high = max(0, diagonal - m + 1), min(n - 1, diagonal) + 1
        apart = first[:, low:high] - backwards[:, m - 1 - diagonal + low : m - 1 - diagonal + high]
        np.multiply(apart, apart, out=apart)
        cell = np.sqrt(apart[0] + apart[1] + apart[2])
        if diagonal:
            least = np.minimum(last[low + 1 : high + 1], last[low:high])
            cell += np.minimum(least, before[low:high], out=least)
        costs[low + 1 : high + 1] = cell
        costs[: low + 1], costs[high + 1 :] = np.inf, np.inf
        done = np.flatnonzero(ends == diagonal)
        result[done] = costs[first_count[done], done]
        before, last, costs = last, costs, before
    return result
