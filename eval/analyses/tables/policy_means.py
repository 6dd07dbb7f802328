"""Means over policies, each counted once: over all of them, and over those of each architecture family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ....toolkit.records import POLICY_FAMILIES
from ...measures import MEASURES
from ...scoring.scored_pairs import ScoredPairs
from ..analysis import Analysis, Row
from ..columns import arrow, count_fields, number_fields, percents, plain, text_fields
from ..marks import mean_of_rows, numbers_by

ALL = "all"
"""In place of an architecture family or a conflict family: all of them."""

SCHEMA = pa.schema(
    [
        *text_fields("policy_family", "prompt", "family"),
        *number_fields(*(measure.name for measure in MEASURES)),
        *count_fields("policies"),
    ]
)


def policy_means(pairs: pa.Table, overall: pa.Table, by_family: pa.Table) -> pa.Table:
    """Unweighted means over policies, as the paper averages "equally across models".

    Args:
        pairs: With ``PAIR_COLUMNS``; says which architecture family each policy belongs to.
        overall: The measures of each policy.
        by_family: The same by conflict family.

    Returns:
        A row for each architecture family, the paper's first, and, where there are two or more policies, for ``all``;
        in it for ``all`` pairs and each conflict family. Each measure is the mean over the policies where it is
        defined, ``policies`` counts those that have pairs. Policies of no architecture family are in ``all`` alone.
    """
    families = policy_families(pairs)
    rows = [{**row, "family": ALL} for row in overall.to_pylist()] + by_family.to_pylist()
    named = [row for row in rows if families[row["policy"]] is not None]
    found: list[dict[str, Any]] = []
    for policy_family in sorted({family for family in families.values() if family is not None}, key=_paper_order):
        found += _means(policy_family, [row for row in named if families[row["policy"]] == policy_family])
    if len(families) > 1:
        found += _means(ALL, rows)
    return pa.Table.from_pylist(found, schema=SCHEMA)


def policy_families(pairs: pa.Table) -> dict[str, str | None]:
    """The architecture family of each policy, in the order of their names; several that were given it are joined.

    Args:
        pairs: With the columns ``policy`` and ``policy_family``.
    """
    given: dict[str, set[str]] = {}
    for row in (
        pairs.select(["policy", "policy_family"]).group_by(["policy", "policy_family"]).aggregate([]).to_pylist()
    ):
        given.setdefault(row["policy"], set()).update([row["policy_family"]] if row["policy_family"] else [])
    return {policy: " / ".join(sorted(given[policy])) or None for policy in sorted(given)}


def _paper_order(policy_family: str) -> tuple[int, str]:
    known = policy_family in POLICY_FAMILIES
    return (POLICY_FAMILIES.index(policy_family) if known else len(POLICY_FAMILIES), policy_family)


def _means(policy_family: str, rows: list[Row]) -> Iterator[dict[str, Any]]:
    for (prompt, family), numbers in numbers_by(rows, ("prompt", "family")).items():
        chosen = [rows[number] for number in numbers]
        means = mean_of_rows(chosen)
        yield {
            "policy_family": policy_family,
            "prompt": prompt,
            "family": family,
            **{measure.name: means[measure.name] for measure in MEASURES},
            "policies": len(chosen),
        }


def _compute(scored: ScoredPairs, overall: pa.Table, by_family: pa.Table) -> pa.Table:
    return policy_means(scored.pairs, overall, by_family)


ANALYSIS = Analysis(
    name="policy_means",
    title="Means over policies, by architecture family",
    note="Percent; unweighted means, so that each policy counts once. They have no interval: these policies are no "
    "sample of others.",
    compute=_compute,
    labels=(plain("policy_family"), plain("prompt"), plain("family")),
    numbers=(
        *(percents(measure.name, f"{measure.symbol} {arrow(measure)}") for measure in MEASURES),
        plain("policies"),
    ),
    uses=("overall", "family"),
)
