"""Drawing and flipping whole base tasks, from an explicit generator with a fixed seed.

The same rollouts give the same bytes: every interval starts from a fresh generator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...toolkit.arrays import FloatArray, IntArray

RESAMPLES = 10_000

SEED = 20_260_101
"""Any fixed number does; it is written with every score."""

MOST_EXACT_CLUSTERS = 13
"""Up to this many base tasks all 2**n sign flips are enumerated instead of drawn."""


def generator() -> np.random.Generator:
    """A fresh generator with this module's seed: every interval is drawn alike, whatever was computed before it."""
    return np.random.default_rng(SEED)


def flip_patterns(clusters: int, rng: np.random.Generator, resamples: int) -> tuple[IntArray, bool]:
    """Which clusters to change, 0 or 1, shape (R, C), and whether these are all the ways that there are."""
    if clusters <= MOST_EXACT_CLUSTERS:
        return (np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1, True
    return rng.integers(0, 2, (resamples, clusters)), False


def cluster_sums(parts: Sequence[FloatArray], clusters: IntArray, count: int) -> FloatArray:
    """Sum of each part over each cluster, shape (C, R)."""
    sums = [np.bincount(clusters, weights=part, minlength=count) for part in parts]
    return np.stack(sums, axis=1) if sums else np.zeros((count, 0))


def resampled_ratios(upper: FloatArray, lower: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Ratio of resampled sums, shape (resamples, R); NaN where the lower sum is 0."""
    clusters = len(upper)
    times_drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float64)
    # einsum adds in one order everywhere, where a BLAS product may differ in the last bits between machines; measure
    # by measure, so that the order does not depend on how many there are.
    numerator, denominator = (
        np.stack([np.einsum("rc,c->r", times_drawn, column.copy()) for column in sums.T], axis=1)
        for sums in (upper, lower)
    )
    ratio = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio
