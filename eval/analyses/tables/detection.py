"""Refusals and questions as detection of invalid premises: hits under conflict, false alarms without, and how soon."""

from __future__ import annotations

from collections.abc import Iterator
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
from ..groups import base_task_clusters, groups_of

EITHER = "either"
"""Both kinds of refusal counted together."""

RATES = ("conflict", "reference", "balanced_accuracy")

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "kind"),
        *interval_fields(*RATES),
        *number_fields("mean_step", "median_step"),
        *count_fields("refused", "n", "references"),
    ]
)


def detection_table(pairs: pa.Table) -> pa.Table:
    """How well a policy's refusals and questions tell conflicts from references.

    Args:
        pairs: With ``pair_table.PAIR_COLUMNS``.

    Returns:
        Rows for each policy and prompt condition in which a rollout was refused: one for ``either`` kind, and one for
        each kind that occurs. Share of conflict rollouts refused; share of reference rollouts refused, those that
        serve several pairs counted once in each, as for PCSR; balanced accuracy, the mean of the first and one minus
        the second; mean and median of the executed actions before a refusal under conflict, NaN without one; numbers
        of refused conflict rollouts, of pairs and of different reference rollouts. A policy that never refuses has no
        row: nothing is guessed from its motion.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        for kind, hits, alarms in _by_kind(chosen):
            row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "kind": kind}
            ratios = [mean_of_defined(values) for values in _rates(hits, alarms)]
            row |= values_of_intervals(RATES, cluster_intervals(ratios, clusters[group.rows], generator()))
            steps = chosen["conflict_refusal_step"].filter(pa.array(hits)).to_numpy()
            row |= {
                "mean_step": float(np.mean(steps)) if len(steps) else float("nan"),
                "median_step": float(np.median(steps)) if len(steps) else float("nan"),
                "refused": int(hits.sum()),
                "n": chosen.num_rows,
                "references": len(set(chosen["reference_rollout"].to_pylist())),
            }
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _by_kind(pairs: pa.Table) -> Iterator[tuple[str, BoolArray, BoolArray]]:
    """Each kind with at least one refusal, which conflict rollouts and which reference rollouts it refused."""
    for kind in (EITHER, *REFUSAL_KINDS):
        hits, alarms = (_refused(pairs[f"{arm}_refusal"], kind) for arm in ("conflict", "reference"))
        if hits.any() or alarms.any():
            yield kind, hits, alarms


def _refused(kinds: pa.ChunkedArray, kind: str) -> BoolArray:
    found = pc.is_valid(kinds) if kind == EITHER else pc.fill_null(pc.equal(kinds, kind), fill_value=False)
    return np.asarray(found.to_numpy(), np.bool_)


def _rates(hits: BoolArray, alarms: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    hit, alarm = hits.astype(np.float64), alarms.astype(np.float64)
    return hit, alarm, (hit + 1.0 - alarm) / 2.0


ANALYSIS = Analysis(
    name="detection",
    title="Refusals and questions as detection",
    note="Percent of rollouts that the policy refused, with 95% intervals over base tasks: conflicts detected, false "
    "alarms on references, balanced accuracy. Steps: executed actions before a refusal under conflict. A policy that "
    "refused nothing has no row.",
    compute=lambda scored: detection_table(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("kind")),
    numbers=(
        intervals("conflict"),
        intervals("reference"),
        intervals("balanced_accuracy"),
        numbers("mean_step", 1, "mean step"),
        numbers("median_step", 1, "median step"),
        plain("n"),
    ),
)
