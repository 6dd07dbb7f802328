"""Process measures: how did the robot move under the conflict, against its own reference rollout?

The paper's text keeps the constants of these measures (epsilon = 1e-8, clipping to [0, 1], H executed actions, the
first 20 actions) but not their formulas, so the definitions are this project's own, protocol 2.0. All work
on float64, all are within [0, 1], and all are defined for finite input except TAR.

Per-rollout quantities are reduced once over the flat frames (``ufunc.reduceat`` on the rollouts' offsets); only the
similarity, which compares two rollouts step by step, gathers frames, in blocks of pairs that fit the cache.

Where a policy refuses, its arm is at rest from then to the horizon. Those steps are not recorded: ``steps`` says how
many control steps each rollout stands for, and those behind its frames count as at rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...toolkit.arrays import BoolArray, Float32Array, FloatArray, IntArray

EPSILON = 1e-8
"""Keeps denominators away from zero, as in the paper."""

LEAST_APPROACH_M = 0.02
"""A target counts for TAR where the reference rollout came at least this much closer to it."""

REST_NORM = 1e-4
"""Below this norm of the arm's action the arm counts as at rest."""

EARLY_STEPS = 20
"""Executed actions that Early20 looks at: one second."""

ARM_DIMENSIONS = 6
"""Translation and rotation; the gripper's +-1 would swamp the small motion terms."""

BLOCK_FRAMES = 1 << 17
"""Frames gathered at once by the similarity; bounds memory whatever the number of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Similarity:
    """Step-by-step similarity of each pair's arm actions, averaged.

    Attributes:
        whole: TS, over the steps both rollouts have, shape (P,).
        early: Early20 TS, over the first 20 of them, shape (P,).
    """

    whole: FloatArray
    early: FloatArray


def clip01(values: FloatArray) -> FloatArray:
    """min(1, max(0, z)), element by element."""
    return np.clip(values, 0.0, 1.0)


def target_approach_m(
    eef_pos_m: Float32Array,
    target_pos_m: Float32Array,
    offsets: IntArray,
    final_eef_pos_m: FloatArray,
    final_target_pos_m: FloatArray,
    target_count: IntArray,
) -> FloatArray:
    """How much closer the gripper came to each target: A_k = max(0, d_{k,0} - min_t d_{k,t}).

    ``d_{k,t}`` is the distance from the gripper site to target k before action t, and after the last action for t = H.

    Args:
        eef_pos_m: Gripper site before each action, world frame, metres, shape (F, 3).
        target_pos_m: K targets before each action, world frame, metres, shape (F, 3 * K).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, K, 3).
        target_count: Used target slots, shape (N,).

    Returns:
        Metres, shape (N, K), never negative; NaN in unused slots.
    """
    starts = offsets[:-1]
    slots = final_target_pos_m.shape[1]
    approach = np.full((len(starts), slots), np.nan)
    for slot in range(min(slots, int(target_count.max(initial=0)))):
        gap = target_pos_m[:, 3 * slot : 3 * slot + 3].astype(np.float64)
        gap -= eef_pos_m
        distance = np.sqrt(np.einsum("fi,fi->f", gap, gap))
        final = np.linalg.norm(final_target_pos_m[:, slot] - final_eef_pos_m, axis=1)
        closest = np.minimum(np.minimum.reduceat(distance, starts), final)
        approach[:, slot] = np.maximum(0.0, distance[starts] - closest)
    approach[np.arange(slots) >= target_count[:, None]] = np.nan
    return approach


def target_approach_ratio(reference_m: FloatArray, conflict_m: FloatArray) -> FloatArray:
    """TAR = mean over targets of clip01(A_k^- / (A_k^+ + ε)), for the targets with A_k^+ >= 0.02 m.

    1 where the conflict rollout comes as close to the reference goal's targets as the reference rollout did, 0 where
    it comes no closer. Targets that the reference rollout hardly approached carry no information and are left out.

    Args:
        reference_m: A_k^+ of each pair, from ``target_approach_m``, shape (P, K), NaN in unused slots.
        conflict_m: A_k^- of each pair, shaped as reference_m.

    Returns:
        Shape (P,), in [0, 1], lower is a clearer response; NaN where no target qualifies.

    >>> target_approach_ratio(np.array([[0.2, 0.01]]), np.array([[0.1, 0.3]])).round(6)
    array([0.5])
    """
    counts = np.nan_to_num(reference_m) >= LEAST_APPROACH_M
    ratio = clip01(np.nan_to_num(conflict_m) / (np.nan_to_num(reference_m) + EPSILON))
    targets = counts.sum(axis=1)
    total = np.where(counts, ratio, 0.0).sum(axis=1)
    ratio_mean = np.full(len(targets), np.nan)
    np.divide(total, targets, out=ratio_mean, where=targets > 0)
    return ratio_mean


def arm_action_norm(action: Float32Array) -> FloatArray:
    """|u_t|, the norm of the first six components of each executed action.

    Args:
        action: Executed actions in [-1, 1], shape (F, 7).

    Returns:
        Shape (F,), from 0 to sqrt(6).
    """
    arm = action[:, :ARM_DIMENSIONS].astype(np.float64)
    return np.asarray(np.sqrt(np.einsum("fi,fi->f", arm, arm)))


def mean_action_norm(norm: FloatArray, offsets: IntArray, steps: IntArray | None = None) -> FloatArray:
    """M = mean over t of |u_t|, for each rollout.

    Args:
        norm: From ``arm_action_norm``, shape (F,).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        steps: Control steps that each rollout stands for, shape (N,), those behind its frames at rest; its frames by
            default.

    Returns:
        Shape (N,).

    >>> mean_action_norm(np.array([0.6, 0.0]), np.array([0, 2]), np.array([4]))
    array([0.15])
    """
    return np.asarray(np.add.reduceat(norm, offsets[:-1]) / (np.diff(offsets) if steps is None else steps))


def action_magnitude_suppression(reference_mean: FloatArray, conflict_mean: FloatArray) -> FloatArray:
    """AMS = clip01(1 - M^- / (M^+ + ε)).

    1 where the arm does not move under conflict, 0 where it moves as much as in the reference rollout, or more.

    Args:
        reference_mean: M^+ of each pair, from ``mean_action_norm``, shape (P,).
        conflict_mean: M^- of each pair, shaped as reference_mean.

    Returns:
        Shape (P,), in [0, 1], higher is a clearer response.

    >>> action_magnitude_suppression(np.array([0.5, 0.5]), np.array([0.25, 2.0])).round(6)
    array([0.5, 0. ])
    """
    return clip01(1.0 - conflict_mean / (reference_mean + EPSILON))


def trajectory_similarity(
    action: Float32Array,
    norm: FloatArray,
    offsets: IntArray,
    reference: IntArray,
    conflict: IntArray,
    steps: IntArray | None = None,
) -> Similarity:
    """TS = mean over t < T of s_t, with s_t = clip01(<u_t^+, u_t^-> / (|u_t^+| |u_t^-| + ε)) and T = min(H^+, H^-).

    Where both norms are below 1e-4, so both arms at rest, s_t = 1; where exactly one is, s_t = 0. Early20 TS is the
    same mean over t < min(20, T). Compared in action space and at equal steps, so it falls as soon as the conflict
    rollout does something else or does it later.

    Args:
        action: Executed actions, shape (F, 7).
        norm: From ``arm_action_norm``, shape (F,).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).
        steps: Control steps H that each rollout stands for, as for ``mean_action_norm``, shape (N,).

    Returns:
        Both in [0, 1], lower is a clearer response.
    """
    lengths = np.diff(offsets)
    steps = lengths if steps is None else steps
    recorded = np.minimum(lengths[reference], lengths[conflict])
    shared = np.minimum(steps[reference], steps[conflict])
    whole, early = np.empty(len(shared)), np.empty(len(shared))
    for block in pair_blocks(recorded):
        own = recorded[block]
        starts = np.cumsum(own) - own
        step = np.arange(own.sum()) - np.repeat(starts, own)
        left = step + np.repeat(offsets[reference[block]], own)
        right = step + np.repeat(offsets[conflict[block]], own)
        similarity = _step_similarity(action, norm, left, right)
        whole[block] = np.add.reduceat(similarity, starts)
        similarity[step >= EARLY_STEPS] = 0.0
        early[block] = np.add.reduceat(similarity, starts)
    shared_early = np.minimum(shared, EARLY_STEPS)
    # Behind the shorter recording one arm is at rest, so a step counts where the other is as well.
    longer = np.where(lengths[reference] >= lengths[conflict], reference, conflict)
    whole += _resting_steps(norm, offsets, longer, recorded, shared)
    early += _resting_steps(norm, offsets, longer, recorded, shared_early)
    return Similarity(whole=whole / shared, early=early / shared_early)


def _resting_steps(norm: FloatArray, offsets: IntArray, rows: IntArray, start: IntArray, stop: IntArray) -> IntArray:
    """At how many steps ``start <= t < stop`` each of these rollouts is at rest; behind its frames it always is."""
    resting = np.concatenate([[0], np.cumsum(norm < REST_NORM)])
    recorded = np.minimum(np.diff(offsets)[rows], stop)
    first = offsets[rows]
    found = resting[first + recorded] - resting[first + np.minimum(start, recorded)] + stop - recorded
    return np.asarray(found, np.int64)


def stops_for_good(norm: FloatArray, offsets: IntArray, steps: IntArray | None = None) -> BoolArray:
    """Whether the arm is at rest until the end: through at least the last second, or the whole of a shorter rollout.

    Supplementary. Observable behaviour only: it says that the arm stopped, not why.

    Args:
        norm: From ``arm_action_norm``, shape (F,).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        steps: Control steps that each rollout stands for, as for ``mean_action_norm``, shape (N,).

    Returns:
        Shape (N,).
    """
    lengths = np.diff(offsets)
    steps = lengths if steps is None else steps
    step = np.arange(len(norm)) - np.repeat(offsets[:-1], lengths)
    last_motion = np.maximum.reduceat(np.where(norm >= REST_NORM, step, -1), offsets[:-1])
    return np.asarray(steps - 1 - last_motion >= np.minimum(steps, EARLY_STEPS))


def moving_at_end(action: Float32Array) -> bool:
    """Whether a rollout ended while its arm moved: not at rest through its last second; see ``stops_for_good``.

    Args:
        action: The rollout's executed actions, shape (H, 7); without any, the arm is at rest.
    """
    return len(action) > 0 and not stops_for_good(arm_action_norm(action), np.array([0, len(action)]))[0]


def persistence_curve(tar: FloatArray, early: FloatArray, levels: FloatArray) -> FloatArray:
    """Share of qualified failures with TAR >= x and Early20 >= y, over a grid: no single threshold is privileged.

    Supplementary. Pairs with undefined TAR are left out; the caller counts them.

    Args:
        tar: TAR of the pairs of D_QF, shape (P,).
        early: Early20 TS of the same pairs, shape (P,).
        levels: Thresholds x and y, shape (G,), in [0, 1].

    Returns:
        Shape (G, G), TAR thresholds along the first axis; NaN without a defined pair.
    """
    defined = np.isfinite(tar) & np.isfinite(early)
    if not defined.any():
        return np.full((len(levels), len(levels)), np.nan)
    near = (tar[defined, None] >= levels).astype(np.float64)
    alike = (early[defined, None] >= levels).astype(np.float64)
    return np.asarray(near.T @ alike / int(defined.sum()))


def pair_blocks(steps: IntArray) -> Iterator[slice]:
    """Slices of pairs with at most about ``BLOCK_FRAMES`` steps each."""
    if not len(steps):
        return
    ends = np.cumsum(steps)
    marks = np.searchsorted(ends, np.arange(BLOCK_FRAMES, ends[-1], BLOCK_FRAMES))
    edges = np.unique(np.concatenate([[0], marks, [len(steps)]]))
    for start, stop in pairwise(edges):
        yield slice(int(start), int(stop))


def _step_similarity(action: Float32Array, norm: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """s_t for the frames ``left`` of reference and ``right`` of conflict rollouts, shape (steps,)."""
    first = action[left, :ARM_DIMENSIONS].astype(np.float64)
    second = action[right, :ARM_DIMENSIONS].astype(np.float64)
    similarity = clip01(np.einsum("fi,fi->f", first, second) / (norm[left] * norm[right] + EPSILON))
    still, other_still = norm[left] < REST_NORM, norm[right] < REST_NORM
    similarity[still != other_still] = 0.0
    similarity[still & other_still] = 1.0
    return similarity
