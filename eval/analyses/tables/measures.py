"""The protocol's measures by group: the mean over pairs, with intervals over base tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import PROBES
from ....toolkit.arrays import IntArray
from ....toolkit.errors import NotFoundError, choices
from ...measures import MEASURE_NAMES, MEASURES, PROCESS_NAMES, Measure
from ...measures.outcome import (
    failure_rate,
    premise_consistent_success_rate,
    qualified_failures,
    reference_goal_success_rate,
    success_rate_drop,
)
from ...scoring.scored_pairs import ScoredPairs
from ...statistics.intervals import Interval, cluster_intervals
from ...statistics.ratio import Ratio, mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import arrow, count_fields, interval_fields, intervals, plain, text_fields, values_of_intervals
from ..groups import Group, base_task_clusters, groups_of, success
from ..marks import best_of_policies, extremes_by_policy, means_over_policies

TITLES = {
    "overall": "Overall",
    "family": "By conflict family",
    "level": "By structural level",
    "suite": "By suite",
    "prompt": "By prompt condition",
    "qualified": "Capability-qualified failures: reference succeeds, conflict does not",
    "language_probe": "By language probe",
    "visual_probe": "By visual probe",
}

GROUPINGS = tuple(TITLES)
"""By what the measures are grouped."""


def measure_table(pairs: pa.Table, by: str) -> pa.Table:
    """One row a policy and group: every measure with its interval, and the number of pairs.

    Args:
        pairs: A table with ``pair_table.PAIR_COLUMNS``.
        by: One of ``GROUPINGS``. All but ``prompt`` are over P0, or for a policy without P0 over the first of its
            others. With ``qualified`` the process measures are means over the capability-qualified failures D_QF (the
            paper's Table III), n counts those, and FR is over D_Q, from which they come.

    Returns:
        Columns ``policy``, ``prompt``, the group's own where there is one, then for each measure its value, ``_lo``
        and ``_hi`` as fractions, and ``n``. NaN where undefined.

    Raises:
        NotFoundError: If ``by`` is not a grouping.
    """
    if by not in GROUPINGS:
        raise NotFoundError(f"no table by {by!r}: {choices(by, list(GROUPINGS))}")
    clusters = base_task_clusters(pairs)
    grouped_by = None if by in ("overall", "prompt", "qualified") else by
    groups = [*groups_of(pairs, grouped_by, primary_only=by != "prompt")]
    rows = [_row(pairs, clusters, group, grouped_by, qualified=by == "qualified") for group in groups]
    return pa.Table.from_pylist(rows, schema=_table_schema(grouped_by))


def measure_ratios(pairs: pa.Table) -> dict[str, Ratio]:
    """All measures of a set of pairs, by name, as ratios that can be resampled."""
    reference, conflict = success(pairs, "reference"), success(pairs, "conflict")
    ratios = {
        "PCSR": premise_consistent_success_rate(reference),
        "RGSR": reference_goal_success_rate(conflict),
        "dSR": success_rate_drop(reference, conflict),
        "FR": failure_rate(reference, conflict),
    }
    return ratios | {name: mean_of_defined(pairs[name].to_numpy()) for name in PROCESS_NAMES}


def shown_measures(by: str) -> tuple[Measure, ...]:
    """Measures worth a column: among qualified failures the outcomes are fixed by construction, except FR."""
    if by != "qualified":
        return MEASURES
    return tuple(measure for measure in MEASURES if measure.name in (*PROCESS_NAMES, "FR"))


def group_column(by: str) -> str | None:
    """The column that tells the rows of one policy apart; None where it has one row."""
    return None if by in ("overall", "qualified") else by


def undefined_reason(measure: str, value: Interval) -> str | None:
    """Why a value, or only its interval, is NaN; None where both are defined."""
    if np.isnan(value.value):
        return {
            "FR": "no pair whose reference rollout succeeds",
            "TAR": "no pair with a target that its reference rollout approached by 0.02 m",
        }.get(measure, "no pairs")
    return "pairs from fewer than two base tasks" if np.isnan(value.low) else None


def _row(pairs: pa.Table, clusters: IntArray, group: Group, column: str | None, *, qualified: bool) -> dict[str, Any]:
    found = _intervals(pairs, clusters, group.rows)
    count = len(group.rows)
    if qualified:
        chosen = pairs.take(pa.array(group.rows))
        failed = group.rows[qualified_failures(success(chosen, "reference"), success(chosen, "conflict"))]
        # FR says how many of D_Q failed; among the failures themselves it would be 1 by construction.
        found = _intervals(pairs, clusters, failed) | {"FR": found["FR"]}
        count = len(failed)
    row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "n": count}
    if column is not None:
        row[column] = group.name
    return row | values_of_intervals(found, found.values())


def _intervals(pairs: pa.Table, clusters: IntArray, rows: IntArray) -> dict[str, Interval]:
    ratios = measure_ratios(pairs.take(pa.array(rows)))
    return dict(zip(ratios, cluster_intervals([*ratios.values()], clusters[rows], generator()), strict=True))


def _table_schema(column: str | None) -> pa.Schema:
    keys = ["policy", "prompt", *([column] if column else [])]
    return pa.schema([*text_fields(*keys), *interval_fields(*MEASURE_NAMES), *count_fields("n")])


def _analysis(by: str) -> Analysis:
    group = group_column(by)
    keys = ("policy", "prompt") if group in (None, "prompt") else ("policy", "prompt", group)
    return Analysis(
        name=by,
        title=TITLES[by],
        note="Percent, with 95% intervals over base tasks.",
        compute=lambda scored: measure_table(_pairs_for(scored, by), by),
        labels=tuple(plain(name, name) for name in keys),
        numbers=(
            *(intervals(measure.name, f"{measure.symbol} {arrow(measure)}") for measure in shown_measures(by)),
            plain("n"),
        ),
        probes=by in PROBES,
        marks=extremes_by_policy if by == "family" else best_of_policies(group),
        means=means_over_policies(group),
    )


def _pairs_for(scored: ScoredPairs, by: str) -> pa.Table:
    """The pairs that a table is over: all levels of one kind of probe without the other, or none of either."""
    if by not in PROBES:
        return scored.pairs
    (other,) = set(PROBES) - {by}
    everything = pa.concat_tables([scored.pairs, scored.probed])
    return everything.filter(pc.equal(everything[other], PROBES[other]))


ANALYSES = tuple(map(_analysis, GROUPINGS))
