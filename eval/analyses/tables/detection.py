"""Refusals and questions as detection of invalid premises: hits under conflict, false alarms without, and how soon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import PROBES
from ....builders.rollouts.refusals import REFUSAL_KINDS
from ....toolkit.arrays import BoolArray, FloatArray
from ...statistics.intervals import Interval, cluster_intervals
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

UNKNOWN = Interval(value=float("nan"), low=float("nan"), high=float("nan"))

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "kind"),
        *interval_fields(*RATES, CONTROL),
        *number_fields("mean_step", "median_step"),
        *count_fields("refused", "n", "references", "controls"),
    ]
)


def detection_table(pairs: pa.Table, controls: pa.Table, references: pa.Table) -> pa.Table:
    """How well a policy's refusals and questions tell conflicts from references.

    Args:
        pairs: With ``pair_table.PAIR_COLUMNS``.
        controls: Pairs of control rollouts, which stand in the place of the conflict rollouts, with the same columns.
        references: From ``rollout_table.reference_table``, in a pair or not.

    Returns:
        Rows for each policy and prompt condition in which a rollout was refused: one for ``either`` kind, and one for
        each kind that occurs. Share of conflict rollouts refused; share of reference rollouts refused, those that
        serve several pairs counted once in each, as for PCSR, or without conflict rollouts each counted once; balanced
        accuracy, the mean of the first and one minus the second; share of control rollouts refused; all four NaN
        without such rollouts; mean and median of the executed actions before a refusal under conflict, NaN without one;
        numbers of refused conflict rollouts, of pairs, of different reference rollouts and of control rollouts. A
        policy that never refuses has no row: nothing is guessed from its motion.
    """
    alone = rows_where(references, PROBES)
    asked = pa.concat_tables([table.select(["policy", "prompt"]) for table in (pairs, controls, alone)])
    rows = []
    for group in groups_of(asked, None, primary_only=False):
        own = [rows_where(table, _names(group)) for table in (pairs, controls, alone)]
        for kind in (EITHER, *REFUSAL_KINDS):
            row = _row(kind, *own)
            if row is not None:
                rows.append(_names(group) | row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _row(kind: str, pairs: pa.Table, controls: pa.Table, references: pa.Table) -> dict[str, Any] | None:
    """One policy under one prompt condition; None where no rollout was refused in this way."""
    hits, needless = (_refused(table["conflict_refusal"], kind) for table in (pairs, controls))
    asked, column = (pairs, "reference_refusal") if pairs.num_rows else (references, "refusal")
    alarms = _refused(asked[column], kind)
    if not (hits.any() or alarms.any() or needless.any()):
        return None
    if pairs.num_rows:
        found = _intervals(_rates(hits, alarms), pairs)
    else:
        found = [UNKNOWN, *_intervals([alarms.astype(np.float64)], references), UNKNOWN]
    found += _intervals([needless.astype(np.float64)], controls)
    counts = {"controls": controls.num_rows, "references": references.num_rows}
    if pairs.num_rows:
        counts["references"] = len(set(pairs["reference_rollout"].to_pylist()))
    return {"kind": kind} | values_of_intervals((*RATES, CONTROL), found) | _steps(pairs, hits) | counts


def _names(group: Group) -> dict[str, Any]:
    return {"policy": group.policy, "prompt": group.prompt}


def _steps(pairs: pa.Table, hits: BoolArray) -> dict[str, Any]:
    steps = pairs["conflict_refusal_step"].filter(pa.array(hits)).to_numpy()
    return {
        "mean_step": float(np.mean(steps)) if len(steps) else float("nan"),
        "median_step": float(np.median(steps)) if len(steps) else float("nan"),
        "refused": int(hits.sum()),
        "n": pairs.num_rows,
    }


def _intervals(rates: Sequence[FloatArray], table: pa.Table) -> list[Interval]:
    """The means of a value for each row, with intervals over base tasks."""
    ratios = [mean_of_defined(values) for values in rates]
    return list(cluster_intervals(ratios, base_task_clusters(table), generator()))


def _refused(kinds: pa.ChunkedArray, kind: str) -> BoolArray:
    """Which rollouts were refused, by one kind or either, shape (N,)."""
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
    compute=lambda scored: detection_table(scored.pairs, scored.controls, scored.references),
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
