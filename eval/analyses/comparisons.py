"""Tests beside the tables: does the conflict change the outcome, and does the premise-check prompt change anything?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import FloatArray, IntArray
from ...toolkit.records import Prompt
from ..measures import PROCESS_NAMES
from ..measures.process import persistence_curve
from ..measures.selectivity import selectivity
from ..statistics.hypothesis_tests import false_discovery, mcnemar, sign_flip_p
from ..statistics.intervals import cluster_intervals
from ..statistics.ratio import mean_of_defined
from ..statistics.resampling import generator
from .groups import base_task_clusters, groups_of, success
from .supplementary import UNDEFINED_COLUMNS

PERSISTENCE_LEVELS: FloatArray = np.arange(21) / 20
"""Thresholds of the failed-persistence curve, for TAR and for Early20 alike."""

OUTCOME_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("prompt", pa.string()),
        ("reference_only", pa.int64()),
        ("conflict_only", pa.int64()),
        ("mcnemar_p", pa.float64()),
        ("p", pa.float64()),
        ("q", pa.float64()),
        ("n", pa.int64()),
    ]
)

PROMPT_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("measure", pa.string()),
        ("P0", pa.float64()),
        ("P1", pa.float64()),
        ("difference", pa.float64()),
        ("difference_lo", pa.float64()),
        ("difference_hi", pa.float64()),
        ("p", pa.float64()),
        ("q", pa.float64()),
        ("n", pa.int64()),
    ]
)

ABSTENTION_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("prompt", pa.string()),
        ("conflict", pa.float64()),
        ("conflict_lo", pa.float64()),
        ("conflict_hi", pa.float64()),
        ("reference", pa.float64()),
        ("reference_lo", pa.float64()),
        ("reference_hi", pa.float64()),
        ("n", pa.int64()),
    ]
)

UNDEFINED_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("prompt", pa.string()),
        ("measure", pa.string()),
        ("reason", pa.string()),
        ("n", pa.int64()),
    ]
)


def outcome_tests(pairs: pa.Table) -> pa.Table:
    """Does the conflict change the outcome? Tests of y+ against y-, a row for each policy and prompt condition.

    Returns:
        ``reference_only`` and ``conflict_only`` count discordant pairs, and ``mcnemar_p`` is the exact McNemar test,
        which takes pairs as independent. ``p`` is the sign-flip test over base tasks, which holds its size although
        pairs share reference rollouts; NaN with fewer than two base tasks. ``q`` is ``p`` adjusted over the table.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        reference, conflict = success(chosen, "reference"), success(chosen, "conflict")
        test = mcnemar(reference, conflict)
        drop = reference.astype(np.float64) - conflict
        rows.append(
            {
                "policy": group.policy,
                "prompt": group.prompt,
                "reference_only": test.reference_only,
                "conflict_only": test.conflict_only,
                "mcnemar_p": test.p,
                "p": sign_flip_p(drop, clusters[group.rows], generator()),
                "n": chosen.num_rows,
            }
        )
    return with_false_discovery(rows, OUTCOME_SCHEMA)


def prompt_effect(pairs: pa.Table) -> pa.Table:
    """P1 - P0 of each measure and the selectivity, over cases and initial states rolled out under both prompts.

    Returns:
        A row for each policy and measure: both means, their difference with its interval over base tasks, and the
        p-value of a paired sign-flip permutation test, with ``q`` adjusted over the table. ``n`` counts what is
        compared: for a process measure the pairs where it is defined under both prompts. A policy with one prompt
        has no row.
    """
    rows = []
    for policy in sorted(set(pairs["policy"].to_pylist())):
        both = _under_both_prompts(pairs.filter(pc.equal(pairs["policy"], policy)))
        if both.num_rows:
            rows += [{"policy": policy} | row for row in measure_changes(both, "_P1", ("P0", "P1"))]
    return with_false_discovery(rows, PROMPT_SCHEMA)


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
        arms = ("conflict", "reference")
        ratios = [mean_of_defined(chosen[f"{arm}_stops"].to_numpy().astype(np.float64)) for arm in arms]
        row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "n": chosen.num_rows}
        for arm, interval in zip(arms, cluster_intervals(ratios, clusters[group.rows], generator()), strict=True):
            row |= {arm: interval.value, f"{arm}_lo": interval.low, f"{arm}_hi": interval.high}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=ABSTENTION_SCHEMA)


def undefined_counts(pairs: pa.Table) -> pa.Table:
    """How many pairs lack a measure, and why: a row for each policy, prompt condition, measure and reason.

    Of the supplementary measures only where they were taken.
    """
    columns = {"TAR": "TAR_undefined", **UNDEFINED_COLUMNS}
    rows: list[dict[str, Any]] = []
    for measure, column in columns.items():
        if column not in pairs.column_names:
            continue
        missing = pairs.filter(pc.is_valid(pairs[column]))
        counts = missing.group_by(["policy", "prompt", column]).aggregate([([], "count_all")])
        rows += [
            {name: row[name] for name in ("policy", "prompt")}
            | {"measure": measure, "reason": row[column], "n": row["count_all"]}
            for row in counts.to_pylist()
        ]
    table = pa.Table.from_pylist(rows, schema=UNDEFINED_SCHEMA)
    order = pa.array([[*columns].index(name) for name in table["measure"].to_pylist()], pa.int64())
    by = ("policy", "prompt", "order", "reason")
    sorted_rows = pc.sort_indices(table.append_column("order", order), sort_keys=[(name, "ascending") for name in by])
    return table.take(sorted_rows)


def failed_persistence(pairs: pa.Table, policy: str) -> FloatArray:
    """Share of a policy's qualified failures with TAR >= x and Early20 >= y, over ``PERSISTENCE_LEVELS`` (both axes).

    Args:
        pairs: A table with ``PAIR_COLUMNS``.
        policy: As in its ``policy`` column; P0 counts, or P1 where there is no other.

    Returns:
        Shape (21, 21), TAR along the first axis; NaN where the policy has no qualified failure with a defined TAR.
    """
    for group in groups_of(pairs.filter(pc.equal(pairs["policy"], policy)), None, primary_only=True):
        chosen = pairs.filter(pc.equal(pairs["policy"], policy)).take(pa.array(group.rows))
        failed = chosen.filter(pa.array(success(chosen, "reference") & ~success(chosen, "conflict")))
        return persistence_curve(failed["TAR"].to_numpy(), failed["Early20_TS"].to_numpy(), PERSISTENCE_LEVELS)
    return np.full((len(PERSISTENCE_LEVELS), len(PERSISTENCE_LEVELS)), np.nan)


def _under_both_prompts(pairs: pa.Table) -> pa.Table:
    """One row for each case, initial state and seed that has a pair under P0 and one under P1 (columns ``*_P1``)."""
    keys = ["suite", "base_task", "case_id", "init_state", "seed"]
    measured = [*keys, "reference_success", "conflict_success", *PROCESS_NAMES]
    p0, p1 = (pairs.filter(pc.equal(pairs["prompt"], prompt.value)).select(measured) for prompt in Prompt)
    joined = p0.join(p1, keys=keys, right_suffix="_P1", join_type="inner")
    return joined.sort_by([(key, "ascending") for key in keys])


def measure_changes(both: pa.Table, suffix: str, conditions: tuple[str, str]) -> list[dict[str, Any]]:
    """What becomes of each measure, and the selectivity, over pairs rolled out under two conditions.

    Args:
        both: A row a pair: its measures under the first condition, and under the second in columns with the suffix.
        suffix: Such as ``_P1``.
        conditions: What to call the two means.

    Returns:
        A row a measure: both means, then as ``paired_difference`` of the second minus the first.
    """
    clusters = base_task_clusters(both)
    values = {
        name: (both[column].to_numpy().astype(np.float64), both[f"{column}{suffix}"].to_numpy().astype(np.float64))
        for name, column in [
            ("PCSR", "reference_success"),
            ("RGSR", "conflict_success"),
            *zip(PROCESS_NAMES, PROCESS_NAMES, strict=True),
        ]
    }
    rows = []
    for name, (first, second) in values.items():
        defined = np.isfinite(first) & np.isfinite(second)
        means = [float(side[defined].mean()) if defined.any() else float("nan") for side in (first, second)]
        row: dict[str, Any] = {"measure": name, **dict(zip(conditions, means, strict=True))}
        rows.append(row | paired_difference((second - first)[defined], clusters[defined]))
    selective = selectivity(values["PCSR"][0], values["RGSR"][0], values["PCSR"][1], values["RGSR"][1])
    no_level = dict.fromkeys(conditions, float("nan"))
    return [*rows, {"measure": "selectivity"} | no_level | paired_difference(selective, clusters, range_=2)]


def paired_difference(differences: FloatArray, clusters: IntArray, range_: float = 1.0) -> dict[str, Any]:
    """Mean of paired differences within [-range_, range_]: its interval, and ``p`` of a sign-flip test.

    Args:
        differences: One a pair, finite, shape (P,).
        clusters: Number of each pair's base task, shape (P,).
        range_: Largest difference that there can be.
    """
    (interval,) = cluster_intervals([mean_of_defined(differences, -range_, range_)], clusters, generator())
    return {
        "difference": interval.value,
        "difference_lo": interval.low,
        "difference_hi": interval.high,
        "p": sign_flip_p(differences, clusters, generator()),
        "n": len(differences),
    }


def with_false_discovery(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table, with ``q``: their ``p`` adjusted over the table."""
    adjusted = false_discovery(np.array([row["p"] for row in rows], np.float64))
    return pa.Table.from_pylist([row | {"q": float(q)} for row, q in zip(rows, adjusted, strict=True)], schema=schema)
