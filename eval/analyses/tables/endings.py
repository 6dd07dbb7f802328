"""How rollouts ended: with the goal reached, refused, or at the horizon, moving or at rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...scoring.pair_table import ENDINGS
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, percents, plain, text_fields, values_of_intervals
from ..groups import base_task_clusters, groups_of

ARMS = ("conflict", "reference")

SCHEMA = pa.schema([*text_fields("policy", "prompt", "arm"), *interval_fields(*ENDINGS), *count_fields("n")])


def endings(pairs: pa.Table) -> pa.Table:
    """Share of rollouts that ended in each way (supplementary).

    Returns:
        A row for each policy, prompt condition and arm; a reference rollout counts once, in however many pairs it is.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        for arm in ARMS:
            names = pairs[f"{arm}_rollout"].to_numpy()[group.rows].astype(str)
            chosen = group.rows[np.unique(names, return_index=True)[1]]
            ending = pairs[f"{arm}_ending"].to_numpy()[chosen]
            ratios = [mean_of_defined((ending == name).astype(np.float64)) for name in ENDINGS]
            row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "arm": arm, "n": len(chosen)}
            rows.append(row | values_of_intervals(ENDINGS, cluster_intervals(ratios, clusters[chosen], generator())))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


ANALYSIS = Analysis(
    name="endings",
    title="How rollouts ended (supplementary)",
    note="Percent of rollouts; intervals are in the scores file. Moving and at rest: at the horizon, by whether the "
    "arm moved in the last second.",
    compute=lambda scored: endings(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("arm")),
    numbers=(*(percents(name) for name in ENDINGS), plain("n")),
)
