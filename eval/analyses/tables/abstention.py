"""How often the arm stops for good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, intervals, plain, text_fields, values_of_intervals
from ..groups import base_task_clusters, groups_of

ARMS = ("conflict", "reference")

SCHEMA = pa.schema([*text_fields("policy", "prompt"), *interval_fields(*ARMS), *count_fields("n")])


def abstention(pairs: pa.Table) -> pa.Table:
    """Share of rollouts whose arm is at rest until the end without having reached the goal (supplementary).

    Returns:
        A row for each policy and prompt condition: under conflict, and in the reference rollouts of the same pairs,
        where it is over-refusal or failure.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        ratios = [mean_of_defined(chosen[f"{arm}_stops"].to_numpy().astype(np.float64)) for arm in ARMS]
        row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "n": chosen.num_rows}
        found = cluster_intervals(ratios, clusters[group.rows], generator())
        rows.append(row | values_of_intervals(ARMS, found))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


ANALYSIS = Analysis(
    name="abstention",
    title="Arm at rest until the end (supplementary)",
    note="Percent of rollouts, with 95% intervals over base tasks.",
    compute=lambda scored: abstention(scored.pairs),
    labels=(plain("policy"), plain("prompt")),
    numbers=(*map(intervals, ARMS), plain("n")),
)
