"""Matrices of a measure over two groupings: suites or conflict families down, structural levels across."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ....toolkit.records import Level
from ...measures import MEASURES
from ...statistics.intervals import cluster_intervals
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    column,
    count_fields,
    interval_fields,
    interval_values,
    intervals,
    measure_symbol,
    plain,
    text_fields,
)
from ..groups import base_task_clusters, groups_of
from .measures import measure_ratios

LEVELS = tuple(level.value for level in Level)


def level_matrix(pairs: pa.Table, down: str) -> pa.Table:
    """Every measure by another grouping and by level.

    Args:
        pairs: With ``PAIR_COLUMNS``.
        down: ``suite`` or ``family``.

    Returns:
        A row for each policy, measure and value of ``down``: ``L1`` to ``L4`` with ``_lo`` and ``_hi`` as fractions,
        NaN where there is no pair or it is undefined, and ``L1_n`` to ``L4_n``, the pairs.
    """
    clusters, levels = base_task_clusters(pairs), pairs["level"].to_numpy()
    rows: list[dict[str, Any]] = []
    for group in groups_of(pairs, down, primary_only=True):
        found: dict[str, dict[str, Any]] = {
            measure.name: {"policy": group.policy, "prompt": group.prompt, "measure": measure.name, down: group.name}
            for measure in MEASURES
        }
        for level in LEVELS:
            cell = group.rows[levels[group.rows] == level]
            ratios = measure_ratios(pairs.take(pa.array(cell)))
            values = cluster_intervals([*ratios.values()], clusters[cell], generator())
            for name, interval in zip(ratios, values, strict=True):
                found[name] |= {**interval_values(level, interval), f"{level}_n": len(cell)}
        rows += found.values()
    order = {measure.name: place for place, measure in enumerate(MEASURES)}
    policies = {row["policy"]: place for place, row in enumerate(rows)}
    rows.sort(key=lambda row: (policies[row["policy"]], order[row["measure"]]))
    return pa.Table.from_pylist(rows, schema=_schema(down))


def _schema(down: str) -> pa.Schema:
    keys = text_fields("policy", "prompt", "measure", down)
    return pa.schema([*keys, *interval_fields(*LEVELS), *count_fields(*(f"{level}_n" for level in LEVELS))])


def _analysis(down: str, title: str) -> Analysis:
    return Analysis(
        name=f"{down}_level",
        title=title,
        note="Percent, with 95% intervals over base tasks.",
        compute=lambda scored: level_matrix(scored.pairs, down),
        labels=(plain("policy"), plain("prompt"), column("measure", measure_symbol), plain(down)),
        numbers=(
            *map(intervals, LEVELS),
            column("n", lambda row: " / ".join(str(row[f"{level}_n"]) for level in LEVELS)),
        ),
    )


ANALYSES = (
    _analysis("suite", "By suite and structural level"),
    _analysis("family", "By conflict family and structural level"),
)
