"""How successful rollouts change: behaviour metrics under each condition against premise-consistent P0.

Success rates say whether a task was done, not how. Per base task, the metrics' distribution over successful rollouts is
compared with the baseline's: its mean (typical behaviour), its median absolute deviation (variability), and a rank
test. Source: "Is Success All You Need? Investigating the Impact of Input Perturbations on VLA Behaviour in Tabletop
Manipulation Tasks", its equations 5 to 8; there a perturbation takes the place of a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from ...toolkit.arrays import BoolArray, FloatArray
from ...toolkit.records import SUITES, Arm, Family, LanguageProbe, Level, Prompt, VisualProbe
from ..measures.behaviour import BEHAVIOUR_METRICS
from ..statistics.hypothesis_tests import false_discovery
from .groups import PROBES

METRIC_NAMES = tuple(metric.name for metric in BEHAVIOUR_METRICS)

SIGNIFICANCE = 0.05
"""A base task counts as changed where its adjusted p-value is below."""

BASELINE = {"arm": Arm.REFERENCE.value, "prompt": Prompt.P0.value, **PROBES}
"""What holds of the rollouts that the others are compared with."""

KEYS = [("policy", pa.string()), ("suite", pa.string()), ("kind", pa.string()), ("condition", pa.string())]

TASK_SCHEMA = pa.schema(
    [
        *KEYS,
        ("base_task", pa.string()),
        ("metric", pa.string()),
        *[(name, pa.float64()) for name in ("baseline_mean", "mean", "change")],
        *[(name, pa.float64()) for name in ("baseline_mad", "mad", "mad_change", "p", "q")],
        *[(name, pa.int64()) for name in ("n_baseline", "n")],
    ]
)

CHANGE_SCHEMA = pa.schema(
    [
        *KEYS,
        ("metric", pa.string()),
        ("change", pa.float64()),
        ("mad_change", pa.float64()),
        ("significant", pa.int64()),
        ("tasks", pa.int64()),
        ("baseline_success_rate", pa.float64()),
        ("success_rate", pa.float64()),
    ]
)

CORRELATION_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("rho", pa.float64()),
        ("p", pa.float64()),
        ("q", pa.float64()),
        ("n", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which rollouts are compared with the baseline.

    Attributes:
        kind: ``prompt`` (premise-consistent P1), ``conflict`` (all conflicts under P0), ``family``, ``level``,
            ``language_probe`` or ``visual_probe`` (premise-consistent P0 under one probe alone).
        name: Such as ``P1``, ``conflict``, ``spatial``, ``L2`` or ``V3``.
    """

    kind: str
    name: str

    def holds(self, trajectories: pa.Table) -> BoolArray:
        """Whether each rollout is under this condition, shape (N,)."""
        wanted: dict[str, str] = dict(BASELINE)
        if self.kind in ("prompt", *PROBES):
            wanted[self.kind] = self.name
        else:
            wanted["arm"] = Arm.CONFLICT.value
        if self.kind in ("family", "level"):
            wanted[self.kind] = self.name
        return _has(trajectories, wanted)


CONDITIONS = (
    Condition(kind="prompt", name="P1"),
    Condition(kind="conflict", name="conflict"),
    *[Condition(kind="family", name=family.value) for family in Family],
    *[Condition(kind="level", name=level.value) for level in Level],
    *[Condition(kind="language_probe", name=probe.value) for probe in LanguageProbe if probe is not LanguageProbe.W0],
    *[Condition(kind="visual_probe", name=probe.value) for probe in VisualProbe if probe is not VisualProbe.V0],
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
    return pa.Table.from_pylist(rows, schema=TASK_SCHEMA)


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

    A point is one policy, suite and condition (P1, a family, a level or a probe); the loss is the baseline's success
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
    adjusted = false_discovery(np.array([row["p"] for row in rows], np.float64))
    return pa.Table.from_pylist(
        [row | {"q": float(q)} for row, q in zip(rows, adjusted, strict=True)], schema=CORRELATION_SCHEMA
    )


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
    baseline = _is_baseline(own) & success
    for condition in CONDITIONS:
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
                    **_compared(before[:, index], after[:, index]),
                }


def _is_baseline(trajectories: pa.Table) -> BoolArray:
    return _has(trajectories, BASELINE)


def _has(trajectories: pa.Table, values: Mapping[str, str]) -> BoolArray:
    """Whether each rollout has these values, shape (N,)."""
    found = np.ones(trajectories.num_rows, np.bool_)
    for name, value in values.items():
        same = pc.fill_null(pc.equal(trajectories[name], value), fill_value=False)
        found &= np.asarray(same.to_numpy(), np.bool_)
    return found


def _ordered_tasks(suites: npt.NDArray[Any], tasks: npt.NDArray[Any]) -> list[tuple[str, str]]:
    known = {suite: number for number, suite in enumerate(SUITES)}
    return sorted(set(zip(suites, tasks, strict=True)), key=lambda task: (known.get(task[0], len(known)), *task))


def _compared(before: FloatArray, after: FloatArray) -> dict[str, Any]:
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


def _median_of_defined(values: list[float]) -> float:
    defined = [value for value in values if np.isfinite(value)]
    return float(np.median(defined)) if defined else float("nan")


def _success_rates(trajectories: pa.Table) -> dict[tuple[str, ...], tuple[float, float]]:
    """Success rates of baseline and condition for each policy, suite, kind and name of a condition."""
    policies, suites, tasks = (trajectories[name].to_numpy() for name in ("policy", "suite", "base_task"))
    success = np.asarray(trajectories["success"].to_numpy(), np.bool_)
    baseline = _is_baseline(trajectories)
    rates: dict[tuple[str, ...], tuple[float, float]] = {}
    for condition in CONDITIONS:
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
