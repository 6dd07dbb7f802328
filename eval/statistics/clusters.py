"""How sure a score is: intervals and tests that treat a base task's pairs as belonging together.

Conflict cases of one base task share its scene and its reference rollouts, so pairs are not independent; base tasks
are. Everything random here resamples or flips whole base tasks, from an explicit generator with a fixed seed, so
that the same rollouts give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from ...toolkit.arrays import BoolArray, FloatArray, IntArray
from ..measures.outcome import Ratio

CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 20_260_101
"""Any fixed number does; it is written with every score."""

FEW_CLUSTERS = 10
"""From this many base tasks on an interval is bootstrapped; with fewer it is a t interval of the logit."""

LOGIT_MARGIN = 0.005
"""Keeps logits finite: without it two shares of 99.9% and 100% would leave everything open."""

INTERVAL_METHOD = (
    "bootstrap over base tasks with expanded percentiles; t interval of the logit with fewer than 10 base tasks"
)

MOST_EXACT_CLUSTERS = 13
"""Up to this many base tasks all 2**n sign flips are enumerated instead of drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95% interval; NaN where undefined."""

    value: float
    low: float
    high: float


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


def generator() -> np.random.Generator:
    """A fresh generator with this module's seed: every interval is drawn alike, whatever was computed before it."""
    return np.random.default_rng(SEED)


def cluster_intervals(
    ratios: Sequence[Ratio], clusters: IntArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[Interval, ...]:
    """95% intervals over clusters: what would other base tasks of the same kind have given?

    With at least 10 base tasks a bootstrap: draw base tasks with replacement, keep all pairs of each, recompute, and
    take the quantiles at Φ(-c) and Φ(c) with c = sqrt(C / (C - 1)) t_{0.975, C-1}. Plain quantiles at 2.5% and 97.5%
    would be too narrow, since C draws vary by a factor (C - 1) / C less than base tasks do and know nothing of the t
    distribution: in simulations they covered 90-92% with 10 base tasks, these 93-96% (``bench_statistics``).

    With 2 to 9 base tasks resampling has too few distinct draws, whatever the quantiles. There the interval is one of
    the logit of q = 0.005 + 0.99 (ratio - least) / (most - least), the ratio's place in the measure's range:
    logit q ± t_{0.975, C-1} s_q / (q (1 - q)), taken back and cut off at the range, with s_q = 0.99 s / (most - least),
    s^2 = C / (C - 1) sum of r_c^2 / (sum of lower sums)^2 and r_c = upper_c - ratio lower_c. With 3 to 9 base tasks it
    covers 94-96%, where ratio ± t s covers 87-95%, since a share near 0 or 1 varies more to one side; with 2 it covers
    88-95%. It is wide: few base tasks say little, and say so themselves. Where all of them are at the same
    end of the range it has no width. A measure without an upper end, such as a cost, has no logit; its interval is
    ratio ± t s, cut off at the lower end.

    Args:
        ratios: Measures of the same P pairs. Of R measures all are computed on the same resamples.
        clusters: Number of each pair's base task, shape (P,), any whole numbers from 0.
        rng: Source of the resamples.
        resamples: How many.

    Returns:
        One interval a measure. Low and high are NaN where fewer than two base tasks inform the measure: with one
        cluster nothing is known about the spread between clusters, and a zero width would pass for certainty.
        Resamples in which a measure is undefined are left out of its interval.

    References:
        T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015) 371-386,
        for the expanded quantiles. W. Cochran, Sampling Techniques (1977), 6.3, for the variance of a ratio.
        A. Agresti, Categorical Data Analysis (2013), 3.1, for intervals of logits.
    """
    count = int(clusters.max(initial=-1)) + 1
    upper = _cluster_sums([ratio.numerator for ratio in ratios], clusters, count)
    lower = _cluster_sums([ratio.denominator for ratio in ratios], clusters, count)
    informed = (lower > 0).sum(axis=0)
    present = np.bincount(clusters, minlength=count) > 0
    upper, lower = upper[present], lower[present]
    many = bool((informed >= FEW_CLUSTERS).any())
    draws = _resample(upper, lower, rng, resamples) if many else np.full((1, len(ratios)), np.nan)
    intervals = []
    for index, ratio in enumerate(ratios):
        low = high = float("nan")
        defined = draws[np.isfinite(draws[:, index]), index]
        if informed[index] >= FEW_CLUSTERS and len(defined):
            tail = float(stats.norm.cdf(-_t_factor(int(informed[index]))))
            low, high = (float(bound) for bound in np.quantile(defined, [tail, 1 - tail]))
        elif informed[index] > 1:
            low, high = _few_cluster_bounds(ratio, upper[:, index], lower[:, index])
        intervals.append(Interval(value=ratio.value(), low=low, high=high))
    return tuple(intervals)


def ratio_difference(
    first: Ratio, second: Ratio, clusters: IntArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[Interval, float]:
    """The difference of two ratios over the same P pairs, second - first: its 95% interval, and a test that it is zero.

    For a difference that is no mean over pairs, since each ratio has its own denominator. The interval is that of
    ``cluster_intervals``: both ratios are computed on the same resamples, or with few base tasks both residuals of a
    base task are taken together. The test swaps the two sides of whole base tasks, which under the null hypothesis
    changes nothing; it is the sign-flip test where the denominators are equal.

    Args:
        first: One side.
        second: The other.
        clusters: Number of each pair's base task, shape (P,).
        rng: Source of resamples and swaps.
        resamples: How many.

    Returns:
        Interval, and two-sided p-value; NaN where either ratio is undefined, or either is informed by fewer than two
        base tasks.
    """
    count = int(clusters.max(initial=-1)) + 1
    upper = _cluster_sums([first.numerator, second.numerator], clusters, count)
    lower = _cluster_sums([first.denominator, second.denominator], clusters, count)
    present = np.bincount(clusters, minlength=count) > 0
    upper, lower = upper[present], lower[present]
    value = second.value() - first.value()
    informed = int((lower > 0).sum(axis=0).min(initial=len(lower)))
    if informed < 2:
        return Interval(value=value, low=float("nan"), high=float("nan")), float("nan")
    least, most = second.least - first.most, second.most - first.least
    if informed >= FEW_CLUSTERS:
        draws = np.diff(_resample(upper, lower, rng, resamples), axis=1)[:, 0]
        tail = float(stats.norm.cdf(-_t_factor(informed)))
        low, high = (float(bound) for bound in np.quantile(draws[np.isfinite(draws)], [tail, 1 - tail]))
    else:
        residual = np.diff((upper - upper.sum(axis=0) / lower.sum(axis=0) * lower) / lower.sum(axis=0), axis=1)
        half_width = _t_factor(informed) * float(np.sqrt((residual**2).sum()))
        low, high = _logit_bounds(value, half_width, least, most)
    return Interval(value=value, low=low, high=high), _swap_p(upper, lower, rng, resamples)


def _swap_p(upper: FloatArray, lower: FloatArray, rng: np.random.Generator, resamples: int) -> float:
    """Share of swaps of the two sides, shape (C, 2), that differ as much as found; those without a ratio left out."""
    patterns, exact = _patterns(len(upper), rng, resamples)
    stays, swaps = (1.0 - patterns), patterns.astype(np.float64)
    one, other = (stays @ sums + swaps @ sums[:, ::-1] for sums in (upper, lower))
    defined = (other > 0).all(axis=1)
    found = np.abs(np.diff(one[defined] / other[defined], axis=1)[:, 0])
    observed = abs(float(np.diff(upper.sum(axis=0) / lower.sum(axis=0))[0]))
    extreme = int((found >= observed - 1e-9).sum())
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)


def _patterns(clusters: int, rng: np.random.Generator, resamples: int) -> tuple[IntArray, bool]:
    """Which clusters to change, 0 or 1, shape (R, C), and whether these are all the ways that there are."""
    if clusters <= MOST_EXACT_CLUSTERS:
        return (np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1, True
    return rng.integers(0, 2, (resamples, clusters)), False


def _t_factor(clusters: int) -> float:
    """sqrt(C / (C - 1)) times the t distribution's 97.5% point with C - 1 degrees of freedom."""
    quantile = float(stats.t.ppf(1 - (1 - CONFIDENCE) / 2, clusters - 1))
    return float(np.sqrt(clusters / (clusters - 1))) * quantile


def _few_cluster_bounds(ratio: Ratio, upper: FloatArray, lower: FloatArray) -> tuple[float, float]:
    value = float(upper.sum() / lower.sum())
    residual = upper - value * lower
    half_width = _t_factor(int((lower > 0).sum())) * float(np.sqrt((residual**2).sum())) / float(lower.sum())
    return _logit_bounds(value, half_width, ratio.least, ratio.most)


def _logit_bounds(value: float, half_width: float, least: float, most: float) -> tuple[float, float]:
    """Ends of the logit's interval whose slope at the value is that of value ± half_width; without an end, of that."""
    if half_width == 0:
        return value, value
    if not np.isfinite(most):
        return max(least, value - half_width), value + half_width
    share = 1 - 2 * LOGIT_MARGIN
    place = LOGIT_MARGIN + share * (value - least) / (most - least)
    reach = share * half_width / ((most - least) * place * (1 - place))
    ends = [float(special.expit(special.logit(place) + end)) for end in (-reach, reach)]
    low, high = (least + (most - least) * (end - LOGIT_MARGIN) / share for end in ends)
    return max(least, low), min(most, high)


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
    patterns, exact = _patterns(len(sums), rng, resamples)
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


def selectivity(
    reference_p0: FloatArray, conflict_p0: FloatArray, reference_p1: FloatArray, conflict_p1: FloatArray
) -> FloatArray:
    """Each pair's part of (RGSR_P1 - RGSR_P0) - (PCSR_P1 - PCSR_P0).

    Negative where the premise-check prompt lowers completion under conflict by more than it lowers it with valid
    premises; about zero where it merely disrupts everything.

    Args:
        reference_p0: y+ of the pairs under P0, as 0 or 1, shape (P,).
        conflict_p0: y- of the same pairs under P0.
        reference_p1: y+ of the same cases and initial states under P1.
        conflict_p1: y- likewise.

    Returns:
        Shape (P,), in [-2, 2]; the mean is the selectivity.
    """
    return (conflict_p1 - conflict_p0) - (reference_p1 - reference_p0)


def _cluster_sums(parts: Sequence[FloatArray], clusters: IntArray, count: int) -> FloatArray:
    """Sum of each part over each cluster, shape (C, R)."""
    sums = [np.bincount(clusters, weights=part, minlength=count) for part in parts]
    return np.stack(sums, axis=1) if sums else np.zeros((count, 0))


def _resample(upper: FloatArray, lower: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
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
