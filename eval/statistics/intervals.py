"""Intervals that treat the pairs of a base task as belonging together.

Conflict cases of one base task share its scene and its reference rollouts, so pairs are not independent; base tasks
are. What is random here resamples whole base tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from ...toolkit.arrays import FloatArray, IntArray
from .ratio import Ratio
from .resampling import RESAMPLES, cluster_sums, flip_patterns, resampled_ratios

CONFIDENCE = 0.95

FEW_CLUSTERS = 10
"""From this many base tasks on an interval is bootstrapped; with fewer it is a t interval of the logit."""

LOGIT_MARGIN = 0.005
"""Keeps logits finite: without it two shares of 99.9% and 100% would leave everything open."""

INTERVAL_METHOD = (
    "bootstrap over base tasks with expanded percentiles; t interval of the logit with fewer than 10 base tasks"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95% interval; NaN where undefined."""

    value: float
    low: float
    high: float


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
    upper = cluster_sums([ratio.numerator for ratio in ratios], clusters, count)
    lower = cluster_sums([ratio.denominator for ratio in ratios], clusters, count)
    informed = (lower > 0).sum(axis=0)
    present = np.bincount(clusters, minlength=count) > 0
    upper, lower = upper[present], lower[present]
    many = bool((informed >= FEW_CLUSTERS).any())
    draws = resampled_ratios(upper, lower, rng, resamples) if many else np.full((1, len(ratios)), np.nan)
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


def exact_interval(successes: int, trials: int) -> Interval:
    """95% interval of a share of independent trials (Clopper-Pearson); undefined without trials.

    >>> found = exact_interval(5, 5)
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.478, 1.0)
    """
    if not trials:
        return Interval(value=float("nan"), low=float("nan"), high=float("nan"))
    tail = (1 - CONFIDENCE) / 2
    low = float(stats.beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
    high = float(stats.beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Interval(value=successes / trials, low=low, high=high)


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
    upper = cluster_sums([first.numerator, second.numerator], clusters, count)
    lower = cluster_sums([first.denominator, second.denominator], clusters, count)
    present = np.bincount(clusters, minlength=count) > 0
    upper, lower = upper[present], lower[present]
    value = second.value() - first.value()
    informed = int((lower > 0).sum(axis=0).min(initial=len(lower)))
    if informed < 2:
        return Interval(value=value, low=float("nan"), high=float("nan")), float("nan")
    least, most = second.least - first.most, second.most - first.least
    if informed >= FEW_CLUSTERS:
        draws = np.diff(resampled_ratios(upper, lower, rng, resamples), axis=1)[:, 0]
        tail = float(stats.norm.cdf(-_t_factor(informed)))
        low, high = (float(bound) for bound in np.quantile(draws[np.isfinite(draws)], [tail, 1 - tail]))
    else:
        residual = np.diff((upper - upper.sum(axis=0) / lower.sum(axis=0) * lower) / lower.sum(axis=0), axis=1)
        half_width = _t_factor(informed) * float(np.sqrt((residual**2).sum()))
        low, high = _logit_bounds(value, half_width, least, most)
    return Interval(value=value, low=low, high=high), _swap_p(upper, lower, rng, resamples)


def _swap_p(upper: FloatArray, lower: FloatArray, rng: np.random.Generator, resamples: int) -> float:
    """Share of swaps of the two sides, shape (C, 2), that differ as much as found; those without a ratio left out."""
    patterns, exact = flip_patterns(len(upper), rng, resamples)
    stays, swaps = (1.0 - patterns), patterns.astype(np.float64)
    one, other = (stays @ sums + swaps @ sums[:, ::-1] for sums in (upper, lower))
    defined = (other > 0).all(axis=1)
    found = np.abs(np.diff(one[defined] / other[defined], axis=1)[:, 0])
    observed = abs(float(np.diff(upper.sum(axis=0) / lower.sum(axis=0))[0]))
    extreme = int((found >= observed - 1e-9).sum())
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)


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
