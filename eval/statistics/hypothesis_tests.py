"""Tests of paired outcomes and paired differences, and the adjustment over a table of tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ...toolkit.arrays import BoolArray, FloatArray, IntArray
from .resampling import RESAMPLES, flip_patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """Exact McNemar test of paired outcomes.

    Attributes:
        reference_only: Pairs where only the reference rollout succeeds.
        conflict_only: Pairs where only the conflict rollout succeeds.
        p: Two-sided p-value.
    """

    reference_only: int
    conflict_only: int
    p: float


def mcnemar(reference_success: BoolArray, conflict_success: BoolArray) -> McNemar:
    """Exact McNemar test: are the two kinds of discordant pair equally likely?

    Under the null hypothesis that the conflict changes nothing, the pairs with exactly one success split evenly, so
    their number is binomial with probability 1/2. The test takes pairs as independent. Pairs that share a reference
    rollout are not: in simulations of a full evaluation it then rejects a true null hypothesis in two of three cases
    instead of one in twenty. ``outcome_tests`` therefore puts a sign-flip test over base tasks beside it.

    Args:
        reference_success: y+, shape (N,).
        conflict_success: y-, shape (N,).

    Returns:
        Counts and the two-sided p-value, 1 where no pair is discordant.

    References:
        Q. McNemar, Psychometrika 12 (1947) 153-157.

    >>> mcnemar(np.array([True] * 6), np.array([False] * 6)).p
    0.03125
    """
    reference_only = int((reference_success & ~conflict_success).sum())
    conflict_only = int((conflict_success & ~reference_success).sum())
    discordant = reference_only + conflict_only
    p = float(stats.binomtest(reference_only, discordant, 0.5).pvalue) if discordant else 1.0
    return McNemar(reference_only=reference_only, conflict_only=conflict_only, p=p)


def sign_flip_p(
    differences: FloatArray, clusters: IntArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Paired permutation test that a mean difference is zero, flipping the signs of whole base tasks.

    Under the null hypothesis that the two conditions are exchangeable, the sum over a base task is as likely to have
    either sign. All 2**n sign patterns are enumerated for up to 13 base tasks, otherwise patterns are drawn.

    Args:
        differences: One difference a pair, finite, shape (P,).
        clusters: Number of each pair's base task, shape (P,).
        rng: Source of the patterns.
        resamples: How many patterns to draw where they are not enumerated.

    Returns:
        Two-sided p-value; NaN with fewer than two base tasks, where no pattern could tell anything. With n base tasks
        it cannot be below 2 / 2**n.
    """
    present, index = np.unique(clusters, return_inverse=True)
    if len(present) < 2:
        return float("nan")
    sums = np.bincount(index, weights=differences, minlength=len(present))
    patterns, exact = flip_patterns(len(sums), rng, resamples)
    flipped = np.abs((2.0 * patterns - 1.0) @ sums)
    # Equal sums reached by different orders of addition differ in the last bits, and must count as equal.
    extreme = int((flipped >= abs(float(sums.sum())) - 1e-9 * float(np.abs(sums).sum())).sum())
    return extreme / len(flipped) if exact else (extreme + 1) / (resamples + 1)


def false_discovery(p_values: FloatArray) -> FloatArray:
    """Benjamini-Hochberg adjusted p-values over one table; NaN stays NaN and counts for nothing.

    References:
        Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289-300.

    >>> false_discovery(np.array([0.01, 0.04, np.nan]))
    array([0.02, 0.04,  nan])
    """
    adjusted = np.full(len(p_values), np.nan)
    defined = np.isfinite(p_values)
    if defined.any():
        adjusted[defined] = stats.false_discovery_control(p_values[defined], method="bh")
    return adjusted
