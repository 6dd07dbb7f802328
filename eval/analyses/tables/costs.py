"""What acting costs, beside whether the goal is reached and how near the gripper comes: means over pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...measures.outcome import reference_goal_success_rate
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, interval_values, intervals, percents, plain, rounded, text_fields
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
        was recorded; pairs of older recordings are left out, and a group without any other has no row.
    """
    clusters = base_task_clusters(pairs)
    known = np.isfinite(pairs["conflict_cost"].to_numpy()) & np.isfinite(pairs["reference_cost"].to_numpy())
    rows = []
    for column in GROUPED_BY:
        for group in groups_of(pairs, column, primary_only=False):
            kept = group.rows[known[group.rows]]
            if not len(kept):
                continue
            chosen = pairs.take(pa.array(kept))
            costs = {name: chosen[name].to_numpy() for name in COST_MEANS[:2]}
            ratios = [mean_of_defined(cost, most=np.inf) for cost in costs.values()]
            ratios.append(mean_of_defined((costs["conflict_cost"] == 0.0).astype(np.float64)))
            ratios += [
                reference_goal_success_rate(success(chosen, "conflict")),
                mean_of_defined(chosen["TAR"].to_numpy()),
            ]
            row: dict[str, Any] = {
                "policy": group.policy,
                "prompt": group.prompt,
                "among": group.name or "all pairs",
                "n": len(kept),
            }
            for name, interval in zip(COST_MEANS, cluster_intervals(ratios, clusters[kept], generator()), strict=True):
                row |= interval_values(name, interval)
            rows.append(row)
    rows.sort(key=lambda row: (row["policy"], row["prompt"]))  # stable: groups keep their order within
    return pa.Table.from_pylist(rows, schema=SCHEMA)


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
