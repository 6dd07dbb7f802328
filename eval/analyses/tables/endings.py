"""How rollouts ended: with the goal reached, refused, or at the horizon, moving or at rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ....toolkit.records import Arm
from ...scoring.pair_table import ENDINGS
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, percents, plain, text_fields, values_of_intervals
from ..groups import base_task_clusters, groups_of, place_in_order

SCHEMA = pa.schema([*text_fields("policy", "prompt", "arm"), *interval_fields(*ENDINGS), *count_fields("n")])


def endings(pairs: pa.Table, controls: pa.Table) -> pa.Table:
    """Share of rollouts that ended in each way (supplementary).

    Args:
        pairs: The pairs of conflict rollouts.
        controls: The pairs of control rollouts; they may lack the supplementary columns.

    Returns:
        A row for each policy, prompt condition and arm; a reference rollout counts once, in however many pairs it is.
    """
    rows = [*_rows(pairs, "conflict", Arm.CONFLICT), *_rows(controls, "conflict", Arm.CONTROL)]
    rows += _rows(pa.concat_tables([pairs, controls], promote_options="default"), "reference", Arm.REFERENCE)
    return pa.Table.from_pylist(sorted(rows, key=_who), schema=SCHEMA)


def _who(row: dict[str, Any]) -> tuple[str, tuple[int, str]]:
    return row["policy"], place_in_order(row["prompt"], "prompt")


def _rows(pairs: pa.Table, side: str, arm: Arm) -> Iterator[dict[str, Any]]:
    """How the rollouts ended that are on one side of the pairs."""
    clusters = base_task_clusters(pairs)
    for group in groups_of(pairs, None, primary_only=False):
        names = pairs[f"{side}_rollout"].to_numpy()[group.rows].astype(str)
        chosen = group.rows[np.unique(names, return_index=True)[1]]
        ending = pairs[f"{side}_ending"].to_numpy()[chosen]
        ratios = [mean_of_defined((ending == name).astype(np.float64)) for name in ENDINGS]
        row = {"policy": group.policy, "prompt": group.prompt, "arm": arm.value, "n": len(chosen)}
        yield row | values_of_intervals(ENDINGS, cluster_intervals(ratios, clusters[chosen], generator()))


ANALYSIS = Analysis(
    name="endings",
    title="How rollouts ended (supplementary)",
    note="Percent of rollouts; intervals are in the scores file. Moving and at rest: at the horizon, by whether the "
    "arm moved in the last second.",
    compute=lambda scored: endings(scored.pairs, scored.controls),
    labels=(plain("policy"), plain("prompt"), plain("arm")),
    numbers=(*(percents(name) for name in ENDINGS), plain("n")),
)
