"""Means of the supplementary measures, and what the gripper has to do with objects that the task is not about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ....toolkit.arrays import IntArray
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    ENDS,
    count_fields,
    interval_fields,
    intervals,
    number_fields,
    numbers,
    plain,
    text_fields,
    values_of_intervals,
)
from ..groups import base_task_clusters, groups_of, success

AMONG = ("all pairs", "qualified failures")

MEANS = (
    "position_similarity",
    "warping_similarity",
    "parts",
    "other_approach",
    *(f"{arm}_{act}_other" for act in ("touches", "grasps", "carries") for arm in ("conflict", "reference")),
)
"""Columns of ``supplementary_table`` with an interval. ``parts``: share of pairs whose grippers part by 2 cm."""
SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "among"),
        *interval_fields(*MEANS),
        *number_fields("median_divergence_step"),
        *count_fields("n"),
    ]
)

WRONG_OBJECTS_SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "among", "measure"),
        *interval_fields("conflict", "reference"),
        *count_fields("n"),
    ]
)


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
        for among, chosen_rows in zip(AMONG, (np.ones(len(failed), np.bool_), failed), strict=True):
            row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "among": among}
            rows.append(row | _means(chosen.filter(pa.array(chosen_rows)), clusters[group.rows][chosen_rows]))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def wrong_objects_table(means: pa.Table) -> pa.Table:
    """The measures of wrong objects, a row each: ``approaches``, ``touches``, ``grasps`` and ``carries``.

    Args:
        means: From ``supplementary_table``.

    Returns:
        Under conflict and in the reference rollouts of the same pairs, with intervals over base tasks; an approach is
        measured against the reference rollout, so that has none of its own.
    """
    rows = []
    for row in means.to_pylist():
        who = {name: row[name] for name in ("policy", "prompt", "among", "n")}
        approach = {f"conflict{end}": row[f"other_approach{end}"] for end in ENDS}
        rows.append(who | {"measure": "approaches"} | approach | {f"reference{end}": float("nan") for end in ENDS})
        for act in ("touches", "grasps", "carries"):
            shares = {
                f"{arm}{end}": row[f"{arm}_{act}_other{end}"] for arm in ("conflict", "reference") for end in ENDS
            }
            rows.append(who | {"measure": act} | shares)
    return pa.Table.from_pylist(rows, schema=WRONG_OBJECTS_SCHEMA)


def _means(pairs: pa.Table, clusters: IntArray) -> dict[str, Any]:
    step = pairs["divergence_step"].to_numpy()
    values = {name: pairs[name].to_numpy() for name in MEANS if name != "parts"}
    values["parts"] = np.isfinite(step).astype(np.float64)
    intervals = cluster_intervals([mean_of_defined(values[name]) for name in MEANS], clusters, generator())
    median = float(np.median(np.where(np.isfinite(step), step, np.inf))) if len(step) else np.inf
    row: dict[str, Any] = {
        "median_divergence_step": median if np.isfinite(median) else float("nan"),
        "n": pairs.num_rows,
    }
    return row | values_of_intervals(MEANS, intervals)


ANALYSIS = Analysis(
    name="supplementary",
    title="Supplementary measures",
    note="Percent, with 95% intervals over base tasks. PS: position similarity; WS: similarity under time warping; "
    "parts: grippers come to be 2 cm apart, at the median step given.",
    compute=lambda scored: supplementary_table(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("among")),
    numbers=(
        intervals("position_similarity", "PS"),
        intervals("warping_similarity", "WS"),
        intervals("parts"),
        numbers("median_divergence_step", 0, "median step"),
        plain("n"),
    ),
    supplementary=True,
)

WRONG_OBJECTS = Analysis(
    name="wrong_objects",
    title="Approach, contact and grasp of the wrong object (supplementary)",
    note="Percent, with 95% intervals over base tasks. Approaches: an object that the goal does not name, beyond "
    "the reference rollout; touches: such an object or fixture; grasps: an object that is no target, for half a "
    "second; carries: what moves along is no target.",
    compute=lambda _scored, means: wrong_objects_table(means),
    labels=(plain("policy"), plain("prompt"), plain("among"), plain("measure")),
    numbers=(intervals("conflict"), intervals("reference"), plain("n")),
    uses=("supplementary",),
    supplementary=True,
)
