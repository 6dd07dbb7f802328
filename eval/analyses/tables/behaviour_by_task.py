"""How successful rollouts of a base task change: behaviour metrics under each condition against premise-consistent P0.

Success rates say whether a task was done, not how. Per base task, the metrics' distribution over successful rollouts is
compared with the baseline's: its mean (typical behaviour), its median absolute deviation (variability), and a rank
test. Source: "Is Success All You Need? Investigating the Impact of Input Perturbations on VLA Behaviour in Tabletop
Manipulation Tasks", its equations 5 to 8; there a perturbation takes the place of a condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from ....toolkit.arrays import FloatArray
from ....toolkit.records import SUITES
from ...measures.behaviour import BEHAVIOUR_METRICS
from ...statistics.hypothesis_tests import false_discovery
from ..analysis import Analysis
from ..behaviour_conditions import conditions_of, is_baseline
from ..columns import column, count_fields, number_fields, numbers, p_values, plain, signed, text_fields

METRIC_NAMES = tuple(metric.name for metric in BEHAVIOUR_METRICS)
KEYS = text_fields("policy", "suite", "kind", "condition")

TITLES = {metric.name: metric.title for metric in BEHAVIOUR_METRICS}

METRIC = column("metric", lambda row: TITLES[row["metric"]])
SCHEMA = pa.schema(
    [
        *KEYS,
        *text_fields("base_task", "metric"),
        *number_fields("baseline_mean", "mean", "change", "baseline_mad", "mad", "mad_change", "p", "q"),
        *count_fields("n_baseline", "n"),
    ]
)


def behaviour_by_task(trajectories: pa.Table) -> pa.Table:
    """Each base task, condition and metric against the same task's successful premise-consistent rollouts under P0.

    Args:
        trajectories: From ``rollout_table.trajectory_table``.

    Returns:
        Means and median absolute deviations, their changes as fractions of the baseline's (equations 5 and 8), and a
        two-sided Mann-Whitney U test, ``q`` adjusted by Benjamini-Hochberg over the policy's whole table. Changes are
        NaN where the baseline's value is 0, tests and deviations where either side has fewer than two successful
        rollouts. A row needs at least one successful rollout on both sides.
    """
    rows: list[dict[str, Any]] = []
    for policy in sorted(set(trajectories["policy"].to_pylist())):
        own = trajectories.filter(pc.equal(trajectories["policy"], policy))
        compared = [*_task_rows(policy, own)]
        adjusted = false_discovery(np.array([row["p"] for row in compared], np.float64))
        rows += [row | {"q": float(q)} for row, q in zip(compared, adjusted, strict=True)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def median_absolute_deviation(values: FloatArray) -> float:
    """MAD = median |x - median(x)|; NaN for fewer than two values, which cannot vary.

    >>> median_absolute_deviation(np.array([1.0, 2.0, 4.0, 9.0]))
    1.5
    """
    return float(np.median(np.abs(values - np.median(values)))) if len(values) > 1 else float("nan")


def _task_rows(policy: str, own: pa.Table) -> Iterator[dict[str, Any]]:
    success = np.asarray(own["success"].to_numpy(), np.bool_)
    suites, tasks = own["suite"].to_numpy(), own["base_task"].to_numpy()
    values = np.stack([own[name].to_numpy() for name in METRIC_NAMES], axis=1)
    baseline = is_baseline(own) & success
    for condition in conditions_of(own):
        under = condition.holds(own) & success
        for suite, task in _ordered_tasks(suites[under], tasks[under]):
            here = (suites == suite) & (tasks == task)
            if not (baseline & here).any():
                continue
            before, after = values[baseline & here], values[under & here]
            for index, name in enumerate(METRIC_NAMES):
                yield {
                    "policy": policy,
                    "suite": suite,
                    "kind": condition.kind,
                    "condition": condition.name,
                    "base_task": task,
                    "metric": name,
                    **_comparison(before[:, index], after[:, index]),
                }


def _ordered_tasks(suites: npt.NDArray[Any], tasks: npt.NDArray[Any]) -> list[tuple[str, str]]:
    known = {suite: number for number, suite in enumerate(SUITES)}
    return sorted(set(zip(suites, tasks, strict=True)), key=lambda task: (known.get(task[0], len(known)), *task))


def _comparison(before: FloatArray, after: FloatArray) -> dict[str, Any]:
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    means = [float(values.mean()) if len(values) else float("nan") for values in (before, after)]
    spreads = [median_absolute_deviation(values) for values in (before, after)]
    p = float("nan")
    if len(before) > 1 and len(after) > 1:
        p = float(stats.mannwhitneyu(before, after, alternative="two-sided").pvalue)
    return {
        "baseline_mean": means[0],
        "mean": means[1],
        "change": _relative_change(*means),
        "baseline_mad": spreads[0],
        "mad": spreads[1],
        "mad_change": _relative_change(*spreads),
        "p": p,
        "n_baseline": len(before),
        "n": len(after),
    }


def _relative_change(before: float, after: float) -> float:
    return (after - before) / before if before > 0 else float("nan")


ANALYSIS = Analysis(
    name="behaviour_by_task",
    title="Behaviour of successful rollouts against premise-consistent P0, by base task",
    note="Means and median absolute deviations (MAD) in the metric's own unit; changes in percent; p: Mann-Whitney U; "
    "q: Benjamini-Hochberg over a policy's table.",
    compute=lambda scored: behaviour_by_task(scored.trajectories),
    labels=(plain("policy"), plain("suite"), plain("condition"), plain("base_task"), METRIC),
    numbers=(
        numbers("baseline_mean", 3, "mean P0"),
        numbers("mean", 3, "mean"),
        column("change", lambda row: signed(row["change"])),
        column("change of MAD", lambda row: signed(row["mad_change"])),
        p_values("p"),
        p_values("q"),
        plain("n"),
    ),
    supplementary=True,
    on_page=False,
)
