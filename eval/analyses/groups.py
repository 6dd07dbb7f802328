"""From pairs to tables: the mean over pairs in each group, with intervals over base tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import BoolArray, IntArray
from ...toolkit.errors import NotFoundError, choices
from ...toolkit.records import SUITES, Family, LanguageProbe, Level, Prompt, VisualProbe
from ..measures import MEASURE_NAMES, PROCESS_NAMES
from ..measures.outcome import (
    failure_rate,
    premise_consistent_success_rate,
    qualified_failures,
    reference_goal_success_rate,
    success_rate_drop,
)
from ..statistics.intervals import Interval, cluster_intervals
from ..statistics.ratio import Ratio, mean_of_defined
from ..statistics.resampling import generator

PROBES = {"language_probe": LanguageProbe.W0.value, "visual_probe": VisualProbe.V0.value}
"""Columns of probes, and their value where there is none."""

GROUPINGS = ("overall", "family", "level", "suite", "prompt", "qualified", *PROBES)
"""What ``Scores.table(by=)`` takes."""

ORDER: dict[str, tuple[str, ...]] = {
    "prompt": tuple(Prompt),
    "family": tuple(Family),
    "level": tuple(Level),
    "suite": SUITES,
    "language_probe": tuple(LanguageProbe),
    "visual_probe": tuple(VisualProbe),
}
"""Rows follow the paper's order; names that it does not know come after, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Pairs of one row of a table.

    Attributes:
        policy: Whose pairs they are.
        prompt: Under which prompt condition.
        name: The group's own name, such as ``spatial``; empty where the row is a whole policy.
        rows: Positions in the table of pairs, shape (n,).
    """

    policy: str
    prompt: str
    name: str
    rows: IntArray


def measure_table(pairs: pa.Table, by: str) -> pa.Table:
    """One row a policy and group: every measure with its interval, and the number of pairs.

    Args:
        pairs: A table with ``pair_table.PAIR_COLUMNS``.
        by: One of ``GROUPINGS``. All but ``prompt`` are over P0, or over P1 for a policy that has no other. With
            ``qualified`` the process measures are means over the capability-qualified failures D_QF (the paper's
            Table III), n counts those, and FR is over D_Q, from which they come.

    Returns:
        Columns ``policy``, ``prompt``, the group's own where there is one, then for each measure its value, ``_lo``
        and ``_hi`` as fractions, and ``n``. NaN where undefined.

    Raises:
        NotFoundError: If ``by`` is not a grouping.
    """
    if by not in GROUPINGS:
        raise NotFoundError(f"no table by {by!r}: {choices(by, list(GROUPINGS))}")
    clusters = base_task_clusters(pairs)
    column = None if by in ("overall", "prompt", "qualified") else by
    groups = [*groups_of(pairs, column, primary_only=by != "prompt")]
    rows = [_row(pairs, clusters, group, column, qualified=by == "qualified") for group in groups]
    return pa.Table.from_pylist(rows, schema=_table_schema(column))


def base_task_clusters(pairs: pa.Table) -> IntArray:
    """Number of each pair's base task, in the order of their names, shape (P,)."""
    names = pc.binary_join_element_wise(pairs["suite"], pairs["base_task"], "/")
    return np.asarray(np.unique(names.to_numpy().astype(str), return_inverse=True)[1], np.int64)


def groups_of(pairs: pa.Table, column: str | None, *, primary_only: bool) -> Iterator[Group]:
    """Groups of pairs by policy, prompt condition and, if given, one more column, in the tables' order.

    Args:
        pairs: A table with ``PAIR_COLUMNS``.
        column: ``family``, ``level``, ``suite``, one of ``PROBES``, or None.
        primary_only: Only P0, or only P1 for a policy without P0.
    """
    policies, prompts = (pairs[name].to_numpy() for name in ("policy", "prompt"))
    for policy in sorted(set(policies)):
        of_policy = policies == policy
        conditions = _ordered(set(prompts[of_policy]), "prompt")
        for prompt in conditions[:1] if primary_only else conditions:
            rows = np.flatnonzero(of_policy & (prompts == prompt))
            if column is None:
                yield Group(policy=policy, prompt=prompt, name="", rows=rows)
                continue
            values = pairs[column].to_numpy()[rows]
            for name in _ordered(set(values), column):
                yield Group(policy=policy, prompt=prompt, name=name, rows=rows[values == name])


def rows_where(table: pa.Table, values: Mapping[str, str]) -> pa.Table:
    """The rows with these values in these columns."""
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table


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


def success(pairs: pa.Table, arm: str) -> BoolArray:
    """y+ or y-, shape (P,), for ``reference`` or ``conflict``."""
    return np.asarray(pairs[f"{arm}_success"].to_numpy(), np.bool_)


def undefined_reason(measure: str, value: Interval) -> str | None:
    """Why a value, or only its interval, is NaN; None where both are defined."""
    if np.isnan(value.value):
        return {
            "FR": "no pair whose reference rollout succeeds",
            "TAR": "no pair with a target that its reference rollout approached by 0.02 m",
        }.get(measure, "no pairs")
    return "pairs from fewer than two base tasks" if np.isnan(value.low) else None


def _ordered(values: set[str], column: str) -> list[str]:
    known = ORDER[column]
    return sorted(values, key=lambda value: (known.index(value) if value in known else len(known), value))


def _row(pairs: pa.Table, clusters: IntArray, group: Group, column: str | None, *, qualified: bool) -> dict[str, Any]:
    intervals = _intervals(pairs, clusters, group.rows)
    count = len(group.rows)
    if qualified:
        chosen = pairs.take(pa.array(group.rows))
        failed = group.rows[qualified_failures(success(chosen, "reference"), success(chosen, "conflict"))]
        # FR says how many of D_Q failed; among the failures themselves it would be 1 by construction.
        intervals = _intervals(pairs, clusters, failed) | {"FR": intervals["FR"]}
        count = len(failed)
    row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "n": count}
    if column is not None:
        row[column] = group.name
    for name, interval in intervals.items():
        row |= {name: interval.value, f"{name}_lo": interval.low, f"{name}_hi": interval.high}
    return row


def _intervals(pairs: pa.Table, clusters: IntArray, rows: IntArray) -> dict[str, Interval]:
    ratios = measure_ratios(pairs.take(pa.array(rows)))
    return dict(zip(ratios, cluster_intervals([*ratios.values()], clusters[rows], generator()), strict=True))


def _table_schema(column: str | None) -> pa.Schema:
    keys = ["policy", "prompt", *([column] if column else [])]
    fields = [(name, pa.string()) for name in keys]
    for name in MEASURE_NAMES:
        fields += [(name, pa.float64()), (f"{name}_lo", pa.float64()), (f"{name}_hi", pa.float64())]
    return pa.schema([*fields, ("n", pa.int64())])
