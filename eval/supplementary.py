"""Supplementary measures of every pair, and their means: beside the protocol's own, never in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .aggregation import base_task_clusters, groups_of, success
from .measures.divergence import first_divergence_step
from .measures.holding import carries_other
from .measures.outcome import mean_of_defined
from .measures.paths import gripper_paths
from .measures.position import position_similarity
from .measures.warping import warping_similarity
from .pairs import Pairing
from .rollout_set import RolloutSet
from .statistics import cluster_intervals, generator

FloatArray = npt.NDArray[np.float64]

SUPPLEMENTARY_COLUMNS: dict[str, pa.DataType] = {
    "position_similarity": pa.float64(),
    "warping_similarity": pa.float64(),
    "divergence_step": pa.float64(),
    "reference_carries_other": pa.float64(),
    "conflict_carries_other": pa.float64(),
}
"""Columns behind ``PAIR_COLUMNS``. ``divergence_step`` is NaN where the grippers do not part; ``*_carries_other`` are 0
or 1, and NaN where the fingers were not recorded."""

AMONG = ("all pairs", "qualified failures")

MEANS = ("position_similarity", "warping_similarity", "parts", "conflict_carries_other", "reference_carries_other")
"""Columns of ``supplementary_table`` with an interval. ``parts``: share of pairs whose grippers part by 2 cm."""

TABLE_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("prompt", pa.string()),
        ("among", pa.string()),
        *[(f"{name}{end}", pa.float64()) for name in MEANS for end in ("", "_lo", "_hi")],
        ("median_divergence_step", pa.float64()),
        ("n", pa.int64()),
    ]
)

FINGERS = "observation.gripper_pos_m"


def with_supplementary(pairs: pa.Table, rollouts: RolloutSet, pairing: Pairing) -> pa.Table:
    """The pairs with ``SUPPLEMENTARY_COLUMNS`` behind their own.

    Args:
        pairs: From ``score_pairs``, in the pairing's order.
        rollouts: The rollouts, read with ``observation.gripper_pos_m`` where recorded.
        pairing: Which of them belong together.
    """
    reference, conflict = pairing.reference, pairing.conflict
    paths = gripper_paths(rollouts.feature("observation.eef_pos_m"), rollouts.offsets, rollouts.final_eef_pos_m)
    carries = _carries_other(rollouts)
    columns = {
        "position_similarity": position_similarity(paths, reference, conflict),
        "warping_similarity": warping_similarity(paths, reference, conflict),
        "divergence_step": first_divergence_step(paths, reference, conflict),
        "reference_carries_other": carries[reference],
        "conflict_carries_other": carries[conflict],
    }
    for name, kind in SUPPLEMENTARY_COLUMNS.items():
        pairs = pairs.append_column(pa.field(name, kind), pa.array(columns[name], kind))
    return pairs


def supplementary_table(pairs: pa.Table) -> pa.Table:
    """Means of the supplementary measures: a row for each policy, prompt condition, and all or only failed pairs.

    Args:
        pairs: With ``PAIR_COLUMNS`` and ``SUPPLEMENTARY_COLUMNS``.

    Returns:
        ``MEANS`` with intervals over base tasks, as fractions; ``median_divergence_step`` over all the pairs, those
        that never part taken as later than any other, so NaN where the median pair does not part; and ``n``.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        failed = success(chosen, "reference") & ~success(chosen, "conflict")
        for among, kept in zip(AMONG, (np.ones(len(failed), np.bool_), failed), strict=True):
            row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "among": among}
            rows.append(row | _means(chosen.filter(pa.array(kept)), clusters[group.rows][kept]))
    return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)


def _means(pairs: pa.Table, clusters: npt.NDArray[np.int64]) -> dict[str, Any]:
    step = pairs["divergence_step"].to_numpy()
    values = {name: pairs[name].to_numpy() for name in MEANS if name != "parts"}
    values["parts"] = np.isfinite(step).astype(np.float64)
    intervals = cluster_intervals([mean_of_defined(values[name]) for name in MEANS], clusters, generator())
    median = float(np.median(np.where(np.isfinite(step), step, np.inf))) if len(step) else np.inf
    row: dict[str, Any] = {
        "median_divergence_step": median if np.isfinite(median) else float("nan"),
        "n": pairs.num_rows,
    }
    for name, interval in zip(MEANS, intervals, strict=True):
        row |= {name: interval.value, f"{name}_lo": interval.low, f"{name}_hi": interval.high}
    return row


def _carries_other(rollouts: RolloutSet) -> FloatArray:
    if FINGERS not in rollouts.frames:
        return np.full(len(rollouts), np.nan)
    return carries_other(
        rollouts.feature("action"),
        rollouts.feature(FINGERS),
        rollouts.feature("observation.eef_pos_m"),
        rollouts.feature("observation.target_pos_m"),
        rollouts.offsets,
    ).astype(np.float64)
