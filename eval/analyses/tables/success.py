"""Plain success: how often the base task's own instruction is carried out, what that costs, and how it is done.

This is what a set of reference rollouts says by itself, with or without conflict rollouts beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import PROBES
from ....toolkit.arrays import FloatArray
from ....toolkit.records import Arm
from ...measures.behaviour import BEHAVIOUR_METRICS
from ...statistics.intervals import cluster_intervals, exact_interval
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    column,
    count_fields,
    interval_fields,
    interval_values,
    intervals,
    number_fields,
    numbers,
    percent,
    plain,
    text_fields,
)
from ..groups import Group, base_task_clusters, groups_of, rows_where
from .behaviour_by_task import METRIC, METRIC_NAMES

KEYS = text_fields("policy", "prompt", "among")
SCHEMA = pa.schema([*KEYS, *interval_fields("success"), *number_fields("cost"), *count_fields("n")])
BEHAVIOUR_SCHEMA = pa.schema([*KEYS, *text_fields("metric"), *number_fields("mean"), *count_fields("n")])
UNITS = {metric.name: metric.unit for metric in BEHAVIOUR_METRICS}


def success_table(references: pa.Table) -> pa.Table:
    """Success rate and cost of the reference rollouts without a probe, of all, each suite and each base task.

    Args:
        references: From ``rollout_table.reference_table``.

    Returns:
        ``among``: ``all``, a suite, or ``suite/base task``. ``success`` with ``_lo`` and ``_hi``: an interval over base
        tasks, and of a single base task one over its rollouts. ``cost``: mean CC, NaN where none was recorded. ``n``:
        rollouts.
    """
    plain_ones = rows_where(references, PROBES)
    clusters = base_task_clusters(plain_ones)
    rows = []
    for group, single in _groups(plain_ones):
        reached = np.asarray(plain_ones["success"].to_numpy()[group.rows], np.float64)
        if single:
            interval = exact_interval(int(reached.sum()), len(reached))
        else:
            (interval,) = cluster_intervals([mean_of_defined(reached)], clusters[group.rows], generator())
        costs = np.asarray(plain_ones["cost"].to_numpy()[group.rows], np.float64)
        row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "among": group.name}
        rows.append(row | interval_values("success", interval) | {"cost": _mean(costs), "n": len(reached)})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def reference_behaviour(trajectories: pa.Table) -> pa.Table:
    """Means of the behaviour metrics over the successful reference rollouts without a probe, of all and of each suite.

    Args:
        trajectories: From ``rollout_table.trajectory_table``.

    Returns:
        A row a metric; ``mean`` is in the metric's unit, NaN where it was not recorded. ``n``: successful rollouts.
    """
    chosen = rows_where(trajectories, {"arm": Arm.REFERENCE.value, **PROBES})
    chosen = chosen.filter(chosen["success"])
    rows = []
    for group, single in _groups(chosen):
        if single:
            continue
        row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "among": group.name}
        for name in METRIC_NAMES:
            values = np.asarray(chosen[name].to_numpy()[group.rows], np.float64)
            rows.append(row | {"metric": name, "mean": _mean(values), "n": len(values)})
    return pa.Table.from_pylist(rows, schema=BEHAVIOUR_SCHEMA)


def _groups(table: pa.Table) -> Iterator[tuple[Group, bool]]:
    """Groups of a table's rows: of each policy and prompt all, then each suite and behind it its base tasks.

    The second value is whether the group is a single base task.
    """
    tasks = pc.binary_join_element_wise(table["suite"], table["base_task"], "/").to_numpy(zero_copy_only=False)
    of_suite = list(groups_of(table, "suite", primary_only=False))
    for group in groups_of(table, None, primary_only=False):
        yield Group(policy=group.policy, prompt=group.prompt, name="all", rows=group.rows), False
        for suite in of_suite:
            if (suite.policy, suite.prompt) != (group.policy, group.prompt):
                continue
            yield suite, False
            for name in sorted(set(tasks[suite.rows])):
                rows = suite.rows[tasks[suite.rows] == name]
                yield Group(policy=group.policy, prompt=group.prompt, name=name, rows=rows), True


def _mean(values: FloatArray) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else float("nan")


ANALYSIS = Analysis(
    name="success",
    title="Success on the base tasks' own instructions",
    note="Percent of reference rollouts that reach the goal, and their mean cost (CC); 95% intervals over base tasks, "
    "of a single base task over its rollouts.",
    compute=lambda scored: success_table(scored.references),
    labels=(plain("policy"), plain("prompt"), plain("among")),
    numbers=(intervals("success", shown=percent), numbers("cost", 1, "cost"), plain("n")),
    on_page=False,
)

BEHAVIOUR = Analysis(
    name="reference_behaviour",
    title="Behaviour of successful rollouts of the base tasks' own instructions",
    note="Means over the successful reference rollouts.",
    compute=lambda scored: reference_behaviour(scored.trajectories),
    labels=(plain("policy"), plain("prompt"), plain("among"), METRIC, column("unit", lambda row: UNITS[row["metric"]])),
    numbers=(numbers("mean", 3, "mean"), plain("n")),
    supplementary=True,
    on_page=False,
)
