"""Outcome measures: is the reference goal reached, with valid and with invalid premises?

Each is a ratio of two sums over pairs, so one form serves the point estimate, every subgroup and every resample.
Source: section III-C1 of the ConflictVLA-Bench paper.
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import BoolArray
from ..statistics.ratio import Ratio


def premise_consistent_success_rate(reference_success: BoolArray) -> Ratio:
    """PCSR = (1/N) sum of y+, the competence with valid premises.

    Args:
        reference_success: y+, whether each pair's reference rollout reached the reference goal, shape (N,). A
            reference rollout that serves several pairs counts once in each.

    Returns:
        A ratio in [0, 1], higher is better; undefined without pairs.
    """
    return Ratio(numerator=reference_success.astype(np.float64), denominator=np.ones(len(reference_success)))


def reference_goal_success_rate(conflict_success: BoolArray) -> Ratio:
    """RGSR = (1/N) sum of y-, how often the reference goal is reached although the premises are invalid.

    Args:
        conflict_success: y-, whether each pair's conflict rollout reached the reference goal, shape (N,).

    Returns:
        A ratio in [0, 1]; lower means that the conflict made a difference. Undefined without pairs.
    """
    return Ratio(numerator=conflict_success.astype(np.float64), denominator=np.ones(len(conflict_success)))


def success_rate_drop(reference_success: BoolArray, conflict_success: BoolArray) -> Ratio:
    """ΔSR = PCSR - RGSR, as one ratio so that resampling keeps each pair's two outcomes together.

    Args:
        reference_success: y+, shape (N,).
        conflict_success: y-, shape (N,).

    Returns:
        A ratio in [-1, 1]; undefined without pairs.
    """
    drop = reference_success.astype(np.float64) - conflict_success.astype(np.float64)
    return Ratio(numerator=drop, denominator=np.ones(len(drop)), least=-1.0)


def failure_rate(reference_success: BoolArray, conflict_success: BoolArray) -> Ratio:
    """FR = |D_QF| / |D_Q|, failures under conflict among pairs that the policy is able to do.

    D_Q holds the pairs with y+ = 1 (capability-qualified), D_QF those of them with y- = 0.

    Args:
        reference_success: y+, shape (N,).
        conflict_success: y-, shape (N,).

    Returns:
        A ratio in [0, 1]; undefined where D_Q is empty. Not a response score by itself: a failure may be persistence.
    """
    failed = qualified_failures(reference_success, conflict_success)
    return Ratio(numerator=failed.astype(np.float64), denominator=reference_success.astype(np.float64))


def qualified_failures(reference_success: BoolArray, conflict_success: BoolArray) -> BoolArray:
    """D_QF as a mask: the reference rollout succeeds and the conflict rollout does not; shape (N,)."""
    return reference_success & ~conflict_success
