"""Refusals and questions as detection of invalid premises: hits under conflict, false alarms without, and how soon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.refusals import REFUSAL_KINDS
from ....toolkit.arrays import BoolArray, FloatArray
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    count_fields,
    interval_fields,
    intervals,
    number_fields,
    numbers,
    plain,
    text_fields,
    values_of_intervals,
)
from ..groups import Group, base_task_clusters, groups_of, rows_where

EITHER = "either"
"""Both kinds of refusal counted together."""

RATES = ("conflict", "reference", "balanced_accuracy")

CONTROL = "control"

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "kind"),
        *interval_fields(*RATES, CONTROL),
        *number_fields("mean_step", "median_step"),
        *count_fields("refused", "n", "references", "controls"),
    ]
)


def detection_table(pairs: pa.Table, controls: pa.Table | None = None) -> pa.Table:
    """How well a policy's refusals and questions tell conflicts from references.

    Args:
        pairs: With ``pair_table.PAIR_COLUMNS``.
        controls: Pairs of control rollouts, which stand in the place of the conflict rollouts, with the same columns.

    Returns:
        Rows for each policy and prompt condition in which a rollout was refused: one for ``either`` kind, and one for
        each kind that occurs. Share of conflict rollouts refused; share of reference rollouts refused, those that
        serve several pairs counted once in each, as for PCSR; balanced accuracy, the mean of the first and one minus
        the second; share of control rollouts refused, NaN without any; mean and median of the executed actions before
        a refusal under conflict, NaN without one; numbers of refused conflict rollouts, of pairs, of different
        reference rollouts and of control rollouts. A policy that never refuses has no row: nothing is guessed from its
        motion.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        own = rows_where(pairs.slice(0, 0) if controls is None else controls, _names(group))
        for kind in (EITHER, *REFUSAL_KINDS):
            hits, alarms = _refused(chosen, "conflict", kind), _refused(chosen, "reference", kind)
            needless = _refused(own, "conflict", kind)
            if hits.any() or alarms.any() or needless.any():
                ratios = [mean_of_defined(values) for values in _rates(hits, alarms)]
                found = cluster_intervals(ratios, clusters[group.rows], generator())
                of_controls = mean_of_defined(needless.astype(np.float64))
                found += cluster_intervals([of_controls], base_task_clusters(own), generator())
                row = _names(group) | {"kind": kind} | values_of_intervals((*RATES, CONTROL), found)
                rows.append(row | _counts(chosen, hits) | {"controls": own.num_rows})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _names(group: Group) -> dict[str, Any]:
    return {"policy": group.policy, "prompt": group.prompt}


def _counts(pairs: pa.Table, hits: BoolArray) -> dict[str, Any]:
    steps = pairs["conflict_refusal_step"].filter(pa.array(hits)).to_numpy()
    return {
        "mean_step": float(np.mean(steps)) if len(steps) else float("nan"),
        "median_step": float(np.median(steps)) if len(steps) else float("nan"),
        "refused": int(hits.sum()),
        "n": pairs.num_rows,
        "references": len(set(pairs["reference_rollout"].to_pylist())),
    }


def _refused(pairs: pa.Table, arm: str, kind: str) -> BoolArray:
    """Which rollouts of one arm were refused, by one kind or either, shape (P,)."""
    kinds = pairs[f"{arm}_refusal"]
    found = pc.is_valid(kinds) if kind == EITHER else pc.fill_null(pc.equal(kinds, kind), fill_value=False)
    return np.asarray(found.to_numpy(), np.bool_)


def _rates(hits: BoolArray, alarms: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    hit, alarm = hits.astype(np.float64), alarms.astype(np.float64)
    return hit, alarm, (hit + 1.0 - alarm) / 2.0


ANALYSIS = Analysis(
    name="detection",
    title="Refusals and questions as detection",
    note="Percent of rollouts that the policy refused, with 95% intervals over base tasks: conflicts detected, false "
    "alarms on references, balanced accuracy, false alarms on controls. Steps: executed actions before a refusal under "
    "conflict. A policy that refused nothing has no row.",
    compute=lambda scored: detection_table(scored.pairs, scored.controls),
    labels=(plain("policy"), plain("prompt"), plain("kind")),
    numbers=(
        intervals("conflict"),
        intervals("reference"),
        intervals("balanced_accuracy"),
        intervals("control"),
        numbers("mean_step", 1, "mean step"),
        numbers("median_step", 1, "median step"),
        plain("n"),
    ),
)
