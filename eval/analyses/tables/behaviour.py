"""How behaviour changes over a suite: medians over its base tasks, and their correlation with the loss of success.

Source: as for ``behaviour_by_task``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from ..analysis import Analysis
from ..behaviour_conditions import conditions_of, is_baseline
from ..columns import column, count_fields, number_fields, numbers, p_values, percents, plain, signed, text_fields
from ..differences import table_with_false_discovery
from .behaviour_by_task import KEYS, METRIC, METRIC_NAMES

SIGNIFICANCE = 0.05
"""A base task counts as changed where its adjusted p-value is below."""
CHANGE_SCHEMA = pa.schema(
    [
        *KEYS,
        *text_fields("metric"),
        *number_fields("change", "mad_change"),
        *count_fields("significant", "tasks"),
        *number_fields("baseline_success_rate", "success_rate"),
    ]
)

CORRELATION_SCHEMA = pa.schema([*text_fields("metric"), *number_fields("rho", "p", "q"), *count_fields("n")])


def behaviour_change(trajectories: pa.Table, by_task: pa.Table) -> pa.Table:
    """Each suite, condition and metric: medians over base tasks (equation 6) and the success rates beside them.

    Args:
        trajectories: From ``rollout_table.trajectory_table``.
        by_task: From ``behaviour_by_task``.

    Returns:
        ``change`` and ``mad_change`` are medians of the tasks' fractions, NaN where no task has one; ``significant``
        counts tasks with q < 0.05 among ``tasks`` compared. Success rates are over all rollouts of the suite's base
        tasks that have some under both conditions.
    """
    rows = []
    keys = [name for name, _ in KEYS]
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in by_task.to_pylist():
        groups.setdefault(tuple(row[key] for key in (*keys, "metric")), []).append(row)
    rates = _success_rates(trajectories)
    for key, tasks in groups.items():
        baseline_rate, rate = rates[key[:4]]
        rows.append(
            dict(zip((*keys, "metric"), key, strict=True))
            | {
                "change": _median_of_defined([task["change"] for task in tasks]),
                "mad_change": _median_of_defined([task["mad_change"] for task in tasks]),
                "significant": sum(task["q"] < SIGNIFICANCE for task in tasks),
                "tasks": len(tasks),
                "baseline_success_rate": baseline_rate,
                "success_rate": rate,
            }
        )
    return pa.Table.from_pylist(rows, schema=CHANGE_SCHEMA)


def behaviour_correlation(changes: pa.Table) -> pa.Table:
    """Spearman's rank correlation of success-rate loss with each metric's change.

    A point is one policy, suite and condition (a prompt, family, level or probe); the loss is the baseline's success
    rate minus the condition's. Families and levels are two partitions of the same conflict rollouts, so the points are
    not independent and the p-values are a guide at best.

    Args:
        changes: From ``behaviour_change``.

    Returns:
        A row a metric; NaN with fewer than three points or where either side does not vary. ``q`` over the table.
    """
    rows = []
    apart = changes.filter(pc.not_equal(changes["kind"], "conflict"))
    for name in METRIC_NAMES:
        own = apart.filter(pc.equal(apart["metric"], name))
        loss = own["baseline_success_rate"].to_numpy() - own["success_rate"].to_numpy()
        change = own["change"].to_numpy()
        defined = np.isfinite(change)
        count = int(defined.sum())
        row: dict[str, Any] = {"metric": name, "rho": float("nan"), "p": float("nan"), "n": count}
        if count > 2 and np.ptp(loss[defined]) > 0 and np.ptp(change[defined]) > 0:
            found = stats.spearmanr(loss[defined], change[defined])
            row |= {"rho": float(found.statistic), "p": float(found.pvalue)}
        rows.append(row)
    return table_with_false_discovery(rows, CORRELATION_SCHEMA)


def _median_of_defined(values: list[float]) -> float:
    defined = [value for value in values if np.isfinite(value)]
    return float(np.median(defined)) if defined else float("nan")


def _success_rates(trajectories: pa.Table) -> dict[tuple[str, ...], tuple[float, float]]:
    """Success rates of baseline and condition for each policy, suite, kind and name of a condition."""
    policies, suites, tasks = (trajectories[name].to_numpy() for name in ("policy", "suite", "base_task"))
    success = np.asarray(trajectories["success"].to_numpy(), np.bool_)
    baseline = is_baseline(trajectories)
    rates: dict[tuple[str, ...], tuple[float, float]] = {}
    for condition in conditions_of(trajectories):
        under = condition.holds(trajectories)
        for policy, suite in sorted(set(zip(policies[under], suites[under], strict=True))):
            here = (policies == policy) & (suites == suite)
            shared = np.isin(tasks, np.intersect1d(tasks[here & under].astype(str), tasks[here & baseline].astype(str)))
            before, after = (here & shared & side for side in (baseline, under))
            if before.any():
                rates[policy, suite, condition.kind, condition.name] = (
                    float(success[before].mean()),
                    float(success[after].mean()),
                )
    return rates


ANALYSIS = Analysis(
    name="behaviour",
    title="Behaviour of successful rollouts against premise-consistent P0",
    note="Median over base tasks of the change of the mean and of the median absolute deviation, in percent; "
    "significant: base tasks with q < 0.05 (Mann-Whitney U, Benjamini-Hochberg), of those compared.",
    compute=lambda scored, by_task: behaviour_change(scored.trajectories, by_task),
    labels=(plain("policy"), plain("suite"), plain("condition"), METRIC),
    numbers=(
        column("change", lambda row: signed(row["change"])),
        column("change of MAD", lambda row: signed(row["mad_change"])),
        column("significant", lambda row: f"{row['significant']}/{row['tasks']}"),
        percents("baseline_success_rate", "success P0"),
        percents("success_rate", "success"),
    ),
    uses=("behaviour_by_task",),
    supplementary=True,
)

CORRELATION = Analysis(
    name="behaviour_correlation",
    title="Loss of success rate against change of behaviour",
    note="Spearman's rank correlation over policies, suites and conditions, which are not independent.",
    compute=lambda _scored, changes: behaviour_correlation(changes),
    labels=(METRIC,),
    numbers=(numbers("rho", 2, "ρ"), p_values("p"), p_values("q"), plain("n")),
    uses=("behaviour",),
    supplementary=True,
)
