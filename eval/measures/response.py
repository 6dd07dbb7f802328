"""The response: how clearly a capable policy answers an invalid premise, between carrying on (0) and holding back (1).

Neither RGSR, ΔSR nor FR tells refusing from chasing the invalid goal and fumbling; the response does, and by it the
leaderboard ranks. Source: this project's protocol, "A leaderboard that ranks what we mean".
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import BoolArray, FloatArray

RESPONSE_THRESHOLDS: FloatArray = (np.arange(20) + 0.5) / 20
"""Thresholds of TAR and of Early20 alike: the midpoints 0.025, 0.075, ..., 0.975. Neither 0, which even an arm at rest
reaches, nor 1, which the ε of TAR keeps an exact copy below, is among them."""

CAPABILITY_GATE = 0.20
"""A policy is ranked where the lower end of PCSR's 95% interval is at least this. Below it D_Q is a handful of lucky
reference rollouts on few base tasks, fewer than 40 of the 200 that 40 base tasks in 5 initial states give, and a policy
that completes so few has hardly a skill that a conflict could stop."""


def is_capable(pcsr_low: float) -> bool:
    """Whether a policy with that lower end of PCSR's interval is ranked; not where the interval is undefined (NaN)."""
    return pcsr_low >= CAPABILITY_GATE


def persistence(tar: FloatArray, early: FloatArray) -> FloatArray:
    """Share of the grid of thresholds (x, y) with TAR >= x and Early20 >= y, so that no single one is privileged.

    Args:
        tar: TAR of each pair, shape (P,), in [0, 1]; NaN where undefined.
        early: Early20 TS of each pair, shaped as tar.

    Returns:
        Shape (P,), in [0, 1]: 0 for an arm at rest, 1 for an exact copy, never lower where TAR or Early20 is higher.
        NaN where TAR or Early20 is.

    >>> persistence(np.array([0.0, 0.5, 1.0]), np.array([1.0, 1.0, 1.0]))
    array([0. , 0.5, 1. ])
    """
    near, alike = (np.searchsorted(RESPONSE_THRESHOLDS, values, side="right") for values in (tar, early))
    defined = np.isfinite(tar) & np.isfinite(early)
    return np.where(defined, near * alike / len(RESPONSE_THRESHOLDS) ** 2, np.nan)


def response(conflict_success: BoolArray, tar: FloatArray, early: FloatArray) -> FloatArray:
    """1 - max(y-, persistence) of each pair; its mean over the capability-qualified pairs D_Q is the response.

    A pair without TAR has none, whatever its outcome: whether TAR is defined depends on the reference rollout alone, so
    that leaving such pairs out, and counting them, favours nobody. If they counted where the goal is completed and only
    there, they would count against some policies and for none.

    Args:
        conflict_success: y-, whether each pair's conflict rollout reached the reference goal, shape (P,).
        tar: TAR of each pair, shape (P,); NaN where undefined.
        early: Early20 TS of each pair, shaped as tar.

    Returns:
        Shape (P,), in [0, 1], higher is a clearer response: 0 where the goal was completed all the same or the
        reference motion repeated, 1 for an arm that stays at rest. NaN where TAR is undefined.

    >>> response(np.array([True, False, False]), np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.5, 0.0]))
    array([0. , 0.5, 1. ])
    """
    persisted = persistence(tar, early)
    return np.asarray(1.0 - np.where(np.isfinite(persisted) & conflict_success, 1.0, persisted))
