"""Intervals and tests: hand-computed cases, clusters respected, the same bytes from the same seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from conflictvla.eval.measures.outcome import failure_rate
from conflictvla.eval.measures.selectivity import selectivity
from conflictvla.eval.statistics.hypothesis_tests import false_discovery, mcnemar, sign_flip_p
from conflictvla.eval.statistics.intervals import cluster_intervals, ratio_difference
from conflictvla.eval.statistics.ratio import Ratio, mean_of_defined
from conflictvla.eval.statistics.resampling import generator


def test_an_interval_resamples_clusters_and_not_pairs() -> None:
    # Two base tasks of 100 pairs each, all 0 or all 1: a resample is both of one, both of the other, or one of each.
    values = np.repeat([0.0, 1.0], 100)
    clusters = np.repeat([0, 1], 100)
    (interval,) = cluster_intervals([mean_of_defined(values)], clusters, generator())
    assert [interval.value, interval.low, interval.high] == pytest.approx([0.5, 0.0, 1.0], abs=1e-9)


def test_an_interval_agrees_with_scipy_where_each_pair_is_its_own_cluster() -> None:
    values = np.random.default_rng(2).beta(2, 1, 300)
    (interval,) = cluster_intervals([mean_of_defined(values)], np.arange(300), generator())
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(4))
    assert interval.low == pytest.approx(theirs.confidence_interval.low, abs=2e-3)
    assert interval.high == pytest.approx(theirs.confidence_interval.high, abs=2e-3)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(9)
    clusters = np.repeat(np.arange(30), 20)
    covered = 0
    for _ in range(200):
        task_means = rng.normal(0.5, 0.1, 30)
        values = task_means[clusters] + rng.normal(0, 0.1, len(clusters))
        (interval,) = cluster_intervals([mean_of_defined(values)], clusters, rng, resamples=500)
        covered += interval.low <= 0.5 <= interval.high
    # The percentile bootstrap with 30 clusters is a little narrow; pairs taken as independent would cover about 40 %.
    assert 175 <= covered <= 198


def test_pairs_of_one_base_task_have_no_interval() -> None:
    (interval,) = cluster_intervals([mean_of_defined(np.array([0.0, 1.0, 1.0]))], np.zeros(3, np.int64), generator())
    assert interval.value == pytest.approx(2 / 3)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_a_measure_informed_by_one_base_task_has_no_interval() -> None:
    values = np.array([0.5, 0.7, np.nan, np.nan])
    (interval,) = cluster_intervals([mean_of_defined(values)], np.array([0, 0, 1, 1]), generator())
    assert interval.value == pytest.approx(0.6)
    assert math.isnan(interval.low)


def test_resamples_without_a_qualified_pair_are_left_out() -> None:
    # Ten base tasks with one failure of two each and nine with one of one; a hundred have no qualified pair at all,
    # so that some resamples have none either.
    clusters = np.concatenate([np.repeat(np.arange(10), 2), np.arange(10, 19), np.arange(19, 119)])
    plus = np.arange(len(clusters)) < 29
    minus = np.concatenate([np.tile([True, False], 10), np.zeros(109, np.bool_)])
    (interval,) = cluster_intervals([failure_rate(plus, minus)], clusters, generator())
    assert interval.value == pytest.approx(19 / 29)
    assert 0.5 <= interval.low < 0.6
    assert 0.7 < interval.high < 0.9


def test_few_base_tasks_have_a_t_interval_of_the_logit() -> None:
    # Sums 1 and 3 of 4 pairs each: ratio 0.5, residuals -1 and 1, s = sqrt(2 * 2) / 8 = 0.25, t(1) = 12.7062.
    values = np.array([1.0, 0, 0, 0, 1, 1, 1, 0])
    clusters = np.repeat([0, 1], 4)
    # The place of 0.5 between -10 and 10 is 0.525, q = 0.52475 with logit 0.099082 and q (1 - q) = 0.249387.
    (wide,) = cluster_intervals([mean_of_defined(values, -10, 10)], clusters, generator())
    reach = 0.99 * 12.7062 * 0.25 / (20 * 0.249387)
    ends = [20 * (1 / (1 + math.exp(-0.099082 - side * reach)) - 0.005) / 0.99 - 10 for side in (-1, 1)]
    assert [wide.low, wide.high] == pytest.approx(ends, abs=1e-4)
    (interval,) = cluster_intervals([mean_of_defined(values)], clusters, generator())
    assert [interval.low, interval.high] == pytest.approx([0.0, 1.0], abs=1e-5)


def test_near_the_end_of_the_range_a_small_spread_stays_small() -> None:
    values = np.array([0.999999, 0.999999, 1.0, 1.0])
    (interval,) = cluster_intervals([mean_of_defined(values)], np.array([0, 0, 1, 1]), generator())
    assert 0.9999 < interval.low < interval.high <= 1.0


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_base_tasks_at_one_end_of_the_range_have_no_width(value: float) -> None:
    (interval,) = cluster_intervals([mean_of_defined(np.full(6, value))], np.repeat([0, 1, 2], 2), generator())
    assert (interval.value, interval.low, interval.high) == (value, value, value)


def test_ten_base_tasks_have_a_bootstrap_with_expanded_percentiles() -> None:
    values = np.random.default_rng(5).random(10)
    (interval,) = cluster_intervals([mean_of_defined(values)], np.arange(10), generator())
    # Phi(-sqrt(10/9) * t_{0.975, 9}) = Phi(-2.3845) = 0.00855.
    draws = values[np.random.default_rng(1).integers(0, 10, (200_000, 10))].mean(axis=1)
    assert [interval.low, interval.high] == pytest.approx(np.quantile(draws, [0.00855, 0.99145]).tolist(), abs=0.01)


def test_no_pairs_have_no_interval() -> None:
    (interval,) = cluster_intervals([mean_of_defined(np.zeros(0))], np.zeros(0, np.int64), generator())
    assert math.isnan(interval.value)
    assert math.isnan(interval.low)


def test_the_same_seed_gives_the_same_interval_to_the_last_bit() -> None:
    values, clusters = np.random.default_rng(0).random(200), np.arange(200) % 17
    draws = [cluster_intervals([mean_of_defined(values)], clusters, generator()) for _ in range(2)]
    assert draws[0] == draws[1]


def test_one_measure_does_not_disturb_the_interval_of_another() -> None:
    values, clusters = np.random.default_rng(0).random(200), np.arange(200) % 17
    ratio = mean_of_defined(values)
    other = Ratio(numerator=values**2, denominator=np.ones(200))
    assert (
        cluster_intervals([other, ratio], clusters, generator())[1]
        == cluster_intervals([ratio], clusters, generator())[0]
    )


def test_mcnemar_by_hand() -> None:
    # Eight discordant pairs split 7 to 1: 2 * (C(8,0) + C(8,1)) / 2**8 = 18 / 256.
    plus = np.array([True] * 7 + [False] + [True] * 5)
    minus = np.array([False] * 7 + [True] + [True] * 5)
    test = mcnemar(plus, minus)
    assert (test.reference_only, test.conflict_only) == (7, 1)
    assert test.p == pytest.approx(18 / 256)


def test_mcnemar_without_discordant_pairs_says_nothing() -> None:
    same = np.array([True, False])
    assert mcnemar(same, same).p == 1.0


def test_sign_flips_of_three_base_tasks_by_hand() -> None:
    # Sums 1, 2, 3: of the 8 patterns only +++ and --- reach |6|, so p = 2 / 8.
    assert sign_flip_p(np.array([0.5, 0.5, 2.0, 3.0]), np.array([0, 0, 1, 2]), generator()) == 0.25


def test_sign_flips_of_equal_sums_count_as_ties() -> None:
    # Sums 0.3, -0.3, and 0.1: |total| is 0.1, which every pattern reaches.
    assert sign_flip_p(np.array([0.1, 0.2, -0.3, 0.1]), np.array([0, 0, 1, 2]), generator()) == 1.0


def test_drawn_sign_flips_agree_with_scipy() -> None:
    differences = np.random.default_rng(8).normal(0.3, 1.0, 40)
    p = sign_flip_p(differences, np.arange(40), generator())
    theirs = stats.permutation_test(
        (differences, np.zeros(40)),
        lambda a, b: np.mean(a - b),
        permutation_type="samples",
        rng=np.random.default_rng(1),
    )
    assert p == pytest.approx(theirs.pvalue, abs=0.02)


def test_a_drawn_p_value_is_never_zero() -> None:
    # No drawn pattern of 60 signs reaches the observed one, which itself is one of the patterns.
    assert sign_flip_p(np.ones(60), np.arange(60), generator(), resamples=99) == 0.01


def test_sign_flips_need_two_base_tasks() -> None:
    assert math.isnan(sign_flip_p(np.array([1.0, 2.0]), np.array([4, 4]), generator()))
    assert math.isnan(sign_flip_p(np.zeros(0), np.zeros(0, np.int64), generator()))


def test_no_difference_is_no_evidence() -> None:
    assert sign_flip_p(np.zeros(60), np.arange(60), generator()) == 1.0


def test_false_discovery_leaves_undefined_p_values_out() -> None:
    # Sorted 0.01, 0.02, 0.03 times 3/1, 3/2, 3/3.
    adjusted = false_discovery(np.array([0.03, np.nan, 0.01, 0.02]))
    assert adjusted[[0, 2, 3]] == pytest.approx([0.03, 0.03, 0.03])
    assert math.isnan(adjusted[1])
    assert np.isnan(false_discovery(np.array([np.nan]))).all()


def test_selectivity_tells_premise_sensitivity_from_disruption() -> None:
    ones, zeros = np.ones(4), np.zeros(4)
    # P1 stops conflict rollouts only: wholly selective. P1 stops everything: not selective.
    assert selectivity(ones, ones, ones, zeros).mean() == -1.0
    assert selectivity(ones, ones, zeros, zeros).mean() == 0.0


@pytest.mark.parametrize("tasks", [5, 12])
def test_a_difference_of_means_is_a_mean_of_differences(tasks: int) -> None:
    rng = np.random.default_rng(2)
    first, second = rng.random((2, tasks * 6))
    clusters = np.repeat(np.arange(tasks), 6)
    sides = (mean_of_defined(first), mean_of_defined(second))
    interval, p = ratio_difference(*sides, clusters, generator())
    (expected,) = cluster_intervals([mean_of_defined(second - first, -1.0)], clusters, generator())
    assert (interval.value, interval.low, interval.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert p == sign_flip_p(second - first, clusters, generator())


def test_swapped_failure_rates_by_hand() -> None:
    # Two base tasks with 4 pairs each. One policy fails 1 of 2 and 2 of 4, the other 4 of 4 and 1 of 1.
    first = Ratio(numerator=np.array([1.0, 0, 0, 0, 1, 1, 0, 0]), denominator=np.array([1.0, 1, 0, 0, 1, 1, 1, 1]))
    second = Ratio(numerator=np.array([1.0, 1, 1, 1, 1, 0, 0, 0]), denominator=np.array([1.0, 1, 1, 1, 1, 0, 0, 0]))
    interval, p = ratio_difference(first, second, np.repeat([0, 1], 4), generator())
    assert interval.value == 0.5
    # Swapping one base task gives 6 of 8 against 2 of 3, in either order: less than 1 against 1 of 2.
    assert p == 0.5


def test_a_rate_that_is_undefined_has_no_difference() -> None:
    nothing = Ratio(numerator=np.zeros(4), denominator=np.zeros(4))
    interval, p = ratio_difference(nothing, mean_of_defined(np.ones(4)), np.array([0, 0, 1, 1]), generator())
    assert all(np.isnan([interval.value, interval.low, interval.high, p]))
