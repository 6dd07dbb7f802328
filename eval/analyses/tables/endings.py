"""How rollouts ended: with the goal reached, refused, or at the horizon, moving or at rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ....builders.rollouts.episode_record import PROBES
from ....toolkit.records import Arm
from ...scoring.pair_table import ENDINGS
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, percents, plain, text_fields, values_of_intervals
from ..groups import base_task_clusters, groups_of, place_in_order, rows_where

SCHEMA = pa.schema([*text_fields("policy", "prompt", "arm"), *interval_fields(*ENDINGS), *count_fields("n")])


def endings(pairs: pa.Table, controls: pa.Table, references: pa.Table) -> pa.Table:
    """Share of rollouts without a probe that ended in each way (supplementary).

    Args:
        pairs: The pairs of conflict rollouts.
        controls: The pairs of control rollouts.
        references: From ``rollout_table.reference_table``, in a pair or not.

    Returns:
        A row for each policy, prompt condition and arm.
    """
    rows = [*_rows(pairs, "conflict_ending", Arm.CONFLICT), *_rows(controls, "conflict_ending", Arm.CONTROL)]
    rows += _rows(rows_where(references, PROBES), "ending", Arm.REFERENCE)
    return pa.Table.from_pylist(sorted(rows, key=_who), schema=SCHEMA)


def _who(row: dict[str, Any]) -> tuple[str, tuple[int, str]]:
    return row["policy"], place_in_order(row["prompt"], "prompt")


def _rows(rollouts: pa.Table, column: str, arm: Arm) -> Iterator[dict[str, Any]]:
    """How the rollouts of one arm ended, which a column says."""
    clusters = base_task_clusters(rollouts)
    for group in groups_of(rollouts, None, primary_only=False):
        ending = rollouts[column].to_numpy()[group.rows]
        ratios = [mean_of_defined((ending == name).astype(np.float64)) for name in ENDINGS]
        row = {"policy": group.policy, "prompt": group.prompt, "arm": arm.value, "n": len(ending)}
        yield row | values_of_intervals(ENDINGS, cluster_intervals(ratios, clusters[group.rows], generator()))


ANALYSIS = Analysis(
    name="endings",
    title="How rollouts ended (supplementary)",
    note="Percent of rollouts; intervals are in the scores file. Moving and at rest: at the horizon, by whether the "
    "arm moved in the last second.",
    compute=lambda scored: endings(scored.pairs, scored.controls, scored.references),
    labels=(plain("policy"), plain("prompt"), plain("arm")),
    numbers=(*(percents(name) for name in ENDINGS), plain("n")),
)
