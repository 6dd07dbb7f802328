"""What acting costs, beside whether the goal is reached and how near the gripper comes: means over pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....toolkit.arrays import IntArray
from ...measures.outcome import reference_goal_success_rate
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    count_fields,
    interval_fields,
    intervals,
    percents,
    plain,
    rounded,
    text_fields,
    values_of_intervals,
)
from ..groups import base_task_clusters, groups_of, success

GROUPED_BY = (None, "family", "level", "suite")

COST_MEANS = ("conflict_cost", "reference_cost", "free", "RGSR", "TAR")
"""Columns of ``cost_table`` with an interval."""

SCHEMA = pa.schema([*text_fields("policy", "prompt", "among"), *interval_fields(*COST_MEANS), *count_fields("n")])


def cost_table(pairs: pa.Table) -> pa.Table:
    """Mean cost of conflict and reference rollouts, a row for each policy, prompt condition and group of pairs.

    Args:
        pairs: With ``pair_table.PAIR_COLUMNS``.

    Returns:
        ``among``: ``all pairs``, or a family, level or suite. ``conflict_cost`` and ``reference_cost``: mean CC of a
        rollout, from 0 without end, lower is better; ``free``: share of conflict rollouts that pay nothing; ``RGSR``
        and ``TAR``: as elsewhere; each with ``_lo`` and ``_hi``, intervals over base tasks. ``n``: pairs whose cost
        was recorded; pairs without it are left out, and a group without any other has no row.
    """
    clusters = base_task_clusters(pairs)
    known = np.isfinite(pairs["conflict_cost"].to_numpy()) & np.isfinite(pairs["reference_cost"].to_numpy())
    rows = []
    for column in GROUPED_BY:
        for group in groups_of(pairs, column, primary_only=False):
            recorded = group.rows[known[group.rows]]
            if not len(recorded):
                continue
            row = {
                "policy": group.policy,
                "prompt": group.prompt,
                "among": group.name or "all pairs",
                "n": len(recorded),
            }
            rows.append(row | _means(pairs.take(pa.array(recorded)), clusters[recorded]))
    rows.sort(key=lambda row: (row["policy"], row["prompt"]))  # stable: groups keep their order within
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _means(pairs: pa.Table, clusters: IntArray) -> dict[str, float]:
    """The columns ``COST_MEANS`` with their intervals."""
    costs = [pairs[name].to_numpy() for name in COST_MEANS[:2]]
    free = (costs[0] == 0.0).astype(np.float64)
    ratios = [
        *(mean_of_defined(cost, most=np.inf) for cost in costs),
        mean_of_defined(free),
        reference_goal_success_rate(success(pairs, "conflict")),
        mean_of_defined(pairs["TAR"].to_numpy()),
    ]
    return values_of_intervals(COST_MEANS, cluster_intervals(ratios, clusters, generator()))


ANALYSIS = Analysis(
    name="costs",
    title="What acting costs (CC)",
    note="Mean cost of a rollout, with 95% intervals over base tasks; free: percent of conflict rollouts that pay "
    "nothing.",
    compute=lambda scored: cost_table(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("among")),
    numbers=(
        intervals("conflict_cost", "conflict", rounded),
        intervals("reference_cost", "reference", rounded),
        *(percents(name) for name in ("free", "RGSR", "TAR")),
        plain("n"),
    ),
)
