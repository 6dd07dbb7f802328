"""Do the intervals and tests keep their word? Simulated evaluations whose true answers are known.

Base tasks are drawn from a population with a known mean, pairs from each base task; an interval is to cover that mean
in 95% of the simulations, a test to reject a true null hypothesis in at most 5%.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conflictvla.eval.measures.outcome import failure_rate, success_rate_drop
from conflictvla.eval.statistics.hypothesis_tests import false_discovery, mcnemar, sign_flip_p
from conflictvla.eval.statistics.intervals import cluster_intervals, ratio_difference
from conflictvla.eval.statistics.ratio import Ratio, mean_of_defined
from conflictvla.toolkit.arrays import BoolArray, FloatArray

SIMULATIONS = 2000
RESAMPLES = 2000
PAIRS_A_TASK = 20
BASE_TASKS = (5, 10, 20, 40)
"""Half a suite, a suite, two suites, all four."""


def _bernoulli(rng: np.random.Generator, shares: FloatArray) -> BoolArray:
    return np.asarray(rng.random((len(shares), PAIRS_A_TASK)) < shares[:, None]).ravel()


def _simulated(rng: np.random.Generator, tasks: int) -> dict[str, tuple[Ratio, float]]:
    """One evaluation: measures of different kinds, each with the mean of its population."""
    can, fails = rng.beta(3, 1, tasks), rng.beta(1.5, 1.5, tasks)
    plus = _bernoulli(rng, can)
    minus = plus & ~_bernoulli(rng, fails)
    process = np.clip(rng.normal(0.5, 0.1, tasks)[:, None] + rng.normal(0, 0.2, (tasks, PAIRS_A_TASK)), 0, 1).ravel()
    high = rng.beta(2, 1.2, tasks)
    lower = high * (1 - rng.beta(1, 3, tasks))
    drop = success_rate_drop(_bernoulli(rng, high), _bernoulli(rng, lower))
    return {
        "process_mean": (mean_of_defined(process), 0.5),
        "rgsr_0.2": (mean_of_defined(_bernoulli(rng, rng.beta(0.7, 2.8, tasks)).astype(np.float64)), 0.2),
        "rgsr_0.6": (mean_of_defined(_bernoulli(rng, rng.beta(3, 2, tasks)).astype(np.float64)), 0.6),
        "fr": (failure_rate(plus, minus), 0.5),
        "drop": (drop, 2 / 3.2 * 0.25),
    }


def test_intervals_cover_what_they_say(figures: dict[str, float]) -> None:
    rng = np.random.default_rng(11)
    for tasks in BASE_TASKS:
        clusters = np.repeat(np.arange(tasks), PAIRS_A_TASK)
        covered: dict[str, int] = {}
        for _ in range(SIMULATIONS):
            simulated = _simulated(rng, tasks)
            found = cluster_intervals([ratio for ratio, _ in simulated.values()], clusters, rng, RESAMPLES)
            for (name, (_, truth)), interval in zip(simulated.items(), found, strict=True):
                covered[name] = covered.get(name, 0) + (interval.low <= truth <= interval.high)
        shares = {name: 100 * count / SIMULATIONS for name, count in covered.items()}
        figures[f"interval_coverage_{tasks}_tasks_min_pct"] = min(shares.values())
        figures[f"interval_coverage_{tasks}_tasks_max_pct"] = max(shares.values())
        print(tasks, shares)  # noqa: T201 - shown with -s
        assert all(93 <= share <= 97 for share in shares.values()), shares


def test_differences_of_failure_rates_keep_their_word(figures: dict[str, float]) -> None:
    """Two policies of unequal competence and equal failure rates, each over its own qualified pairs."""
    rng = np.random.default_rng(14)
    for tasks in (5, 10, 40):
        clusters = np.repeat(np.arange(tasks), PAIRS_A_TASK)
        covered = rejected = 0
        for _ in range(SIMULATIONS):
            fails = rng.beta(1.5, 1.5, tasks)
            sides = []
            for able in (rng.beta(6, 1, tasks), rng.beta(2, 2, tasks)):
                plus = _bernoulli(rng, able)
                own = np.clip(fails + rng.normal(0, 0.1, tasks), 0, 1)
                sides.append(failure_rate(plus, plus & ~_bernoulli(rng, own)))
            interval, p = ratio_difference(sides[0], sides[1], clusters, rng, 1000)
            covered += interval.low <= 0 <= interval.high
            rejected += p < 0.05
        figures[f"fr_difference_coverage_{tasks}_tasks_pct"] = 100 * covered / SIMULATIONS
        figures[f"fr_difference_size_{tasks}_tasks_pct"] = 100 * rejected / SIMULATIONS
        print(tasks, covered / SIMULATIONS, rejected / SIMULATIONS)  # noqa: T201 - shown with -s
        assert 93 <= 100 * covered / SIMULATIONS <= 98
        assert 100 * rejected / SIMULATIONS <= 6.5


def _rejections(p_value: Callable[[], float]) -> float:
    """Percent of simulations in which a test at 5% rejects."""
    return 100 * sum(p_value() < 0.05 for _ in range(SIMULATIONS)) / SIMULATIONS


def test_tests_reject_true_hypotheses_rarely_enough(figures: dict[str, float]) -> None:
    rng = np.random.default_rng(12)

    def independent() -> float:
        share = rng.beta(2, 2, 40)
        return mcnemar(_bernoulli(rng, share), _bernoulli(rng, share)).p

    def shared(test: str) -> float:
        # Each of 5 initial states has one reference rollout, and it serves 35 cases: as in a full evaluation.
        share = np.repeat(rng.beta(2, 2, 40), 5)
        plus = np.repeat(rng.random(200) < share, 35)
        minus = rng.random(7000) < np.repeat(share, 35)
        if test == "mcnemar":
            return mcnemar(plus, minus).p
        return sign_flip_p(plus.astype(np.float64) - minus, np.repeat(np.arange(40), 175), rng, 1000)

    def sign_flip(tasks: int) -> float:
        differences = rng.normal(0, 0.2, tasks)[:, None] + rng.normal(0, 0.5, (tasks, PAIRS_A_TASK))
        return sign_flip_p(differences.ravel(), np.repeat(np.arange(tasks), PAIRS_A_TASK), rng, 1000)

    figures["mcnemar_size_independent_pct"] = _rejections(independent)
    figures["mcnemar_size_shared_reference_pct"] = _rejections(lambda: shared("mcnemar"))
    figures["sign_flip_size_shared_reference_pct"] = _rejections(lambda: shared("sign_flip"))
    for tasks in (10, 40):
        figures[f"sign_flip_size_{tasks}_tasks_pct"] = _rejections(lambda tasks=tasks: sign_flip(tasks))  # type: ignore[misc]
    # Three standard errors of a share of 5% in 2,000 simulations are 1.5 percentage points.
    for name, size in figures.items():
        if "_size_" in name and name != "mcnemar_size_shared_reference_pct":
            assert size <= 6.5, name


def test_false_discoveries_are_a_small_share_of_discoveries(figures: dict[str, float]) -> None:
    rng = np.random.default_rng(13)
    false_shares = []
    for _ in range(SIMULATIONS):
        differences = rng.normal(0, 1, (20, 40))
        differences[:5] += 0.6
        p = np.array([sign_flip_p(row, np.arange(40), rng, 400) for row in differences])
        found = false_discovery(p) < 0.05
        false_shares.append(found[5:].sum() / max(1, found.sum()))
    figures["false_discovery_rate_pct"] = 100 * float(np.mean(false_shares))
    assert figures["false_discovery_rate_pct"] <= 5.5
